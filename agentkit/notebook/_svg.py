"""A layout as SVG, to stand in a page as it is: no scripts, no fonts, nothing fetched."""

from html import escape

from agentkit.notebook._layout import Box, Layout, Line

_ENDS = ("__start__", "__end__")
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'
_ARROW = (
    '<defs><marker id="agentkit-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>'
)


def svg(drawing: Layout) -> str:
    """The drawing as an `<svg>` element."""
    size = f'width="{drawing.width:.0f}" height="{drawing.height:.0f}"'
    box = f'viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}"'
    lines = "".join(_line(line, drawing) for line in drawing.lines)
    boxes = "".join(map(_box, drawing.boxes.values()))
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" {_FONT}>{_ARROW}{lines}{boxes}</svg>'


def _box(box: Box) -> str:
    end = box.name.rsplit(":", 1)[-1] in _ENDS
    fill, stroke = ("#e8e8ee", "#9a9aa8") if end else ("#eef3ff", "#5b7bd5")
    left, top = box.x - box.width / 2, box.y - box.height / 2
    radius = box.height / 2 if end else 6
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.0f}" '
        f'fill="{fill}" stroke="{stroke}"/>'
        f'<text x="{box.x:.1f}" y="{box.y + 4.5:.1f}" text-anchor="middle" fill="#223">{escape(box.label)}</text>'
    )


def _line(line: Line, drawing: Layout) -> str:
    source, target = drawing.boxes[line.source], drawing.boxes[line.target]
    dash = ' stroke-dasharray="5 4"' if line.conditional else ""
    return (
        f'<path d="{_path(source, target, back=line.back)}" fill="none" stroke="#888" stroke-width="1.3"{dash} '
        'marker-end="url(#agentkit-arrow)"/>'
    )


def _path(source: Box, target: Box, *, back: bool) -> str:
    if back:  # around the right side
        start, end = source.x + source.width / 2, target.x + target.width / 2
        side = max(start, end) + 44
        points = [(start, source.y), (side, source.y), (side, target.y), (end, target.y)]
    else:
        top, bottom = source.y + source.height / 2, target.y - target.height / 2
        middle = (top + bottom) / 2
        points = [(source.x, top), (source.x, middle), (target.x, middle), (target.x, bottom)]
    first, *bend = (f"{x:.1f},{y:.1f}" for x, y in points)
    return f"M{first} C{' '.join(bend)}"

"""Where the boxes and lines of a graph's drawing go: layers from top to bottom, in numbers only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_CHARACTER, _PADDING, _HEIGHT, _GAP, _LAYER = 7.2, 28.0, 34.0, 26.0, 76.0


@dataclass(frozen=True, kw_only=True)
class Box:
    """A node: the middle of its box, and its size, in pixels."""

    name: str
    label: str
    x: float
    y: float
    width: float
    height: float = _HEIGHT


@dataclass(frozen=True, kw_only=True)
class Line:
    """An edge between two boxes. `back` is one that leads upwards or stays in its layer."""

    source: str
    target: str
    conditional: bool
    back: bool


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A drawing: boxes, lines, and the size of the whole."""

    boxes: Mapping[str, Box]
    lines: Sequence[Line]
    width: float
    height: float


def layout(labels: Mapping[str, str], edges: Iterable[tuple[str, str, bool]]) -> Layout:
    """Place nodes (id → label) and edges (source, target, conditional) in layers. The first node is the entry.

    Pure and deterministic. Each node stands below all that lead to it, except along edges that close a loop.
    """
    unique = {(source, target): conditional for source, target, conditional in edges}
    layers = _layers(list(labels), list(unique))
    rows: dict[int, list[str]] = {}
    for name in labels:
        rows.setdefault(layers[name], []).append(name)
    widths = {name: max(64.0, len(label) * _CHARACTER + _PADDING) for name, label in labels.items()}
    spans = {row: sum(widths[name] for name in names) + _GAP * (len(names) - 1) for row, names in rows.items()}
    inner = max(spans.values(), default=0.0)
    margin = 70.0  # for the lines that lead back
    boxes: dict[str, Box] = {}
    for row, names in rows.items():
        left = margin + (inner - spans[row]) / 2
        for name in names:
            x, y = left + widths[name] / 2, 24 + row * _LAYER
            boxes[name] = Box(name=name, label=labels[name], x=x, y=y, width=widths[name])
            left += widths[name] + _GAP
    lines = [
        Line(source=source, target=target, conditional=conditional, back=layers[target] <= layers[source])
        for (source, target), conditional in unique.items()
        if source in boxes and target in boxes
    ]
    return Layout(boxes=boxes, lines=lines, width=inner + 2 * margin, height=48 + max(rows, default=0) * _LAYER)


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layer of each node: the longest way to it, without the edges that close loops."""
    following: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        if source in following and target in following:
            following[source].append(target)
    forward, order = _without_loops(names, following)
    layers = dict.fromkeys(names, 0)
    for name in order:
        for target in forward[name]:
            layers[target] = max(layers[target], layers[name] + 1)
    return layers


def _without_loops(
    names: Sequence[str], following: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[str]], list[str]]:
    """The edges that close no loop, and the nodes in an order in which all these edges lead forward."""
    forward: dict[str, list[str]] = {name: [] for name in names}
    done: list[str] = []
    state: dict[str, int] = {}  # 1 on the way, 2 done
    for start in names:
        if start in state:
            continue
        state[start] = 1
        stack = [(start, iter(following[start]))]
        while stack:
            name, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                state[name] = 2
                done.append(name)
                stack.pop()
            elif state.get(target) != 1:
                forward[name].append(target)
                if target not in state:
                    state[target] = 1
                    stack.append((target, iter(following[target])))
    return forward, done[::-1]

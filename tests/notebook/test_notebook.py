"""Notebooks: what a cell shows, offline, and the tour, executed cell by cell."""

import asyncio
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import nbformat
import pytest

from agentkit.agents import as_tool, create_agent
from agentkit.notebook import html, register, show
from agentkit.notebook._layout import layout
from agentkit.testing import ScriptedModel
from agentkit.tools import tool
from graphs import assistant, team, workflow

TOUR = Path(__file__).parents[2] / "graphs" / "notebooks" / "tour.ipynb"

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Jupyter's packages say of each other
    from nbclient import NotebookClient


def executed(notebook: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": "."}}).execute()
    return notebook


@pytest.fixture(scope="module")
def tour() -> list[Any]:
    """The cells with code, after they have run."""
    notebook = executed(nbformat.read(TOUR, as_version=4))
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def plain(cell: Any) -> str:
    return "".join(output.get("data", {}).get("text/plain", output.get("text", "")) for output in cell.outputs)


def of(cells: list[Any], text: str) -> Any:
    (found,) = [cell for cell in cells if text in cell.source]
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("cell", "shows"),
    [
        ("1/0, six*7?", ["('multiply', 'success', '42')", "ZeroDivisionError", "'error'"]),
        ('stream_mode="updates"', ["['model']\n['tools']\n['model']"]),
        ("output = await agent.ainvoke", ["'6'"]),
        ("class Notes", ["['one', 'two', 'three']"]),
        ('"second", "ann"', ["The user likes tea.", "'nothing is known"]),
        ("def pay", ["['pay 5 euros?', 'pay 500 euros?']"]),
        ("Command(resume=answers)", ["['paid 5 euros', 'not paid']"]),
        ("output = run_headless", ['{"city": "Berlin"}', "You are in Berlin."]),
        ("await arun_headless", ["'You are in Seoul.'"]),
    ],
)
def test_the_tour_shows_what_it_says(tour: list[Any], cell: str, shows: list[str]) -> None:
    said = plain(of(tour, cell))
    for each in shows:
        assert each in said


def test_an_agent_at_the_end_of_a_cell_is_drawn_in_the_page(tour: list[Any]) -> None:
    for cell, name in ((of(tour, 'name="calculator"'), "calculator"), (of(tour, "from graphs.team"), "team")):
        (output,) = cell.outputs
        assert output.output_type == "execute_result"
        assert name in output.data["text/html"]
        assert "<svg" in output.data["text/html"]
        assert "image/png" not in output.data


def drawn(graph: Any) -> ET.Element:
    page = html(graph)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "nothing is fetched"
    assert "<script" not in page
    return ET.fromstring(page)


@pytest.mark.parametrize("module", [assistant, team, workflow])
def test_a_page_holds_every_node_and_every_tool(module: Any) -> None:
    root = drawn(module.graph)
    boxes = {each.text for each in root.iter("{http://www.w3.org/2000/svg}text")}
    nodes = module.graph.get_graph(xray=True).nodes
    assert boxes == {node.name for node in nodes.values()}
    tools = {each.text for each in root.iter("code")}
    wanted = {"assistant": "timer", "team": "calculator", "workflow": "book_expense"}
    assert wanted[module.graph.get_name()] in tools


def test_what_a_name_or_a_description_says_is_no_markup() -> None:
    @tool(description="<img src=x onerror=alert(1)> & more")
    def harmless() -> str:
        return ""

    page = html(create_agent(ScriptedModel([]), [harmless], name="<b>bold</b>"))
    assert "<img" not in page
    assert "<b>bold" not in page
    assert "&lt;img src=x onerror=alert(1)&gt; &amp; more" in page


def test_tools_that_run_elsewhere_are_marked() -> None:
    away = tool(name="away", description="Runs in the browser.", args_schema={"type": "object"})
    inner = as_tool(create_agent(ScriptedModel([])), name="inner", description="Knows.")
    page = html(create_agent(ScriptedModel([]), [away, inner]))
    assert "<code>away</code></td><td>runs in the client" in page
    assert "<code>inner</code></td><td>agent" in page


def test_shown_anywhere_it_is_html_and_text() -> None:
    shown = show(assistant.graph)
    assert shown._repr_html_() == html(assistant.graph)
    assert repr(shown).startswith("<graph 'assistant': nodes model, tools; tools calculate")


def test_without_ipython_nothing_is_registered() -> None:
    assert register() is False


def test_boxes_stand_below_what_leads_to_them_and_do_not_overlap() -> None:
    edges = [
        ("a", "b", False),
        ("a", "c", True),
        ("b", "d", False),
        ("c", "d", False),
        ("d", "a", True),
        ("d", "d", True),
    ]
    drawing = layout({name: f"node {name}" * 4 for name in "abcd"}, edges)
    boxes = drawing.boxes
    assert boxes["a"].y < boxes["b"].y == boxes["c"].y < boxes["d"].y
    assert boxes["b"].x + boxes["b"].width / 2 < boxes["c"].x - boxes["c"].width / 2
    assert {(line.source, line.target) for line in drawing.lines if line.back} == {("d", "a"), ("d", "d")}
    assert all(box.x - box.width / 2 > 0 and box.x + box.width / 2 < drawing.width for box in boxes.values())
    assert layout({}, []).boxes == {}


async def test_sync_calls_work_inside_a_running_loop() -> None:
    agent = create_agent(ScriptedModel(["hi", "hi"]), [])
    assert agent.invoke({"messages": [("user", "x")]})["messages"][-1].content == "hi"
    assert list(agent.stream({"messages": [("user", "x")]}))
    assert asyncio.get_running_loop().is_running()

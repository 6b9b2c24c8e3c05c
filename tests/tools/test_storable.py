"""What a tool returns can be kept by the checkpointer, or the model is told so and the thread goes on (kind K7)."""

import dataclasses
import enum
import math
import re
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypedDict

import pytest
from batches import Run, ask, graph_of, paired, results
from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import AnyUrl, BaseModel

from agentkit.messages import add_history
from agentkit.tools import ToolNode, ToolRuntime, tool


class Kept(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_history]
    note: Any


class Link(BaseModel):
    url: AnyUrl


class Size(enum.Enum):
    BIG = "big"


@dataclasses.dataclass
class Box:
    size: Size
    label: str


def local_class() -> Any:
    @dataclasses.dataclass
    class Local:
        x: int

    return Local(1)


def noting(value: Any) -> Any:
    @tool
    def note(runtime: ToolRuntime) -> Command:
        """Write the value to the state."""
        return Command(update={"note": value, "messages": [ToolMessage("ok", tool_call_id=runtime.tool_call_id)]})

    return note


@tool
def plain() -> str:
    """Work."""
    return "fine"


def kept(run: Run, saver: Any, node: ToolNode, name: str) -> tuple[Any, Any]:
    """What a batch of the tool and a plain one gave, and what the thread holds afterwards."""
    graph = graph_of(node, state=Kept, checkpointer=saver)
    config: Any = {"configurable": {"thread_id": uuid.uuid4().hex}}
    output = run(graph, {"messages": [ask((name, {}, "c1"), ("plain", {}, "c2"))]}, config)
    assert paired(output["messages"])
    assert results(output)[1].content == "fine"
    return output, graph.get_state(config).values


REFUSED = {
    "NUL in a text": ("a\x00b", "note contains a NUL character"),
    "NUL deep in a value": ({"rows": [{"name": "a\x00"}]}, r"note\['rows'\]\[0\]\['name'\] contains a NUL"),
    "NUL in a key": ({"a\x00": 1}, "a key of note contains a NUL"),
    "a lone surrogate": ("a\ud800b", "note contains a lone surrogate at position 1"),
    "NaN": (math.nan, "note is nan"),
    "infinity": (-math.inf, "note is -inf"),
    "a class made in a function": (local_class(), "note \\(local_class.<locals>.Local\\)"),
    "a function": (lambda: 1, "note \\(<lambda>|note \\(function"),
}


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_kept_is_an_error_result_that_names_the_path(
    checkpointer: BaseCheckpointSaver[Any], value: Any, why: str
) -> None:
    output, held = kept(Run("sync"), checkpointer, ToolNode([noting(value), plain]), "note")
    error = results(output)[0]
    assert error.status == "error"
    assert re.search(why, str(error.content)), error.content
    assert "note" not in held


KEPT = {
    "text": "é 한국어 😀",
    "numbers": [1, 2.5, True, None, 10**30],
    "NaN deep in a value": {"row": [1.0, 2.0]},
    "a model": Link(url=AnyUrl("https://example.com/x")),
    "a dataclass with an enum": Box(Size.BIG, "a"),
    "an enum": Size.BIG,
    "a time": datetime(2026, 1, 1, tzinfo=UTC),
    "a decimal": Decimal("1.10"),
    "an id": uuid.UUID(int=7),
    "a set": {1, 2},
}


@pytest.mark.parametrize("value", KEPT.values(), ids=KEPT)
def test_what_comes_back_has_the_type_it_had_or_is_refused(checkpointer: BaseCheckpointSaver[Any], value: Any) -> None:
    output, held = kept(Run("sync"), checkpointer, ToolNode([noting(value), plain]), "note")
    if results(output)[0].status == "error":
        assert "cannot be stored" in str(results(output)[0].content)
        assert "note" not in held
    else:
        assert type(held["note"]) is type(value)
        assert held["note"] == value


def test_an_artifact_is_checked_like_a_state_update(run: Run) -> None:
    @tool(response_format="content_and_artifact")
    def fetch() -> Any:
        """Return an artifact that is no data."""
        return "shown", {"handle": lambda: 1}

    output, _ = kept(run, InMemorySaver(), ToolNode([fetch, plain]), "fetch")
    assert results(output)[0].status == "error"
    assert "artifact" in str(results(output)[0].content)


def test_a_model_with_a_url_as_artifact_leaves_the_thread_usable(checkpointer: BaseCheckpointSaver[Any]) -> None:
    @tool(response_format="content_and_artifact")
    def fetch() -> Any:
        """Return an artifact with a URL."""
        return "shown", Link(url=AnyUrl("https://example.com"))

    _, held = kept(Run("sync"), checkpointer, ToolNode([fetch, plain]), "fetch")
    assert len(held["messages"]) == 3


def test_the_text_of_a_result_is_cleaned_not_refused(checkpointer: BaseCheckpointSaver[Any]) -> None:
    @tool
    def dirty() -> str:
        """Return what no database takes."""
        return "a\x00b\ud800c"

    output, held = kept(Run("sync"), checkpointer, ToolNode([dirty, plain]), "dirty")
    assert results(output)[0].content == results(held)[0].content == "a\ufffdb\ufffdc"


def test_without_a_checkpointer_nothing_is_refused(run: Run) -> None:
    output = run(graph_of(ToolNode([noting(local_class())]), state=Kept), {"messages": [ask(("note", {}, "c1"))]})
    assert output["note"].x == 1

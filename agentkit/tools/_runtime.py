"""What a tool's body gets of the run it belongs to."""

from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypedDict

from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, ToolException
from langgraph.prebuilt import InjectedState, InjectedStore
from langgraph.prebuilt import ToolRuntime as LangGraphToolRuntime
from langgraph.runtime import get_runtime
from typing_extensions import TypeVar

from agentkit.errors import InjectionError

__all__ = [
    "BaseTool",
    "InjectedState",
    "InjectedStore",
    "InjectedToolArg",
    "InjectedToolCallId",
    "LangGraphToolRuntime",
    "ToolException",
    "ToolProgress",
    "ToolRuntime",
    "get_runtime",
]

ContextT = TypeVar("ContextT", default=None)
StateT = TypeVar("StateT", default=dict[str, Any])


class ToolProgress(TypedDict):
    """The custom event that `ToolRuntime.progress` writes; seen with `stream_mode="custom"`."""

    type: Literal["tool_progress"]
    tool_call_id: str | None
    name: str
    done: float
    total: float | None
    note: str | None


@dataclass
class ToolRuntime(LangGraphToolRuntime[ContextT, StateT], Generic[ContextT, StateT]):
    """The run, as one tool call sees it: annotate a parameter with it and it is filled in, hidden from the model.

    It holds what langgraph's `ToolRuntime` holds (`state`, `context`, `config`, `stream_writer`, `tool_call_id`,
    `store`, `tools`, `execution_info`, `server_info`), and in addition:

    - `tool_name`: the name of the tool that is called.
    - `idempotency_key`: the same string whenever this very call is run again (a retry, a resumed run, another worker),
      and for no other call. Hand it to services that take such a key. None outside a graph.
    - `transaction()`: a database transaction that the tool's writes and the record of its result share.

    `state` is the graph's own object: read it, and change it only by returning a `Command`.
    """

    tool_name: str = ""
    idempotency_key: str | None = None
    _transaction: Any = field(default=None, repr=False, compare=False)

    def transaction(self) -> Any:
        """A transaction of the checkpointer's Postgres that what the tool writes and the record of its result share.

        `with runtime.transaction() as conn:` gives a psycopg connection, `async with` an asynchronous one. It is
        committed together with the record when the tool returns; an error, a question or a crash leaves neither. So the
        effect happens exactly once. Do not commit on `conn`, and do nothing else in the tool that must not be repeated.

        Raises:
            InjectionError: the tool's policy is not `transactional`, or the run has no Postgres checkpointer.
        """
        if self._transaction is None:
            raise InjectionError(
                f"tool {self.tool_name!r} asks for a transaction: give it ToolPolicy(transactional=True) and run "
                "it in a graph with a Postgres checkpointer and durability 'sync' or 'async'"
            )
        return self._transaction()

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Tell whoever streams this run how far the call is.

        Writes one `ToolProgress` event to the stream writer at once; does nothing where nobody streams.

        Args:
            done: how much is done, in any unit.
            total: how much there is to do, in the same unit; None where that is not known.
            note: a short text for people.
        """
        event: ToolProgress = {
            "type": "tool_progress",
            "tool_call_id": self.tool_call_id,
            "name": self.tool_name,
            "done": done,
            "total": total,
            "note": note,
        }
        self.stream_writer(event)

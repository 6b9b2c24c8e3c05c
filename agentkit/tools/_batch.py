"""What one invocation of the tools node is asked to run: which calls, of which AI message, seeing which state."""

import uuid
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.runtime import ExecutionInfo, Runtime

from agentkit.messages import ensure_call_ids, open_calls, owner_of, unreadable_calls
from agentkit.tools._call import Running
from agentkit.tools._langgraph import can_run_tasks, checkpointer_of, is_resuming, state_of
from agentkit.tools._ledger_io import ledger_at
from agentkit.tools._offered import offered_names
from agentkit.tools._runtime import ToolRuntime
from agentkit.tools._turn import Alone, Turn, turn_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """The calls of one invocation, in call order.

    `form` is how they came: "call" (given directly; one of them where it is a Send), "state", or "list" (of messages).
    `unreadable` are calls that could not be parsed: they are answered and not run. `renamed` says that the AI message
    got call ids here and has to be written back.
    """

    form: Literal["call", "state", "list"]
    calls: Sequence[ToolCall]
    unreadable: Sequence[InvalidToolCall]
    message: AIMessage | None
    renamed: bool
    state: Any
    messages: Sequence[BaseMessage]
    messages_key: str
    runtime: Runtime[Any]
    config: RunnableConfig
    turn: Turn
    step: Hashable
    in_graph: bool
    offered: Collection[str] | None
    saver: Any
    resuming: bool
    ran: list[Running]

    @property
    def siblings(self) -> Sequence[ToolCall]:
        """All calls of the AI message, where it is known; else those of this invocation."""
        return self.calls if self.message is None else self.message.tool_calls

    @property
    def shared(self) -> bool:
        """Whether the other calls of this batch run in tasks of their own."""
        return self.step is not None

    def expected(self) -> frozenset[int] | None:
        """The indexes of the calls open in this step; None where a part may have ended in another process."""
        if self.saver is not None and self.turn.ledger is None and self.resuming and not self.turn.finished:
            return None
        open_ids = {call["id"] for call in open_calls(self.messages)}
        return frozenset(index for index, call in enumerate(self.siblings) if call["id"] in open_ids)

    def running(self, position: int, config: RunnableConfig, tools: list[BaseTool]) -> Running:
        """The call at `position`, ready to run with this config."""
        call, runtime, siblings = self.calls[position], self.runtime, self.siblings
        index = next((i for i, other in enumerate(siblings) if other["id"] == call["id"]), position)
        running = Running(
            call=call,
            index=index,
            messages=self.messages,
            state=self.state,
            runtime=ToolRuntime(
                state=self.state,
                context=runtime.context,
                config=config,
                stream_writer=runtime.stream_writer,
                tool_call_id=call["id"],
                store=runtime.store,
                tools=tools,
                execution_info=runtime.execution_info,
                server_info=runtime.server_info,
                tool_name=call["name"],
                idempotency_key=_idempotency_key(runtime, self.message, call),
            ),
            config=config,
            turn=self.turn,
            offered=self.offered,
            saver=self.saver,
            siblings=siblings,
            message_id=(self.message.id if self.message is not None else None) or "",
            resuming=self.resuming,
        )
        self.ran.append(running)
        return running


def open_batch(
    given: Any, config: RunnableConfig, runtime: Runtime[Any], messages_key: str, *, offered_only: bool
) -> Batch:
    """Find the calls to run in what the node was given.

    Raises:
        ValueError: there are no messages, or no AI message among them.
    """
    form: Literal["call", "state", "list"]
    unreadable: Sequence[InvalidToolCall] = ()
    if _is_call(given):
        form, state = "call", state_of(config) if isinstance(given, list) else given["state"]
        asked = given if isinstance(given, list) else [given["tool_call"]]
        messages = messages_of(state, messages_key)
        message, renamed = owner_of(messages, asked[0]["id"] or ""), False
        unreadable = [call for call in asked if call.get("type") == "invalid_tool_call"]
        calls: Sequence[ToolCall] = [call for call in asked if call not in unreadable] if unreadable else asked
    else:
        form, state = ("list" if isinstance(given, list) else "state"), given
        messages = messages_of(state, messages_key)
        message, later, renamed = _last_ai(messages, messages_key)
        calls = open_calls([message, *later])
        unreadable = unreadable_calls([message, *later]) if message.invalid_tool_calls else ()
    info = runtime.execution_info if isinstance(runtime.execution_info, ExecutionInfo) else None
    alone = len(calls) == 1 and (message is None or len(message.tool_calls) == 1)
    shared = form == "call" and len(calls) == 1 and not alone and info is not None
    step = (info.checkpoint_ns.rpartition("|")[0], info.checkpoint_id) if shared and info is not None else None
    saver = checkpointer_of(config)
    turn = Alone() if alone else Turn() if step is None else turn_at(step)
    if saver is not None and info is not None and turn.ledger is None:
        turn.ledger = ledger_at(saver, info, config)
    return Batch(
        form=form,
        calls=calls,
        unreadable=unreadable,
        message=message,
        renamed=renamed,
        state=state,
        messages=messages,
        messages_key=messages_key,
        runtime=runtime,
        config=config,
        turn=turn,
        step=step,
        in_graph=can_run_tasks(config),
        offered=offered_names(state, message.id if message else None, required=offered_only),
        saver=saver,
        resuming=saver is not None and is_resuming(config),
        ran=[],
    )


def messages_of(state: Any, key: str) -> Sequence[BaseMessage]:
    """The messages in a state: a dict, an object, or the list itself."""
    if isinstance(state, list):
        return state
    found = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    return found or ()


def _is_call(given: Any) -> bool:
    if isinstance(given, dict):
        return given.get("__type") == "tool_call_with_context"
    if not (isinstance(given, list) and given and isinstance(given[-1], dict)):
        return False
    return given[-1].get("type") in ("tool_call", "invalid_tool_call")


def _last_ai(messages: Sequence[BaseMessage], key: str) -> tuple[AIMessage, Sequence[BaseMessage], bool]:
    """The last AI message with ids on its calls, what comes after it, and whether it had to be given ids."""
    if not messages:
        raise ValueError(f"No message found in input: a ToolNode needs messages, under {key!r} in a state")
    for position in range(len(messages) - 1, -1, -1):
        given = messages[position]
        if isinstance(given, AIMessage):
            message = ensure_call_ids(given)
            return message, messages[position + 1 :], message is not given
    raise ValueError("No AIMessage found in input: a ToolNode runs the open calls of the last AI message")


def _idempotency_key(runtime: Runtime[Any], message: AIMessage | None, call: ToolCall) -> str | None:
    """The same for every run of this call and for no other: thread (or run), AI message, call."""
    info = runtime.execution_info
    if not isinstance(info, ExecutionInfo):
        return None
    where = info.thread_id or info.run_id or info.checkpoint_id
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{where}/{message.id if message else ''}/{call['id']}"))

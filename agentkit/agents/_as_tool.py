"""An agent as a tool of another agent."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.errors import GraphInterrupt
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot
from pydantic import BaseModel, Field, SkipValidation

from agentkit.agents._channels import log
from agentkit.errors import DefinitionError
from agentkit.messages import open_calls, owner_of
from agentkit.tools import ToolPolicy, ToolRuntime
from agentkit.tools._classes import runs_as_langchain
from agentkit.tools._content import to_json
from agentkit.tools._function_tool import FunctionTool
from agentkit.tools._langgraph import checkpointer_of, nested_at
from agentkit.tools._names import check_name
from agentkit.tools._policy import attach_policy

__all__ = ["AgentTool", "as_tool"]

Agent = Pregel[Any, Any, Any, Any]
Memory = Literal["call", "thread"]

_OWNER = "agentkit_call"  # in the metadata of a subagent's checkpoints: (AI message id, call id) of the call they serve


class _Request(BaseModel):
    request: str = Field(
        description="What to do, with everything that is needed to do it: the other agent sees nothing else."
    )


@runs_as_langchain
class AgentTool(FunctionTool):
    """An agent that other agents call as a tool. Made by `as_tool`."""

    agent: Annotated[Any, SkipValidation()]

    def get_state(self, checkpointer: BaseCheckpointSaver[Any], config: RunnableConfig, call_id: str) -> StateSnapshot:
        """The subagent's state as the call `call_id` of this thread left it: its messages, what is next, its questions.

        Args:
            checkpointer: the one that keeps the thread.
            config: with the `thread_id`.
            call_id: the id of the tool call, as in the calling agent's AI message.

        Raises:
            LookupError: this thread keeps nothing of such a call.
        """
        where = _thread(config)
        at = _newest(list(checkpointer.list(where, filter=self._marks(call_id))), self.name, call_id)
        return self._kept_by(checkpointer).get_state(at)

    async def aget_state(
        self, checkpointer: BaseCheckpointSaver[Any], config: RunnableConfig, call_id: str
    ) -> StateSnapshot:
        """`get_state`, awaiting the checkpointer."""
        where = _thread(config)
        found = [each async for each in checkpointer.alist(where, filter=self._marks(call_id))]
        at = _newest(found, self.name, call_id)
        return await self._kept_by(checkpointer).aget_state(at)

    def _marks(self, call_id: str) -> dict[str, Any]:
        return {"tool_call_id": call_id, "agentkit_tool": self.name}

    def _kept_by(self, checkpointer: BaseCheckpointSaver[Any]) -> Agent:
        agent: Agent = self.agent
        return agent.copy({"checkpointer": checkpointer})


def as_tool(
    agent: Agent,
    *,
    name: str | None = None,
    description: str,
    memory: Memory = "call",
    return_direct: bool = False,
    policy: ToolPolicy | None = None,
) -> AgentTool:
    """Make an agent a tool of another one: the model gives it a request, and gets its last answer as the result.

    The subagent runs inside the call: its questions (approvals, headless tools) are questions of the whole run, a
    cancelled run cancels it, and after a crash it goes on from its own checkpoints. Its streamed events come under a
    namespace of this call, and their metadata has the `tool_call_id`. A structured answer is returned as JSON.

    Args:
        agent: what `create_agent` returned, or any graph whose state has `messages`. Its own checkpointer and store
            are not used: those of the calling agent are.
        name: the tool's name; the agent's own if not given.
        description: when to call it, for the calling model.
        memory: "call": each call starts anew, in a namespace of its own, so that parallel calls keep separate
            histories. "thread": the subagent remembers its earlier calls in this thread, and its calls of one batch run
            one after the other, in call order, on one history.
        return_direct: the subagent's answer ends the calling agent's run.
        policy: how calls are run. A call in flight when the process died is always taken up again.

    Raises:
        DefinitionError: there is no usable name or description, or `memory` is something else.
    """
    if not isinstance(agent, Pregel):
        raise DefinitionError(f"as_tool makes a tool of a compiled graph, not of {type(agent).__name__}")
    if memory not in ("call", "thread"):
        raise DefinitionError(f"as_tool: memory={memory!r} is not known; use 'call' or 'thread'")
    if not description or not description.strip():
        raise DefinitionError("as_tool needs a description: it is all that the calling model knows of the agent")
    tool_name = check_name(name if name is not None else _own_name(agent))
    if agent.checkpointer not in (None, False):
        agent = agent.copy({"checkpointer": None})
    runner = _Runner(agent=agent, name=tool_name, memory=memory)
    made = AgentTool(
        name=tool_name,
        description=description.strip(),
        args_schema=_Request,
        func=runner.run,
        coroutine=runner.arun,
        return_direct=return_direct,
        agent=agent,
    )
    policy = policy or ToolPolicy()
    changes: dict[str, Any] = {"on_crash": "rerun"}
    if memory == "thread":
        changes |= {"limit": 1, "group": None}
    attach_policy(made, dataclasses.replace(policy, **changes))
    return made


def _own_name(agent: Agent) -> str:
    name = agent.get_name()
    if name in ("LangGraph", type(agent).__name__):
        raise DefinitionError("as_tool needs a name: give name=, or create_agent(…, name=…)")
    return name


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Runner:
    """The bodies of an AgentTool."""

    agent: Agent
    name: str
    memory: Memory

    def run(self, request: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Run the subagent for one call."""
        config = None  # the node's own, which langgraph finds by itself
        if (pinned := self._pinned(runtime.config)) is not None:
            config = self._at(pinned, self.agent.get_state(_peek(runtime.config, pinned)), runtime)
        return _answer_in(self._marked(runtime).invoke(_given(request), config))

    async def arun(self, request: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Run the subagent for one call, awaiting it."""
        config = None
        if (pinned := self._pinned(runtime.config)) is not None:
            config = self._at(pinned, await self.agent.aget_state(_peek(runtime.config, pinned)), runtime)
        return _answer_in(await self._marked(runtime).ainvoke(_given(request), config))

    def _marked(self, runtime: ToolRuntime[Any, Any]) -> Agent:
        """The agent, its events and checkpoints marked with the call they serve."""
        owner = _owner_key(runtime)
        marks = {"tool_call_id": runtime.tool_call_id, "agentkit_tool": self.name, _OWNER: owner}
        return self.agent.with_config({"metadata": marks})

    def _pinned(self, config: RunnableConfig) -> str | None:
        """The namespace that all calls of this thread share; None where each has its own, or nothing is kept."""
        if self.memory == "call" or checkpointer_of(config) is None or self.agent.checkpointer is False:
            return None
        *outer, node = str(config.get("configurable", {}).get("checkpoint_ns", "")).split("|")
        outer = [_without_task(segment) for segment in outer if not segment.isdigit()]
        return "|".join([*outer, f"{node.split(':')[0]}.{self.name}"])

    def _at(self, namespace: str, kept: StateSnapshot, runtime: ToolRuntime[Any, Any]) -> RunnableConfig:
        """The config to run with in the shared namespace, given what is there."""
        owner = (kept.metadata or {}).get(_OWNER)
        mine = owner is not None and owner == _owner_key(runtime)
        if kept.interrupts and not mine and owner in _open_siblings(runtime):
            # An earlier call of this batch waits for an answer, in the middle of the history we would add to.
            raise GraphInterrupt(())
        return nested_at(runtime.config, namespace, resuming=mine)


def _without_task(segment: str) -> str:
    """A namespace segment without its task id, which differs from run to run."""
    name, separator, task = segment.partition(":")
    try:
        UUID(task)
    except ValueError:
        return name + separator + task
    return name


def _peek(config: RunnableConfig, namespace: str) -> RunnableConfig:
    return nested_at(config, namespace, resuming=False)


def _owner_key(runtime: ToolRuntime[Any, Any]) -> str:
    message = owner_of(_messages(runtime), runtime.tool_call_id or "")
    return _key(message, runtime.tool_call_id)


def _open_siblings(runtime: ToolRuntime[Any, Any]) -> set[str]:
    messages = _messages(runtime)
    message = owner_of(messages, runtime.tool_call_id or "")
    return {_key(message, call["id"]) for call in open_calls(messages)}


def _key(message: AIMessage | None, call_id: str | None) -> str:
    return f"{message.id if message is not None else ''}/{call_id}"


def _messages(runtime: ToolRuntime[Any, Any]) -> list[BaseMessage]:
    state: Any = runtime.state
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", state)
    return found if isinstance(found, list) else []


def _given(request: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": request}]}


def _answer_in(output: Any) -> str:
    """What the calling model reads of a subagent's final state."""
    if isinstance(output, Mapping):
        if (structured := output.get("structured_response")) is not None:
            return to_json(structured)
        for message in reversed(output.get("messages") or ()):
            if isinstance(message, BaseMessage):
                return str(message.text) or "(no text)"
    log.warning("a subagent ended without messages; its whole state is the result")
    return to_json(output)


def _thread(config: RunnableConfig) -> RunnableConfig:
    thread = (config.get("configurable") or {}).get("thread_id")
    if thread is None:
        raise LookupError("no thread_id in the config: pass the config that the calling agent was run with")
    return {"configurable": {"thread_id": thread}}


def _newest(found: list[CheckpointTuple], name: str, call_id: str) -> RunnableConfig:
    if not found:
        raise LookupError(f"this thread keeps nothing of a call {call_id!r} of {name!r}")
    return max(found, key=lambda each: each.checkpoint["id"]).config

"""Tools with which an agent keeps what should outlive the conversation."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.store.base import BaseStore
from pydantic import BaseModel, Field, create_model

from agentkit.errors import InjectionError
from agentkit.memory._keeping import OWN, Keeping, Scope, arun, run, spaces_of
from agentkit.tools import ToolPolicy, ToolRuntime, with_policy

_REMEMBER = "Keep a fact for later conversations, in one sentence that is clear by itself."
_RECALL = (
    "Look up what is known from earlier conversations. Each line has an id in brackets, the date it was last said, "
    "and the fact."
)
_FORGET = "Delete one memory, by the id that recall shows in brackets."

# what they do may be done twice: a fact is kept once, and a memory is gone either way
_POLICY = ToolPolicy(on_crash="rerun")


def memory_tools(
    *,
    scope: Scope = "user",
    shared: Sequence[str] = (),
    max_length: int = 1000,
    max_items: int = 1000,
    kind: str = "memories",
) -> list[BaseTool]:
    """`remember`, `recall` and `forget`, on the store of the run.

    Memories belong to whom `agentkit.tools.identity` names: on a server the authenticated user, elsewhere the context's
    `user_id`; never to whom the model or a client says. The same fact is kept once.

    Args:
        scope: "user": all conversations of a user share them; "thread": each conversation has its own.
        shared: names of spaces that all users read and write; the model may choose one, and no other.
        max_length: characters of a memory at most.
        max_items: memories of a user, or in a shared space, at most.
        kind: the first label of their namespace, to keep several sets apart.

    Raises:
        DefinitionError: an argument makes no sense.
    """
    keeping = Keeping(scope=scope, shared=spaces_of(shared), max_length=max_length, max_items=max_items, kind=kind)
    return [_remember(keeping), _recall(keeping), _forget(keeping)]


def _store(runtime: ToolRuntime[Any, Any]) -> BaseStore:
    if runtime.store is None:
        raise InjectionError("this run has no store to keep memories in; give the agent store=memory.store")
    return runtime.store


def _schema(keeping: Keeping, name: str, **fields: Any) -> type[BaseModel]:
    if keeping.shared and name == "remember":
        spaces = (OWN, *keeping.shared)
        note = f"Whose memory it becomes: {OWN!r} is the user's own; the others are shared by all users."
        fields["space"] = (Literal[spaces], Field(default=OWN, description=note))
    return create_model(name, **fields)


def _made(
    name: str,
    description: str,
    schema: type[BaseModel],
    body: Callable[..., str],
    abody: Callable[..., Awaitable[str]],
) -> BaseTool:
    made = StructuredTool.from_function(
        func=body, coroutine=abody, name=name, description=description, args_schema=schema
    )
    return with_policy(made, _POLICY)


def _remember(keeping: Keeping) -> BaseTool:
    def body(text: str, runtime: ToolRuntime[Any, Any], space: str = OWN) -> str:
        return run(keeping.remember(keeping.namespace(runtime, space), text), _store(runtime))

    async def abody(text: str, runtime: ToolRuntime[Any, Any], space: str = OWN) -> str:
        return await arun(keeping.remember(keeping.namespace(runtime, space), text), _store(runtime))

    text = (str, Field(description='The fact, e.g. "The user prefers green tea."'))
    return _made("remember", _REMEMBER, _schema(keeping, "remember", text=text), body, abody)


def _recall(keeping: Keeping) -> BaseTool:
    def body(runtime: ToolRuntime[Any, Any], query: str = "", limit: int = 10) -> str:
        return run(keeping.recall(keeping.namespaces(runtime), query, limit), _store(runtime))

    async def abody(runtime: ToolRuntime[Any, Any], query: str = "", limit: int = 10) -> str:
        return await arun(keeping.recall(keeping.namespaces(runtime), query, limit), _store(runtime))

    query = (str, Field(default="", description="What to look for, in a few words; empty for the newest."))
    limit = (int, Field(default=10, ge=1, le=50, description="How many memories at most."))
    return _made("recall", _RECALL, _schema(keeping, "recall", query=query, limit=limit), body, abody)


def _forget(keeping: Keeping) -> BaseTool:
    def body(memory_id: str, runtime: ToolRuntime[Any, Any]) -> str:
        return run(keeping.forget(keeping.namespaces(runtime), memory_id), _store(runtime))

    async def abody(memory_id: str, runtime: ToolRuntime[Any, Any]) -> str:
        return await arun(keeping.forget(keeping.namespaces(runtime), memory_id), _store(runtime))

    memory_id = (str, Field(description='The id, e.g. "3f2a91bc04".'))
    return _made("forget", _FORGET, _schema(keeping, "forget", memory_id=memory_id), body, abody)


remember, recall, forget = memory_tools()

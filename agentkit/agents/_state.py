"""The state of an agent: its schemas, and how the schemas of middleware and user become one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, NotRequired, Required, get_args, get_origin, get_type_hints

from langchain_core.messages import AnyMessage
from langgraph.channels.base import BaseChannel
from langgraph.channels.ephemeral_value import EphemeralValue
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.managed.base import is_managed_value
from typing_extensions import TypedDict, TypeVar

from agentkit.agents._channels import LastInCallOrder, OfferedRecords
from agentkit.agents._history import messages_channel
from agentkit.tools import OFFERED_KEY

__all__ = [
    "END_KEY",
    "LOOP_KEY",
    "PRIVATE_KEYS",
    "STEPS_KEY",
    "AgentState",
    "InputAgentState",
    "JumpTo",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "OutputAgentState",
    "PrivateStateAttr",
    "ResponseT",
    "Schemas",
    "merge_schemas",
    "reducers_of",
]

JumpTo = Literal["tools", "model", "end"]
"""Where a hook may send the run, as `{"jump_to": …}`."""

ResponseT = TypeVar("ResponseT", default=Any)

END_KEY = "agentkit_end"
"""Set for one step when a tool asked for the end: the loop stops although its siblings ask for the model."""

LOOP_KEY = "agentkit_loop"
"""Set for one step when a call asks for the model: the end hooks wait although a sibling returned directly."""

STEPS_KEY = "agentkit_steps"
"""What is left of langgraph's recursion limit; only the model node reads it."""

PRIVATE_KEYS = (OFFERED_KEY, END_KEY, LOOP_KEY)
"""State keys of our own. They are stored with the thread, and neither input nor output nor part of any stream."""


@dataclass
class OmitFromSchema:
    """Marks a state key as left out of the graph's input or output schema, in an `Annotated`."""

    input: bool = True
    output: bool = True


OmitFromInput = OmitFromSchema(input=True, output=False)
OmitFromOutput = OmitFromSchema(input=False, output=True)
PrivateStateAttr = OmitFromSchema(input=True, output=True)

_MESSAGES = messages_channel()


class AgentState(TypedDict, Generic[ResponseT]):
    """The state every agent has. Extend it for keys of your own and give it to `create_agent` or a middleware.

    `messages` keeps the pairing law whatever is written to it. `jump_to` lives for one step. `structured_response` is
    set by an agent with a `response_format` when the model has answered.
    """

    messages: Required[Annotated[list[AnyMessage], _MESSAGES]]
    jump_to: NotRequired[Annotated[JumpTo | None, EphemeralValue, PrivateStateAttr]]
    structured_response: NotRequired[Annotated[ResponseT, OmitFromInput]]


class InputAgentState(TypedDict):
    """What an agent takes: messages, as objects, dicts or `(role, text)` tuples."""

    messages: Required[Annotated[list[AnyMessage | dict[str, Any]], _MESSAGES]]


class OutputAgentState(TypedDict, Generic[ResponseT]):
    """What an agent gives back: the whole history, and the structured answer where one was asked for."""

    messages: Required[Annotated[list[AnyMessage], _MESSAGES]]
    structured_response: NotRequired[ResponseT]


@dataclass(frozen=True, kw_only=True)
class Schemas:
    """The merged schemas.

    `declared` has the keys as users and middleware declared them. Of the others, each for its nodes: `hooks` adds the
    flags that the first and last node of a round look at, `model` also the steps that are left, `tools` what was
    offered; `full` is the whole state.
    """

    declared: type
    hooks: type
    model: type
    tools: type
    full: type
    input: type
    output: type


def merge_schemas(schemas: Sequence[type]) -> Schemas:
    """Merge state schemas; of a key declared twice the later one wins.

    `messages` declared with langgraph's `add_messages` becomes ours, which keeps the pairing law; another reducer that
    somebody chose for it is left alone. A key without reducer gets `LastInCallOrder`.
    """
    fields: dict[str, Any] = {}
    for schema in schemas:
        fields.update(_hints(schema))
    declared = dict(fields)
    fields = {name: _with_channel(name, hint) for name, hint in fields.items()}
    flag = NotRequired[Annotated[bool, EphemeralValue(bool, guard=False), PrivateStateAttr]]
    flagged = {**fields, END_KEY: flag, LOOP_KEY: flag}
    offered = NotRequired[Annotated[dict[str, Any], OfferedRecords, PrivateStateAttr]]
    return Schemas(
        declared=_typed_dict("DeclaredSchema", declared),
        hooks=_typed_dict("StateSchema", flagged),
        model=_typed_dict("StateSchema", {**flagged, STEPS_KEY: RemainingSteps}),
        tools=_typed_dict("StateSchema", {**fields, OFFERED_KEY: offered}),
        full=_typed_dict("StateSchema", {**flagged, OFFERED_KEY: offered}),
        input=_typed_dict("InputSchema", _without(fields, "input")),
        output=_typed_dict("OutputSchema", _without(fields, "output")),
    )


def reducers_of(schema: type) -> dict[str, bool]:
    """For each key of `schema`, whether parallel calls may write it (it has a reducer or a channel of its own)."""
    return {name: _has_channel(_metadata(hint)) for name, hint in _hints(schema).items()}


@lru_cache(maxsize=256)
def _hints(schema: type) -> Mapping[str, Any]:
    return get_type_hints(schema, include_extras=True)


def _typed_dict(name: str, fields: Mapping[str, Any]) -> type:
    return TypedDict(name, dict(fields))  # type: ignore[operator,no-any-return]  # the functional form, with fields known only here


def _without(fields: Mapping[str, Any], direction: str) -> dict[str, Any]:
    """`fields` without those marked as omitted. LangChain's marker is another class with the same two attributes."""
    return {name: hint for name, hint in fields.items() if not any(_omits(m, direction) for m in _metadata(hint))}


def _omits(meta: object, direction: str) -> bool:
    return type(meta).__name__ == "OmitFromSchema" and getattr(meta, direction, False) is True


def _metadata(hint: Any) -> tuple[Any, ...]:
    """The `Annotated` metadata of a field, whether Required / NotRequired stands outside or inside."""
    found: list[Any] = []
    for layer in _layers(hint):
        found.extend(getattr(layer, "__metadata__", ()))
    return tuple(found)


def _layers(hint: Any) -> Iterable[Any]:
    while True:
        yield hint
        if get_origin(hint) in {Required, NotRequired}:
            hint = get_args(hint)[0]
        elif get_origin(hint) is Annotated:
            hint = hint.__origin__
        else:
            return


def _has_channel(metadata: Sequence[Any]) -> bool:
    """Whether the metadata says how writes merge, where langgraph looks for it: a channel anywhere, a reducer last."""
    if any(isinstance(m, BaseChannel) or (isinstance(m, type) and issubclass(m, BaseChannel)) for m in metadata):
        return True
    return bool(metadata) and (is_managed_value(metadata[-1]) or callable(metadata[-1]))


def _with_channel(name: str, hint: Any) -> Any:
    metadata = _metadata(hint)
    if name == "messages" and (add_messages in metadata or not _has_channel(metadata)):
        return _annotate(hint, [*(m for m in metadata if m is not add_messages), _MESSAGES])
    return hint if _has_channel(metadata) else _annotate(hint, [*metadata, LastInCallOrder])


def _annotate(hint: Any, metadata: Sequence[Any]) -> Any:
    """`hint` with exactly `metadata`, its Required / NotRequired kept outside where langgraph strips it."""
    outer = next((o for layer in _layers(hint) if (o := get_origin(layer)) in {Required, NotRequired}), None)
    *_, bare = _layers(hint)
    annotated = Annotated[(bare, *metadata)]  # type: ignore[valid-type]
    return outer[annotated] if outer is not None else annotated

"""From what a tool, a wrapper or a record returns to an outcome, through one gate.

`outcome_of` is the only way to make an outcome from foreign values. It turns any value into results and Commands and
checks law 1 for this call: exactly one result, for this call and no other, that a provider accepts.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolCall, ToolMessage, convert_to_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send
from pydantic import BaseModel

from agentkit.errors import PairingError
from agentkit.tools._content import clean, clean_blocks, content_of, cut, is_blocks, to_json

logger = logging.getLogger(__name__)

Pairing = Literal["strict", "repair"]
Item = ToolMessage | Command[Any]


class Artifact(NamedTuple):
    """What a tool with `response_format="content_and_artifact"` returned."""

    content: Any
    artifact: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What one call did: its result, and the items (result and Commands) that the node writes, in order.

    `result` is None only where the call wiped the history that it stands in.
    """

    result: ToolMessage | None
    items: tuple[Item, ...]

    @property
    def failed(self) -> bool:
        """Whether the result is an error."""
        return self.result is not None and self.result.status == "error"

    @property
    def goto(self) -> tuple[Send | str, ...]:
        """Where the call's own Commands go in the current graph."""
        return tuple(
            target
            for item in self.items
            if isinstance(item, Command) and item.graph is None
            for target in targets_of(item.goto)
        )

    @property
    def leaves(self) -> bool:
        """Whether a Command of this call is bound for a parent graph."""
        return any(isinstance(item, Command) and item.graph is not None for item in self.items)


def targets_of(goto: Any) -> Sequence[Send | str]:
    """The targets of a Command's goto, one or several."""
    return (goto,) if isinstance(goto, str | Send) else tuple(goto)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """The rules one ToolNode applies to everything that answers a call."""

    pairing: Pairing = "strict"
    messages_key: str = "messages"


def error_outcome(call: ToolCall, text: str) -> Outcome:
    """The outcome of a call that failed: an error result with this text."""
    result = ToolMessage(content=clean(text), tool_call_id=call["id"], name=call["name"], status="error")
    return Outcome(result=result, items=(result,))


def outcome_of(
    value: Any,
    call: ToolCall,
    gate: Gate,
    *,
    source: str = "tool",
    max_output: int | None = None,
    history: Sequence[BaseMessage] = (),
    listed: bool = False,
) -> Outcome:
    """Check a returned value and make the outcome of `call` from it.

    Args:
        value: anything a tool or a wrapper returns: text, object, blocks, bytes, ToolMessage, Command, a list of these.
        call: the call it answers.
        gate: strict or repair, and the state key of the messages.
        source: who returned it, for error messages: "tool" or "wrapper".
        max_output: characters; a longer text result is cut and kept whole as artifact.
        history: the messages in state: a Command may edit results that stand there already.
        listed: whether the state is a list of messages, so that Commands update it with lists.

    Raises:
        PairingError: in strict mode, when the value does not answer this call exactly once.
    """
    if type(value) is str and (max_output is None or len(value) <= max_output):
        result = ToolMessage(content=clean(value), tool_call_id=call["id"], name=call["name"])
        return Outcome(result=result, items=(result,))
    check = _Check(call=call, gate=gate, source=source, history=history, listed=listed)
    items = check.items(value)
    results = check.results(items)
    if len(results) > 1:
        items, results = check.keep_one(items, results)
    elif not results:
        items, results = check.make_one(items)
    if max_output is not None and results:
        items = _cut(items, results[0], max_output)
        results = check.results(items)
    return Outcome(result=results[0] if results else None, items=tuple(items))


def parent_parts(
    command: Command[Any], messages_key: str
) -> tuple[list[BaseMessage], list[tuple[str, Any]], list[Send | str]]:
    """The messages, the other updates as (key, value) pairs, and the targets of a Command."""
    found = messages_in(command.update, messages_key)
    update = command.update if found is None or found.update is None else found.update
    pairs = list(update.items()) if isinstance(update, dict) else [p for p in update or () if isinstance(p, tuple)]
    messages = [] if found is None else found.messages
    return messages, [(key, value) for key, value in pairs if key != messages_key], list(targets_of(command.goto))


def results_in(items: Iterable[Item], messages_key: str) -> list[ToolMessage]:
    """The results among items, wherever they stand."""
    messages: list[Any] = []
    for item in items:
        if isinstance(item, ToolMessage):
            messages.append(item)
        elif (found := messages_in(item.update, messages_key)) is not None:
            messages.extend(found.messages)
    return [message for message in messages if isinstance(message, ToolMessage)]


def results_of(items: Iterable[Item], call: ToolCall, messages_key: str) -> list[ToolMessage]:
    """The results of one call among items, wherever they stand."""
    return [message for message in results_in(items, messages_key) if message.tool_call_id == call["id"]]


class _Messages(NamedTuple):
    """The messages of a Command, as objects, and how to put them back."""

    messages: list[BaseMessage]
    update: dict[str, Any] | list[Any] | None
    put: Callable[[list[BaseMessage]], Any]


def messages_in(update: Any, key: str) -> _Messages | None:
    """The messages of a Command's update, whatever its form; None where it has none."""
    if update is None:
        return None
    if isinstance(update, BaseModel | dict) or (is_dataclass(update) and not isinstance(update, type)):
        data = update if isinstance(update, dict) else _as_dict(update)
        if data.get(key) is None:
            return None if isinstance(update, dict) else _Messages([], data, lambda _: data)
        return _Messages(_as_messages(data[key]), data, lambda messages: {**data, key: messages})
    if isinstance(update, list | tuple) and update and all(_is_pair(item, key) for item in update):
        pairs = list(update)
        held = [message for name, value in pairs if name == key for message in _as_messages(value)]
        rest = [(name, value) for name, value in pairs if name != key]
        return _Messages(held, pairs, lambda messages: [*rest, (key, messages)] if held else pairs)
    if isinstance(update, list | BaseMessage):
        return _Messages(_as_messages(update), None, lambda messages: messages)
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Check:
    call: ToolCall
    gate: Gate
    source: str
    history: Sequence[BaseMessage]
    listed: bool

    def fault(self, problem: str, fix: str) -> None:
        """A developer's mistake: raised when strict, logged when it will be repaired."""
        text = f"{self.source} {self.call['name']!r} (call {self.call['id']!r}) {problem}"
        if self.gate.pairing == "strict":
            raise PairingError(f"{text};\n{fix}")
        logger.warning("%s; repaired", text)

    # --- values to items -----------------------------------------------------------------------------------------

    def items(self, value: Any) -> list[Item]:
        if isinstance(value, ToolMessage):
            return [self.own(value)]
        if isinstance(value, Command):
            return [self.command(value)]
        if isinstance(value, Artifact):
            return [self.message(value.content, value.artifact)]
        if isinstance(value, list) and any(isinstance(item, ToolMessage | Command) for item in value):
            return self.several(value)
        if value is None and self.source == "wrapper":
            self.fault("returned None", "return handler(request), a ToolMessage or a Command")
            return [self.made("No result was returned for this call.", "wrapper returned None", status="error")]
        return [self.message(value, None)]

    def several(self, values: list[Any]) -> list[Item]:
        items: list[Item] = []
        for value in values:
            if isinstance(value, ToolMessage):
                items.append(self.own(value) if value.tool_call_id == self.call["id"] else value)
            elif isinstance(value, Command):
                items.append(self.command(value))
            else:
                self.fault(
                    f"returned a list that mixes {type(value).__name__} with results and Commands",
                    "return only ToolMessages and Commands in such a list, one of them a ToolMessage for this call",
                )
        foreign = [item for item in items if isinstance(item, ToolMessage) and item.tool_call_id != self.call["id"]]
        for item in foreign:
            self.foreign(item.tool_call_id)
        return [item for item in items if item not in foreign] if foreign else items

    def message(self, value: Any, artifact: Any) -> ToolMessage:
        content, whole = content_of(value)
        return ToolMessage(
            content=content,
            artifact=artifact if artifact is not None else whole,
            tool_call_id=self.call["id"],
            name=self.call["name"],
        )

    def made(self, text: str, why: str, status: Literal["success", "error"] = "success") -> ToolMessage:
        return ToolMessage(
            content=text,
            tool_call_id=self.call["id"],
            name=self.call["name"],
            status=status,
            additional_kwargs={"agentkit_repaired": why},
        )

    def own(self, message: ToolMessage) -> ToolMessage:
        """The message as the result of this call: id, name and content as they must be."""
        changes: dict[str, Any] = {}
        if message.tool_call_id != self.call["id"]:
            self.foreign(message.tool_call_id)
            changes["tool_call_id"] = self.call["id"]
            changes["additional_kwargs"] = {**message.additional_kwargs, "agentkit_repaired": "foreign id"}
        if message.name != self.call["name"]:
            changes["name"] = self.call["name"]
        content = message.content
        fixed: Any = content
        if isinstance(content, str):
            fixed = clean(content)
        elif is_blocks(content):
            fixed = clean_blocks(content)
        elif not (content and all(isinstance(part, str | dict) for part in content)):
            fixed = clean(to_json(content))
        if fixed is not content:
            changes["content"] = fixed
        return message.model_copy(update=changes) if changes else message

    def foreign(self, call_id: Any) -> None:
        self.fault(
            f"returned a result for call {call_id!r}",
            "a tool answers its own call only: ToolMessage(…, tool_call_id=runtime.tool_call_id)",
        )

    # --- Commands ------------------------------------------------------------------------------------------------

    def command(self, command: Command[Any]) -> Command[Any]:
        """The Command with its messages as objects and checked; its other updates are neither copied nor looked at."""
        found = self.messages_of(command.update)
        if found is None:
            return command
        messages, owned = [], set[str]()
        for message in found.messages:
            if isinstance(message, AIMessage):
                owned.update(call["id"] or "" for call in message.tool_calls)
            if not isinstance(message, ToolMessage):
                messages.append(message)
            elif message.tool_call_id == self.call["id"]:
                messages.append(self.own(message))
            elif message.tool_call_id in owned or self.edits(message):
                messages.append(message)  # part of a transcript that brings its own calls, or an edit of an old result
            else:
                self.foreign(message.tool_call_id)
        if _wipes(messages):
            messages = self.without_orphans(messages)
        if command.graph is None and (found.update is None) != self.listed:
            return replace(command, update=self.reshaped(messages))
        return replace(command, update=found.put(messages))

    def reshaped(self, messages: list[BaseMessage]) -> dict[str, Any] | list[Any]:
        wanted = "a list of messages" if self.listed else f"a dict with the messages at {self.gate.messages_key!r}"
        self.fault("returned a Command whose update has not the form of the state", f"make the update {wanted}")
        return list(messages) if self.listed else {self.gate.messages_key: messages}

    def messages_of(self, update: Any) -> _Messages | None:
        return messages_in(update, self.gate.messages_key)

    def without_orphans(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        """A history that is wiped takes the AI message with it: a result without it would be an orphan."""
        start = max(index for index, message in enumerate(messages) if _is_wipe(message))
        owned: set[str] = set()
        kept = messages[: start + 1]
        for message in messages[start + 1 :]:
            if isinstance(message, AIMessage):
                owned.update(call["id"] or "" for call in message.tool_calls)
            if not isinstance(message, ToolMessage) or message.tool_call_id in owned:
                kept.append(message)
        return kept

    def edits(self, message: ToolMessage) -> bool:
        """Whether the message replaces one of the history that answers the same call."""
        return message.id is not None and any(
            old.id == message.id and isinstance(old, ToolMessage) and old.tool_call_id == message.tool_call_id
            for old in self.history
        )

    # --- exactly one ---------------------------------------------------------------------------------------------

    def results(self, items: Iterable[Item]) -> list[ToolMessage]:
        return results_of(items, self.call, self.gate.messages_key)

    def keep_one(self, items: list[Item], results: list[ToolMessage]) -> tuple[list[Item], list[ToolMessage]]:
        own = self.call["id"]
        self.fault(f"returned {len(results)} messages bound to tool_call_id {own!r}", "return exactly one ToolMessage")
        kept = results[0]
        seen = False

        def first(message: BaseMessage) -> bool:
            nonlocal seen
            if not isinstance(message, ToolMessage) or message.tool_call_id != self.call["id"]:
                return True
            if seen:
                return False
            seen = True
            return True

        out: list[Item] = []
        for item in items:
            if isinstance(item, ToolMessage):
                if first(item):
                    out.append(item)
            elif (found := self.messages_of(item.update)) is not None:
                out.append(replace(item, update=found.put([m for m in found.messages if first(m)])))
            else:
                out.append(item)
        return out, [kept]

    def make_one(self, items: list[Item]) -> tuple[list[Item], list[ToolMessage]]:
        current = [item for item in items if isinstance(item, Command) and item.graph is None]
        if current and any(_wipes(found.messages) for c in current if (found := self.messages_of(c.update))):
            return items, []
        if len(current) < len(items):  # bound for a parent graph: the history that stays behind still needs a result
            return items, [self.made("Control was handed over to the parent graph.", "left for the parent graph")]
        if all(command.update is None for command in current):  # it only says where to go, and nothing about its result
            result = self.made("Done.", "Command without update")
            update = [result] if self.listed else {self.gate.messages_key: [result]}
            return [replace(current[0], update=update), *current[1:]], [result]
        self.fault(
            f"returned a Command with 0 messages bound to tool_call_id {self.call['id']!r}",
            f'add one: Command(update={{"{self.gate.messages_key}": '
            "[ToolMessage(…, tool_call_id=runtime.tool_call_id)], …})",
        )
        result = self.made("Done.", "Command without a result")
        return [*items, result], [result]


def _as_messages(value: Any) -> list[BaseMessage]:
    if isinstance(value, list) and all(isinstance(item, BaseMessage) for item in value):
        return value
    return convert_to_messages(value if isinstance(value, list) else [value])


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in value.model_fields_set}
    return {field.name: getattr(value, field.name) for field in fields(value)}


_ROLES = frozenset({"human", "user", "ai", "assistant", "system", "tool", "developer"})


def _is_pair(item: Any, key: str) -> bool:
    """A (state key, value) pair, which a (role, text) message is not."""
    if not (isinstance(item, tuple) and len(item) == 2):  # noqa: PLR2004 - a pair
        return False
    return isinstance(item[0], str) and (item[0] == key or item[0] not in _ROLES)


def _is_wipe(message: BaseMessage) -> bool:
    return isinstance(message, RemoveMessage) and message.id == REMOVE_ALL_MESSAGES


def _wipes(messages: Iterable[BaseMessage]) -> bool:
    return any(_is_wipe(message) for message in messages)


def _cut(items: list[Item], result: ToolMessage, limit: int) -> list[Item]:
    """Cut a text result longer than `limit` characters; the whole stays as artifact (beside one that was there)."""
    text = result.content
    if not isinstance(text, str) or len(text) <= limit:
        return items
    artifact = text if result.artifact is None else {"content": text, "artifact": result.artifact}
    short = result.model_copy(update={"content": cut(text, limit), "artifact": artifact})

    def swapped(value: Any) -> Any:
        if value is result:
            return short
        if isinstance(value, dict):
            return {key: swapped(item) if isinstance(item, list) else item for key, item in value.items()}
        if isinstance(value, list) and any(item is result for item in value):
            return [swapped(item) for item in value]
        return value

    return [
        short if item is result else replace(item, update=swapped(item.update)) if isinstance(item, Command) else item
        for item in items
    ]

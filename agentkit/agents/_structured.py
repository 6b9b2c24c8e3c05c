"""Structured output in the loop: which strategy a call uses, and what an AI message means under it.

The rule for a structured answer beside normal calls: the answer is accepted at once, the other calls of the message
still run (the model asked for their effects), and then the run ends without another model call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from agentkit.agents._interop import also_theirs
from agentkit.agents._retries import RETRY_MARK
from agentkit.agents.structured_output import (
    AutoStrategy,
    MultipleStructuredOutputsError,
    OutputToolBinding,
    ProviderStrategy,
    ProviderStrategyBinding,
    StructuredOutputValidationError,
    ToolStrategy,
)
from agentkit.errors import DefinitionError, StructuredOutputError
from agentkit.messages import result_id

__all__ = ["Reading", "Strategies", "Strategy", "again", "as_strategy", "missing", "refuses"]


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """How one model call asks for its structured answer. `tool` or `provider` is set: the user's strategy object."""

    tool: Any = None
    provider: Any = None

    @property
    def schema_name(self) -> str:
        """What the answer is called in messages."""
        specs = self.tool.schema_specs if self.tool is not None else [self.provider.schema_spec]
        return " or ".join(spec.name for spec in specs)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What an AI message means: it and the results of its answer calls, the answer, or why there is none."""

    messages: list[BaseMessage]
    answer: Any = None
    refused: StructuredOutputError | None = None


@dataclass
class Strategies:
    """The structured output of one agent, planned when it is built.

    initial: what `create_agent` got as `response_format`, as a strategy; None without one.
    bindings: the answer tools by name. A model call may use some of them; new ones cannot come in at run time.
    """

    initial: Any = None
    bindings: dict[str, OutputToolBinding[Any]] = field(default_factory=dict)
    _fallback: Any = None

    @classmethod
    def plan(cls, response_format: Any) -> "Strategies":
        """Plan for what the user gave: a strategy, a schema or None."""
        initial = as_strategy(response_format)
        if initial is None:
            return cls()
        fallback = ToolStrategy(initial.schema) if _is_auto(initial) else initial if _is_tool(initial) else None
        specs = fallback.schema_specs if fallback is not None else []
        bindings = {spec.name: OutputToolBinding.from_schema_spec(spec) for spec in specs}
        return cls(initial=initial, bindings=bindings, _fallback=fallback)

    def effective(self, wanted: Any, model: BaseChatModel, tools: Sequence[Any]) -> Strategy | None:
        """The strategy for one call.

        Raises:
            DefinitionError: A ToolStrategy names an answer tool that the agent was not built with.
        """
        wanted = as_strategy(wanted)
        if wanted is None:
            return None
        if _is_auto(wanted):
            if _has_structured_output(model, tools):
                return Strategy(provider=ProviderStrategy(wanted.schema))
            wanted = self._fallback if wanted is self.initial else ToolStrategy(wanted.schema)
        if _is_provider(wanted):
            return Strategy(provider=wanted)
        for spec in wanted.schema_specs:
            if spec.name not in self.bindings:
                raise DefinitionError(
                    f"ToolStrategy specifies tool '{spec.name}' which wasn't declared in the original response format: "
                    "give create_agent a union of all schemas, and narrow it per call"
                )
        return Strategy(tool=wanted)

    def answer_tools(self, strategy: Strategy) -> list[Any]:
        """The answer tools that this call offers."""
        if strategy.tool is None:
            return []
        return [self.bindings[spec.name].tool for spec in strategy.tool.schema_specs]

    def read(self, message: AIMessage, strategy: Strategy | None) -> Reading:
        """Read one message under the strategy that asked for it.

        Raises:
            StructuredOutputError: The answer does not fit, and the strategy does not say to tell the model so.
        """
        if strategy is None:
            return Reading(messages=[message])
        if strategy.provider is not None:
            return _read_text(message, strategy)
        calls = [call for call in message.tool_calls if call["name"] in self.bindings]
        if not calls:
            return Reading(messages=[message])
        if len(calls) > 1:
            error = also_theirs(MultipleStructuredOutputsError)([call["name"] for call in calls], message)
            return _refused(calls, message, error, strategy)
        (call,) = calls
        try:
            answer = self.bindings[call["name"]].parse(call["args"])
        except Exception as source:  # noqa: BLE001 - whatever a schema's validators raise
            return _refused(calls, message, _invalid(call["name"], source, message), strategy)
        text = strategy.tool.tool_message_content or f"Returning structured response: {answer}"
        return Reading(messages=[message, _result(message, call, text)], answer=answer)


def _read_text(message: AIMessage, strategy: Strategy) -> Reading:
    if message.tool_calls or message.invalid_tool_calls:
        return Reading(messages=[message])
    spec = strategy.provider.schema_spec
    try:
        return Reading(messages=[message], answer=ProviderStrategyBinding.from_schema_spec(spec).parse(message))
    except ValueError as source:
        raise _invalid(spec.name, source, message) from source


def _refused(
    calls: Sequence[ToolCall], message: AIMessage, error: StructuredOutputError, strategy: Strategy
) -> Reading:
    text = _told(error, strategy.tool.handle_errors)
    if text is None:
        raise error
    return Reading(messages=[message, *(_result(message, call, text, retry=True) for call in calls)], refused=error)


def refuses(message: AIMessage) -> bool:
    """Whether the model declined to answer: asking again would only get the same."""
    return any(block["type"] == "refusal" for block in message.content_blocks)


def missing(message: AIMessage, strategy: Strategy) -> StructuredOutputError:
    """The error for a message without calls that does not answer."""
    source = ValueError("the model answered in plain text instead of calling it")
    return _invalid(strategy.schema_name, source, message)


def again(strategy: Strategy, error: Exception) -> HumanMessage:
    """What the model is told after a message that does not answer."""
    how = (
        f"call the tool {strategy.schema_name}"
        if strategy.tool is not None
        else "reply with JSON only, as the schema says"
    )
    return HumanMessage(
        content=f"That was not the structured answer that is needed: {error} Please {how}.",
        response_metadata={RETRY_MARK: "structured_output"},
    )


def as_strategy(wanted: Any) -> Any:
    """A strategy object (ours or LangChain's) as it is, a schema as AutoStrategy, None as None."""
    if wanted is None or _is_tool(wanted) or _is_provider(wanted) or _is_auto(wanted):
        return wanted
    return AutoStrategy(wanted)


def _is_tool(wanted: Any) -> bool:
    return not isinstance(wanted, type) and hasattr(wanted, "schema_specs")


def _is_provider(wanted: Any) -> bool:
    return not isinstance(wanted, type) and hasattr(wanted, "schema_spec")


def _is_auto(wanted: Any) -> bool:
    return type(wanted).__name__ == "AutoStrategy"


def _invalid(name: str, source: Exception, message: AIMessage) -> StructuredOutputError:
    return also_theirs(StructuredOutputValidationError)(name, source, message)


def _result(message: AIMessage, call: ToolCall, text: str, *, retry: bool = False) -> ToolMessage:
    return ToolMessage(
        content=text,
        name=call["name"],
        tool_call_id=call["id"],
        id=result_id(message.id, call["id"]),
        status="error" if retry else "success",
        response_metadata={RETRY_MARK: "structured_output"} if retry else {},
    )


def _told(error: Exception, handle: Any) -> str | None:
    """What to tell the model about `error`; None where it is to be raised."""
    if handle is False:
        return None
    if isinstance(handle, str):
        return handle
    if isinstance(handle, (type, tuple)) and not isinstance(error, handle):
        return None
    if handle is True or isinstance(handle, (type, tuple)):
        return f"Error: {error}\n Please fix your mistakes."
    return str(handle(error))


def _has_structured_output(model: BaseChatModel, tools: Sequence[Any]) -> bool:
    profile: Mapping[str, Any] = getattr(model, "profile", None) or {}
    if not profile.get("structured_output"):
        return False
    name = str(getattr(model, "model_name", None) or getattr(model, "model", None) or "").lower()
    # Gemini before 3 has structured output and tools, but not both in one call.
    return not (tools and "gemini" in name and "gemini-3" not in name)

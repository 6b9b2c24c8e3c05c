"""A wrapper around a chat model that refuses what a strict provider would refuse."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, RunnableLambda
from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError, HistoryError
from agentkit.messages import check_history

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def assert_valid(messages: Sequence[BaseMessage]) -> None:
    """Check that a strict provider would take `messages`.

    Each call is named, uniquely within its message, and answered exactly once, directly after its AI message and in
    call order; no result answers nothing; no result's content is None or [].

    Raises:
        HistoryError: naming every fault.
    """
    faults = [fault.detail for fault in check_history(messages)]
    faults += [
        f"result at {index} for call {message.tool_call_id!r}: its content is {message.content!r}"
        for index, message in enumerate(messages)
        if isinstance(message, ToolMessage) and message.content in (None, [])
    ]
    if faults:
        kinds = " ".join(message.type for message in messages[-20:])
        raise HistoryError(f"a strict provider refuses this history: {'; '.join(faults)}\n(it ends: {kinds})")


class StrictModel(BaseChatModel):
    """`model`, behind the checks of a strict provider.

    Every call checks the history as `assert_valid` does; `bind_tools` refuses names outside `[A-Za-z0-9_-]{1,64}` and
    names given twice. What else one reads from it (`requests`, `model_name`) is the wrapped model's.

    Raises:
        HistoryError: (when called) for a history a strict provider would refuse.
        DefinitionError: (from bind_tools) for a tool name a strict provider would refuse.
    """

    model: BaseChatModel

    def __init__(self, model: BaseChatModel, **fields: Any) -> None:
        fields.setdefault("profile", model.profile)
        fields.setdefault("disable_streaming", model.disable_streaming)
        super().__init__(**{"model": model, **fields})

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)  # type: ignore[misc]  # pydantic's, hidden from type checkers
        except AttributeError:
            if name.startswith("_") or name == "model":
                raise
            return getattr(self.model, name)

    @property
    def _llm_type(self) -> str:
        return self.model._llm_type  # noqa: SLF001  # it stands in for the model

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools as the wrapped model does, once their names are checked."""
        _check_names([_tool_name(tool) for tool in tools])
        bound = self.model.bind_tools(tools, tool_choice=tool_choice, **kwargs)
        if isinstance(bound, RunnableBinding) and bound.bound is self.model:
            return self.bind(**bound.kwargs)
        return self._guard() | bound

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[LanguageModelInput, Any]:
        """The wrapped model's structured output, with the history checked first."""
        return self._guard() | self.model.with_structured_output(schema, **kwargs)

    def _guard(self) -> Runnable[LanguageModelInput, LanguageModelInput]:
        def check(given: LanguageModelInput) -> LanguageModelInput:
            assert_valid(self._convert_input(given).to_messages())
            return given

        return RunnableLambda(check)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        assert_valid(messages)
        return self.model._generate(messages, stop=stop, run_manager=run_manager, **kwargs)  # noqa: SLF001  # one run, not two nested ones

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        assert_valid(messages)
        return await self.model._agenerate(messages, stop=stop, run_manager=run_manager, **kwargs)  # noqa: SLF001  # one run

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        assert_valid(messages)
        if type(self.model)._stream is not BaseChatModel._stream:  # noqa: SLF001  # one run
            yield from self.model._stream(messages, stop=stop, run_manager=run_manager, **kwargs)  # noqa: SLF001
        else:
            yield _as_chunk(self.model._generate(messages, stop=stop, run_manager=run_manager, **kwargs))  # noqa: SLF001

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        assert_valid(messages)
        kind = type(self.model)
        if kind._astream is not BaseChatModel._astream or kind._stream is not BaseChatModel._stream:  # noqa: SLF001
            async for chunk in self.model._astream(messages, stop=stop, run_manager=run_manager, **kwargs):  # noqa: SLF001
                yield chunk
        else:
            yield _as_chunk(await self.model._agenerate(messages, stop=stop, run_manager=run_manager, **kwargs))  # noqa: SLF001


def _as_chunk(result: ChatResult) -> ChatGenerationChunk:
    message = cast("AIMessage", result.generations[0].message)
    fields = message.model_dump(exclude={"type"})
    fields["tool_call_chunks"] = []
    return ChatGenerationChunk(message=AIMessageChunk(**fields, chunk_position="last"))


def _tool_name(tool: Any) -> str | None:
    """The tool's name; None for a provider's own tool, whose name is the provider's affair."""
    if isinstance(tool, dict):
        function = tool.get("function")
        named = function if isinstance(function, dict) else tool
        name: str | None = named.get("name", named.get("title"))
        return name
    return getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__


def _check_names(names: list[str | None]) -> None:
    seen: set[str] = set()
    for name in names:
        if name is None:
            continue
        if not _NAME.fullmatch(name):
            raise DefinitionError(f"a strict provider refuses the tool name {name!r}: use 1 to 64 of A-Z a-z 0-9 _ -")
        if name in seen:
            raise DefinitionError(f"a strict provider refuses two tools named {name!r}: rename one of them")
        seen.add(name)

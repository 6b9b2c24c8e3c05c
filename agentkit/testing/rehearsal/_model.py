"""The rehearsal model: a chat model without a language model."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import override

from agentkit.testing.rehearsal._answers import LABEL
from agentkit.testing.rehearsal._reply import reply

__all__ = ["RehearsalModel"]


class RehearsalModel(BaseChatModel):
    """An offline stand-in for a chat model: no LLM, it matches patterns.

    It turns a dozen kinds of sentences, in English, Korean and Chinese and several per message, into calls of the tools
    bound to it, and their results into an answer. It calls nothing that was not bound. `call NAME {"argument": ...}`
    calls any bound tool. Streams word by word; deterministic apart from the ids of calls.

        agent = create_agent(RehearsalModel(), [calculate])
        agent.invoke({"messages": [("user", "what is 12*7?")]})
    """

    pause: float = 0.0
    """Seconds between the streamed words."""

    @property
    def _llm_type(self) -> str:
        return "rehearsal"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"model": LABEL}

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """As any chat model's; `tool_choice` is taken and has no effect, since there is nothing to persuade."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=reply(messages, kwargs.get("tools") or ()))])

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(reply(messages, kwargs.get("tools") or ())):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
            if self.pause:
                time.sleep(self.pause)

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(reply(messages, kwargs.get("tools") or ())):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
            if self.pause:
                await asyncio.sleep(self.pause)


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """The reply word by word; calls come whole, in the last chunk."""
    for word in re.findall(r"\s*\S+|\s+$", message.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    calls = [
        tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
        for index, call in enumerate(message.tool_calls)
    ]
    yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls, chunk_position="last"))

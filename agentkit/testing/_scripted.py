"""A chat model that says what a script tells it to."""

import inspect
import json
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from agentkit.errors import AgentkitError

Answer = AIMessage | str | BaseException | type[BaseException]
Script = Callable[[list[BaseMessage]], Answer | Awaitable[Answer]]
Response = Answer | Script


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One call of a scripted model: what it was given. `options` are the other keywords, such as response_format."""

    messages: list[BaseMessage]
    offered: list[str]
    tools: list[dict[str, Any]]
    tool_choice: Any
    options: dict[str, Any]


class ScriptedModel(BaseChatModel):
    """A chat model that gives the answers of a script and remembers what it was asked.

    Args:
        responses: A sequence of answers, given one after the other, or a function that makes each answer from the
            messages. An answer is an AIMessage, a string, or an exception, which is raised; an element of the sequence
            may also be a function. Functions may be async where the model is called async.
        **fields: Those of BaseChatModel, such as `profile`.

    It streams (words, pieces of arguments), reports a made-up but stable token usage, offers tools through the usual
    `bind_tools`, and may be called from several threads at once. Answers are copied: one may be given twice.

    Raises:
        AgentkitError: (when called) the script is at its end.
    """

    responses: Any
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _requests: list[Request] = PrivateAttr(default_factory=list)

    def __init__(self, responses: Sequence[Response] | Script = (), **fields: Any) -> None:
        super().__init__(**{"responses": responses if callable(responses) else list(responses), **fields})

    @property
    def requests(self) -> list[Request]:
        """What the model was asked so far, in order."""
        return self._requests

    @property
    def calls(self) -> list[list[BaseMessage]]:
        """The messages of each request."""
        return [request.messages for request in self._requests]

    @property
    def offered(self) -> list[list[str]]:
        """The names of the tools offered in each request."""
        return [request.offered for request in self._requests]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools; their schemas are made as for OpenAI. Dicts that are no function pass unchanged."""
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        return self.bind(tools=[_schema(tool) for tool in tools], **kwargs)

    def _take(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> Response:
        tools = kwargs.get("tools") or []
        options = {key: value for key, value in kwargs.items() if key not in {"tools", "tool_choice"}}
        if stop:
            options["stop"] = stop
        request = Request(
            messages=list(messages),
            offered=[_name(tool) for tool in tools],
            tools=list(tools),
            tool_choice=kwargs.get("tool_choice"),
            options=options,
        )
        with self._lock:
            self._requests.append(request)
            number = len(self._requests)
        if callable(self.responses):
            return cast("Response", self.responses)
        if number > len(self.responses):
            raise AgentkitError(
                f"the script of this model has {len(self.responses)} responses, and it was asked a {number}. time; "
                f"the last message was: {messages[-1].text[:200] if messages else 'none'!r}"
            )
        return cast("Response", self.responses[number - 1])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  # the base class passes it
        **kwargs: Any,
    ) -> ChatResult:
        return _result(self._answer(messages, stop, kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002  # the base class passes it
        **kwargs: Any,
    ) -> ChatResult:
        return _result(await self._aanswer(messages, stop, kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._answer(messages, stop, kwargs)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(await self._aanswer(messages, stop, kwargs)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _answer(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> AIMessage:
        response: Any = self._take(messages, stop, kwargs)
        if _is_script(response):
            response = response(messages)
        if inspect.isawaitable(response):
            if inspect.iscoroutine(response):
                response.close()
            raise AgentkitError("an async function of the script needs the model to be called with ainvoke or astream")
        return _message(response, messages)

    async def _aanswer(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> AIMessage:
        response: Any = self._take(messages, stop, kwargs)
        if _is_script(response):
            response = response(messages)
        if inspect.isawaitable(response):
            response = await response
        return _message(response, messages)


def _is_script(response: object) -> bool:
    return callable(response) and not (isinstance(response, type) and issubclass(response, BaseException))


def _message(response: Any, messages: list[BaseMessage]) -> AIMessage:
    """The answer as a message of its own: whoever gets it may change it (LangChain sets its id)."""
    if isinstance(response, BaseException) or (isinstance(response, type) and issubclass(response, BaseException)):
        raise response
    if isinstance(response, str):
        response = AIMessage(content=response)
    if not isinstance(response, AIMessage):
        raise AgentkitError(f"a script gives AIMessage, str or exceptions, not {type(response).__name__}")
    update: dict[str, Any] = {
        "tool_calls": list(response.tool_calls),
        "response_metadata": dict(response.response_metadata),
    }
    if response.usage_metadata is None:
        update["usage_metadata"] = _usage(messages, response)
    return response.model_copy(update=update)


def _usage(messages: list[BaseMessage], answer: AIMessage) -> UsageMetadata:
    """About four characters to a token, as people reckon."""
    given = sum(1 + _size(message) // 4 for message in messages)
    made = 1 + (_size(answer) + sum(len(str(call["args"])) for call in answer.tool_calls)) // 4
    return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)


def _size(message: BaseMessage) -> int:
    return len(message.content) if isinstance(message.content, str) else len(str(message.content))


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """The message in pieces that add up to it."""
    pieces: list[AIMessageChunk] = []
    if isinstance(message.content, str):
        words = [word for word in re.split(r"(?<=\s)", message.content) if word]
        pieces.extend(AIMessageChunk(content=word) for word in words)
    else:
        pieces.append(AIMessageChunk(content=message.content))
    for index, call in enumerate([*message.tool_calls, *message.invalid_tool_calls]):
        args = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"])
        half = len(args) // 2
        first = ToolCallChunk(name=call["name"], args=args[:half], id=call["id"], index=index, type="tool_call_chunk")
        rest = ToolCallChunk(name=None, args=args[half:], id=None, index=index, type="tool_call_chunk")
        pieces.extend(AIMessageChunk(content="", tool_call_chunks=[part]) for part in (first, rest))
    last = AIMessageChunk(
        content="",
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        name=message.name,
        chunk_position="last",
    )
    for piece in (*pieces, last):
        piece.id = message.id
        yield ChatGenerationChunk(message=piece)


def _schema(tool: dict[str, Any] | type | Callable[..., Any] | BaseTool) -> dict[str, Any]:
    if isinstance(tool, dict) and not ({"name", "title"} & tool.keys() and tool.get("type") in {None, "object"}):
        return tool  # a provider's own tool, or an OpenAI function already
    return convert_to_openai_tool(tool)


def _name(tool: dict[str, Any]) -> str:
    function = tool.get("function")
    if isinstance(function, dict):
        return str(function.get("name"))
    return str(tool.get("name") or tool.get("type"))

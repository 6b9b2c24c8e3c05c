"""Keeping the context small without parting a call from its result: summaries, and clearing of old results."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, RemoveMessage, ToolMessage, get_buffer_string
from langchain_core.messages.utils import count_tokens_approximately

from agentkit.agents.middleware.types import AgentMiddleware
from agentkit.errors import DefinitionError
from agentkit.messages import REMOVE_ALL_MESSAGES, safe_cut

__all__ = ["ClearResultsMiddleware", "SummaryMiddleware"]

_PROMPT = (
    "Below is the beginning of a conversation between a user and an assistant with tools. Write a summary from which "
    "the assistant can go on: what the user wants, what was done and found, what was decided, names and numbers that "
    "matter. Reply with the summary alone.\n\n{conversation}"
)


class SummaryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Replaces the beginning of a long conversation by a summary, in the thread itself.

    The cut is moved back to where it parts no call from its result. An exception of the model that writes the summary
    fails the run, and leaves the history as it was.

    Args:
        model: Writes the summary.
        max_tokens: Summarise when the history has more tokens than this, by `token_counter`.
        keep: How many of the newest messages stay as they are, at least.
        prompt: What the model is asked; `{conversation}` is the part to summarise.
        token_counter: `(messages) -> tokens`; the default estimates.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        max_tokens: int,
        keep: int = 20,
        prompt: str = _PROMPT,
        token_counter: Callable[[Sequence[AnyMessage]], int] = count_tokens_approximately,
    ) -> None:
        if keep < 1 or max_tokens < 1:
            raise DefinitionError("SummaryMiddleware: keep and max_tokens are 1 or more")
        self._model = model
        self._max_tokens = max_tokens
        self._keep = keep
        self._prompt = prompt
        self._count = token_counter

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - the hook's signature
        """Summarise if the history is too long."""
        cut = self._cut(state["messages"])
        if not cut:
            return None
        return self._replaced(state["messages"], cut, self._model.invoke(self._asked(state["messages"][:cut])))

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - the hook's signature
        """See `before_model`."""
        cut = self._cut(state["messages"])
        if not cut:
            return None
        return self._replaced(state["messages"], cut, await self._model.ainvoke(self._asked(state["messages"][:cut])))

    def _cut(self, messages: list[AnyMessage]) -> int:
        if len(messages) <= self._keep or self._count(messages) <= self._max_tokens:
            return 0
        return safe_cut(messages, len(messages) - self._keep)

    def _asked(self, messages: list[AnyMessage]) -> list[HumanMessage]:
        return [HumanMessage(self._prompt.replace("{conversation}", get_buffer_string(messages)))]

    def _replaced(self, messages: list[AnyMessage], cut: int, summary: Any) -> dict[str, Any]:
        note = HumanMessage(
            f"Here is a summary of the conversation so far:\n\n{summary.text}",
            response_metadata={"agentkit_summary_of": cut},
        )
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), note, *messages[cut:]]}


class ClearResultsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Hides the text of old tool results from the model when the history is long. The thread keeps them.

    Each call keeps its result, of which only the text is replaced, so nothing is parted.

    Args:
        max_tokens: Clear when the request has more tokens than this, by `token_counter`.
        keep: How many of the newest results stay readable.
        exclude: Tools whose results always stay readable.
        placeholder: What the model reads instead.
        token_counter: `(messages) -> tokens`; the default estimates.
    """

    def __init__(
        self,
        *,
        max_tokens: int = 100_000,
        keep: int = 3,
        exclude: Sequence[str] = (),
        placeholder: str = "[cleared to save space: call the tool again if you need it]",
        token_counter: Callable[[Sequence[AnyMessage]], int] = count_tokens_approximately,
    ) -> None:
        if keep < 0 or max_tokens < 0:
            raise DefinitionError("ClearResultsMiddleware: keep and max_tokens are 0 or more")
        self._max_tokens = max_tokens
        self._keep = keep
        self._exclude = frozenset(exclude)
        self._placeholder = placeholder
        self._count = token_counter

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model with the cleared history."""
        return handler(self._cleared(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """See `wrap_model_call`."""
        return await handler(self._cleared(request))

    def _cleared(self, request: Any) -> Any:
        messages = request.messages
        if self._count(messages) <= self._max_tokens:
            return request
        results = [i for i, m in enumerate(messages) if isinstance(m, ToolMessage) and m.name not in self._exclude]
        old = set(results[: len(results) - self._keep])
        if not old:
            return request
        return request.override(messages=[self._hidden(m) if i in old else m for i, m in enumerate(messages)])

    def _hidden(self, message: ToolMessage) -> ToolMessage:
        return message.model_copy(update={"content": self._placeholder, "artifact": None})

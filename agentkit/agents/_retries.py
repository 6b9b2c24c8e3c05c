"""Asking the model to try again: how such messages are marked, and counted in the history itself.

The count is read from the history, so it holds across resume and in other workers, and needs no state of its own.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

__all__ = ["RETRY_MARK", "asks_again", "attempts", "wants_more"]

RETRY_MARK = "agentkit_retry"
"""Key in `response_metadata` of messages by which the agent asks the model to try again."""


def asks_again(message: BaseMessage) -> bool:
    """Whether `message` was added by the agent to make the model try again."""
    return bool(message.response_metadata.get(RETRY_MARK))


def wants_more(messages: Sequence[BaseMessage]) -> bool:
    """Whether a run that has come to `messages` goes on with another model call."""
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    return last is not None and bool(last.tool_calls or last.invalid_tool_calls or asks_again(messages[-1]))


def attempts(messages: Sequence[BaseMessage]) -> int:
    """How many times the model was asked to try again since the last message that a person wrote."""
    count = 0
    told = False
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            count += told  # several of its calls may have been refused: one attempt
            told = False
        elif asks_again(message):
            told = True
        elif isinstance(message, HumanMessage):
            break
    return count

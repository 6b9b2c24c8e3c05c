"""The pairing law as pure functions on messages, and LangChain's message classes.

Every tool call has exactly one result, directly after its AI message, in call order. `check_history` says where a
history breaks that, `repair_history` makes the view of it that every provider accepts, and `history` is the reducer
that keeps it while messages are written. The message classes are langchain-core's own.
"""

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    Annotation,
    AnyMessage,
    AudioContentBlock,
    Citation,
    ContentBlock,
    DataContentBlock,
    FileContentBlock,
    HumanMessage,
    ImageContentBlock,
    InputTokenDetails,
    InvalidToolCall,
    MessageLikeRepresentation,
    NonStandardAnnotation,
    NonStandardContentBlock,
    OutputTokenDetails,
    PlainTextContentBlock,
    ReasoningContentBlock,
    RemoveMessage,
    ServerToolCall,
    ServerToolCallChunk,
    ServerToolResult,
    SystemMessage,
    TextContentBlock,
    ToolCall,
    ToolCallChunk,
    ToolMessage,
    UsageMetadata,
    VideoContentBlock,
    trim_messages,
)

from agentkit.messages._calls import open_calls, owner_of, unreadable_calls
from agentkit.messages._cut import safe_cut
from agentkit.messages._faults import Fault, FaultKind, check_history
from agentkit.messages._history import REMOVE_ALL_MESSAGES, add_history, history
from agentkit.messages._ids import ensure_call_ids, result_id, unique_call_ids
from agentkit.messages._repair import repair_history
from agentkit.messages._results import error_result, unreadable_result

__all__ = [
    "REMOVE_ALL_MESSAGES",
    "AIMessage",
    "AIMessageChunk",
    "Annotation",
    "AnyMessage",
    "AudioContentBlock",
    "Citation",
    "ContentBlock",
    "DataContentBlock",
    "Fault",
    "FaultKind",
    "FileContentBlock",
    "HumanMessage",
    "ImageContentBlock",
    "InputTokenDetails",
    "InvalidToolCall",
    "MessageLikeRepresentation",
    "NonStandardAnnotation",
    "NonStandardContentBlock",
    "OutputTokenDetails",
    "PlainTextContentBlock",
    "ReasoningContentBlock",
    "RemoveMessage",
    "ServerToolCall",
    "ServerToolCallChunk",
    "ServerToolResult",
    "SystemMessage",
    "TextContentBlock",
    "ToolCall",
    "ToolCallChunk",
    "ToolMessage",
    "UsageMetadata",
    "VideoContentBlock",
    "add_history",
    "check_history",
    "ensure_call_ids",
    "error_result",
    "history",
    "open_calls",
    "owner_of",
    "repair_history",
    "result_id",
    "safe_cut",
    "trim_messages",
    "unique_call_ids",
    "unreadable_calls",
    "unreadable_result",
]

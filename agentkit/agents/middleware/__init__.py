"""Middleware: hooks into an agent's loop, as classes or as decorated functions.

LangChain's own middleware (PII, to-do lists, summaries, fallbacks …) runs in agentkit unchanged. Its names can be
imported from here too, where LangChain is installed (the extra `models`). What is defined here is what agents need to
keep agentkit's laws.
"""

from langgraph.runtime import Runtime

from agentkit.agents._tracing import configure_trace_policy
from agentkit.agents.middleware._approval import ApprovalMiddleware
from agentkit.agents.middleware._context import ClearResultsMiddleware, SummaryMiddleware
from agentkit.agents.middleware._decisions import ApprovalConfig
from agentkit.agents.middleware._decorators import (
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    hook_config,
    wrap_model_call,
    wrap_tool_call,
)
from agentkit.agents.middleware._langchain import __getattr__ as __getattr__  # the names that are not defined here
from agentkit.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    InputAgentState,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    OutputAgentState,
    ToolCallRequest,
    TracePolicy,
    omit_payload,
)

__all__ = [
    "AgentMiddleware",
    "AgentState",
    "ApprovalConfig",
    "ApprovalMiddleware",
    "ClearResultsMiddleware",
    "ExtendedModelResponse",
    "InputAgentState",
    "ModelCallResult",
    "ModelRequest",
    "ModelResponse",
    "OutputAgentState",
    "Runtime",
    "SummaryMiddleware",
    "ToolCallRequest",
    "TracePolicy",
    "after_agent",
    "after_model",
    "before_agent",
    "before_model",
    "configure_trace_policy",
    "dynamic_prompt",
    "hook_config",
    "omit_payload",
    "wrap_model_call",
    "wrap_tool_call",
]

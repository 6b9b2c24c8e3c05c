"""MCP servers as toolsets: tools that other processes and other machines offer. Needs the extra `mcp`."""

from agentkit.mcp._annotations import is_destructive, is_read_only
from agentkit.mcp._elicitation import MCPElicitation
from agentkit.mcp._errors import MCPServerError, MCPToolError
from agentkit.mcp.adapter import MCPAdapter

__all__ = [
    "MCPAdapter",
    "MCPElicitation",
    "MCPServerError",
    "MCPToolError",
    "is_destructive",
    "is_read_only",
]

"""Everything that is used of the MCP libraries: imported by nothing but `sdk()`, so that it is loaded when needed."""

from fastmcp.client import Client
from fastmcp.client.group import ClientGroup
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import (
    ClientTransport,
    NodeStdioTransport,
    PythonStdioTransport,
    SSETransport,
    StdioTransport,
    StreamableHttpTransport,
)
from fastmcp.client.transports.config import MCPConfigTransport
from fastmcp.mcp_config import MCPConfig
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    SERVER_INFO_META_KEY,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    EmbeddedResource,
    ErrorData,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from agentkit.mcp._watch import failed_status, watched

__all__ = [
    "CONNECTION_CLOSED",
    "SERVER_INFO_META_KEY",
    "AudioContent",
    "BlobResourceContents",
    "CallToolResult",
    "Client",
    "ClientGroup",
    "ClientTransport",
    "ElicitRequest",
    "ElicitResult",
    "EmbeddedResource",
    "ErrorData",
    "ImageContent",
    "InputRequiredResult",
    "MCPConfig",
    "MCPConfigTransport",
    "MCPError",
    "MessageHandler",
    "NodeStdioTransport",
    "PythonStdioTransport",
    "ResourceLink",
    "SSETransport",
    "StdioTransport",
    "StreamableHttpTransport",
    "TextContent",
    "TextResourceContents",
    "Tool",
    "failed_status",
    "watched",
]

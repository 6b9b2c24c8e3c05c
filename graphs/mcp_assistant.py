"""An assistant whose tools come from two MCP servers: the time, and the history of a git repository.

    pip install 'agentkit[mcp]' mcp-server-time mcp-server-git

It only reads: of what the servers offer, the tools that change something are left out. Other servers take their place
by a file in the usual form, `{"mcpServers": {…}}`, named by AGENTKIT_MCP; the repository is AGENTKIT_REPOSITORY, or the
folder that the program runs in.

`graph` is what langgraph.json names: a server of graphs asks for it also to read a thread or a schema, and only a run
needs the MCP servers. They are started by the first run and serve all later ones of the process.

The rehearsal model, which is no LLM, knows these tools only by name: `call time_get_current_time {"timezone": "UTC"}`.
"""

import asyncio
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph_sdk.runtime import ServerRuntime

from agentkit.agents import create_agent
from agentkit.errors import MissingExtraError
from agentkit.mcp import MCPAdapter, is_read_only
from agentkit.testing.rehearsal import RehearsalModel
from agentkit.tools.toolsets import filtered

PROMPT = (
    "You answer questions about the time anywhere, and about the history of the git repository at {repository}. "
    "Use your tools; pass that path as repo_path. Answer briefly, in the user's language."
)


def repository() -> str:
    """The repository that questions are about."""
    return os.environ.get("AGENTKIT_REPOSITORY") or str(Path.cwd())


@cache
def servers() -> MCPAdapter:
    """The MCP servers, one adapter for the whole process; nothing is started before they are used."""
    if path := os.environ.get("AGENTKIT_MCP"):
        return MCPAdapter(Path(path), required=False)
    target = {
        "mcpServers": {
            "time": {"command": _command("mcp-server-time"), "args": []},
            "git": {"command": _command("mcp-server-git"), "args": []},
        }
    }
    return MCPAdapter(target, required=False)


def build(
    model: str | BaseChatModel | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The assistant, with the model and the memory it is given; without a model AGENTKIT_MODEL, else the rehearsal."""
    return create_agent(
        model or os.environ.get("AGENTKIT_MODEL") or RehearsalModel(),
        [filtered(servers(), lambda tool, _runtime: is_read_only(tool))],
        system_prompt=PROMPT.format(repository=repository()),
        checkpointer=checkpointer,
        store=store,
        name="mcp_assistant",
    )


async def graph(runtime: ServerRuntime[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The assistant for a server of graphs. Connects before a run begins, and not at all where nothing will run."""
    if runtime.execution_runtime is not None:
        await servers().atools()
    return await asyncio.to_thread(build)


def _command(name: str) -> str:
    """A command of this Python's environment, which need not be on the path."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name


with suppress(MissingExtraError):  # whoever builds the assistant is told
    servers()  # loads the MCP libraries, which takes seconds: better when a server starts than in its first run

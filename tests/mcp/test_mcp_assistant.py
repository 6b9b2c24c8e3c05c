"""The assistant on two MCP servers, as a script and as a server of graphs see it."""

import subprocess

import pytest
from batches import Run
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph_sdk.runtime import _ExecutionRuntime, _ReadRuntime
from mcp_servers import is_running, said, servers_running

from agentkit.mcp import MCPAdapter
from graphs import mcp_assistant


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repository"
    folder.mkdir()
    git = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@example.com"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "The first change"], check=True)
    monkeypatch.setenv("AGENTKIT_REPOSITORY", str(folder))
    mcp_assistant.servers.cache_clear()
    yield str(folder)
    mcp_assistant.servers().close()
    mcp_assistant.servers.cache_clear()


def test_it_asks_both_servers_in_one_turn_and_offers_only_what_reads(repository, run: Run):
    agent = mcp_assistant.build(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    for question, wanted in (
        (
            'call time_convert_time {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Seoul"}',
            "21:00",
        ),
        (f'call git_git_log {{"repo_path": "{repository}"}}', "The first change"),
    ):
        state = run(agent, {"messages": [("user", question)]}, config)
        assert wanted in said(state)[-1]
    offered = {tool.name for tool in mcp_assistant.servers().tools()}
    assert "git_git_commit" in offered
    state = run(
        agent, {"messages": [("user", f'call git_git_commit {{"repo_path": "{repository}", "message": "no"}}')]}, config
    )
    assert "git_git_commit" not in str([m for m in state["messages"] if m.type == "tool"])


async def test_reading_a_graph_starts_no_server_and_a_run_does(repository):
    store = InMemoryStore()
    before = servers_running("mcp-server-")
    read = await mcp_assistant.graph(_ReadRuntime(access_context="threads.read", store=store))
    assert {"model", "tools"} <= set(read.nodes)
    assert servers_running("mcp-server-") == before
    served = await mcp_assistant.graph(_ExecutionRuntime(access_context="threads.create_run", store=store))
    assert set(served.nodes) == set(read.nodes)
    started = servers_running("mcp-server-") - before
    assert len(started) == 2
    assert isinstance(mcp_assistant.servers(), MCPAdapter)
    await mcp_assistant.servers().aclose()
    assert not any(map(is_running, started))

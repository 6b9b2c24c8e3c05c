"""Who holds a connection, for how long, and what happens when a server goes away."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest
from batches import Run
from mcp_servers import (
    COMMAND,
    GO,
    THREAD,
    agent_with,
    answers,
    ask,
    eventually,
    is_running,
    over_http,
    said,
    servers_running,
)

from agentkit.mcp import MCPAdapter, MCPServerError
from agentkit.tools import ToolPolicy, tool
from agentkit.tools.toolsets import with_policies


async def pid_of(adapter):
    tools = {t.name: t for t in await adapter.list_tools()}
    ((block),) = await tools["process_id"].ainvoke({})
    return int(block["text"])


async def test_opened_in_one_task_called_from_another_and_closed_in_a_third_leaves_nothing_behind():
    adapter = MCPAdapter(COMMAND)
    await asyncio.create_task(adapter.__aenter__())
    first = await asyncio.create_task(pid_of(adapter))
    second = await asyncio.create_task(pid_of(adapter))
    assert first == second
    assert is_running(first)
    await asyncio.create_task(adapter.__aexit__(None, None, None))
    assert not is_running(first)
    gc.collect()  # warnings are errors here


def test_opened_called_and_closed_from_different_threads_and_event_loops():
    adapter = MCPAdapter(COMMAND)
    asyncio.run(adapter.__aenter__())
    pids = [asyncio.run(pid_of(adapter))]
    worker = threading.Thread(target=lambda: pids.append(asyncio.run(pid_of(adapter))))
    worker.start()
    worker.join(30)
    asyncio.run(adapter.__aexit__(None, None, None))
    assert pids[0] == pids[1]
    assert not is_running(pids[0])


def test_a_server_keeps_its_state_between_the_calls_of_different_runs(run: Run):
    with MCPAdapter(COMMAND) as adapter:
        agent, _ = agent_with([adapter], ask(("increment", {})), "one", ask(("increment", {"by": 4})))
        run(agent, GO, THREAD)
        assert said(run(agent, GO, THREAD)) == ["1", "5"]


def test_an_adapter_that_is_not_opened_connects_when_it_is_needed_and_closes_on_request(run: Run):
    adapter = MCPAdapter(COMMAND)
    agent, _ = agent_with([adapter], ask(("process_id", {})))
    pid = int(said(run(agent, GO, THREAD))[0])
    assert is_running(pid)
    adapter.close()
    assert not is_running(pid)
    adapter.close()


async def test_after_it_was_closed_each_call_connects_for_itself_and_leaves_no_process():
    async with MCPAdapter(COMMAND) as adapter:
        tools = {t.name: t for t in await adapter.list_tools()}
    ((block),) = await tools["process_id"].ainvoke({})
    assert not is_running(int(block["text"]))


def test_an_adapter_that_nobody_holds_closes_its_connections():
    adapter = MCPAdapter(COMMAND)
    with adapter:
        pass
    adapter = MCPAdapter(COMMAND)
    pid = asyncio.run(pid_of(adapter))
    assert is_running(pid)
    del adapter
    gc.collect()
    eventually(lambda: not is_running(pid))


def test_the_end_of_the_program_ends_the_servers(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from agentkit.mcp import MCPAdapter\n"
        f"adapter = MCPAdapter({COMMAND!r})\n"
        "tools = {t.name: t for t in adapter.tools()}\n"
        "print(tools['process_id'].invoke({})[0]['text'])\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, "-W", "error", str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    assert not is_running(int(done.stdout))


def test_a_server_killed_in_the_middle_of_a_call_gives_an_error_result_and_the_next_call_a_new_server(run: Run):
    with MCPAdapter(COMMAND) as adapter:
        agent, _ = agent_with(
            [adapter], ask(("process_id", {})), ask(("crash", {})), ask(("process_id", {})), ask(("increment", {}))
        )
        state = run(agent, GO, THREAD)
    before, crashed, after, count = answers(state)
    assert crashed.status == "error"
    assert "went away while it ran crash: what became of the call is not known" in crashed.text
    assert before.text != after.text
    assert count.text == "1"
    assert state["messages"][-1].content == "done"


def test_siblings_of_a_call_that_kills_the_server_get_results_too(run: Run, log):
    @tool
    def local() -> str:
        """Work here."""
        return "here"

    with MCPAdapter(COMMAND, env=log.env) as adapter:
        batch = ask(("slow", {"steps": 10, "seconds": 5}), ("local", {}), ("crash", {"after": "slow started"}))
        agent, _ = agent_with([adapter, local], batch, ask(("increment", {})))
        slow, here, crashed, count = answers(run(agent, GO, THREAD))
    assert (slow.status, here.text, crashed.status, count.text) == ("error", "here", "error", "1")
    assert "went away while it ran slow" in slow.text


def test_a_tool_that_may_be_repeated_is_called_again_after_the_server_died(run: Run, log):
    with MCPAdapter(COMMAND, env=log.env) as adapter:
        agent, _ = agent_with([adapter], ask(("crash_once", {})))
        state = run(agent, GO, THREAD)
    assert said(state) == ["survived"]
    assert log.lines().count("crash_once") == 2


async def test_a_server_that_died_while_nobody_called_is_started_again():
    async with MCPAdapter(COMMAND) as adapter:
        first = await pid_of(adapter)
        os.kill(first, signal.SIGKILL)
        await asyncio.to_thread(eventually, lambda: not is_running(first))
        assert await pid_of(adapter) != first
        tools = {t.name: t for t in await adapter.list_tools()}
        ((block),) = await tools["increment"].ainvoke({})
        assert block["text"] == "1"


def test_an_http_server_that_is_restarted_serves_the_next_call(run: Run):
    with over_http() as server:
        adapter = MCPAdapter(server.url)
        with adapter:
            agent, _ = agent_with(
                [adapter], ask(("increment", {})), "one", ask(("increment", {})), "two", ask(("increment", {}))
            )
            assert said(run(agent, GO, THREAD)) == ["1"]
            server.process.kill()
            server.process.wait(10)
            down = answers(run(agent, GO, THREAD))[-1]
            assert down.status == "error"
            assert "127.0.0.1" in down.text
            with over_http(server.port):
                assert said(run(agent, GO, THREAD))[-1] == "1"


def test_a_server_that_is_not_there_is_named_when_it_is_opened(run: Run):
    agent, _ = agent_with([MCPAdapter("http://127.0.0.1:9/mcp")])
    with pytest.raises(MCPServerError, match=r"MCP server '127.0.0.1' cannot be reached: .*"):
        run(agent, GO, THREAD)
    absent = MCPAdapter(["no-such-command-here"])
    with pytest.raises(MCPServerError, match=r"MCP server 'no-such-command-here' cannot be reached"):
        absent.tools()


async def test_opening_that_fails_leaves_no_process_behind():
    command, *args = COMMAND
    both = {"here": {"command": command, "args": args}, "gone": {"url": "http://127.0.0.1:9/mcp"}}
    adapter = MCPAdapter({"mcpServers": both})
    with pytest.raises(MCPServerError, match="'gone' cannot be reached"):
        await adapter.__aenter__()
    assert not servers_running("workshop.py stdio")


async def test_a_server_that_never_answers_is_given_up_in_time(tmp_path):
    mute = MCPAdapter([sys.executable, "-c", "import sys; sys.stdin.read()"], connect_timeout=0.5, name="mute")
    with pytest.raises(MCPServerError, match=r"MCP server 'mute' did not answer within 0.5 s"):
        await mute.atools()


def test_where_a_server_is_not_required_the_conversation_goes_on_without_it(run: Run, caplog):
    @tool
    def local() -> str:
        """Work here."""
        return "here"

    away = MCPAdapter("http://127.0.0.1:9/mcp", required=False)
    agent, model = agent_with([away, local], ask(("local", {})))
    assert said(run(agent, GO, THREAD)) == ["here"]
    assert model.offered == [["local"], ["local"]]
    assert "is away, going on without its tools" in caplog.text


def test_a_call_that_takes_too_long_is_cancelled_on_the_server(run: Run, log):
    with MCPAdapter(COMMAND, env=log.env, timeout=0.5) as adapter:
        agent, _ = agent_with([adapter], ask(("slow", {"steps": 10, "seconds": 5})), ask(("increment", {})))
        state = run(agent, GO, THREAD)
        slow, count = answers(state)
        assert (slow.status, count.text) == ("error", "1")
        assert "took over 0.5 s and was told to stop" in slow.text
        eventually(lambda: "slow cancelled" in log.lines())


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_a_cancelled_run_cancels_the_call_on_the_server(kind, log, tmp_path):
    from contextlib import ExitStack

    with ExitStack() as stack:
        if kind == "http":
            target = stack.enter_context(over_http(**log.env)).url
            adapter = MCPAdapter(target)
        else:
            adapter = MCPAdapter(COMMAND, env=log.env)
        async with adapter:
            agent, _ = agent_with([adapter], ask(("slow", {"steps": 10, "seconds": 5})))
            running = asyncio.create_task(agent.ainvoke(GO, THREAD))
            await asyncio.to_thread(eventually, lambda: "slow started" in log.lines())
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await asyncio.to_thread(eventually, lambda: "slow cancelled" in log.lines())
            assert "slow done" not in log.lines()


def test_a_policys_time_limit_cancels_the_call_on_the_server_too(run: Run, log):
    with MCPAdapter(COMMAND, env=log.env, timeout=None) as adapter:
        quick = with_policies(adapter, {"slow": ToolPolicy(timeout=0.5)})
        agent, _ = agent_with([quick], ask(("slow", {"steps": 10, "seconds": 5})))
        assert answers(run(agent, GO, THREAD))[0].status == "error"
        if run.is_async:
            eventually(lambda: "slow cancelled" in log.lines())


def test_progress_of_the_server_is_streamed_as_the_calls_progress(run: Run):
    with MCPAdapter(COMMAND) as adapter:
        agent, _ = agent_with([adapter], ask(("slow", {"steps": 3})))
        events = run.stream(agent, GO, THREAD, stream_mode="custom")
    assert events == [
        {"type": "tool_progress", "tool_call_id": "c1", "name": "slow", "done": n, "total": 3, "note": f"step {n}"}
        for n in range(3)
    ]


def test_calls_of_one_batch_run_at_the_same_time_on_one_connection(run: Run, log):
    with MCPAdapter(COMMAND, env=log.env) as adapter:
        agent, _ = agent_with([adapter], ask(*(("slow", {"steps": 20}) for _ in range(3))))
        assert said(run(agent, GO, THREAD)) == ["done"] * 3
    assert log.lines()[:3] == ["slow started"] * 3


async def test_other_things_of_a_server_are_used_on_the_loop_that_holds_it():
    async with MCPAdapter(COMMAND) as adapter:
        prompts = await adapter.use(lambda client: client.list_prompts())
        assert prompts == []

"""A batch is not all-or-nothing: whatever one call does, the others have their results (cases of kinds K2, K4)."""

import asyncio
import logging
import threading
from typing import Any

import pytest
from batches import Run, ask, graph_of, paired, results, texts
from langchain_core.messages import ToolCall, ToolMessage

from agentkit.errors import DefinitionError
from agentkit.tools import ToolNode, ToolPolicy, tool, with_policy


@tool
def ok() -> str:
    """Work."""
    return "fine"


@tool
def bad() -> str:
    """Fail."""
    raise ValueError("no such row: postgresql://admin:hunter2@db/prod")


BOTH = ask(("ok", {}, "c1"), ("bad", {}, "c2"))


def test_a_failing_call_becomes_an_error_result_and_its_siblings_keep_theirs(run: Run, form: str) -> None:
    output = run(graph_of(ToolNode([ok, bad]), form=form), {"messages": [BOTH]})
    assert paired(output["messages"])
    assert [result.status for result in results(output)] == ["success", "error"]
    assert texts(output)[1] == "Error: ValueError: no such row: postgresql://***@db/prod"


def test_an_error_that_is_hidden_leaves_a_reference_whose_traceback_is_logged(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "agentkit"):
        (result,) = results(run(ToolNode([bad], on_tool_error="hide"), {"messages": [ask(("bad", {}, "c1"))]}))
    assert result.status == "error"
    reference = result.content.rsplit(" ", 1)[-1]
    assert "no such row" not in result.content
    assert reference in caplog.text
    assert caplog.records[-1].exc_info is not None


def test_a_function_decides_what_an_error_says(run: Run) -> None:
    def say(error: Exception, call: ToolCall) -> str:
        return f"{call['name']} broke with {type(error).__name__}"

    assert texts(run(ToolNode([bad], on_tool_error=say), {"messages": [ask(("bad", {}, "c1"))]})) == [
        "bad broke with ValueError"
    ]


def test_a_policy_decides_for_its_own_tool(run: Run) -> None:
    node = ToolNode([ok, with_policy(bad, on_error=lambda error, call: "mine")], on_tool_error="raise")
    assert texts(run(node, {"messages": [BOTH]})) == ["fine", "mine"]


def test_an_unknown_setting_is_refused_when_the_node_is_built() -> None:
    with pytest.raises(DefinitionError, match="on_tool_error='shout'"):
        ToolNode([ok], on_tool_error="shout")  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="not both"):
        ToolNode([ok], on_tool_error="raise", handle_tool_errors=True)


def test_an_error_that_is_raised_waits_until_the_running_siblings_have_settled(run: Run, form: str) -> None:
    release = threading.Event()
    ended = []

    @tool
    def failing() -> str:
        """Fail at once, and let the other go on."""
        release.set()
        raise ValueError("failed")

    @tool
    def working() -> str:
        """Work on after the failure."""
        assert release.wait(10)
        ended.append("worked")
        return "worked"

    graph = graph_of(ToolNode([failing, working], on_tool_error="raise"), form=form)
    with pytest.raises(ValueError, match="failed"):
        run(graph, {"messages": [ask(("failing", {}, "c1"), ("working", {}, "c2"))]})
    assert ended == ["worked"]


def test_the_exception_names_its_tool_and_call(run: Run) -> None:
    with pytest.raises(ValueError) as caught:
        run(graph_of(ToolNode([bad], on_tool_error="raise")), {"messages": [ask(("bad", {}, "c7"))]})
    assert "in tool 'bad', call 'c7'" in caught.value.__notes__


def test_a_tool_that_cancels_itself_has_failed_and_the_run_goes_on(form: str) -> None:
    @tool
    async def cancelled() -> str:
        """Cancel."""
        raise asyncio.CancelledError

    output = asyncio.run(
        graph_of(ToolNode([ok, cancelled]), form=form).ainvoke(
            {"messages": [ask(("ok", {}, "c1"), ("cancelled", {}, "c2"))]}
        )
    )
    assert [result.status for result in results(output)] == ["success", "error"]
    assert "cancelled from within" in texts(output)[1]


def test_a_tool_whose_inner_task_is_cancelled_has_failed_too(form: str) -> None:
    @tool
    async def cancelled() -> str:
        """Await a task that somebody cancels."""
        inner = asyncio.ensure_future(asyncio.sleep(60))
        asyncio.get_running_loop().call_soon(inner.cancel)
        await inner
        return "never"

    output = asyncio.run(
        graph_of(ToolNode([cancelled]), form=form).ainvoke({"messages": [ask(("cancelled", {}, "c1"))]})
    )
    assert [result.status for result in results(output)] == ["error"]


def test_a_run_that_is_cancelled_is_cancelled(form: str) -> None:
    async def main() -> None:
        started = asyncio.Event()

        @tool
        async def waiting() -> str:
            """Wait."""
            started.set()
            await asyncio.sleep(60)
            return "never"

        graph = graph_of(ToolNode([waiting]), form=form)
        running = asyncio.ensure_future(graph.ainvoke({"messages": [ask(("waiting", {}, "c1"))]}))
        await asyncio.wait_for(started.wait(), 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


def test_a_tool_that_ends_the_process_only_fails(run: Run) -> None:
    @tool
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    output = run(ToolNode([ok, leave]), {"messages": [ask(("ok", {}, "c1"), ("leave", {}, "c2"))]})
    assert [result.status for result in results(output)] == ["success", "error"]


def test_a_call_that_takes_too_long_is_an_error_result_and_its_siblings_are_kept(run: Run, form: str) -> None:
    for_ever = threading.Event()

    @tool(policy=ToolPolicy(timeout=0.05))
    def stuck() -> str:
        """Never end."""
        for_ever.wait(20)
        return "late"

    graph = graph_of(ToolNode([ok, stuck]), form=form)
    output = run_until(run, graph, {"messages": [ask(("ok", {}, "c1"), ("stuck", {}, "c2"))]}, for_ever)
    assert paired(output["messages"])
    assert [result.status for result in results(output)] == ["success", "error"]
    assert "within 0.05 s" in texts(output)[1]


def run_until(run: Run, graph: Any, given: Any, event: threading.Event) -> Any:
    """Run, and let what is stuck in a thread go when the graph has ended (asyncio.run waits for its threads)."""
    if not run.is_async:
        try:
            return run(graph, given)
        finally:
            event.set()

    async def main() -> Any:
        try:
            return await graph.ainvoke(given)
        finally:
            event.set()

    return asyncio.run(main())


def test_an_async_tool_that_takes_too_long_is_stopped(form: str) -> None:
    stopped = []

    @tool(policy=ToolPolicy(timeout=0.05))
    async def stuck() -> str:
        """Never end."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append(True)
            raise
        return "late"

    output = asyncio.run(graph_of(ToolNode([stuck]), form=form).ainvoke({"messages": [ask(("stuck", {}, "c1"))]}))
    assert texts(output) == ["Error: stuck did not finish within 0.05 s and was stopped"]
    assert stopped == [True]


def test_a_call_is_tried_again_under_the_same_key(run: Run, form: str) -> None:
    from agentkit.tools import ToolRuntime

    keys = []

    @tool(policy=ToolPolicy(retries=2, retry_on=(ConnectionError,), initial_delay=0, jitter=False))
    def flaky(runtime: ToolRuntime) -> str:
        """Fail twice."""
        keys.append(runtime.idempotency_key)
        if len(keys) < 3:
            raise ConnectionError("down")
        return "up"

    output = run(graph_of(ToolNode([flaky]), form=form), {"messages": [ask(("flaky", {}, "c1"))]})
    assert texts(output) == ["up"]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert keys[0]


def test_what_is_not_to_be_tried_again_fails_at_once(run: Run) -> None:
    tries = []

    @tool(policy=ToolPolicy(retries=2, retry_on=(ConnectionError,), initial_delay=0))
    def wrong() -> str:
        """Fail."""
        tries.append(1)
        raise KeyError("x")

    assert results(run(ToolNode([wrong]), {"messages": [ask(("wrong", {}, "c1"))]}))[0].status == "error"
    assert tries == [1]


def test_wrappers_see_exceptions_first(run: Run, form: str) -> None:
    def wrap(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(f"handled {type(error).__name__}", tool_call_id=request.tool_call["id"])

    output = run(graph_of(ToolNode([bad], wrap_tool_call=wrap), form=form), {"messages": [ask(("bad", {}, "c1"))]})
    assert texts(output) == ["handled ValueError"]


def test_a_sync_wrapper_of_an_async_run_leaves_the_loop_free_and_the_calls_parallel(form: str) -> None:
    together = threading.Barrier(3, timeout=10)

    def wrap(request: Any, handler: Any) -> Any:
        together.wait()  # passes only if all three wrappers run at once
        return handler(request)

    async def main() -> Any:
        graph = graph_of(ToolNode([ok], wrap_tool_call=wrap), form=form)
        return await graph.ainvoke({"messages": [ask(("ok", {}, "1"), ("ok", {}, "2"), ("ok", {}, "3"))]})

    assert texts(asyncio.run(main())) == ["fine"] * 3


def test_the_model_s_wrong_arguments_are_told_to_the_model_even_where_errors_are_raised(run: Run, form: str) -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    message = ask(("add", {"a": "one", "b": 2}, "c1"), ("add", {"a": 1, "b": 2}, "c2"), ("add", {"a": 1, "q": 1}, "c3"))
    output = run(graph_of(ToolNode([add], on_tool_error="raise"), form=form), {"messages": [message]})
    assert [result.status for result in results(output)] == ["error", "success", "error"]
    assert "a" in texts(output)[0]
    assert "'one'" in texts(output)[0]


def test_a_tool_that_is_not_there_is_an_error_that_names_those_that_are(run: Run, form: str) -> None:
    output = run(graph_of(ToolNode([ok, bad]), form=form), {"messages": [ask(("nosuch", {}, "c1"))]})
    assert texts(output) == ["Error: nosuch is not a valid tool, try one of [bad, ok]."]
    assert results(output)[0].status == "error"


@pytest.mark.parametrize(
    ("setting", "content"),
    [
        (True, "Error: ValueError('bad thing')\n Please fix your mistakes."),
        ("custom", "custom"),
        (ValueError, "Error: ValueError('bad thing')\n Please fix your mistakes."),
        ((KeyError, ValueError), "Error: ValueError('bad thing')\n Please fix your mistakes."),
        (lambda error: f"said {error}", "said bad thing"),
    ],
)
def test_langgraph_s_handle_tool_errors_keeps_its_meaning(run: Run, setting: Any, content: str) -> None:
    @tool
    def thing() -> str:
        """Fail."""
        raise ValueError("bad thing")

    message = ask(("thing", {}, "c1"))
    assert texts(run(ToolNode([thing], handle_tool_errors=setting), {"messages": [message]})) == [content]
    for raising in (False, KeyError, (KeyError, TypeError)):
        with pytest.raises(ValueError, match="bad thing"):
            run(ToolNode([thing], handle_tool_errors=raising), {"messages": [message]})

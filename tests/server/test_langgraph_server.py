"""Agents on a real `langgraph dev`, over memory and over Postgres: who is told what, and who sees whose."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from langchain_core.messages import convert_to_messages

from agentkit.messages import check_history


def say(*specs: Any) -> dict[str, Any]:
    text = specs[0] if len(specs) == 1 and isinstance(specs[0], str) else json.dumps(specs)
    return {"messages": [{"role": "user", "content": text}]}


def results(state: Any) -> list[Any]:
    return [message["content"] for message in state["messages"] if message["type"] == "tool"]


def valid(state: Any) -> bool:
    faults = check_history(convert_to_messages(state["messages"]))
    assert not faults, faults
    return True


def asked(state: Any) -> dict[str, str]:
    """Interrupt ids, by question or headless call id."""
    found = {}
    for each in state.get("__interrupt__", ()):
        value = each["value"]
        found[value if isinstance(value, str) else value["tool_call"]["id"]] = each["id"]
    return found


async def until(ready: Any, within: float = 60.0) -> None:
    async with asyncio.timeout(within):
        while not ready():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.02)


async def status(request: Callable[[], Awaitable[Any]]) -> int:
    """The status code that a request is refused with."""
    with pytest.raises(httpx.HTTPStatusError) as refused:
        await request()
    return refused.value.response.status_code


async def new_thread(client: Any) -> str:
    return (await client.threads.create())["thread_id"]


async def test_a_tool_is_told_where_it_runs_and_for_whom(server: Any, ann: Any) -> None:
    thread = await new_thread(ann)
    forged = {"tone": "warm", "user_id": "ben", "unknown": 1}
    state = await ann.runs.wait(thread, "probe", input=say(["whoami", {}, "c1"]), context=forged)
    (told,) = map(json.loads, results(state))
    assistants = await ann.assistants.search(graph_id="probe")
    assert told["server"] == {"assistant": assistants[0]["assistant_id"], "graph": "probe"}
    assert told["user"] == "ann"
    assert told["identity"] == ["user", "ann"], "what a client sets never counts"
    assert told["thread"] == thread
    assert told["run"] == (await ann.runs.list(thread))[0]["run_id"]
    assert told["context"] == {"tone": "warm", "user_id": "ben"}
    assert valid(state)


async def test_a_user_id_in_configurable_never_counts(server: Any, ann: Any) -> None:
    config = {
        "configurable": {"user_id": "ben", "langgraph_auth_user_id": "ben", "langgraph_auth_user": {"identity": "ben"}}
    }
    state = await ann.runs.wait(await new_thread(ann), "probe", input=say(["whoami", {}, "c1"]), config=config)
    assert json.loads(results(state)[0])["identity"] == ["user", "ann"]


async def test_without_a_context_it_has_its_defaults(server: Any, ann: Any) -> None:
    state = await ann.runs.wait(await new_thread(ann), "probe", input=say(["whoami", {}, "c1"]))
    assert json.loads(results(state)[0])["context"] == {"tone": "plain", "user_id": ""}


async def test_a_thread_is_not_there_for_another_user_or_for_nobody(server: Any, ann: Any, ben: Any) -> None:
    thread = await new_thread(ann)
    await ann.runs.wait(thread, "probe", input=say("hello"))
    for attempt in (
        lambda: ben.threads.get(thread),
        lambda: ben.threads.get_state(thread),
        lambda: ben.threads.get_history(thread),
        lambda: ben.runs.wait(thread, "probe", input=say("mine?")),
        lambda: ben.threads.update_state(thread, {"messages": []}),
    ):
        assert await status(attempt) == 404
    assert await ben.threads.search(ids=[thread]) == []
    async with server.client(None) as nobody:
        assert await status(lambda: nobody.threads.get(thread)) == 401


async def test_nobody_sees_the_memories_of_another(server: Any, ann: Any, ben: Any) -> None:
    secret = f"the code is {uuid.uuid4().hex}"
    await ann.runs.wait(await new_thread(ann), "probe", input=say(["remember", {"text": secret}, "c1"]))
    recall = say(["recall", {"query": ""}, "c1"])
    later = await ann.runs.wait(await new_thread(ann), "probe", input=recall)
    assert secret in results(later)[0], "in another thread"
    state = await ben.runs.wait(await new_thread(ben), "probe", input=recall, context={"user_id": "ann"})
    assert secret not in results(state)[0]
    state = await ben.runs.wait(
        await new_thread(ben), "probe", input=recall, config={"configurable": {"user_id": "ann"}}
    )
    assert secret not in results(state)[0]
    found = (await ann.store.search_items(("memories", "user", "ann")))["items"]
    assert secret in [item["value"]["text"] for item in found]
    for look in (
        lambda: ben.store.search_items(("memories", "user", "ann")),
        lambda: ben.store.get_item(("memories", "user", "ann"), key=found[0]["key"]),
        lambda: ben.store.put_item(("memories", "user", "ann"), key="x", value={"text": "forged"}),
        lambda: ben.store.delete_item(("memories", "user", "ann"), key=found[0]["key"]),
        lambda: ben.store.list_namespaces(prefix=["memories", "user", "ann"]),
    ):
        assert await status(look) == 403
    everything = (await ben.store.search_items(()))["items"]
    assert secret not in json.dumps(everything)


async def test_streams_show_updates_tokens_progress_and_subagents(server: Any, ann: Any) -> None:
    ask = say(["steps", {"count": 2}, "c1"], ["helper", {"request": "hello"}, "c2"])
    modes: list[Any] = ["updates", "messages-tuple", "custom", "values"]
    seen: list[Any] = []
    async for part in ann.runs.stream(
        await new_thread(ann), "probe", input=ask, stream_mode=modes, stream_subgraphs=True
    ):
        seen.append((part.event, part.data))
    by: dict[str, list[Any]] = {}
    for event, data in seen:
        by.setdefault(event.split("|")[0], []).append((event, data))
    progress = [(data["done"], data["total"], data["tool_call_id"]) for _, data in by["custom"]]
    assert progress == [(1, 2, "c1"), (2, 2, "c1")]
    finished = [data["tools"]["messages"] for event, data in by["updates"] if event == "updates" and "tools" in data]
    assert sorted(message["tool_call_id"] for messages in finished for message in messages) == ["c1", "c2"]
    inner = [data for event, data in by["messages"] if "|" in event]
    assert {metadata["tool_call_id"] for _, metadata in inner} == {"c2"}
    assert "heard: hello" in "".join(chunk["content"] for chunk, _ in inner)
    whole = [data for event, data in by["values"] if event == "values"][-1]
    assert whole["messages"][-1]["content"] == "done | heard: hello"
    assert valid(whole)


async def test_several_questions_are_answered_by_id_and_in_part(server: Any, ann: Any) -> None:
    thread = await new_thread(ann)
    names = [f"{each}-{uuid.uuid4().hex[:6]}" for each in "ab"]
    inner = json.dumps([["ask", {"question": "inner?"}, "i1"], ["work", {"name": names[1]}, "i2"]])
    batch = say(
        ["ask", {"question": "first?"}, "c1"],
        ["work", {"name": names[0]}, "c2"],
        ["locate", {}, "c3"],
        [
            "helper",
            {"request": inner},
            "c4",
        ],
    )
    open_ = asked(await ann.runs.wait(thread, "probe", input=batch))
    assert set(open_) == {"first?", "c3", "inner?"}
    assert (await ann.threads.get(thread))["status"] == "interrupted"
    assert {each["id"] for each in (await ann.threads.get_state(thread))["interrupts"]} == set(open_.values())

    state = await ann.runs.wait(thread, "probe", command={"resume": {open_["inner?"]: "yes"}})
    assert set(asked(state)) == {"first?", "c3"}
    state = await ann.runs.wait(thread, "probe", command={"resume": {open_["c3"]: {"c3": {"lat": "north"}}}})
    assert set(asked(state)) == {"first?", "c3"}
    (again,) = [each["value"] for each in state["__interrupt__"] if not isinstance(each["value"], str)]
    assert "lat: has the wrong type" in again["error"]
    answers = {asked(state)["c3"]: {"c3": {"lat": 1}}, open_["first?"]: "no"}
    state = await ann.runs.wait(thread, "probe", command={"resume": answers})
    assert results(state) == ["first? no", f"did {names[0]}", '{"lat": 1}', f"inner? yes | did {names[1]}"]
    assert [server.did().count(name) for name in names] == [1, 1]
    assert valid(state)


async def test_a_question_that_nobody_answers_does_not_stop_the_conversation(server: Any, ann: Any) -> None:
    thread = await new_thread(ann)
    await ann.runs.wait(thread, "probe", input=say(["ask", {"question": "?"}, "c1"], ["locate", {}, "c2"]))
    state = await ann.runs.wait(thread, "probe", input=say("never mind"))
    assert state["messages"][-1]["content"] == "heard: never mind"
    assert [message["status"] for message in state["messages"] if message["type"] == "tool"] == ["error", "error"]
    assert valid(state)


async def test_a_cancelled_background_run_is_continued(server: Any, ann: Any) -> None:
    thread = await new_thread(ann)
    gate, once = f"gate-{uuid.uuid4().hex[:6]}", f"once-{uuid.uuid4().hex[:6]}"
    batch = say(["work", {"name": once}, "c1"], ["wait_for", {"name": gate}, "c2"])
    run = await ann.runs.create(thread, "probe", input=batch)
    await until(lambda: {once, f"waiting for {gate}"} <= set(server.did()))
    await ann.runs.cancel(thread, run["run_id"], wait=True)
    server.open_gate(gate)
    state = await ann.runs.wait(thread, "probe", input=None)
    assert results(state) == [f"did {once}", f"passed {gate}"]
    assert server.did().count(once) == 1
    assert valid(state)


async def test_a_cancelled_run_leaves_a_thread_that_takes_the_next_message(server: Any, ann: Any) -> None:
    thread = await new_thread(ann)
    gate = f"gate-{uuid.uuid4().hex[:6]}"
    run = await ann.runs.create(thread, "probe", input=say(["wait_for", {"name": gate}, "c1"]))
    await until(lambda: f"waiting for {gate}" in server.did())
    await ann.runs.cancel(thread, run["run_id"], wait=True)
    state = await ann.runs.wait(thread, "probe", input=say("still there?"))
    assert state["messages"][-1]["content"] == "heard: still there?"
    assert valid(state)


async def test_errors_help_and_leak_nothing(server: Any, ann: Any) -> None:
    state = await ann.runs.wait(await new_thread(ann), "probe", input=say(["fail", {}, "c1"]))
    (told,) = results(state)
    assert "RuntimeError" in told
    assert "hunter2" not in json.dumps(state)


async def test_a_graph_with_a_memory_of_its_own_is_served_without_it(server: Any, ann: Any) -> None:
    thread = await new_thread(ann)
    await ann.runs.wait(thread, "stripped", input=say("one"))
    state = await ann.runs.wait(thread, "stripped", input=say("two"))
    assert [message["content"] for message in state["messages"]] == ["one", "heard: one", "two", "heard: two"]


async def test_a_factory_opens_its_resources_only_for_runs(server: Any, ann: Any) -> None:
    thread = await new_thread(ann)
    await ann.runs.wait(thread, "opens_when_needed", input=say("hello"))
    await ann.threads.get_state(thread)
    await ann.assistants.get_graph("opens_when_needed")
    await until(lambda: server.did().count("closed") == server.did().count("opened") > 0)
    opened = server.did().count("opened")
    await ann.threads.get_state(thread)
    assert server.did().count("opened") == opened
    assert "only read" in server.did()

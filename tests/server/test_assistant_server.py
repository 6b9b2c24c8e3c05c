"""graphs/assistant.py on a real `langgraph dev`, through langgraph_sdk."""

import json


def asked(text):
    return {"messages": [{"role": "user", "content": text}]}


async def answer(assistant, thread, text):
    state = await assistant.runs.wait(thread["thread_id"], "assistant", input=asked(text))
    return state["messages"][-1]["content"]


async def test_the_assistant_is_served_and_answers_with_parallel_calls(assistant):
    assert "assistant" in [each["graph_id"] for each in await assistant.assistants.search()]
    thread = await assistant.threads.create()
    state = await assistant.runs.wait(thread["thread_id"], "assistant", input=asked("what is 12*7 and 1/0?"))
    human, asking, seven, failed, said = state["messages"]
    assert human["content"] == "what is 12*7 and 1/0?"
    assert [call["id"] for call in asking["tool_calls"]] == [seven["tool_call_id"], failed["tool_call_id"]]
    assert [seven["status"], failed["status"]] == ["success", "error"]
    assert said["content"].startswith("12*7 = 84\n")


async def test_a_thread_keeps_its_state_and_what_it_was_told_between_runs(assistant):
    thread, other = await assistant.threads.create(), await assistant.threads.create()
    await answer(assistant, thread, "add milk to my to-do list and add bread to my to-do list")
    await answer(assistant, thread, "remember that I like tea")
    assert (await assistant.threads.get_state(thread["thread_id"]))["values"]["todos"] == {
        "milk": "open",
        "bread": "open",
    }
    assert await answer(assistant, thread, "show my to-do list") == "To do:\n[ ] milk\n[ ] bread"
    assert "I like tea" in await answer(assistant, thread, "what do you know about me?")
    # without authentication nobody knows that both threads are one person's
    assert "tea" not in await answer(assistant, other, "what do you know about me?")


async def test_a_run_streams_words_updates_and_progress(assistant):
    thread = await assistant.threads.create()
    events = {}
    async for part in assistant.runs.stream(
        thread["thread_id"],
        "assistant",
        input=asked("wait 1 second and what is 12*7?"),
        stream_mode=["messages-tuple", "updates", "custom"],
    ):
        events.setdefault(part.event, []).append(part.data)
    assert "error" not in events
    words = [message["content"] for message, _ in events["messages"] if message["type"] == "AIMessageChunk"]
    assert "".join(words) == "1 s have passed.\n12*7 = 84"
    assert len([word for word in words if word]) > 3
    assert {event["type"] for event in events["custom"]} == {"tool_progress"}
    nodes = [next(iter(update)) for update in events["updates"]]
    assert nodes == ["model", "tools", "tools", "model"]


async def test_a_cancelled_run_leaves_a_thread_that_takes_the_next_message(assistant):
    thread = await assistant.threads.create()
    run = await assistant.runs.create(
        thread["thread_id"], "assistant", input=asked("wait 300 seconds"), stream_mode=["custom"]
    )
    async for part in assistant.runs.join_stream(thread["thread_id"], run["run_id"], stream_mode="custom"):
        if "tool_progress" in json.dumps(part.data):
            break  # the call is in flight
    await assistant.runs.cancel(thread["thread_id"], run["run_id"], wait=True)
    state = await assistant.runs.wait(thread["thread_id"], "assistant", input=asked("what is 12*7?"))
    kinds = [message["type"] for message in state["messages"]]
    assert kinds == ["human", "ai", "tool", "human", "ai", "tool", "ai"]
    assert state["messages"][-1]["content"] == "12*7 = 84"

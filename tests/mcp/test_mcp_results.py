"""What MCP tools return, and what becomes of it."""

import pytest
from batches import Run
from langchain_core.messages import ToolMessage
from mcp_servers import COMMAND, GO, THREAD, TIME, agent_with, answers, ask

from agentkit.mcp import MCPAdapter, MCPToolError, is_destructive, is_read_only
from agentkit.tools import policy_of

PIXEL = "iVBORw0KGgo"


@pytest.fixture(scope="module")
def adapter():
    with MCPAdapter(COMMAND, max_output=1_000, max_bytes=100, name="workshop") as opened:
        yield opened


def text(words):
    return {"type": "text", "text": words}


def result_of(adapter, run, name, /, **args):
    """The result of one call in an agent with a checkpointer."""
    agent, _ = agent_with([adapter], ask((name, args)))
    state = run(agent, GO, THREAD)
    assert state["messages"][-1].content == "done"
    (found,) = answers(state)
    return found


def test_structured_content_is_the_artifact_and_its_text_the_content(adapter, run: Run):
    found = result_of(adapter, run, "structured", city="Seoul")
    assert found.artifact == {"structured_content": {"city": "Seoul", "degrees": 21.5}}
    assert '"degrees": 21.5' in found.text
    assert found.status == "success"


def test_images_sounds_links_and_files_become_content_blocks(adapter, run: Run):
    (image,) = result_of(adapter, run, "picture").content_blocks
    assert (image["type"], image["mime_type"], image["base64"][:11]) == ("image", "image/png", PIXEL)
    (audio,) = result_of(adapter, run, "sound").content_blocks
    assert (audio["type"], audio["mime_type"], audio["base64"]) == ("audio", "audio/wav", "UklGRnh4eHhXQVZF")
    assert result_of(adapter, run, "files").content == [
        text("two files"),
        {
            "type": "file",
            "url": "https://example.com/a.pdf",
            "mime_type": "application/pdf",
            "extras": {"resource": {"name": "a.pdf"}},
        },
        {"type": "file", "base64": "AAEC", "mime_type": "application/x-b"},
    ]


def test_a_result_without_content_says_so(adapter, run: Run):
    assert result_of(adapter, run, "nothing").content == [text("Done; the tool returned nothing.")]


def test_an_error_of_the_server_is_an_error_result_with_content_and_artifact(adapter, run: Run):
    found = result_of(adapter, run, "fail", reason="no ink")
    assert (found.status, found.text) == ("error", "Error executing tool fail: no ink")
    found = result_of(adapter, run, "fail_with_details")
    assert (found.status, found.text, found.artifact) == ("error", "no paper", {"structured_content": {"tray": 2}})


def test_a_result_that_breaks_the_servers_own_output_schema_is_an_error_result(adapter, run: Run):
    found = result_of(adapter, run, "wrong_structure")
    assert found.status == "error"
    assert "its own output schema forbids" in found.text
    assert "'degrees' is a required property" in found.text


def test_arguments_that_do_not_fit_never_reach_the_server(adapter, run: Run):
    found = result_of(adapter, run, "structured", city=7)
    assert found.status == "error"
    assert "structured" in found.text
    assert "city" in found.text


def test_a_long_text_is_cut_and_kept_whole_in_the_artifact(adapter, run: Run):
    found = result_of(adapter, run, "long_text", length=5_000)
    assert len(found.text) < 1_200
    assert "left out" in found.text
    assert found.artifact["content"] == [text("x" * 5_000)]


def test_a_picture_over_the_limit_is_left_out_with_a_note(run: Run):
    with MCPAdapter(COMMAND, max_bytes=10) as small:
        found = result_of(small, run, "picture")
    assert "left out: the limit is 10 bytes" in found.text


def test_arguments_may_have_any_names(adapter, run: Run):
    found = result_of(adapter, run, "reserved", runtime="r", config=3, self="s", name="n")
    assert found.text == "r 3 s n"
    tool = next(t for t in adapter.tools() if t.name == "reserved")
    by_hand = tool.invoke({"name": "reserved", "args": {"runtime": "r", "config": 3}, "id": "x", "type": "tool_call"})
    assert by_hand.text == "r 3 s n"


def test_a_name_that_providers_refuse_is_cleaned_and_the_server_still_gets_its_own(adapter, run: Run):
    assert result_of(adapter, run, "files_read_all_now").text == "read"


def test_the_server_gets_the_idempotency_key_of_the_call(adapter, run: Run):
    first, second = (result_of(adapter, run, "key").text for _ in range(2))
    assert first not in ("None", second)


def test_annotations_are_metadata_and_decide_what_a_crash_means(adapter):
    tools = {tool.name: tool for tool in adapter.tools()}
    assert is_read_only(tools["process_id"])
    assert not is_destructive(tools["process_id"])
    assert policy_of(tools["process_id"]).on_crash == "rerun"
    assert policy_of(tools["crash_once"]).on_crash == "rerun"
    assert is_destructive(tools["increment"])
    assert not is_destructive(tools["crash_once"])
    assert policy_of(tools["increment"]).on_crash == "unknown"
    server = tools["increment"].metadata["mcp"]["server"]
    assert (server["name"], server["version"], server["label"]) == ("workshop", "1.2.3", "workshop")


async def test_called_by_hand_a_tool_gives_content_or_a_tool_message(adapter):
    tools = {tool.name: tool for tool in adapter.tools()}
    assert await tools["structured"].ainvoke({"city": "x"}) == [text('{\n  "city": "x",\n  "degrees": 21.5\n}')]
    call = {"name": "fail", "args": {"reason": "r"}, "id": "c9", "type": "tool_call"}
    message = await tools["fail"].ainvoke(call)
    assert isinstance(message, ToolMessage)
    assert (message.tool_call_id, message.status) == ("c9", "error")
    with pytest.raises(MCPToolError, match="Error executing tool fail: r"):
        await tools["fail"].ainvoke({"reason": "r"})


def test_what_listens_to_tools_changes_nothing(adapter, run: Run):
    from langchain_core.callbacks import BaseCallbackHandler

    class Listener(BaseCallbackHandler):
        def __init__(self):
            self.ended = []

        def on_tool_end(self, output, **kwargs):
            self.ended.append(output)

    listener = Listener()
    odd = {"runtime": "r", "config": 3, "self": "s", "name": "n"}
    agent, _ = agent_with([adapter], ask(("fail_with_details", {}), ("reserved", odd)))
    state = run(agent, GO, {**THREAD, "callbacks": [listener]})
    failed, found = answers(state)
    assert (failed.status, failed.artifact) == ("error", {"structured_content": {"tray": 2}})
    assert found.text == "r 3 s n"
    assert len(listener.ended) == 2


def test_the_official_time_server_answers(run: Run):
    with MCPAdapter(TIME) as clock:
        found = result_of(clock, run, "convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Seoul")
    assert found.artifact["structured_content"]["target"]["datetime"].endswith("21:00:00+09:00")

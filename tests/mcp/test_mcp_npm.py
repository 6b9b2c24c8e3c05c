"""Servers from npm, the way people run them: server-everything and server-filesystem."""

import subprocess
from contextlib import contextmanager

import pytest
from batches import Run
from langgraph.types import Command
from mcp_servers import GO, THREAD, agent_with, answers, ask, eventually, said

from agentkit.mcp import MCPAdapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PACKAGES = ["@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31"]


@pytest.fixture(scope="session")
def binaries(tmp_path_factory):
    """The folder with the commands of both servers."""
    folder = tmp_path_factory.mktemp("npm")
    words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *PACKAGES]
    subprocess.run(words, check=True, timeout=240, capture_output=True)
    return folder / "node_modules" / ".bin"


@contextmanager
def everything_over_http(binaries):
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(binaries / "mcp-server-everything"), "streamableHttp"]
    process = subprocess.Popen(words, env={"PORT": str(port), "PATH": "/usr/bin:/bin:/usr/local/bin"})

    def answers_there():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(answers_there)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture(scope="module", params=["stdio", "http"])
def everything(request, binaries):
    if request.param == "stdio":
        with MCPAdapter([str(binaries / "mcp-server-everything"), "stdio"]) as adapter:
            yield adapter
        return
    with everything_over_http(binaries) as url, MCPAdapter(url) as adapter:
        yield adapter


def test_its_tools_answer_with_text_images_links_and_structures(everything, run: Run):
    agent, _ = agent_with(
        [everything],
        ask(
            ("get-sum", {"a": 2, "b": 40}),
            ("get-tiny-image", {}),
            ("get-structured-content", {"location": "Chicago"}),
            ("get-resource-links", {"count": 2}),
            ("get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
            ("get-sum", {"a": "two", "b": 40}),
        ),
    )
    total, image, structured, links, blob, wrong = answers(run(agent, GO, THREAD))
    assert "42" in total.text
    assert [block["type"] for block in image.content_blocks] == ["text", "image", "text"]
    assert set(structured.artifact["structured_content"]) == {"temperature", "conditions", "humidity"}
    assert [block["type"] for block in links.content_blocks] == ["text", "file", "file"]
    assert any(block["type"] == "file" and block.get("base64") for block in blob.content_blocks)
    assert wrong.status == "error"


def test_its_progress_is_streamed(everything, run: Run):
    agent, _ = agent_with([everything], ask(("trigger-long-running-operation", {"duration": 0.4, "steps": 2})))
    events = run.stream(agent, GO, THREAD, stream_mode="custom")
    assert [(event["done"], event["total"]) for event in events] == [(1, 2), (2, 2)]


def test_what_it_asks_interrupts_the_run_though_it_speaks_an_older_protocol(everything, run: Run):
    agent, _ = agent_with([everything], ask(("trigger-elicitation-request", {})))
    ((question),) = run(agent, GO, THREAD)["__interrupt__"]
    (request,) = question.value["requests"]
    fields = request["requested_schema"]["properties"]
    assert request["mode"] == "form"
    content = {"name": "Ada"} if "name" in fields else {}
    resume = {"responses": {request["key"]: {"action": "accept", "content": content}}}
    state = run(agent, Command(resume=resume), THREAD)
    assert "Ada" in said(state)[0]
    agent, _ = agent_with([everything], ask(("trigger-elicitation-request", {})))
    run(agent, GO, THREAD)
    declined = Command(resume={"responses": {request["key"]: {"action": "decline"}}})
    assert "decline" in said(run(agent, declined, THREAD))[0].lower()


def test_files_are_written_read_and_kept_inside_the_folder(binaries, tmp_path, run: Run):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    with MCPAdapter([str(binaries / "mcp-server-filesystem"), str(inside)]) as files:
        agent, _ = agent_with(
            [files],
            ask(("write_file", {"path": str(inside / "a.txt"), "content": "hello"})),
            ask(
                ("read_text_file", {"path": str(inside / "a.txt")}),
                ("read_text_file", {"path": str(tmp_path / "secret.txt")}),
            ),
        )
        written, read, forbidden = answers(run(agent, GO, THREAD))
    assert written.status == "success"
    assert (inside / "a.txt").read_text(encoding="utf-8") == "hello"
    assert read.text == "hello"
    assert forbidden.status == "error"
    assert "secret" not in forbidden.text.replace("secret.txt", "")

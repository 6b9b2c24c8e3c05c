"""LangChain's own JavaScript SDK answers the headless tools of our graphs, on a real server."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import convert_to_messages
from langgraph_dev import Server, serving

from agentkit.messages import check_history

HERE = Path(__file__).parent
JS = HERE / "js"
GRAPHS = ("browser", "nested", "fanned", "plain")

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the script and the packages it needs, from npm."""
    folder = tmp_path_factory.mktemp("js") / "js"
    shutil.copytree(JS, folder, ignore=shutil.ignore_patterns("node_modules"))
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(command, cwd=folder, check=True, timeout=240, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    graphs = {name: f"{HERE / 'served_to_js.py'}:{name}" for name in GRAPHS}
    with serving(tmp_path_factory.mktemp("served"), {"graphs": graphs}) as started:
        yield started


def run_js(node: Path, *arguments: str) -> Any:
    ended = subprocess.run(
        ["node", "headless.mjs", *arguments], cwd=node, check=False, timeout=120, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("how", ["together", "apart"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_javascript_client_runs_the_headless_calls_of_a_batch(
    node: Path, server: Server, graph: str, how: str
) -> None:
    before = len(server.did())
    output = run_js(node, server.url, graph, how)
    results = [message for message in output["messages"] if message["type"] == "tool"]
    assert [(result["tool_call_id"], result["status"]) for result in results] == [
        ("call_1", "success"),
        ("call_2", "success"),
        ("call_3", "error"),
        ("call_4", "error"),
        ("call_5", "error"),
    ]
    located, saved, copied, picked, unknown = (result["content"] for result in results)
    assert json.loads(located) == {"lat": 52.5, "lon": 13.4}
    assert saved == "saved 7"
    assert copied == "copy_text failed on the client: no permission"
    assert picked == "the user declined pick_file: not now"
    assert "is not registered" in unknown
    assert output["messages"][-1]["content"] == "done"
    assert check_history(convert_to_messages(output["messages"])) == []
    assert server.did()[before:] == ["saved 7"], "each effect on the server happened once"
    assert output["rounds"] == (1 if how == "together" else 4)
    wanted = ["error copy_text", "error unknown_here", "start copy_text", "start locate", "start pick_file"]
    assert sorted(output["events"]) == sorted([*wanted, "success locate", "success pick_file"])

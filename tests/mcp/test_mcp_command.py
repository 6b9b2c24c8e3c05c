"""`agentkit mcp`: a server's tools in the terminal."""

import json
import shlex

import pytest
from mcp_servers import COMMAND, TIME, over_http

from agentkit.cli import _failures
from agentkit.cli._mcp import app

CLOCK, WORKSHOP = shlex.join(TIME), shlex.join(COMMAND)


@pytest.fixture
def command(capsys):
    """Run `agentkit mcp …`: exit code, stdout, stderr."""

    def run(*words):
        try:
            code = app(args=list(words), standalone_mode=False) or 0
        except BaseException as error:
            code = _failures.report(error, debug=False)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_list_shows_what_tools_do_and_whether_they_change_anything(command):
    code, out, _ = command("list", WORKSHOP)
    lines = out.splitlines()
    assert code == 0
    assert "increment([by])  may destroy" in lines
    assert "process_id()  reads" in lines
    assert "crash_once()  changes" in lines
    code, out, _ = command("list", CLOCK, "--json")
    assert [tool["name"] for tool in json.loads(out)] == ["get_current_time", "convert_time"]


def test_call_prints_the_result_and_its_exit_code_says_whether_it_is_an_error(command):
    assert command("call", WORKSHOP, "increment", "by=3")[:2] == (0, "3\n")
    code, out, _ = command("call", WORKSHOP, "fail", "reason=7")
    assert (code, out) == (1, "Error executing tool fail: 7\n")
    code, out, _ = command("call", WORKSHOP, "structured", '{"city": "Seoul"}', "--json")
    assert json.loads(out)["artifact"] == {"structured_content": {"city": "Seoul", "degrees": 21.5}}
    code, out, _ = command("call", WORKSHOP, "files")
    assert out.splitlines()[1:] == [
        "[file application/pdf https://example.com/a.pdf]",
        "[file application/x-b 3 bytes]",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["call", CLOCK, "nope"], "has no tool 'nope': there are get_current_time, convert_time"),
        (["call", CLOCK, "convert_time", "UTC"], "'UTC' is no argument: write name=value"),
        (["call", CLOCK, "convert_time", "{"], "the arguments are no JSON"),
        (["list", "no-such-command"], "MCP server 'no-such-command' cannot be reached"),
        (["list", CLOCK, "--accept"], "--accept needs the file"),
        (["list", CLOCK, "--header", "x"], "--header 'x' is no 'Name: value'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(command, words, message):
    code, _, err = command(*words)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_headers_go_to_a_server_with_a_url(command):
    with over_http(WORKSHOP_TOKENS="alice=a-token") as server:
        assert command("call", server.url, "who", "--header", "Authorization: Bearer a-token")[:2] == (0, "alice\n")
        code, _, err = command("list", server.url)
        assert code == 2
        assert "refused the credentials (HTTP 401)" in err


def test_a_changed_tool_is_shown_with_its_diff_until_it_is_accepted(command, tmp_path, monkeypatch):
    pin = str(tmp_path / "tools.lock.json")
    assert command("list", CLOCK, "--pin", pin)[0] == 0
    whole = json.loads((tmp_path / "tools.lock.json").read_text(encoding="utf-8"))
    whole["servers"]["mcp-server-time"]["tools"]["convert_time"]["description"] = "Something else"
    (tmp_path / "tools.lock.json").write_text(json.dumps(whole), encoding="utf-8")
    code, out, _ = command("list", CLOCK, "--pin", pin)
    assert code == 1
    assert "convert_time  REFUSED" in out
    assert '-  "description": "Something else"' in out
    assert command("list", CLOCK, "--pin", pin, "--accept")[0] == 0
    assert command("list", CLOCK, "--pin", pin)[0] == 0

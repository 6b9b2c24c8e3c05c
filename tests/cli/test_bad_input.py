import os
import re
import subprocess
import sys

import pytest

FILES = {
    "boom.py": "x = 1\ny = undefined_name\n",
    "syntax.py": "def (:\n",
    "leaving.py": "import sys\nsys.exit(3)\n",
    "empty.py": "x = 1\n",
    "failing.py": "def build(model=None):\n    raise RuntimeError('no luck\\nreally none')\n",
    "needing.py": "def graph(a, b):\n    return None\n",
    "fixed.py": "from langgraph.graph import MessagesState, StateGraph\n"
    "graph = StateGraph(MessagesState).add_node('n', lambda s: s).set_entry_point('n').compile()\n",
    "missing.py": "import no_such_module_anywhere\n",
}

CASES = [
    ("no file", ["nofile.py"], "there is no file nofile.py"),
    ("a file that raises", ["boom.py"], r"boom.py raises NameError in line 2: .*undefined_name.*; mend the file"),
    ("a file that cannot be read as Python", ["syntax.py"], r"syntax.py raises SyntaxError in line 1"),
    ("a file that exits", ["leaving.py"], r"leaving.py raises SystemExit"),
    ("a file that imports what is not there", ["missing.py"], r"No module named 'no_such_module_anywhere'; install it"),
    ("a file without a graph", ["empty.py"], r"empty.py has no graph"),
    ("a name that is no graph", ["empty.py:x"], r"'x' is of type int, no graph"),
    ("a name that is not there", ["fixed.py:nope"], r"has no graph 'nope'; graphs found there: graph"),
    ("a function that raises", ["failing.py"], r"'failing' cannot be made: RuntimeError: no luck"),
    ("a function that needs more", ["needing.py"], r"takes a, b, which the chat cannot give"),
    ("a name in no langgraph.json", ["nosuch"], r"no graph 'nosuch'; give FILE.py:NAME"),
    ("a module that is not there", ["nosuch.module:graph"], r"No module named 'nosuch'; install it"),
    ("a provider that is not there", ["--model", "foo:bar"], r"with model 'foo:bar'; write provider:name"),
    ("a model without a provider", ["--model", "nonsense"], r"with model 'nonsense'; write provider:name"),
    ("a model without a key", ["--model", "openai:gpt-5"], r"OPENAI_API_KEY"),
    ("a model for a graph with its own", ["fixed.py", "--model", "openai:x"], r"'fixed' chooses its own model"),
    ("a thread that is not there", ["--resume", "zzz"], r"has no thread zzz"),
    ("an unknown option", ["--nope"], r"No such option: --nope.*--help"),
]


@pytest.mark.parametrize(("arguments", "line"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bad_input_ends_with_one_line_that_has_the_fix(agentkit, tmp_path, monkeypatch, arguments, line):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    said = agentkit("chat", *arguments, lines="hello\n")
    assert (said.code, said.err.count("\n")) == (2, 1), said
    assert re.match(rf"error: .*{line}", said.err), said.err
    assert "Traceback" not in said.out + said.err


def test_debug_shows_the_traceback(agentkit, tmp_path):
    (tmp_path / "boom.py").write_text(FILES["boom.py"], encoding="utf-8")
    said = agentkit("chat", "--debug", f"{tmp_path}/boom.py")
    assert said.code == 2
    assert "Traceback" in said.err
    assert "y = undefined_name" in said.err


@pytest.mark.parametrize("command", ["chat", "demo"])
@pytest.mark.parametrize(
    "url", ["nonsense", "postgresql://u:secret-word@127.0.0.1:1/x", "postgresql://u:secret-word@no-such-host.invalid/x"]
)
def test_a_database_that_cannot_be_reached_is_one_line_without_the_password(agentkit, monkeypatch, command, url):
    monkeypatch.setenv("AGENTKIT_DATABASE_URL", url)
    said = agentkit(command, lines="hello\n")
    assert (said.code, said.err.count("\n")) == (2, 1), said
    assert said.err.startswith("error: the database")
    assert "secret-word" not in said.out + said.err


@pytest.mark.parametrize("command", ["chat", "demo"])
def test_a_data_folder_that_cannot_be_written_is_one_line_with_the_setting_to_change(
    agentkit, monkeypatch, tmp_path, command
):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("AGENTKIT_DATABASE_URL")
    monkeypatch.setenv("AGENTKIT_DATA_DIR", str(tmp_path / "file" / "data"))
    said = agentkit(command, lines="hello\n")
    assert (said.code, said.err.count("\n")) == (2, 1), said
    assert re.match(r"error: cannot write to the data folder .*AGENTKIT_DATA_DIR", said.err)


def test_a_langgraph_json_that_is_none_is_told(agentkit, monkeypatch, tmp_path):
    (tmp_path / "langgraph.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    said = agentkit("chat", "mine")
    assert said.code == 2
    assert re.match(r"error: .*langgraph.json is no langgraph.json", said.err)


def test_a_wrong_model_in_the_environment_is_named(agentkit, monkeypatch):
    monkeypatch.setenv("AGENTKIT_MODEL", "foo:bar")
    said = agentkit("chat", lines="hello\n")
    assert said.code == 2
    assert "foo:bar" in said.err


def test_without_typer_and_rich_the_line_names_the_extra():
    script = "import sys; sys.modules['typer'] = None; from agentkit.cli import main; sys.exit(main(['chat']))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "error: the command line needs typer and rich: pip install 'agentkit[cli]'\n"


def test_whoever_stops_reading_the_output_gets_no_traceback(account):
    ended = subprocess.run(
        ["bash", "-c", f"yes 'what is 1+1?' | head -20 | '{sys.executable}' -m agentkit chat | head -1"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ},
    )
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr

import json
import re
import sys


def test_lines_from_a_pipe_are_answered_and_remembered_in_another_conversation(agentkit):
    first = agentkit("chat", lines="remember that I like tea\nwhat is 12*7 and the time in Seoul?\n")
    assert first.code == 0, first
    assert re.search(r"^12\*7 = 84$", first.out, re.MULTILINE)
    assert re.search(r"^In Seoul it is \d\d:\d\d on \w+ \d{4}-\d\d-\d\d \(Asia/Seoul", first.out, re.MULTILINE)
    second = agentkit("chat", lines="/new\nwhat do you know about me?\n")
    assert second.code == 0
    assert re.search(r"From memory:\n.*I like tea", second.out)


def test_it_says_plainly_that_the_rehearsal_model_is_no_llm(agentkit):
    assert "rehearsal model, no LLM: matches patterns" in agentkit("chat").out


def test_each_call_has_a_line_when_it_starts_and_one_with_its_result(agentkit):
    out = agentkit("chat", lines="what is 12*7 and 1/0?\n").out
    assert '· calculate(expression="12*7")' in out
    assert '✓ calculate(expression="12*7") → 84' in out
    assert re.search(r'✗ calculate\(expression="1/0"\) → .*divides by zero', out)


def test_one_user_never_sees_what_another_one_said(agentkit):
    agentkit("chat", "--user", "anna", lines="remember that I like tea\n")
    out = agentkit("chat", "--user", "bert", lines="/memory\n/threads\n/resume\nwhat do you know about me?\n").out
    assert "tea" not in out
    assert "nothing is remembered about bert" in out
    assert "no threads yet" in out
    assert "bert has no thread yet" in out


def test_the_commands_show_threads_memory_and_history(agentkit):
    said = agentkit("chat", lines="remember that I like tea\nadd milk to my to-do list\n/threads\n/memory\n/history\n")
    thread = re.search(r"thread (\w{12})", said.out)[1]
    assert re.search(rf"\* {thread} +\d{{4}}-\d\d-\d\d \d\d:\d\d +remember that I like tea", said.out)
    assert re.search(r"what is remembered about user-\w+\s*\n\w+ +\d{4}-\d\d-\d\d \d\d:\d\d +I like tea", said.out)
    assert "> add milk to my to-do list\n· add_todo" in said.out.split("> /history")[1]


def test_a_thread_is_resumed_by_the_start_of_its_id_or_as_the_last_one(agentkit):
    first = agentkit("chat", lines="add milk to my to-do list\n")
    thread = re.search(r"thread (\w{12})", first.out)[1]
    agentkit("chat", lines="add bread to my to-do list\n")
    by_id = agentkit("chat", lines=f"/resume {thread[:7]}\nshow my to-do list\n")
    assert "[ ] milk" in by_id.out
    assert "bread" not in by_id.out
    last = agentkit("chat", "--resume", "last", lines="show my to-do list\n")
    assert f"thread {thread}" in last.out  # the last one used, not the last one begun
    none = agentkit("chat", lines="/resume zzz\nwhat is 1+1?\n")
    assert "has no thread zzz; /threads lists them" in none.out
    assert "1+1 = 2" in none.out


def test_an_unknown_command_is_told_and_nothing_else_happens(agentkit):
    said = agentkit("chat", lines="/nope\n/help\n/quit\nwhat is 1+1?\n")
    assert "there is no /nope; /help lists the commands" in said.out
    assert "/resume ID" in said.out
    assert "1+1" not in said.out.split("/quit")[-1]


def test_empty_lines_and_broken_letters_do_no_harm(agentkit):
    said = agentkit("chat", lines="\n   \nremember that I like \udcfftea\nwhat do you know about me?\n")
    assert said.code == 0
    assert "I like \ufffdtea" in said.out


def test_control_characters_of_a_result_do_not_reach_the_terminal(agentkit):
    said = agentkit("chat", lines="remember that \x1b]0;title\x07 I like tea\nwhat do you know about me?\n")
    assert "I like tea" in said.out
    assert "\x1b" not in said.out


def test_a_graph_is_found_by_file_by_module_and_by_its_name_in_langgraph_json(agentkit, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(GRAPHS, encoding="utf-8")
    (tmp_path / "langgraph.json").write_text(
        json.dumps(
            {"dependencies": ["."], "graphs": {"mine": "./mine.py:compiled", "plain": {"path": "mine.py:plain"}}}
        )
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])  # as for an installed command
    for name in (
        "mine",
        "plain",
        "mine.py",
        "mine.py:compiled",
        f"{tmp_path}/mine.py:made",
        "mine.py:entered",
        "mine:awaited",
    ):
        said = agentkit("chat", name, lines="hello there\n/history\n")
        assert said.code == 0, (name, said)
        assert said.out.count("echo: hello there") == 2, (name, said.out)


GRAPHS = """
from contextlib import asynccontextmanager
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph

def echo(state):
    return {"messages": [AIMessage("echo: " + state["messages"][-1].text)]}

plain = StateGraph(MessagesState).add_node(echo).set_entry_point("echo")
graph = compiled = plain.compile()

def made(config):
    return plain

async def awaited(checkpointer, store):
    return plain.compile(checkpointer=checkpointer, store=store)

@asynccontextmanager
async def entered():
    yield compiled
"""


def test_a_question_of_the_graph_is_answered_by_the_next_line(agentkit, tmp_path):
    (tmp_path / "asking.py").write_text(ASKING, encoding="utf-8")
    said = agentkit("chat", f"{tmp_path}/asking.py", lines="go\nblue\n")
    assert "which colour?" in said.out
    assert "you said blue" in said.out
    later = agentkit("chat", f"{tmp_path}/asking.py", lines="/resume\ngo\n/quit\n")
    assert "which colour?" in later.out  # a question left open is asked again
    assert "you said" not in agentkit("chat", f"{tmp_path}/asking.py", lines="go\n/skip\n/quit\n").out


ASKING = """
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph
from langgraph.types import interrupt

def ask(state):
    return {"messages": [AIMessage("you said " + interrupt("which colour?"))]}

graph = StateGraph(MessagesState).add_node(ask).set_entry_point("ask").compile()
"""


def test_a_graph_that_raises_costs_one_line_and_the_conversation_goes_on(agentkit, tmp_path):
    (tmp_path / "raising.py").write_text(RAISING, encoding="utf-8")
    said = agentkit("chat", f"{tmp_path}/raising.py", lines="fail\nwork\n")
    assert "error: RuntimeError: no luck" in said.out
    assert "worked" in said.out
    assert said.code == 1
    assert "Traceback" not in said.out + said.err
    assert "Traceback" in agentkit("chat", f"{tmp_path}/raising.py", "--debug", lines="fail\n").err


RAISING = """
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph

def node(state):
    if state["messages"][-1].text == "fail":
        raise RuntimeError("no luck\\nreally none")
    return {"messages": [AIMessage("worked")]}

graph = StateGraph(MessagesState).add_node(node).set_entry_point("node").compile()
"""


def test_approvals_are_asked_one_by_one_and_anything_but_a_yes_declines(agentkit, tmp_path):
    (tmp_path / "approving.py").write_text(APPROVING, encoding="utf-8")
    said = agentkit("chat", f"{tmp_path}/approving.py", lines="go\ny\nnot this one\n")
    assert 'run pay({"to": "ann"})? [y/n]' in said.out
    assert 'run pay({"to": "bob"})? [y/n]' in said.out
    assert "[{'type': 'approve'}, {'type': 'reject', 'message': 'not this one'}]" in said.out


APPROVING = """
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph
from langgraph.types import interrupt

def ask(state):
    requests = [{"name": "pay", "args": {"to": name}} for name in ("ann", "bob")]
    answer = interrupt({"action_requests": requests, "review_configs": []})
    return {"messages": [AIMessage(str(answer["decisions"]))]}

graph = StateGraph(MessagesState).add_node(ask).set_entry_point("ask").compile()
"""


def test_a_headless_tool_is_answered_at_the_keyboard(agentkit, tmp_path):
    (tmp_path / "headless.py").write_text(HEADLESS, encoding="utf-8")
    said = agentkit("chat", f"{tmp_path}/headless.py", lines='call locate {"precise": true}\n{"city": "Seoul"}\n')
    assert 'locate({"precise": true}) runs in your client; type its result' in said.out
    assert '✓ locate → {"city": "Seoul"}' in said.out


HEADLESS = """
from agentkit import create_agent, tool

locate = tool(
    name="locate",
    description="Where the user is.",
    args_schema={"type": "object", "properties": {"precise": {"type": "boolean"}}},
)

def build(model, checkpointer=None, store=None):
    return create_agent(model, [locate], checkpointer=checkpointer, store=store)
"""


def test_agents_inside_a_graph_show_their_calls_as_they_run_and_agents_inside_tools_stay_silent(agentkit, tmp_path):
    (tmp_path / "nested.py").write_text(NESTED, encoding="utf-8")
    said = agentkit("chat", f"{tmp_path}/nested.py", lines='call expert {"question": "what is 12*7?"}\nhello\n')
    assert [re.sub(r"  \d+\.\d s$", "", line) for line in said.out.splitlines()[2:]] == [
        '· expert(question="what is 12*7?")',
        '✓ expert(question="what is 12*7?") → 12*7 = 84',
        "expert: 12*7 = 84",
        "> hello",  # and nothing of the first turn again, though the node writes the whole history
        "Hello! What shall I look up, work out or remember?",
    ]
    later = agentkit("chat", f"{tmp_path}/nested.py", "--resume", "last", lines="hello\n")
    assert "expert(" not in later.out


NESTED = '''
from agentkit import AgentState, create_agent, tool
from langgraph.graph import StateGraph

@tool
def calculate(expression: str) -> str:
    """Multiply."""
    return "84"

def build(model, checkpointer=None, store=None):
    inner = create_agent(model, [calculate])

    @tool
    async def expert(question: str) -> str:
        """Ask the expert."""
        return (await inner.ainvoke({"messages": [("user", question)]}))["messages"][-1].text

    outer = create_agent(model, [expert])
    graph = StateGraph(AgentState).add_node("agent", outer).set_entry_point("agent")
    return graph.compile(checkpointer=checkpointer, store=store)
'''

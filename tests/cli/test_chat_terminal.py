import signal


def test_ctrl_c_in_the_middle_of_a_tool_stops_the_turn_and_the_thread_answers_the_next_question(terminal):
    chat = terminal("chat")
    chat.see("> ")
    chat.type("set a timer for 300 seconds\n")
    chat.see("/300 seconds")  # the call is running, and says how far it is
    chat.type("\x03")
    chat.see("stopped")
    chat.type("what is 12*7?\n")
    chat.see("12*7 = 84")
    chat.type("/quit\n")
    assert chat.process.wait(30) == 0


def test_a_chat_killed_in_the_middle_of_a_tool_is_resumed_and_answers(terminal, agentkit):
    chat = terminal("chat")
    chat.see("> ")
    chat.type("set a timer for 300 seconds\n")
    chat.see("/300 seconds")
    chat.process.send_signal(signal.SIGKILL)
    chat.process.wait(10)
    said = agentkit("chat", lines="/resume\nwhat is 12*7?\n/history\n")
    assert said.code == 0, said
    assert "12*7 = 84" in said.out
    history = said.out.split("> /history")[1]
    assert history.count("· timer(") == history.count("✗ timer") == 1


def test_ctrl_c_at_the_prompt_gives_up_the_line_and_twice_in_a_row_the_conversation(terminal):
    chat = terminal("chat")
    chat.see("> ")
    chat.type("what is 1+")
    chat.interrupt("(ctrl-D or /quit leaves)")
    chat.type("what is 12*7?\n")
    chat.see("12*7 = 84")
    chat.see("> ")
    chat.interrupt("(ctrl-D or /quit leaves)")
    chat.interrupt("goodbye")
    assert chat.process.wait(30) == 0


def test_what_was_typed_before_comes_back_with_the_arrow_key(terminal):
    chat = terminal("chat")
    chat.see("> ")
    chat.type("what is 12*7?\n")
    chat.see("12*7 = 84")
    chat.see("> ")
    chat.type("\x1b[A\n")
    chat.see("12*7 = 84")
    chat.type("/quit\n")
    assert chat.process.wait(30) == 0


def test_a_tool_in_a_thread_that_cannot_be_stopped_does_not_hold_up_the_end(terminal, tmp_path):
    (tmp_path / "stuck.py").write_text(STUCK, encoding="utf-8")
    chat = terminal("chat", f"{tmp_path}/stuck.py")
    chat.see("> ")
    chat.type('call stuck {"seconds": 300}\n')
    chat.see("stuck(seconds=300)")
    chat.type("\x03")
    chat.see("stopped")
    chat.type("/quit\n")
    assert chat.process.wait(30) == 0


STUCK = '''
import threading
from agentkit import create_agent, tool

@tool
def stuck(seconds: int) -> str:
    """Wait without listening to anybody."""
    threading.Event().wait(seconds)
    return "waited"

def build(model, checkpointer=None, store=None):
    return create_agent(model, [stuck], checkpointer=checkpointer, store=store)
'''

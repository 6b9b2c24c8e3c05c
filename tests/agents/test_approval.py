"""Approval: nothing of a batch runs before a person has decided, and decisions hold on every route."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command, interrupt

from agentkit.agents import create_agent
from agentkit.agents.middleware import AgentMiddleware, ApprovalMiddleware, hook_config
from agentkit.errors import DefinitionError
from agentkit.testing import ScriptedModel, StrictModel, assert_valid, calls
from agentkit.tools import tool

HI = {"messages": [("user", "hi")]}


class Office:
    """Tools that note what they did, and an agent that asks before some of them."""

    def __init__(self, *responses, approve=None, middleware=(), checkpointer=None):
        self.done = []

        @tool
        def send(to: str) -> str:
            """Send a letter."""
            self.done.append(f"send {to}")
            return f"sent to {to}"

        @tool
        def burn(to: str) -> str:
            """Burn a letter."""
            self.done.append(f"burn {to}")
            return f"burnt {to}"

        @tool
        def look() -> str:
            """Look around."""
            self.done.append("look")
            return "seen"

        self.model = ScriptedModel(responses)
        approval = ApprovalMiddleware(approve or {"send": True, "burn": {"allowed_decisions": ["approve", "reject"]}})
        self.agent = create_agent(
            StrictModel(self.model), [send, burn, look], middleware=[approval, *middleware], checkpointer=checkpointer
        )

    def start(self, thread):
        state = self.agent.invoke(HI, thread)
        return [i.value for i in state.get("__interrupt__", ())]

    def answer(self, thread, *decisions):
        given = (
            decisions[0]
            if len(decisions) == 1 and isinstance(decisions[0], dict) and "type" not in decisions[0]
            else list(decisions)
        )
        return self.agent.invoke(Command(resume={"decisions": given}), thread)


BATCH = (("send", {"to": "Ann"}, "c1"), ("look", {}, "c2"), ("burn", {"to": "Bob"}, "c3"))


def results(state):
    return {m.tool_call_id: (m.text, m.status) for m in state["messages"] if m.type == "tool"}


def test_the_whole_batch_is_asked_about_before_any_effect(checkpointer, thread):
    office = Office(calls(*BATCH), "done", checkpointer=checkpointer)
    (asked,) = office.start(thread)
    assert office.done == []
    assert [(r["name"], r["args"], r["id"]) for r in asked["action_requests"]] == [
        ("send", {"to": "Ann"}, "c1"),
        ("burn", {"to": "Bob"}, "c3"),
    ]
    assert asked["review_configs"] == [
        {"action_name": "send", "allowed_decisions": ["approve", "edit", "reject", "respond"]},
        {"action_name": "burn", "allowed_decisions": ["approve", "reject"]},
    ]
    state = office.answer(thread, {"type": "approve"}, {"type": "reject", "message": "keep it"})
    assert sorted(office.done) == ["look", "send Ann"]
    assert results(state) == {
        "c1": ("sent to Ann", "success"),
        "c2": ("seen", "success"),
        "c3": ("User rejected the tool call for `burn` with reason: keep it", "error"),
    }
    assert_valid(state["messages"])


def test_decisions_may_be_given_by_call_id(checkpointer, thread):
    office = Office(calls(*BATCH), "done", checkpointer=checkpointer)
    office.start(thread)
    state = office.answer(
        thread, {"c3": {"type": "approve"}, "c1": {"type": "respond", "message": "I told her myself"}}
    )
    assert sorted(office.done) == ["burn Bob", "look"]
    assert results(state)["c1"] == ("I told her myself", "success")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([{"type": "approve"}], "1 decisions for 2 calls"),
        ({"c1": {"type": "approve"}}, "c3"),
        (
            [{"type": "approve"}, {"type": "edit", "edited_action": {"name": "burn", "args": {}}}],
            "'edit' is not allowed for burn",
        ),
        ([{"type": "edit"}, {"type": "approve"}], "edited_action"),
        ([{"type": "edit", "edited_action": {"name": "send", "args": 3}}, {"type": "approve"}], "no object"),
        ([{"type": "respond"}, {"type": "approve"}], "message"),
        ([{"type": "dance"}, {"type": "approve"}], "'dance'"),
        ("yes", "decisions"),
        (None, "decisions"),
    ],
)
def test_an_answer_that_does_not_fit_leaves_the_question_open(checkpointer, thread, wrong, why):
    office = Office(calls(*BATCH), "done", checkpointer=checkpointer)
    (asked,) = office.start(thread)
    state = office.agent.invoke(Command(resume={"decisions": wrong}), thread)
    (again,) = state["__interrupt__"]
    assert why in again.value["error"]
    assert again.value["action_requests"] == asked["action_requests"]
    assert office.done == []
    office.answer(thread, {"type": "approve"}, {"type": "approve"})
    assert sorted(office.done) == ["burn Bob", "look", "send Ann"]


def test_an_edited_call_runs_as_edited_and_the_models_words_stay(checkpointer, thread):
    office = Office(calls(("send", {"to": "Ann"}, "c1")), "done", checkpointer=checkpointer)
    office.start(thread)
    state = office.answer(thread, {"type": "edit", "edited_action": {"name": "send", "args": {"to": "Zoe"}}})
    assert office.done == ["send Zoe"]
    assert state["messages"][1].tool_calls[0]["args"] == {"to": "Ann"}


def test_a_call_may_be_edited_to_another_tool_and_not_to_none(checkpointer, thread):
    office = Office(
        calls(("send", {"to": "Ann"}, "c1"), ("send", {"to": "Bob"}, "c2")), "done", checkpointer=checkpointer
    )
    office.start(thread)
    to = lambda name: {"type": "edit", "edited_action": {"name": name, "args": {"to": "Ann"}}}
    state = office.answer(thread, to("burn"), to("nowhere"))
    assert office.done == ["burn Ann"]
    assert results(state)["c2"][1] == "error"


def test_a_rejected_call_runs_on_no_route(checkpointer, thread):
    class JumpToTools(AgentMiddleware):
        @hook_config(can_jump_to=["tools"])
        def after_model(self, state, runtime):
            last = state["messages"][-1]
            return {"jump_to": "tools"} if isinstance(last, AIMessage) and last.tool_calls else None

    # listed after the approval, its hook runs before it, and sends the calls past it
    office = Office(calls(*BATCH), "done", middleware=[JumpToTools()], checkpointer=checkpointer)
    asked = office.start(thread)
    assert sorted([r["id"] for r in a["action_requests"]] for a in asked) == [["c1"], ["c3"]]
    assert office.done == ["look"]
    by_id = {i.value["action_requests"][0]["id"]: i.id for i in office.agent.get_state(thread).interrupts}
    state = office.agent.invoke(
        Command(
            resume={by_id["c1"]: {"decisions": [{"type": "reject"}]}, by_id["c3"]: {"decisions": [{"type": "approve"}]}}
        ),
        thread,
    )
    assert sorted(office.done) == ["burn Bob", "look"]
    assert results(state)["c1"][1] == "error"


def test_a_decision_of_an_earlier_turn_is_not_used_again_for_a_reused_call_id(checkpointer, thread):
    office = Office(
        calls(("send", {"to": "Ann"}, "call_0")),
        "one",
        calls(("send", {"to": "Bob"}, "call_0")),
        "two",
        checkpointer=checkpointer,
    )
    office.start(thread)
    office.answer(thread, {"type": "edit", "edited_action": {"name": "send", "args": {"to": "Zoe"}}})
    assert len(office.start(thread)) == 1
    office.answer(thread, {"type": "approve"})
    assert office.done == ["send Zoe", "send Bob"]


def test_a_new_message_instead_of_a_decision_runs_nothing(checkpointer, thread):
    office = Office(calls(*BATCH), "fine", checkpointer=checkpointer)
    office.start(thread)
    state = office.agent.invoke({"messages": [("user", "forget it")]}, thread)
    assert office.done == []
    assert state["messages"][-1].text == "fine"


def test_only_calls_that_need_it_are_asked_about(checkpointer, thread):
    def outside(request):
        assert request.tool_call["name"] == "send"
        return request.tool_call["args"]["to"] != "Ann"

    rule = {
        "send": {
            "allowed_decisions": ["approve"],
            "when": outside,
            "description": lambda c, s, r: f"letter to {c['args']['to']}",
        },
        "burn": False,
    }
    office = Office(
        calls(("send", {"to": "Ann"}), ("send", {"to": "Eve"})), "done", approve=rule, checkpointer=checkpointer
    )
    (asked,) = office.start(thread)
    assert [r["description"] for r in asked["action_requests"]] == ["letter to Eve"]


async def test_approval_works_in_async_runs_beside_a_tool_that_asks_too(acheckpointer, thread):
    done = []

    @tool
    async def send(to: str) -> str:
        """Send."""
        done.append(f"{to} {interrupt('which paper?')}")
        return "sent"

    model = ScriptedModel([calls(("send", {"to": "Ann"})), "done"])
    agent = create_agent(
        StrictModel(model), [send], middleware=[ApprovalMiddleware({"send": True})], checkpointer=acheckpointer
    )
    await agent.ainvoke(HI, thread)
    state = await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    assert [i.value for i in state["__interrupt__"]] == ["which paper?"]
    assert done == []
    await agent.ainvoke(Command(resume="blue"), thread)
    assert done == ["Ann blue"]


@pytest.mark.parametrize("config", [{}, {"allowed_decisions": []}, {"allowed_decisions": ["maybe"]}])
def test_a_rule_that_allows_nothing_is_refused(config):
    with pytest.raises(DefinitionError, match="'send'"):
        ApprovalMiddleware({"send": config})

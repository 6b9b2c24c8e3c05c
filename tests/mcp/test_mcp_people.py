"""Users, credentials and questions: whose call is it, and what does a person have to say."""

from dataclasses import dataclass

import pytest
from batches import Run
from fastmcp.client import Client
from fastmcp.client.transports import StdioTransport
from langgraph.types import Command
from mcp_servers import COMMAND, GO, THREAD, agent_with, answers, ask, over_http, said

from agentkit.errors import DefinitionError, InjectionError
from agentkit.mcp import MCPAdapter, MCPServerError, MCPToolError


@dataclass
class Person:
    user_id: str = "nobody"
    token: str = ""


TOKENS = "alice=a-token,bob=b-token"


@pytest.fixture(scope="module")
def guarded():
    with over_http(WORKSHOP_TOKENS=TOKENS) as server:
        yield server.url


def bearer(runtime):
    return {"Authorization": f"Bearer {runtime.context.token}"}


def test_the_seeds_example_of_an_adapter_runs(guarded):
    import asyncio

    from agentkit.agents import create_agent
    from agentkit.testing import ScriptedModel

    async def seed():
        async with MCPAdapter(guarded, auth="a-token") as adapter:
            tools = await adapter.list_tools()
            agent = create_agent(ScriptedModel([ask(("who", {})), "hello"]), tools)
            return await agent.ainvoke(GO)

    assert said(asyncio.run(seed())) == ["alice"]


def test_a_wrong_token_is_said_and_not_shown(guarded, run: Run):
    agent, _ = agent_with([MCPAdapter(guarded, headers={"Authorization": "Bearer wrong-secret"})])
    with pytest.raises(
        MCPServerError, match=r"refused the credentials \(HTTP 401\); check headers= and auth="
    ) as caught:
        run(agent, GO, THREAD)
    assert "wrong-secret" not in str(caught.value)


def test_one_users_credentials_never_go_with_anothers_call(guarded, run: Run):
    adapter = MCPAdapter(guarded, headers=bearer)
    try:
        for user, token in (("alice", "a-token"), ("bob", "b-token"), ("alice", "a-token")):
            agent, _ = agent_with([adapter], ask(("who", {}), ("who", {})), context_schema=Person)
            state = run(agent, GO, THREAD, context=Person(user, token))
            assert said(state) == [user, user]
    finally:
        adapter.close()


def test_a_user_whose_token_is_refused_gets_an_error_and_not_anothers_session(guarded, run: Run):
    adapter = MCPAdapter(guarded, headers=bearer)
    try:
        agent, _ = agent_with([adapter], ask(("who", {})), context_schema=Person)
        assert said(run(agent, GO, THREAD, context=Person("alice", "a-token"))) == ["alice"]
        agent, _ = agent_with([adapter], ask(("who", {})), context_schema=Person)
        with pytest.raises(MCPServerError, match="refused the credentials"):
            run(agent, GO, THREAD, context=Person("mallory", "guess"))
    finally:
        adapter.close()


def test_credentials_that_depend_on_the_run_cannot_be_used_without_one(guarded):
    with pytest.raises(DefinitionError, match=r"give the adapter itself to the agent"):
        MCPAdapter(guarded, headers=bearer).tools()


@pytest.mark.parametrize("share", ["user", "thread"])
def test_state_of_a_server_is_kept_apart_per_user_or_thread(share, run: Run):
    with MCPAdapter(COMMAND, session=share) as adapter:

        def count(user, thread):
            agent, _ = agent_with([adapter], ask(("increment", {})), context_schema=Person)
            config = {"configurable": {"thread_id": thread}}
            return said(run(agent, GO, config, context=Person(user)))

        seen = [count("alice", "t1"), count("bob", "t2"), count("alice", "t2" if share == "thread" else "t3")]
    assert seen == ([["1"], ["1"], ["2"]])


def test_a_session_per_thread_needs_a_thread(run: Run):
    adapter = MCPAdapter(COMMAND, session="thread")
    agent, _ = agent_with([adapter], checkpointer=None)
    with pytest.raises(InjectionError, match="needs a thread"):
        run(agent, GO)


def legacy():
    """The workshop, spoken to in the protocol in which servers ask in the middle of a call."""
    command, *args = COMMAND
    return Client(StdioTransport(command, args), mode="legacy")


@pytest.fixture(scope="module", params=["rounds", "legacy"])
def asking(request):
    """Adapters for both ways in which servers ask."""
    with MCPAdapter(COMMAND if request.param == "rounds" else legacy()) as adapter:
        yield adapter


def interrupted(state):
    ((found),) = state["__interrupt__"]
    return found.value


def answer(value, content=None, action="accept"):
    (request,) = value["requests"]
    return Command(resume={"responses": {request["key"]: {"action": action, "content": content}}})


def test_what_a_server_asks_interrupts_the_run_and_the_answer_goes_back(asking, run: Run):
    agent, _ = agent_with([asking], ask(("brew", {"drink": "tea"})))
    value = interrupted(run(agent, GO, THREAD))
    assert (value["type"], value["tool_name"]) == ("mcp_elicitation", "brew")
    (request,) = value["requests"]
    assert (request["message"], request["mode"]) == ("How many cups?", "form")
    assert request["requested_schema"]["properties"]["cups"]["type"] == "integer"
    state = run(agent, answer(value, {"cups": 3}), THREAD)
    assert said(state) == ["3 cups of tea"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_may_decline(asking, run: Run, action):
    agent, _ = agent_with([asking], ask(("brew", {"drink": "tea"})))
    value = interrupted(run(agent, GO, THREAD))
    assert said(run(agent, answer(value, action=action), THREAD)) == [f"no tea: {action}"]


def test_an_answer_that_does_not_fit_is_asked_for_again(asking, run: Run):
    agent, _ = agent_with([asking], ask(("brew", {"drink": "tea"})))
    value = interrupted(run(agent, GO, THREAD))
    value = interrupted(run(agent, answer(value, {"cups": "many"}), THREAD))
    assert "'many' is not of type 'integer'" in value["error"]
    value = interrupted(run(agent, Command(resume="three"), THREAD))
    assert "answer with" in value["error"]
    assert said(run(agent, answer(value, {"cups": 3}), THREAD)) == ["3 cups of tea"]


def test_questions_that_follow_from_answers_are_asked_one_after_the_other(asking, run: Run):
    agent, _ = agent_with([asking], ask(("brew_with_milk", {"drink": "tea"})))
    value = interrupted(run(agent, GO, THREAD))
    value = interrupted(run(agent, answer(value, {"cups": 2}), THREAD))
    assert value["requests"][0]["message"] == "Milk in 2 cups?"
    assert said(run(agent, answer(value, {"milk": True}), THREAD)) == ["2 cups of tea with milk"]


def test_two_calls_that_ask_get_each_its_own_answer(run: Run):
    with MCPAdapter(COMMAND) as adapter:
        agent, _ = agent_with([adapter], ask(("brew", {"drink": "tea"}), ("brew", {"drink": "milk"})))
        found = run(agent, GO, THREAD)["__interrupt__"]
        assert len(found) == 2
        cups = {"c1": 1, "c2": 2}
        by_call = {each.value["tool_call_id"]: each for each in found}
        resume = {each.id: answer(each.value, {"cups": cups[call_id]}).resume for call_id, each in by_call.items()}
        state = run(agent, Command(resume=resume), THREAD)
    assert said(state) == ["1 cups of tea", "2 cups of milk"]


async def test_where_nobody_can_be_asked_the_call_says_so(asking):
    brew = next(t for t in asking.tools() if t.name == "brew")
    with pytest.raises(MCPToolError, match="brew needs a person's answer: run it in a graph"):
        await brew.ainvoke({"drink": "tea"})


def test_a_client_with_its_own_handler_answers_itself(run: Run):
    async def handler(message, response_type, params, context):
        return {"cups": 9}

    command, *args = COMMAND
    with MCPAdapter(Client(StdioTransport(command, args), elicitation_handler=handler)) as adapter:
        agent, _ = agent_with([adapter], ask(("brew", {"drink": "tea"})))
        assert said(run(agent, GO, THREAD)) == ["9 cups of tea"]


def decide(**decision):
    return Command(resume={"decisions": [decision]})


@pytest.fixture(scope="module")
def careful():
    with MCPAdapter(COMMAND, approve="destructive") as adapter:
        yield adapter


def test_a_destructive_call_waits_for_a_persons_word_and_a_harmless_one_does_not(careful, run: Run):
    agent, _ = agent_with([careful], ask(("describe", {"thing": "cup"}), ("process_id", {})))
    state = run(agent, GO, THREAD)
    value = interrupted(state)
    assert value["action_requests"] == [
        {"name": "describe", "args": {"thing": "cup"}, "description": "Describe a thing."}
    ]
    assert value["review_configs"] == [{"action_name": "describe", "allowed_decisions": ["approve", "edit", "reject"]}]
    state = run(agent, decide(type="approve"), THREAD)
    described, pid = answers(state)
    assert described.text == "a cup"
    assert pid.text.isdigit()


def test_a_rejected_call_never_reaches_the_server_and_an_edited_one_is_checked(careful, run: Run):
    agent, _ = agent_with([careful], ask(("describe", {"thing": "cup"})), ask(("describe", {"thing": "cup"})))
    run(agent, GO, THREAD)
    state = run(agent, decide(type="reject", message="not now"), THREAD)
    (rejected,) = answers(state)
    assert (rejected.status, rejected.text) == ("error", "The user rejected the call of describe: not now")
    value = interrupted(
        run(agent, decide(type="edit", edited_action={"name": "describe", "args": {"thing": 7}}), THREAD)
    )
    assert "thing" in value["error"]
    value = interrupted(run(agent, decide(type="perhaps"), THREAD))
    assert "'perhaps' is not known" in value["error"]
    state = run(agent, decide(type="edit", edited_action={"name": "describe", "args": {"thing": "pot"}}), THREAD)
    assert said(state)[-1] == "a pot"


def test_a_function_says_which_calls_need_approval(run: Run):
    with MCPAdapter(COMMAND, approve=lambda tool: tool.name == "process_id") as adapter:
        agent, _ = agent_with([adapter], ask(("process_id", {})))
        assert interrupted(run(agent, GO, THREAD))["action_requests"][0]["name"] == "process_id"

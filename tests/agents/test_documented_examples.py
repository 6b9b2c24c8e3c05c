"""The examples of the Tools pages that use create_agent, with `langchain.` read as `agentkit.` and a scripted model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.utils.uuid import uuid7
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from agentkit.agents import AgentState, create_agent
from agentkit.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, wrap_model_call, wrap_tool_call
from agentkit.messages import HumanMessage, ToolMessage
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import ToolRuntime, tool
from agentkit.tools.tool_node import ToolCallRequest

USER_DATABASE = {
    "user123": {"name": "Alice Johnson", "account_type": "Premium", "balance": 5000, "email": "alice@example.com"},
    "user456": {"name": "Bob Smith", "account_type": "Standard", "balance": 1200, "email": "bob@example.com"},
}


def scripted(*responses):
    return StrictModel(ScriptedModel(responses))


def said(text):
    return {"messages": [{"role": "user", "content": text}]}


def results(state):
    return [m.text for m in state["messages"] if isinstance(m, ToolMessage)]


async def test_state_is_read_and_updated(run):
    class CustomState(AgentState):
        user_name: str
        user_preferences: dict[str, str]

    @tool
    def get_last_user_message(runtime: ToolRuntime) -> str:
        """Get the most recent message from the user."""
        messages = runtime.state["messages"]

        # Find the last human message
        for message in reversed(messages):
            if isinstance(message, HumanMessage):
                return message.content

        return "No user messages found"

    @tool
    def get_user_preference(pref_name: str, runtime: ToolRuntime) -> str:
        """Get a user preference value."""
        preferences = runtime.state.get("user_preferences", {})
        return preferences.get(pref_name, "Not set")

    @tool
    def set_user_name(new_name: str, runtime: ToolRuntime[None, CustomState]) -> Command:
        """Set the user's name in the conversation state."""
        return Command(
            update={
                "user_name": new_name,
                "messages": [
                    ToolMessage(
                        content=f"User name set to {new_name}.",
                        tool_call_id=runtime.tool_call_id,
                    )
                ],
            }
        )

    @tool
    def get_message_count(runtime: ToolRuntime) -> str:
        """Get the number of messages in the conversation."""
        messages = runtime.state["messages"]
        return f"There are {len(messages)} messages."

    batch = [
        ("get_last_user_message", {}),
        ("get_user_preference", {"pref_name": "tea"}),
        ("get_user_preference", {"pref_name": "milk"}),
        ("set_user_name", {"new_name": "Kim"}),
        ("get_message_count", {}),
    ]
    tools = [get_last_user_message, get_user_preference, set_user_name, get_message_count]
    agent = create_agent(scripted(calls(*batch), "done"), tools, state_schema=CustomState)
    state = await run.invoke(agent, {**said("hello"), "user_preferences": {"tea": "green"}})
    assert results(state) == ["hello", "green", "Not set", "User name set to Kim.", "There are 2 messages."]
    assert state["user_name"] == "Kim"


async def test_context_is_read(run):
    @dataclass
    class UserContext:
        user_id: str

    @tool
    def get_account_info(runtime: ToolRuntime[UserContext]) -> str:
        """Get the current user's account information."""
        user_id = runtime.context.user_id

        if user_id in USER_DATABASE:
            user = USER_DATABASE[user_id]
            return f"Account holder: {user['name']}\nType: {user['account_type']}\nBalance: ${user['balance']}"
        return "User not found"

    model = scripted(calls(("get_account_info", {})), "You have $5000.")
    agent = create_agent(
        model,
        tools=[get_account_info],
        context_schema=UserContext,
        system_prompt="You are a financial assistant.",
    )
    result = await run.invoke(
        agent,
        {"messages": [{"role": "user", "content": "What's my current balance?"}]},
        config={"configurable": {"thread_id": str(uuid7())}},
        context=UserContext(user_id="user123"),
    )
    assert results(result) == ["Account holder: Alice Johnson\nType: Premium\nBalance: $5000"]


@pytest.mark.parametrize("whole", [False, True])
async def test_the_store_is_written_and_read_in_another_session(run, whole):
    @tool
    def get_user_info(user_id: str, runtime: ToolRuntime) -> str:
        """Look up user info."""
        store = runtime.store
        user_info = store.get(("users",), user_id)
        return str(user_info.value) if user_info else "Unknown user"

    if whole:

        @tool
        def save_user_info(user_id: str, user_info: dict[str, Any], runtime: ToolRuntime) -> str:
            """Save user info."""
            store = runtime.store
            store.put(("users",), user_id, user_info)
            return "Successfully saved user info."
    else:

        @tool
        def save_user_info(user_id: str, name: str, age: int, email: str, runtime: ToolRuntime) -> str:
            """Save user info."""
            store = runtime.store
            store.put(("users",), user_id, {"name": name, "age": age, "email": email})
            return "Successfully saved user info."

    info = {"name": "Foo", "age": 25, "email": "foo@example.com"}
    saved = {"user_id": "abc123", "user_info": info} if whole else {"user_id": "abc123", **info}
    model = scripted(
        calls(("save_user_info", saved)), "saved", calls(("get_user_info", {"user_id": "abc123"})), "found"
    )
    agent = create_agent(model, tools=[get_user_info, save_user_info], store=InMemoryStore())
    first = await run.invoke(agent, said("Save the following user: userid: abc123, name: Foo, age: 25"))
    second = await run.invoke(agent, said("Get user info for user with id 'abc123'"))
    assert results(first) == ["Successfully saved user info."]
    assert results(second) == [str(info)]


async def test_return_direct_answers_without_another_model_call(run):
    @tool(return_direct=True)
    def fetch_order_status(order_id: str) -> str:
        """Fetch the current status of a customer order."""
        # In production, query your order management system here
        return f"Order {order_id} is shipped and will arrive in 2 days."

    agent = create_agent(scripted(calls(("fetch_order_status", {"order_id": "12345"}))), tools=[fetch_order_status])
    result = await run.invoke(agent, said("What is the status of order #12345?"))
    assert result["messages"][-1].text == "Order 12345 is shipped and will arrive in 2 days."


async def test_return_direct_with_a_command(run):
    class Orders(AgentState):
        last_order_status: str

    @tool(return_direct=True)
    def fetch_and_store_order(order_id: str, runtime: ToolRuntime) -> Command:
        """Fetch order status and store it in state."""
        status = f"Order {order_id} is shipped and will arrive in 2 days."
        return Command(
            update={
                "last_order_status": status,
                # Must include a ToolMessage so the message history stays valid
                "messages": [
                    ToolMessage(
                        content=status,
                        tool_call_id=runtime.tool_call_id,
                    )
                ],
            }
        )

    agent = create_agent(
        scripted(calls(("fetch_and_store_order", {"order_id": "7"}))), [fetch_and_store_order], state_schema=Orders
    )
    result = await run.invoke(agent, said("where is order 7?"))
    assert result["last_order_status"] == result["messages"][-1].text


async def test_tool_errors_are_handled_by_middleware(run):
    @wrap_tool_call
    def handle_tool_errors(
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage],
    ) -> ToolMessage:
        """Convert tool exceptions into ToolMessages the model can handle."""
        try:
            return handler(request)
        except Exception as e:
            return ToolMessage(
                content=f"Tool error: Please check your input and try again. ({e})",
                tool_call_id=request.tool_call["id"],
            )

    @tool
    def divide(a: int, b: int) -> float:
        """Divide."""
        return a / b

    create_agent(scripted(), tools=[], middleware=[handle_tool_errors])
    agent = create_agent(scripted(calls(("divide", {"a": 1, "b": 0})), "no"), [divide], middleware=[handle_tool_errors])
    result = await run.invoke(agent, said("divide"))
    assert results(result) == ["Tool error: Please check your input and try again. (division by zero)"]


def named(*names):
    return [tool(name, description=name)(lambda: "ran") for name in names]


async def test_tools_are_filtered_by_state(run):
    class Signed(AgentState):
        authenticated: bool

    @wrap_model_call
    def state_based_tools(request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Filter tools based on conversation State."""
        # Read from State: check if user has authenticated
        state = request.state
        is_authenticated = state.get("authenticated", False)
        message_count = len(state["messages"])

        # Only enable sensitive tools after authentication
        if not is_authenticated:
            tools = [t for t in request.tools if t.name.startswith("public_")]
            request = request.override(tools=tools)
        elif message_count < 5:
            # Limit tools early in conversation
            tools = [t for t in request.tools if t.name != "advanced_search"]
            request = request.override(tools=tools)

        return handler(request)

    model = ScriptedModel(lambda messages: "done")
    agent = create_agent(
        model,
        tools=named("public_search", "private_search", "advanced_search"),
        middleware=[state_based_tools],
        state_schema=Signed,
    )
    await run.invoke(agent, said("hi"))
    await run.invoke(agent, {**said("hi"), "authenticated": True})
    await run.invoke(agent, {"messages": [("user", "hi")] * 5, "authenticated": True})
    assert model.offered == [
        ["public_search"],
        ["public_search", "private_search"],
        ["public_search", "private_search", "advanced_search"],
    ]


async def test_tools_are_filtered_by_the_store(run):
    @dataclass
    class Context:
        user_id: str

    @wrap_model_call
    def store_based_tools(request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Filter tools based on Store preferences."""
        user_id = request.runtime.context.user_id

        # Read from Store: get user's enabled features
        store = request.runtime.store
        feature_flags = store.get(("features",), user_id)

        if feature_flags:
            enabled_features = feature_flags.value.get("enabled_tools", [])
            # Only include tools that are enabled for this user
            tools = [t for t in request.tools if t.name in enabled_features]
            request = request.override(tools=tools)

        return handler(request)

    model = ScriptedModel(lambda messages: "done")
    store = InMemoryStore()
    store.put(("features",), "u", {"enabled_tools": ["search_tool"]})
    agent = create_agent(
        model,
        tools=named("search_tool", "analysis_tool", "export_tool"),
        middleware=[store_based_tools],
        context_schema=Context,
        store=store,
    )
    await run.invoke(agent, said("hi"), context=Context("u"))
    await run.invoke(agent, said("hi"), context=Context("somebody"))
    assert model.offered == [["search_tool"], ["search_tool", "analysis_tool", "export_tool"]]


async def test_tools_are_filtered_by_context(run):
    @dataclass
    class Context:
        user_role: str

    @wrap_model_call
    def context_based_tools(request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Filter tools based on Runtime Context permissions."""
        # Read from Runtime Context: get user role
        if request.runtime is None or request.runtime.context is None:
            # If no context provided, default to viewer (most restrictive)
            user_role = "viewer"
        else:
            user_role = request.runtime.context.user_role

        if user_role == "admin":
            # Admins get all tools
            pass
        elif user_role == "editor":
            # Editors can't delete
            tools = [t for t in request.tools if t.name != "delete_data"]
            request = request.override(tools=tools)
        else:
            # Viewers get read-only tools
            tools = [t for t in request.tools if t.name.startswith("read_")]
            request = request.override(tools=tools)

        return handler(request)

    model = ScriptedModel(lambda messages: "done")
    agent = create_agent(
        model,
        tools=named("read_data", "write_data", "delete_data"),
        middleware=[context_based_tools],
        context_schema=Context,
    )
    for context in (Context("admin"), Context("editor"), Context("viewer"), None):
        await run.invoke(agent, said("hi"), context=context)
    assert [len(offered) for offered in model.offered] == [3, 2, 1, 1]


async def test_a_tool_is_registered_at_run_time(run):
    @tool
    def get_weather(city: str) -> str:
        """Get weather for a city."""
        return f"It is currently sunny in {city}."

    # A tool that will be added dynamically at runtime
    @tool
    def calculate_tip(bill_amount: float, tip_percentage: float = 20.0) -> str:
        """Calculate the tip amount for a bill."""
        tip = bill_amount * (tip_percentage / 100)
        return f"Tip: ${tip:.2f}, Total: ${bill_amount + tip:.2f}"

    class DynamicToolMiddleware(AgentMiddleware):
        """Middleware that registers and handles dynamic tools."""

        def wrap_model_call(self, request: ModelRequest, handler):
            # Add dynamic tool to the request
            # This could be loaded from an MCP server, database, etc.
            updated = request.override(tools=[*request.tools, calculate_tip])
            return handler(updated)

        def wrap_tool_call(self, request: ToolCallRequest, handler):
            # Handle execution of the dynamic tool
            if request.tool_call["name"] == "calculate_tip":
                return handler(request.override(tool=calculate_tip))
            return handler(request)

    agent = create_agent(
        scripted(calls(("calculate_tip", {"bill_amount": 85}), ("get_weather", {"city": "Rome"})), "done"),
        tools=[get_weather],  # Only static tools registered here
        middleware=[DynamicToolMiddleware()],
    )
    result = await run.invoke(agent, said("Calculate a 20% tip on $85"))
    assert results(result) == ["Tip: $17.00, Total: $102.00", "It is currently sunny in Rome."]

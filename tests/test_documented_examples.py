"""The examples of LangChain's pages on tools: `langchain.` reads `agentkit.`, and a scripted model stands in.

Each test is one example of the page, run and looked at; the sections follow the page.
"""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from langchain_core.utils.uuid import uuid7
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel, Field

from agentkit.agents import AgentState, create_agent
from agentkit.agents.middleware import (
    AgentMiddleware,
    ModelRequest,
    ModelResponse,
    wrap_model_call,
    wrap_tool_call,
)
from agentkit.messages import HumanMessage, ToolMessage
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import InjectedState, ToolNode, ToolRuntime, tool
from agentkit.tools.tool_node import ToolCallRequest


def scripted(*answers: Any) -> StrictModel:
    return StrictModel(ScriptedModel(list(answers)))


def answer_of(example: Any, *, state: dict[str, Any] | None = None, schema: Any = AgentState, **args: Any) -> Any:
    """The result that an agent with this one tool gets from it."""
    agent = create_agent(scripted(calls((example.name, args)), "done"), [example], state_schema=schema)
    output = agent.invoke({"messages": [("user", "go")], **(state or {})})
    return next(message for message in output["messages"] if isinstance(message, ToolMessage)), output


# --- create tools ----------------------------------------------------------------------------------------------------


def test_a_basic_tool() -> None:
    @tool
    def search_database(query: str, limit: int = 10) -> str:
        """Search the customer database for records matching the query.

        Args:
            query: Search terms to look for
            limit: Maximum number of results to return
        """
        return f"Found {limit} results for '{query}'"

    assert search_database.description.startswith("Search the customer database")
    assert search_database.invoke({"query": "Ada"}) == "Found 10 results for 'Ada'"
    assert answer_of(search_database, query="Ada", limit=3)[0].content == "Found 3 results for 'Ada'"


def test_a_custom_name() -> None:
    @tool("web_search")  # Custom name
    def search(query: str) -> str:
        """Search the web for information."""
        return f"Results for: {query}"

    assert search.name == "web_search"
    assert answer_of(search, query="tea")[0].content == "Results for: tea"


def test_a_custom_description() -> None:
    @tool("calculator", description="Performs arithmetic calculations. Use this for any math problems.")
    def calc(expression: str) -> str:
        """Evaluate mathematical expressions."""
        left, right = expression.split("+")
        return str(int(left) + int(right))

    assert calc.description == "Performs arithmetic calculations. Use this for any math problems."
    assert answer_of(calc, expression="1+2")[0].content == "3"


class WeatherInput(BaseModel):
    """Input for weather queries."""

    location: str = Field(description="City name or coordinates")
    units: Literal["celsius", "fahrenheit"] = Field(default="celsius", description="Temperature unit preference")
    include_forecast: bool = Field(default=False, description="Include 5-day forecast")


WEATHER_SCHEMA = {
    "type": "object",
    "properties": {
        "location": {"type": "string"},
        "units": {"type": "string"},
        "include_forecast": {"type": "boolean"},
    },
    "required": ["location", "units", "include_forecast"],
}


@pytest.mark.parametrize("schema", [WeatherInput, WEATHER_SCHEMA], ids=["pydantic", "JSON schema"])
def test_an_advanced_schema(schema: Any) -> None:
    @tool(args_schema=schema)
    def get_weather(location: str, units: str = "celsius", include_forecast: bool = False) -> str:
        """Get current weather and optional forecast."""
        temp = 22 if units == "celsius" else 72
        result = f"Current weather in {location}: {temp} degrees {units[0].upper()}"
        if include_forecast:
            result += "\nNext 5 days: Sunny"
        return result

    found, _ = answer_of(get_weather, location="Oslo", units="fahrenheit", include_forecast=True)
    assert found.content == "Current weather in Oslo: 72 degrees F\nNext 5 days: Sunny"
    wrong, _ = answer_of(get_weather, location="Oslo", units=7, include_forecast=True)
    assert wrong.status == "error"


# --- access context --------------------------------------------------------------------------------------------------


def test_tools_read_the_state() -> None:
    @tool
    def get_last_user_message(runtime: ToolRuntime) -> str:
        """Get the most recent message from the user."""
        messages = runtime.state["messages"]

        # Find the last human message
        for message in reversed(messages):
            if isinstance(message, HumanMessage):
                return message.content

        return "No user messages found"

    # Access custom state fields
    @tool
    def get_user_preference(pref_name: str, runtime: ToolRuntime) -> str:
        """Get a user preference value."""
        preferences = runtime.state.get("user_preferences", {})
        return preferences.get(pref_name, "Not set")

    class Preferring(AgentState):
        user_preferences: dict[str, str]

    assert answer_of(get_last_user_message)[0].content == "go"
    assert list(get_user_preference.tool_call_schema.model_json_schema()["properties"]) == ["pref_name"]
    given = {"user_preferences": {"theme": "dark"}}
    found, _ = answer_of(get_user_preference, state=given, schema=Preferring, pref_name="theme")
    assert found.content == "dark"


class CustomState(AgentState):
    user_name: str
    preferred_language: str
    last_order_status: str


def test_tools_update_the_state() -> None:
    @tool
    def set_user_name(new_name: str, runtime: ToolRuntime[None, CustomState]) -> Command:
        """Set the user's name in the conversation state."""
        return Command(
            update={
                "user_name": new_name,
                "messages": [
                    ToolMessage(content=f"User name set to {new_name}.", tool_call_id=runtime.tool_call_id),
                ],
            }
        )

    found, output = answer_of(set_user_name, schema=CustomState, new_name="Ada")
    assert (found.content, output["user_name"]) == ("User name set to Ada.", "Ada")


USER_DATABASE = {
    "user123": {"name": "Alice Johnson", "account_type": "Premium", "balance": 5000, "email": "alice@example.com"},
    "user456": {"name": "Bob Smith", "account_type": "Standard", "balance": 1200, "email": "bob@example.com"},
}


@dataclass
class UserContext:
    user_id: str


def test_tools_read_the_context() -> None:
    @tool
    def get_account_info(runtime: ToolRuntime[UserContext]) -> str:
        """Get the current user's account information."""
        user_id = runtime.context.user_id

        if user_id in USER_DATABASE:
            user = USER_DATABASE[user_id]
            return f"Account holder: {user['name']}\nType: {user['account_type']}\nBalance: ${user['balance']}"
        return "User not found"

    agent = create_agent(
        scripted(calls(("get_account_info", {})), "done"),
        tools=[get_account_info],
        context_schema=UserContext,
        system_prompt="You are a financial assistant.",
    )

    result = agent.invoke(
        {"messages": [{"role": "user", "content": "What's my current balance?"}]},
        config={"configurable": {"thread_id": str(uuid7())}},
        context=UserContext(user_id="user123"),
    )
    assert result["messages"][2].content == "Account holder: Alice Johnson\nType: Premium\nBalance: $5000"


def test_tools_use_the_store() -> None:
    # Access memory
    @tool
    def get_user_info(user_id: str, runtime: ToolRuntime) -> str:
        """Look up user info."""
        store = runtime.store
        user_info = store.get(("users",), user_id)
        return str(user_info.value) if user_info else "Unknown user"

    # Update memory
    @tool
    def save_user_info(user_id: str, name: str, age: int, email: str, runtime: ToolRuntime) -> str:
        """Save user info."""
        store = runtime.store
        store.put(("users",), user_id, {"name": name, "age": age, "email": email})
        return "Successfully saved user info."

    @tool
    def save_user_dict(user_id: str, user_info: dict[str, Any], runtime: ToolRuntime) -> str:
        """Save user info."""
        store = runtime.store
        store.put(("users",), user_id, user_info)
        return "Successfully saved user info."

    foo = {"name": "Foo", "age": 25, "email": "foo@langchain.dev"}
    model = scripted(
        calls(("save_user_info", {"user_id": "abc123", **foo})),
        "saved",
        calls(("get_user_info", {"user_id": "abc123"})),
        "found",
        calls(("save_user_dict", {"user_id": "x", "user_info": foo})),
        "saved",
    )
    store = InMemoryStore()
    agent = create_agent(model, tools=[get_user_info, save_user_info, save_user_dict], store=store)

    agent.invoke({"messages": [{"role": "user", "content": "Save the following user: userid: abc123, name: Foo"}]})
    found = agent.invoke({"messages": [{"role": "user", "content": "Get user info for user with id 'abc123'"}]})
    agent.invoke({"messages": [{"role": "user", "content": "Save user x"}]})
    assert found["messages"][2].content == str(foo)
    assert store.get(("users",), "x").value == foo  # type: ignore[union-attr]


def test_tools_stream_what_they_do() -> None:
    @tool
    def get_weather(city: str, runtime: ToolRuntime) -> str:
        """Get weather for a given city."""
        writer = runtime.stream_writer

        # Stream custom updates as the tool executes
        writer(f"Looking up data for city: {city}")
        writer(f"Acquired data for city: {city}")

        return f"It's always sunny in {city}!"

    agent = create_agent(scripted(calls(("get_weather", {"city": "Oslo"})), "done"), [get_weather])
    seen = list(agent.stream({"messages": [("user", "go")]}, stream_mode="custom"))
    assert seen == ["Looking up data for city: Oslo", "Acquired data for city: Oslo"]


def test_tools_know_the_execution_and_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    @tool
    def log_execution_context(runtime: ToolRuntime) -> str:
        """Log execution identity information."""
        info = runtime.execution_info
        print(f"Thread: {info.thread_id}, Run: {info.run_id}")
        print(f"Attempt: {info.node_attempt}")
        return "done"

    @tool
    def get_assistant_scoped_data(runtime: ToolRuntime) -> str:
        """Fetch data scoped to the current assistant."""
        server = runtime.server_info
        if server is not None:
            print(f"Assistant: {server.assistant_id}, Graph: {server.graph_id}")
            if server.user is not None:
                print(f"User: {server.user.identity}")
        return "done"

    model = scripted(calls(("log_execution_context", {}), ("get_assistant_scoped_data", {})), "done")
    agent = create_agent(model, [log_execution_context, get_assistant_scoped_data], checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t1"}})
    assert capsys.readouterr().out == "Thread: t1, Run: None\nAttempt: 1\n"


def test_the_older_way_to_read_the_state_and_the_recommended_one() -> None:
    @tool("old_summarize")
    def older(state: InjectedState) -> str:
        """Summarize the conversation."""
        messages = state["messages"]
        return f"Conversation length: {len(messages)} messages."

    @tool
    def summarize(runtime: ToolRuntime) -> str:
        """Summarize the conversation."""
        messages = runtime.state["messages"]
        return f"Conversation length: {len(messages)} messages."

    assert older.tool_call_schema.model_json_schema()["properties"] == {}
    for example in (older, summarize):
        assert answer_of(example)[0].content == "Conversation length: 2 messages."


# --- what tools return -----------------------------------------------------------------------------------------------


def test_a_string_an_object_and_blocks() -> None:
    @tool
    def get_weather(city: str) -> str:
        """Get weather for a city."""
        return f"It is currently sunny in {city}."

    @tool
    def get_weather_data(city: str) -> dict:
        """Get structured weather data for a city."""
        return {"city": city, "temperature_c": 22, "conditions": "sunny"}

    @tool
    def capture_screenshot() -> list[dict]:
        """Capture a screenshot of the current page."""
        return [
            {"type": "text", "text": "Screenshot of the current page:"},
            {"type": "image", "url": "https://example.com/page.png"},
        ]

    assert answer_of(get_weather, city="Oslo")[0].content == "It is currently sunny in Oslo."
    data, _ = answer_of(get_weather_data, city="Oslo")
    assert data.content == '{"city": "Oslo", "temperature_c": 22, "conditions": "sunny"}'
    shot, _ = answer_of(capture_screenshot)
    assert [block["type"] for block in shot.content_blocks] == ["text", "image"]


def test_a_command() -> None:
    @tool
    def set_language(language: str, runtime: ToolRuntime) -> Command:
        """Set the preferred response language."""
        return Command(
            update={
                "preferred_language": language,
                "messages": [
                    ToolMessage(content=f"Language set to {language}.", tool_call_id=runtime.tool_call_id),
                ],
            }
        )

    found, output = answer_of(set_language, schema=CustomState, language="Korean")
    assert (found.content, output["preferred_language"]) == ("Language set to Korean.", "Korean")


def test_return_direct() -> None:
    @tool(return_direct=True)
    def fetch_order_status(order_id: str) -> str:
        """Fetch the current status of a customer order."""
        # In production, query your order management system here
        return f"Order {order_id} is shipped and will arrive in 2 days."

    @tool(return_direct=True)
    def fetch_and_store_order(order_id: str, runtime: ToolRuntime) -> Command:
        """Fetch order status and store it in state."""
        status = f"Order {order_id} is shipped and will arrive in 2 days."
        return Command(
            update={
                "last_order_status": status,
                # Must include a ToolMessage so the message history stays valid
                "messages": [ToolMessage(content=status, tool_call_id=runtime.tool_call_id)],
            }
        )

    wanted = "Order 12345 is shipped and will arrive in 2 days."
    agent = create_agent(scripted(calls(("fetch_order_status", {"order_id": "12345"}))), tools=[fetch_order_status])
    result = agent.invoke({"messages": [{"role": "user", "content": "What is the status of order #12345?"}]})
    assert result["messages"][-1].content == wanted
    model = scripted(calls(("fetch_and_store_order", {"order_id": "12345"})))
    storing = create_agent(model, tools=[fetch_and_store_order], state_schema=CustomState)
    result = storing.invoke({"messages": [{"role": "user", "content": "And #12345?"}]})
    assert (result["messages"][-1].content, result["last_order_status"]) == (wanted, wanted)


def test_error_handling_and_a_message_count() -> None:
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
    def get_message_count(runtime: ToolRuntime) -> str:
        """Get the number of messages in the conversation."""
        messages = runtime.state["messages"]
        return f"There are {len(messages)} messages."

    @tool
    def failing() -> str:
        """Fail."""
        raise ValueError("bad input")

    model = scripted(calls(("failing", {}), ("get_message_count", {})), "done")
    agent = create_agent(model, tools=[failing, get_message_count], middleware=[handle_tool_errors])
    found = agent.invoke({"messages": [("user", "go")]})["messages"]
    assert found[2].content == "Tool error: Please check your input and try again. (bad input)"
    assert found[3].content == "There are 2 messages."
    assert create_agent(scripted("hello"), tools=[], middleware=[handle_tool_errors]).invoke({"messages": ["hi"]})


# --- dynamic tools ---------------------------------------------------------------------------------------------------


def named(*names: str) -> list[Any]:
    def make(name: str) -> Any:
        @tool(name)
        def example() -> str:
            """Do it."""
            return name

        return example

    return [make(name) for name in names]


def offered(agent: Any, model: StrictModel, **given: Any) -> list[str]:
    """What the agent's model is offered in one call."""
    agent.invoke({"messages": given.pop("messages", [("user", "go")]), **given.pop("state", {})}, **given)
    return sorted(model.model.offered[-1])  # type: ignore[attr-defined]


def test_tools_by_state() -> None:
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

    class Signed(AgentState):
        authenticated: bool

    model = scripted("1", "2", "3")
    agent = create_agent(
        model,
        tools=named("public_search", "private_search", "advanced_search"),
        middleware=[state_based_tools],
        state_schema=Signed,
    )
    assert offered(agent, model) == ["public_search"]
    assert offered(agent, model, state={"authenticated": True}) == ["private_search", "public_search"]
    long = [("user", "a"), ("ai", "b"), ("user", "c"), ("ai", "d"), ("user", "e")]
    everything = ["advanced_search", "private_search", "public_search"]
    assert offered(agent, model, state={"authenticated": True}, messages=long) == everything


def test_tools_by_store() -> None:
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

    store = InMemoryStore()
    store.put(("features",), "ada", {"enabled_tools": ["search_tool"]})
    model = scripted("1", "2")
    agent = create_agent(
        model,
        tools=named("search_tool", "analysis_tool", "export_tool"),
        middleware=[store_based_tools],
        context_schema=UserContext,
        store=store,
    )
    assert offered(agent, model, context=UserContext("ada")) == ["search_tool"]
    assert len(offered(agent, model, context=UserContext("bob"))) == 3


@dataclass
class RoleContext:
    user_role: str


def test_tools_by_context() -> None:
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

    model = scripted("1", "2", "3")
    agent = create_agent(
        model,
        tools=named("read_data", "write_data", "delete_data"),
        middleware=[context_based_tools],
        context_schema=RoleContext,
    )
    assert offered(agent, model) == ["read_data"]
    assert offered(agent, model, context=RoleContext("editor")) == ["read_data", "write_data"]
    assert len(offered(agent, model, context=RoleContext("admin"))) == 3


def test_a_tool_that_is_registered_at_run_time() -> None:
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
        scripted(calls(("calculate_tip", {"bill_amount": 85}), ("get_weather", {})), "done"),
        tools=named("get_weather"),  # Only static tools registered here
        middleware=[DynamicToolMiddleware()],
    )

    result = agent.invoke({"messages": [{"role": "user", "content": "Calculate a 20% tip on $85"}]})
    assert [m.content for m in result["messages"][2:4]] == ["Tip: $17.00, Total: $102.00", "get_weather"]


# --- the loop by hand: a chapter on binding tools --------------------------------------------------------------------


def test_tools_are_bound_called_and_answered_by_hand() -> None:
    @tool
    def get_weather(city: str) -> str:
        """주어진 도시의 현재 날씨를 가져옵니다."""
        return f"It's always sunny in {city}!"

    @tool
    def calculate(expression: str) -> str:
        """'123 * 456'과 같은 간단한 산술 표현식을 계산합니다."""
        left, right = expression.split("*")
        return str(int(left) * int(right))

    @tool
    def search_web(query: str) -> str:
        """주제에 대한 최신 정보를 웹에서 검색합니다."""
        return f"Top result for '{query}': ..."

    llm = scripted(
        calls(("get_weather", {"city": "Tokyo"}), ("calculate", {"expression": "123 * 456"})),
        "The weather in Tokyo is currently sunny, and 123 multiplied by 456 is 56,088.",
    )
    tools = [get_weather, calculate, search_web]
    llm_with_tools = llm.bind_tools(tools)
    tool_map = {t.name: t for t in tools}

    messages: list[Any] = [HumanMessage("What's the weather in Tokyo, and what is 123 * 456?")]
    ai_msg = llm_with_tools.invoke(messages)
    messages.append(ai_msg)
    assert ai_msg.content == ""
    assert [call["type"] for call in ai_msg.tool_calls] == ["tool_call", "tool_call"]

    assert tool_map["get_weather"].invoke(ai_msg.tool_calls[0]["args"]) == "It's always sunny in Tokyo!"
    for tool_call in ai_msg.tool_calls:
        selected_tool = tool_map[tool_call["name"]]
        tool_message = selected_tool.invoke(tool_call)
        assert tool_message.tool_call_id == tool_call["id"]
        messages.append(tool_message)

    final_response = llm_with_tools.invoke(messages)
    assert final_response.content.endswith("56,088.")
    assert [type(m).__name__ for m in messages] == ["HumanMessage", "AIMessage", "ToolMessage", "ToolMessage"]


# --- the same in a graph of one's own, and where names are imported from ---------------------------------------------


def test_tool_execution_in_a_workflow() -> None:
    (hello,) = named("hello")
    graph: Any = StateGraph(AgentState)
    graph.add_node("tools", ToolNode([hello]))
    graph.add_edge(START, "tools")
    output = asyncio.run(graph.compile().ainvoke({"messages": [calls(("hello", {}))]}))
    assert output["messages"][-1].content == "hello"


def test_the_names_of_the_page_are_where_it_imports_them_from() -> None:
    import agentkit.agents
    import agentkit.agents.middleware
    import agentkit.messages
    import agentkit.tools
    import agentkit.tools.tool_node

    for module, names in {
        agentkit.tools: ("tool", "ToolRuntime", "InjectedState", "InjectedStore", "InjectedToolCallId", "get_runtime"),
        agentkit.tools.tool_node: ("ToolCallRequest", "ToolNode", "tools_condition"),
        agentkit.agents: ("create_agent", "AgentState"),
        agentkit.messages: ("HumanMessage", "ToolMessage", "AIMessage", "SystemMessage"),
        agentkit.agents.middleware: ("AgentMiddleware", "ModelRequest", "ModelResponse", "ToolCallRequest"),
    }.items():
        for name in names:
            assert inspect.isclass(getattr(module, name)) or callable(getattr(module, name))

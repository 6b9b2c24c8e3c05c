"""The examples of LangChain's pages on tools: `langchain.` reads `agentkit.`, and a scripted model stands in.

Each test is one example of the page, run and looked at. Those about agents are in tests/agents.
"""

import asyncio
import inspect
from typing import Any, Literal

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, Field

from agentkit.agents import AgentState, create_agent
from agentkit.messages import HumanMessage, ToolMessage
from agentkit.testing import ScriptedModel, StrictModel, calls
from agentkit.tools import InjectedState, ToolNode, ToolRuntime, tool


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
    preferred_language: str


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
    @tool
    def hello() -> str:
        """Greet."""
        return "hello"

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

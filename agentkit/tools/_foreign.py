"""Tools whose class has its own way of being invoked: it is kept, and they get what they ask for with the arguments."""

from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.errors import is_invalid_resume
from pydantic import ValidationError

from agentkit.tools._fields import field_names
from agentkit.tools._injection import OMIT, getter_of
from agentkit.tools._plan import Plan, Runtime
from agentkit.tools._problems import arguments_error, pydantic_problems


def from_foreign(plan: Plan, tool: BaseTool, call: ToolCall, runtime: Runtime, config: RunnableConfig) -> Any:
    """The call through the tool's own `invoke`."""
    try:
        return tool.invoke(_injected(plan, call, runtime), config)
    except ValidationError as error:
        _explain(plan, call, error)
        raise


async def afrom_foreign(plan: Plan, tool: BaseTool, call: ToolCall, runtime: Runtime, config: RunnableConfig) -> Any:
    """The call through the tool's own `ainvoke`."""
    try:
        return await tool.ainvoke(_injected(plan, call, runtime), config)
    except ValidationError as error:
        _explain(plan, call, error)
        raise


class _Arguments(dict[str, Any]):
    """Arguments with some that only those who ask for them by name can see.

    LangChain validates all items of a dict and then fetches injected ones by name. What its schema does not know is
    kept out of the items: it is not validated, and a schema that forbids extra fields does not find it.
    """

    def __init__(self, items: dict[str, Any], unseen: dict[str, Any]) -> None:
        super().__init__(items)
        self.unseen = unseen

    def copy(self) -> "_Arguments":
        return _Arguments(self, self.unseen)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.unseen

    def __missing__(self, name: str) -> Any:
        return self.unseen[name]


def _injected(plan: Plan, call: ToolCall, runtime: Runtime) -> ToolCall:
    fields = field_names(plan.schema)
    seen = dict(plan.strip(call["args"]))
    unseen: dict[str, Any] = {}
    for injection in plan.injections:
        if injection.kind in ("config", "manager", "call_id"):  # LangChain fills these itself
            continue
        value = getter_of(injection, plan.name)(runtime)
        if value is not OMIT:
            (seen if injection.parameter in fields else unseen)[injection.parameter] = value
    return {"name": call["name"], "args": _Arguments(seen, unseen), "id": call["id"], "type": "tool_call"}


def _explain(plan: Plan, call: ToolCall, error: ValidationError) -> None:
    """Raise the model's error where it is the model's: the one that the tool's own schema raised."""
    schema = plan.schema
    if isinstance(schema, dict) or schema is None or is_invalid_resume(error):
        return
    if error.title != (getattr(schema, "model_config", {}).get("title") or schema.__name__):
        return
    problems = pydantic_problems(error.errors(include_url=False), call["args"], plan.injected, {})
    if problems:
        raise arguments_error(plan.name, problems) from error

"""Writing a model's answers tersely."""

from typing import Any

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall

CallSpec = tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], str | None]


def ai(text: str = "", **fields: Any) -> AIMessage:
    """An AI message that says `text`; `fields` are those of AIMessage."""
    return AIMessage(content=text, **fields)


def calls(*specs: CallSpec, text: str = "", invalid: tuple[str, ...] = (), **fields: Any) -> AIMessage:
    """An AI message that calls tools: `calls(("add", {"a": 1, "b": 2}), ("now", {}, "my-id"))`.

    A call without id gets `call_<tool>_<position>`, so that tests can name it; the same call in a later message has
    the same id, as with providers that count anew in each turn. `invalid` names tools that are called with arguments
    that are not JSON; their ids continue the positions.
    """
    made = [
        ToolCall(name=spec[0], args=spec[1], id=spec[2] if len(spec) > 2 else f"call_{spec[0]}_{at}", type="tool_call")  # noqa: PLR2004  # the id is the third part
        for at, spec in enumerate(specs)
    ]
    broken = [
        InvalidToolCall(name=name, args="not JSON", id=f"call_{name}_{at}", error="not JSON", type="invalid_tool_call")
        for at, name in enumerate(invalid, len(made))
    ]
    return AIMessage(content=text, tool_calls=made, invalid_tool_calls=broken, **fields)

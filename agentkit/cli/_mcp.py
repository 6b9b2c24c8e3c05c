"""`agentkit mcp`: what MCP servers offer, and one call by hand."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from agentkit.cli._failures import Stop

__all__ = ["app"]

app = typer.Typer(help="MCP servers: list their tools, call one.", no_args_is_help=True)

Server = Annotated[str, typer.Argument(help="A URL, a command ('mcp-server-time'), a FILE.py or .js, or a FILE.json.")]
Headers = Annotated[list[str] | None, typer.Option("--header", help="'Name: value', sent to a URL; several times.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]

_SHORT = 100


@app.command("list")
def list_(
    server: Server,
    header: Headers = None,
    pin: Annotated[Path | None, typer.Option(help="A file of pinned tools; made where there is none.")] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Pin the tools as they are now.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001  read from the arguments by whoever reports the failure
) -> int:
    """List the tools of a server: what they do, whether they change anything, and their arguments."""
    if accept and pin is None:
        raise Stop("--accept needs the file: --pin tools.lock.json")
    with _adapter(server, header, pin) as adapter:
        tools = adapter.tools()
        if accept:
            asyncio.run(adapter.accept())
            tools = adapter.tools()
        refused = adapter.refused
    if as_json:
        print(json.dumps([_described(tool) for tool in tools], ensure_ascii=False, indent=2))
    else:
        for tool in tools:
            print(_line(tool))
        for name, why in refused.items():
            print(f"{name}  REFUSED\n{_indented(why)}")
    return 1 if refused else 0


@app.command()
def call(
    server: Server,
    tool: Annotated[str, typer.Argument(help="The tool's name, as `list` shows it.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="name=value, several times, or one JSON object.", show_default=False)
    ] = None,
    header: Headers = None,
    timeout: Annotated[float, typer.Option(help="Seconds that the call may take.")] = 60.0,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001  as above
) -> int:
    """Call one tool of a server and print its result. Ends with 1 where the result is an error."""
    with _adapter(server, header, None, timeout=timeout) as adapter:
        tools = {each.name: each for each in adapter.tools()}
        if tool not in tools:
            raise Stop(f"{server} has no tool {tool!r}: there are {', '.join(tools) or 'none'}")
        args = _arguments(arguments or [], tools[tool])
        message = tools[tool].invoke({"name": tool, "args": args, "id": "call", "type": "tool_call"})
    if as_json:
        whole = {"status": message.status, "content": message.content, "artifact": message.artifact}
        print(json.dumps(whole, ensure_ascii=False, indent=2))
    else:
        for block in message.content_blocks:
            print(block["text"] if block["type"] == "text" else _noted(dict(block)))
    return 0 if message.status == "success" else 1


def _adapter(server: str, headers: list[str] | None, pin: Path | None, **settings: Any) -> Any:
    from agentkit.mcp import MCPAdapter  # with langgraph and the MCP libraries behind it

    path = Path(server)
    target: Any = server
    if not server.startswith(("http://", "https://")):
        # who types a command here means to run it
        target = path if path.suffix in (".py", ".js", ".json") and path.exists() else shlex.split(server)
    return MCPAdapter(target, headers=_headers(headers), pin=pin, **settings)


def _headers(given: list[str] | None) -> dict[str, str] | None:
    found = {}
    for each in given or ():
        name, colon, value = each.partition(":")
        if not colon:
            raise Stop(f"--header {each!r} is no 'Name: value'")
        found[name.strip()] = value.strip()
    return found or None


def _arguments(given: list[str], tool: Any) -> dict[str, Any]:
    """`name=value` pairs, each value as JSON where the tool wants more than text, or one JSON object."""
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        try:
            found: dict[str, Any] = json.loads(given[0])
        except ValueError as error:
            raise Stop(f"the arguments are no JSON: {error}") from error
        return found
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise Stop(f"{each!r} is no argument: write name=value, or one JSON object")
        found[name] = _value(value, tool.args.get(name) or {})
    return found


def _value(text: str, schema: Any) -> Any:
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _line(tool: Any) -> str:
    from agentkit.mcp import is_destructive, is_read_only

    kind = "reads" if is_read_only(tool) else "may destroy" if is_destructive(tool) else "changes"
    text = " ".join(tool.description.split())
    text = text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
    needed = tool.args_schema.get("required", ())
    named = ", ".join(name if name in needed else f"[{name}]" for name in tool.args)
    return f"{tool.name}({named})  {kind}\n    {text}"


def _described(tool: Any) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "args_schema": tool.args_schema,
        "metadata": tool.metadata,
    }


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _noted(block: dict[str, Any]) -> str:
    where = block.get("url") or f"{len(block.get('base64') or '') * 3 // 4:,} bytes"
    return f"[{block['type']} {block.get('mime_type') or ''} {where}]"

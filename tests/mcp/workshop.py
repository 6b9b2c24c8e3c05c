"""An MCP server for tests, written with the official SDK: `workshop.py stdio` or `workshop.py http`.

Environment: WORKSHOP_TOKENS (user=token,… that HTTP requests need), WORKSHOP_DESCRIPTION (of `describe`),
WORKSHOP_TOOLS (how many more tools there are), WORKSHOP_LOG (a file that gets a line per event), WORKSHOP_PORT.
"""

import os
import socket
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Audio, Context, Elicit, ElicitationResult, Image, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import BlobResourceContents, CallToolResult, EmbeddedResource, ResourceLink, TextContent, ToolAnnotations
from pydantic import BaseModel

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
    "a5f645400000000049454e44ae426082"
)
server = MCPServer("workshop", version="1.2.3", log_level="CRITICAL")
count = 0


def log(line):
    if path := os.environ.get("WORKSHOP_LOG"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


@server.tool()
def increment(by: int = 1) -> str:
    """Add to the counter that this server keeps, and return it."""
    global count
    count += by
    return str(count)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def process_id() -> str:
    """The id of the server's process."""
    log("process_id")
    return str(os.getpid())


@server.tool()
async def slow(steps: int, ctx: Context, seconds: float = 0.01) -> str:
    """Work in steps and report progress."""
    log("slow started")
    try:
        for step in range(steps):
            await ctx.report_progress(step, steps, f"step {step}")
            await anyio.sleep(seconds)
    except BaseException:
        log("slow cancelled")
        raise
    log("slow done")
    return "done"


class Weather(BaseModel):
    city: str
    degrees: float


@server.tool()
def structured(city: str) -> Weather:
    """The weather, structured."""
    return Weather(city=city, degrees=21.5)


@server.tool(structured_output=False)
def wrong_structure() -> CallToolResult:
    """Says that it returns weather and does not."""
    return CallToolResult(content=[TextContent(type="text", text="rain")], structured_content={"city": 7})


promised = server._tool_manager.get_tool("wrong_structure")
promised.fn_metadata = promised.fn_metadata.model_copy(update={"output_schema": Weather.model_json_schema()})


@server.tool()
def picture() -> Image:
    """A picture of one pixel."""
    return Image(data=PNG, format="png")


@server.tool()
def sound() -> Audio:
    """A sound."""
    return Audio(data=b"RIFFxxxxWAVE", format="wav")


@server.tool(structured_output=False)
def files() -> list[Any]:
    """Text, a link and a file."""
    return [
        TextContent(type="text", text="two files"),
        ResourceLink(type="resource_link", uri="https://example.com/a.pdf", name="a.pdf", mime_type="application/pdf"),
        EmbeddedResource(
            type="resource",
            resource=BlobResourceContents(uri="file:///b.bin", mime_type="application/x-b", blob="AAEC"),
        ),
    ]


@server.tool(structured_output=False)
def nothing() -> list[Any]:
    """Returns nothing at all."""
    return []


@server.tool()
def fail(reason: str) -> str:
    """Fail."""
    raise ToolError(reason)


@server.tool()
def fail_with_details() -> CallToolResult:
    """Fail, with a picture and a structure."""
    return CallToolResult(
        content=[TextContent(type="text", text="no paper")], structured_content={"tray": 2}, is_error=True
    )


@server.tool()
def crash(after: str = "") -> str:
    """End the server's process in the middle of the call; after something that the log tells, where that is given."""
    while after and after not in Path(os.environ["WORKSHOP_LOG"]).read_text(encoding="utf-8"):
        time.sleep(0.01)
    log("crash")
    os._exit(3)


@server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=False))
def crash_once() -> str:
    """End the process at the first call; a second one, in a new process, works."""
    path = Path(os.environ["WORKSHOP_LOG"])
    first = not path.exists() or "crash_once" not in path.read_text(encoding="utf-8")
    log("crash_once")
    if first:
        os._exit(3)
    return "survived"


@server.tool()
def long_text(length: int) -> str:
    """A long text."""
    return "x" * length


@server.tool()
def who(ctx: Context) -> str:
    """Who the server thinks is calling."""
    return users.get((ctx.headers or {}).get("authorization", ""), "nobody")


@server.tool()
def key(ctx: Context) -> str:
    """The idempotency key of the call."""
    meta = ctx.request_context.meta or {}
    return str(meta.get("agentkit/idempotency-key"))


@server.tool()
def reserved(runtime: str, config: int, self: str = "s", name: str = "n") -> str:
    """Takes arguments whose names mean something elsewhere."""
    return f"{runtime} {config} {self} {name}"


class Size(BaseModel):
    cups: int


async def ask_size() -> Elicit[Size]:
    return Elicit(message="How many cups?", schema=Size)


class Milk(BaseModel):
    milk: bool


async def ask_milk(size: Annotated[Size, Resolve(ask_size)]) -> Elicit[Milk]:
    return Elicit(message=f"Milk in {size.cups} cups?", schema=Milk)


@server.tool()
def brew(
    drink: str,
    size: Annotated[ElicitationResult[Size], Resolve(ask_size)],
) -> str:
    """Brew a drink; asks how much."""
    log(f"brew {drink}")
    return f"{size.data.cups} cups of {drink}" if size.action == "accept" else f"no {drink}: {size.action}"


@server.tool()
def brew_with_milk(
    drink: str, size: Annotated[Size, Resolve(ask_size)], milk: Annotated[Milk, Resolve(ask_milk)]
) -> str:
    """Brew a drink; asks twice, the second question depends on the first answer."""
    log(f"brew {drink}")
    return f"{size.cups} cups of {drink} {'with' if milk.milk else 'without'} milk"


@server.tool(description=os.environ.get("WORKSHOP_DESCRIPTION", "Describe a thing."))
def describe(thing: str) -> str:
    return f"a {thing}"


@server.tool(name="files.read/all now!")
def badly_named() -> str:
    """Has a name that providers refuse."""
    return "read"


def numbered(n):
    def record(part: int = 0) -> str:
        return f"{n}.{part}"

    server.add_tool(record, name=f"record_{n}", description=f"Read record {n} of the archive.")


for number in range(int(os.environ.get("WORKSHOP_TOOLS", "0"))):
    numbered(number)


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool to this server, and say so."""

    def grown() -> str:
        return "grown"

    server.add_tool(grown, name="grown", description="Was not there before.")
    await ctx.session.send_tool_list_changed()
    return "added"


users = {
    f"Bearer {token}": user
    for user, _, token in (pair.partition("=") for pair in os.environ.get("WORKSHOP_TOKENS", "").split(",") if pair)
}


def guarded(app):
    async def asgi(scope, receive, send):
        if scope["type"] == "http" and users:
            given = dict(scope["headers"]).get(b"authorization", b"").decode()
            if given not in users:
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b"unauthorized"})
                return
        await app(scope, receive, send)

    return asgi


def serve_http():
    import uvicorn

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(os.environ.get("WORKSHOP_PORT", "0"))))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(guarded(server.streamable_http_app()), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1] == "http":
        serve_http()
    else:
        server.run("stdio")

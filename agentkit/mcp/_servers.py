"""From what people give as a target to servers that can be connected to, any number of times."""

import copy
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agentkit.errors import DefinitionError
from agentkit.mcp._extra import sdk

Target: TypeAlias = Any
"""See `MCPAdapter`."""

Headers: TypeAlias = Mapping[str, str]

_SCHEMES = ("http", "https")


@dataclass(frozen=True, kw_only=True)
class Server:
    """One server: its name, and how to make a client that is not connected yet.

    connect: given extra headers and an authentication (both may be None), makes a client.
    asks_itself: the caller's client has a handler of its own for what a server asks: it is left to it.
    takes_headers: whether headers and authentication can be sent at all.
    """

    name: str
    connect: Callable[[Headers | None, Any], Any]
    asks_itself: bool = False
    takes_headers: bool = False


def servers_of(target: Target, *, name: str | None, env: Mapping[str, str] | None, cwd: str | None) -> list[Server]:
    """The servers of a target.

    Raises:
        DefinitionError: it is none of the things that can be a target.
        MissingExtraError: the MCP libraries are not installed.
    """
    lib = sdk()
    if isinstance(target, Path) and target.suffix == ".json":
        target = _config_file(target)
    if isinstance(target, lib.ClientGroup):
        return [_of_client(name, client) for name, client in target.clients.items()]
    if isinstance(target, lib.MCPConfigTransport):
        target = target.config
    if isinstance(target, Mapping):
        target = _config(lib, target)
    if isinstance(target, lib.MCPConfig):
        return [_of_transport(lib, each, server.to_transport()) for each, server in target.mcpServers.items()]
    if isinstance(target, lib.Client):
        if isinstance(target.transport, lib.MCPConfigTransport):
            return servers_of(target.transport.config, name=name, env=env, cwd=cwd)
        return [_of_client(name or _name_of(target.transport), target)]
    transport = _transport(lib, target, env, cwd)
    return [_of_transport(lib, name or _name_of(transport), transport)]


def _config_file(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DefinitionError(f"MCP configuration {path}: {error}") from error
    if not isinstance(found, dict):
        raise DefinitionError(f'MCP configuration {path} must be an object: {{"mcpServers": {{name: …}}}}')
    return found


def _config(lib: Any, target: Mapping[str, Any]) -> Any:
    try:
        return lib.MCPConfig.from_dict(dict(target))
    except Exception as error:
        raise DefinitionError(
            f"MCP configuration does not fit ({str(error)[:200]}): write "
            '{"mcpServers": {name: {"command": …, "args": […]} or {"url": …}}}'
        ) from error


def _transport(lib: Any, target: Target, env: Mapping[str, str] | None, cwd: str | None) -> Any:
    if isinstance(target, lib.ClientTransport):
        return target
    if isinstance(target, Path):
        return _script(lib, target, env, cwd)
    if isinstance(target, str) or type(target).__name__ == "AnyUrl":
        return _url(lib, str(target))
    if isinstance(target, Sequence) and target and all(isinstance(part, str) for part in target):
        command, *args = target
        return lib.StdioTransport(command, args, env=dict(env) if env else None, cwd=cwd, keep_alive=False)
    try:
        return lib.Client(target).transport  # a server in this process
    except Exception as error:
        raise DefinitionError(
            f"{type(target).__name__} is no MCP target: give a URL, a Path, a command as a list of words, a dict with "
            "mcpServers, or a fastmcp client, group, transport or server"
        ) from error


def _script(lib: Any, path: Path, env: Mapping[str, str] | None, cwd: str | None) -> Any:
    made = {".py": lib.PythonStdioTransport, ".js": lib.NodeStdioTransport}.get(path.suffix)
    if made is None:
        raise DefinitionError(
            f"MCP target {path}: a path must be a .py or .js server or a .json configuration; "
            "give a command as a list of words"
        )
    try:
        return made(path, env=dict(env) if env else None, cwd=cwd, keep_alive=False)
    except Exception as error:
        raise DefinitionError(f"MCP target {path}: {error}") from error


def _url(lib: Any, url: str) -> Any:
    # A string that names a file must never become a process: it may come from a request or from a model.
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        raise DefinitionError(
            f"MCP target {url[:100]!r} is no http(s) URL; to start a local server give its words as a list "
            "(['mcp-server-time']) or a Path"
        )
    is_sse = parts.path.rstrip("/").endswith("/sse")
    return lib.SSETransport(url) if is_sse else lib.StreamableHttpTransport(url)


def _of_client(name: str, client: Any) -> Server:
    def connect(headers: Headers | None, auth: Any) -> Any:
        made = client.new()
        made.transport = _with(sdk(), _fresh(sdk(), client.transport), headers, auth)
        return made

    lib = sdk()
    own = getattr(client, "_elicitation_callback", None) is not None
    return Server(name=name, connect=connect, asks_itself=own, takes_headers=_is_http(lib, client.transport))


def _of_transport(lib: Any, name: str, transport: Any) -> Server:
    def connect(headers: Headers | None, auth: Any) -> Any:
        return lib.Client(_with(lib, _fresh(lib, transport), headers, auth))

    return Server(name=name, connect=connect, takes_headers=_is_http(lib, transport))


def _fresh(lib: Any, transport: Any) -> Any:
    """A transport like this one for one more session: a process of its own, an HTTP session of its own."""
    if isinstance(transport, lib.StdioTransport):
        return lib.StdioTransport(
            transport.command,
            list(transport.args),
            env=transport.env,
            cwd=transport.cwd,
            keep_alive=False,
            log_file=transport.log_file or _stderr(),
        )
    return copy.copy(transport) if _is_http(lib, transport) else transport


def _stderr() -> Any:
    """Where a local server's complaints go: to this process's stderr (None), or, if that is no file, to the real one.

    A notebook or a test replaces sys.stderr by something that no other process can write to.
    """
    for stream, found in ((sys.stderr, None), (sys.__stderr__, sys.__stderr__)):
        with suppress(AttributeError, OSError, ValueError):
            stream.fileno()  # type: ignore[union-attr]
            return found
    return Path(os.devnull)


def _is_http(lib: Any, transport: Any) -> bool:
    return isinstance(transport, lib.StreamableHttpTransport | lib.SSETransport)


def _with(lib: Any, transport: Any, headers: Headers | None, auth: Any) -> Any:
    if _is_http(lib, transport):
        if headers:
            transport.headers = {**transport.headers, **headers}
        if auth is not None:
            transport._set_auth(auth)  # noqa: SLF001 - what fastmcp's Client does with its auth argument
        return lib.watched(transport)
    return transport


def _name_of(transport: Any) -> str:
    """What to call a server that nobody named."""
    if url := getattr(transport, "url", None):
        return urlsplit(str(url)).hostname or "server"
    if server := getattr(transport, "server", None):
        return str(getattr(server, "name", "") or "server")
    if command := getattr(transport, "command", None):
        if "-m" in transport.args[:-1]:
            return str(transport.args[transport.args.index("-m") + 1])
        script = next((arg for arg in transport.args if arg.endswith((".py", ".js"))), command)
        return Path(script).stem
    return "server"

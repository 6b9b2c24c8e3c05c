"""What one server offers: listed when needed, remembered, and always the same tool objects for the same definitions."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError
from agentkit.mcp._annotations import is_repeatable
from agentkit.mcp._errors import MCPServerError, MCPToolError, reason_of
from agentkit.mcp._names import clean_names
from agentkit.mcp._pins import Pins, canonical, definition_of
from agentkit.mcp._sessions import Key, Ticket
from agentkit.mcp._tool import Route, as_tool

logger = logging.getLogger(__name__)

_PAUSE = 5.0  # seconds before a server that did not answer is asked for its tools again


@dataclass(slots=True)
class _Listing:
    tools: Sequence[BaseTool]
    until: float  # monotonic time until which it counts as fresh; 0 where it is out of date


class Catalogue:
    """The tools of one server, per session.

    Args:
        route: the way to the server; each tool gets its own.
        prefix: put before every name.
        pins: refuses tools that changed; None accepts all.
        fresh: seconds after which a listing is fetched again.
        required: whether a server that cannot be reached, and never could, is an error.
    """

    def __init__(self, route: Route, *, prefix: str, pins: Pins | None, fresh: float, required: bool) -> None:
        self.route = route
        self.refused: dict[str, str] = {}
        self._prefix = prefix
        self._pins = pins
        self._fresh = fresh
        self._required = required
        self._listings: dict[Key, _Listing] = {}
        self._made: dict[tuple[str, str], BaseTool] = {}
        self._definitions: dict[str, dict[str, Any]] = {}

    @property
    def server(self) -> str:
        """The server's name."""
        return self.route.sessions.server.name

    def known(self, key: Key) -> Sequence[BaseTool] | None:
        """The tools as last listed; None where they have to be fetched."""
        listing = self._listings.get(key)
        return listing.tools if listing is not None and time.monotonic() < listing.until else None

    def outdated(self, key: Key) -> None:
        """The server said that its tools have changed, or is a new one."""
        if (listing := self._listings.get(key)) is not None:
            listing.until = 0.0

    async def fetch(self, ticket: Ticket, *, keep: bool) -> Sequence[BaseTool]:
        """List the tools, on the portal's loop. Of a server that is away, those that were there before.

        Raises:
            MCPServerError: the server cannot be reached and never could, and is required.
        """
        try:
            async with self.route.sessions.session(ticket, keep=keep) as connection:
                client = await connection.client()
                found, info = await client.list_tools(), client.server_info
        except Exception as error:  # noqa: BLE001 - whatever a server or the way to it raises
            return self._without(ticket.key, error)
        self._definitions = {tool.name: definition_of(tool) for tool in found}
        refused = {}
        if self._pins is not None:
            refused = await asyncio.to_thread(self._pins.refused, self.server, self._definitions)
        tools = self._tools(found, info, refused)
        self._say_refused(refused)
        self._listings[ticket.key] = _Listing(tools, time.monotonic() + self._fresh)
        return tools

    async def guard(self, ticket: Ticket, tool: str) -> None:
        """Look at the pinned tools of a server that is another one by now, before it gets a call.

        Raises:
            MCPToolError: the tool changed.
        """
        async with self.route.sessions.session(ticket, keep=True) as connection:
            await connection.client()
        if self.known(ticket.key) is None:
            await self.fetch(ticket, keep=True)
        if why := self.refused.get(tool):
            raise MCPToolError(f"{tool} was not called, since it changed after it was accepted:\n{why}")

    async def accept(self) -> None:
        """Pin the tools as they were listed last."""
        if self._pins is not None and self._definitions:
            await asyncio.to_thread(self._pins.accept, self.server, self._definitions)
            self.refused = {}
            for listing in self._listings.values():
                listing.until = 0.0

    def _without(self, key: Key, error: Exception) -> Sequence[BaseTool]:
        listing = self._listings.get(key)
        if listing is None and self._required:
            if isinstance(error, MCPServerError):
                raise error
            raise MCPServerError(f"MCP server {self.server!r} did not list its tools: {reason_of(error)}") from error
        if listing is None:
            listing = self._listings[key] = _Listing((), 0.0)
        listing.until = time.monotonic() + _PAUSE
        what = "with the tools it had before" if listing.tools else "without its tools"
        logger.warning("MCP server %r is away, going on %s: %s", self.server, what, reason_of(error))
        return listing.tools

    def _tools(self, found: Sequence[Any], info: Any, refused: dict[str, str]) -> list[BaseTool]:
        names = clean_names((tool.name for tool in found), self._prefix)
        made: dict[str, BaseTool] = {}
        for definition in found:
            if definition.name in refused or definition.name in made:
                continue
            try:
                made[definition.name] = self._tool(definition, names[definition.name], info)
            except DefinitionError as error:
                refused[definition.name] = str(error)
        return list(made.values())

    def _tool(self, definition: Any, name: str, info: Any) -> BaseTool:
        key = (name, canonical(self._definitions[definition.name]))
        if key not in self._made:
            route = replace(
                self.route,
                guard=None if self._pins is None else self.guard,
                tool=definition.name,
                repeatable=is_repeatable(definition.annotations),
            )
            self._made[key] = as_tool(definition, name, route, info)
        return self._made[key]

    def _say_refused(self, refused: dict[str, str]) -> None:
        for name, why in refused.items():
            if self.refused.get(name) != why:
                logger.warning("tool %r of MCP server %r is refused:\n%s", name, self.server, why)
        self.refused = refused

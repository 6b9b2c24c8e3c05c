"""A large catalogue behind one tool that searches it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from agentkit.errors import DefinitionError
from agentkit.tools._kept import Kept
from agentkit.tools._names import check_name
from agentkit.tools._policy import ToolPolicy, attach_policy
from agentkit.tools._runtime import ToolRuntime
from agentkit.tools._tool import tool as make_tool
from agentkit.tools.toolsets._base import Runtime, Tools, Toolset, WrapperToolset, aask, ask, label_of
from agentkit.tools.toolsets._names import by_name
from agentkit.tools.toolsets._search import Index, index_of

FOUND_KEY = "agentkit_found"
_SHORT = 300  # characters of a description in a list of hits

_DESCRIPTION = (
    "Search the catalogue of further tools. What it finds can be called from the next step on. "
    "Describe what is to be done in a few words, in the language of the tools (mostly English)."
)


class Searchable(WrapperToolset):
    """Made by `searchable`."""

    def __init__(self, source: Toolset | Tools, name: str, limit: int, always: Sequence[str]) -> None:
        super().__init__(source)
        self.limit = limit
        self.always = frozenset(always)
        self.finder = self._finder(name)
        self._indexes: Kept[_Catalogue, Index] = Kept(lambda catalogue: index_of(catalogue.tools), most=16)
        self._catalogues: dict[tuple[int, ...], _Catalogue] = {}

    def change(self, tools: list[BaseTool], runtime: Runtime) -> list[BaseTool]:
        """The finder, and what it has found so far in this thread."""
        names = self.always | found_names(_messages(runtime.state), self.finder.name)
        offered = [self.finder, *(tool for tool in tools if tool.name in names)]
        by_name([(label_of(self), offered)])
        return offered

    def _finder(self, name: str) -> BaseTool:
        def find(query: str, runtime: ToolRuntime[Any, Any]) -> ToolMessage:
            return self._answer(query, ask(self.source, runtime, self._accept), runtime)

        async def afind(query: str, runtime: ToolRuntime[Any, Any]) -> ToolMessage:
            return self._answer(query, await aask(self.source, runtime, self._accept), runtime)

        made = make_tool(name, description=_DESCRIPTION)(find)
        if isinstance(made, StructuredTool):
            made.coroutine = afind
        attach_policy(made, ToolPolicy(on_crash="rerun"))
        return made

    def _answer(self, query: str, tools: list[BaseTool], runtime: ToolRuntime[Any, Any]) -> ToolMessage:
        hits = self._indexes(self._catalogue(tools)).search(query, self.limit)
        lines = [f"- {tool.name}: {_short(tool.description)}" for tool in hits]
        text = (
            "Found, and offered from the next step on:\n" + "\n".join(lines)
            if hits
            else f"None of the {len(tools)} tools fits {query!r}: try other words."
        )
        return ToolMessage(
            text,
            tool_call_id=runtime.tool_call_id or "",
            name=self.finder.name,
            artifact={FOUND_KEY: [tool.name for tool in hits]},
        )

    def _catalogue(self, tools: list[BaseTool]) -> "_Catalogue":
        key = tuple(map(id, tools))
        known = self._catalogues.get(key)
        if known is None:
            if len(self._catalogues) >= 16:  # noqa: PLR2004 - one for each set of rights or so
                self._catalogues.clear()
            known = self._catalogues.setdefault(key, _Catalogue(tools))
        return known


class _Catalogue:
    """Tools whose ids name them as long as this holds them."""

    def __init__(self, tools: list[BaseTool]) -> None:
        self.tools = tools


def searchable(
    source: Toolset | Tools, *, name: str = "find_tools", limit: int = 8, always: Sequence[str] = ()
) -> Searchable:
    """A catalogue too large to offer: the model gets one tool that searches it, and then what it found.

    What a search found is offered from the next model call on, for as long as the search's result stands in the
    history (it is kept there, as the result's artifact): in other processes too, and per thread. A tool that the source
    does not give for a run is neither found nor offered, whatever was found before.

    Args:
        source: a toolset, or a list of tools.
        name: the name of the tool that searches.
        limit: how many tools one search finds.
        always: names of tools that are offered without a search.

    Raises:
        DefinitionError: a bad name or limit.
    """
    check_name(name)
    if limit < 1:
        raise DefinitionError(f"searchable: limit={limit} finds nothing; give 1 or more")
    return Searchable(source, name, limit, always)


def found_names(messages: Iterable[Any], finder: str) -> frozenset[str]:
    """The names that searches have found, in the results that stand in a history."""
    found: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage) and message.name == finder and isinstance(message.artifact, Mapping):
            found.update(name for name in message.artifact.get(FOUND_KEY, ()) if isinstance(name, str))
    return frozenset(found)


def _messages(state: Any) -> Iterable[Any]:
    if isinstance(state, list):
        return state
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    return messages or ()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else line[: _SHORT - 1] + "…"

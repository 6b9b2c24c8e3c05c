"""A toolset whose tools have other policies."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from langchain_core.tools import BaseTool

from agentkit.tools._kept import Kept
from agentkit.tools._policy import DEFAULT_POLICY, ToolPolicy, revised, with_policy
from agentkit.tools.toolsets._base import Runtime, Tools, Toolset, WrapperToolset


class WithPolicies(WrapperToolset):
    """Made by `with_policies`."""

    def __init__(self, source: Toolset | Tools, policies: Mapping[str, ToolPolicy | Mapping[str, Any]]) -> None:
        super().__init__(source)
        self.policies = dict(policies)
        self._copies = Kept(self._with_policy)

    def change(self, tools: list[BaseTool], runtime: Runtime) -> list[BaseTool]:  # noqa: ARG002 - the same for every run
        """The tools with their policies."""
        return [self._copies(tool) for tool in tools]

    def _with_policy(self, tool: BaseTool) -> BaseTool:
        for pattern, policy in self.policies.items():
            if fnmatchcase(tool.name, pattern):
                return with_policy(tool, policy) if isinstance(policy, ToolPolicy) else with_policy(tool, **policy)
        return tool


def with_policies(source: Toolset | Tools, policies: Mapping[str, ToolPolicy | Mapping[str, Any]]) -> WithPolicies:
    """The tools of `source` with other policies.

    Args:
        source: a toolset, or a list of tools.
        policies: tool names, with `*` and `?` as in file names, and for each a `ToolPolicy`, or a dict of the fields
            to change: `{"search_*": {"timeout": 10, "retries": 2}, "*": {"on_error": "hide"}}`. The first that fits
            counts.

    Raises:
        DefinitionError: a field does not exist or its value makes no sense.
    """
    for policy in policies.values():
        if not isinstance(policy, ToolPolicy):
            revised(DEFAULT_POLICY, dict(policy))
    return WithPolicies(source, policies)

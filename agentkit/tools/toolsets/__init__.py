"""Toolsets: tools that are discovered rather than listed, and wrappers that each do one thing to them."""

from agentkit.tools.toolsets._base import Toolset, WrapperToolset
from agentkit.tools.toolsets._combined import combined
from agentkit.tools.toolsets._filtered import filtered
from agentkit.tools.toolsets._policies import with_policies
from agentkit.tools.toolsets._prefixed import prefixed
from agentkit.tools.toolsets._renamed import renamed
from agentkit.tools.toolsets._roles import for_roles, roles_of
from agentkit.tools.toolsets._searchable import searchable

__all__ = [
    "Toolset",
    "WrapperToolset",
    "combined",
    "filtered",
    "for_roles",
    "prefixed",
    "renamed",
    "roles_of",
    "searchable",
    "with_policies",
]

"""Testing agents without a provider: a scripted model, and the checks of a strict provider in front of any model."""

from agentkit.testing._script import ai, calls
from agentkit.testing._scripted import Request, ScriptedModel
from agentkit.testing._strict import StrictModel, assert_valid

__all__ = [
    "Request",
    "ScriptedModel",
    "StrictModel",
    "ai",
    "assert_valid",
    "calls",
]

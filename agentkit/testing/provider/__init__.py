"""A local provider for real clients, as strict as OpenAI and Anthropic are."""

from agentkit.testing.provider._refused import HttpError
from agentkit.testing.provider._server import StrictProvider

__all__ = ["HttpError", "StrictProvider"]

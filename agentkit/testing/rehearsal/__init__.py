"""A chat model for trying things out where there is no language model: no LLM, it matches patterns."""

from agentkit.testing.rehearsal._model import RehearsalModel

__all__ = ["RehearsalModel"]

"""What a tool's body can be given."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Takes:
    """What a body can be given: the names of its parameters, and those of its `*args` and `**kwargs`, if any.

    `is_function` says that the schema may have been inferred from the signature, in which case it has optional fields
    for `*args` and `**kwargs` too.
    """

    names: frozenset[str] = frozenset()
    args: str | None = None
    kwargs: str | None = None
    is_function: bool = False

    @property
    def anything(self) -> bool:
        """Whether arguments that the schema does not know have somewhere to go."""
        return self.kwargs is not None

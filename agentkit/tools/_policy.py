"""What is to happen with a tool's calls: time, retries, crashes, errors, order and size."""

import random
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, cast

from langchain_core.messages import ToolCall
from langchain_core.tools import BaseTool

from agentkit.errors import DefinitionError
from agentkit.tools._accepted import as_tool_object
from agentkit.tools._policy_checks import choice, exceptions, flag, name_of_group, number, state_keys, whole

OnCrash: TypeAlias = Literal["unknown", "rerun", "ask"] | Callable[..., object]
OnError: TypeAlias = Literal["report", "hide", "raise"] | Callable[[Exception, ToolCall], str]
RetryOn: TypeAlias = tuple[type[Exception], ...] | Callable[[Exception], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolPolicy:
    """How the calls of one tool are run. Every field has a default; times are in seconds.

    Raises `DefinitionError` (a ValueError) naming the field and the fix where a value makes no sense.

    Time and retries (all attempts belong to one call and share its idempotency key)
        timeout: the longest that one attempt may take; None for no limit.
        retries: how often a failed attempt is tried again.
        retry_on: which exceptions are tried again: a tuple of classes, or a function from the exception to bool.
        initial_delay, backoff_factor, max_delay, jitter: the wait before retry n is
            `initial_delay * backoff_factor ** n`, at most `max_delay`; jitter takes a random half off it.

    What went wrong
        on_error: what an exception becomes: "report" (type and message, to the model), "hide" (a reference id only),
            "raise" (the run fails, after its sibling calls have settled), or a function of (exception, call) that
            returns the text for the model. None leaves it to the ToolNode.
        on_crash: a call that was in flight when the process died: "unknown" (never run again; the model is told so),
            "rerun", "ask" (a person decides), or a function that finds out what became of it.

    Order and concurrency
        sequential: the call starts when all earlier calls of the batch have ended, and later ones wait for it.
        group, limit: at most `limit` calls of the tools in `group` run at once; without a group, of this tool.
        dedupe: identical calls of one batch run once, and each gets the result.

    State and size
        writes: the state keys that this tool updates; a key without a reducer is refused when the graph is built.
        max_output: the longest result text in characters; more is cut in the middle and kept whole as the artifact.
        on_replay: a call that a fork of the thread meets again: "rerun" or "reuse" its recorded result.
        transactional: effect and record share one database transaction.
    """

    timeout: float | None = None
    retries: int = 0
    retry_on: RetryOn = (Exception,)
    initial_delay: float = 0.5
    backoff_factor: float = 2.0
    max_delay: float = 30.0
    jitter: bool = True
    on_crash: OnCrash = "unknown"
    on_error: OnError | None = None
    sequential: bool = False
    group: str | None = None
    limit: int | None = None
    writes: tuple[str, ...] = ()
    max_output: int | None = None
    dedupe: bool = False
    on_replay: Literal["rerun", "reuse"] = "rerun"
    transactional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "retry_on", exceptions("retry_on", self.retry_on))
        object.__setattr__(self, "writes", state_keys("writes", self.writes))
        number("timeout", self.timeout, above=0, none="for no limit")
        number("initial_delay", self.initial_delay, least=0)
        number("backoff_factor", self.backoff_factor, least=1)
        number("max_delay", self.max_delay, least=0)
        whole("retries", self.retries, least=0)
        whole("limit", self.limit, least=1, none="for no limit")
        whole("max_output", self.max_output, least=1, none="for no limit")
        choice("on_crash", self.on_crash, ("unknown", "rerun", "ask"), function=True)
        choice("on_error", self.on_error, ("report", "hide", "raise"), function=True, none=True)
        choice("on_replay", self.on_replay, ("rerun", "reuse"))
        for name in ("jitter", "sequential", "dedupe", "transactional"):
            flag(name, getattr(self, name))
        name_of_group("group", self.group, limit=self.limit)

    @property
    def is_tracked(self) -> bool:
        """Whether the start of a call is recorded, because a call that was in flight must not just run again."""
        return self.on_crash != "rerun" and not self.transactional

    def should_retry(self, error: Exception, attempt: int) -> bool:
        """Whether a call that failed with this error is tried again; the first attempt is number 1."""
        if attempt > self.retries:
            return False
        if isinstance(self.retry_on, tuple):
            return isinstance(error, self.retry_on)
        return bool(self.retry_on(error))

    def delay(self, attempt: int) -> float:
        """Seconds to wait after this attempt failed; the first attempt is number 1."""
        try:
            wait = min(self.initial_delay * self.backoff_factor ** (attempt - 1), self.max_delay)
        except OverflowError:
            wait = self.max_delay
        return wait * random.uniform(0.5, 1.0) if self.jitter else wait


DEFAULT_POLICY = ToolPolicy()

# Kept in the tool's own __dict__, beside its fields: pydantic ignores it in dumps, comparisons and validation, and
# copies of the tool (model_copy, deepcopy, pickle) keep their policy, as a registry by identity would not.
_KEY = "_agentkit_policy"


def policy_of(tool: BaseTool) -> ToolPolicy:
    """The policy of a tool; the default policy for a tool that was given none."""
    return cast("ToolPolicy", tool.__dict__.get(_KEY, DEFAULT_POLICY))


def attach_policy(tool: BaseTool, policy: ToolPolicy) -> None:
    """Give a tool that we made ourselves its policy."""
    tool.__dict__[_KEY] = policy


def revised(policy: ToolPolicy, changes: dict[str, Any]) -> ToolPolicy:
    """The policy with some fields changed. Raises DefinitionError for a field that does not exist."""
    known = [field.name for field in fields(ToolPolicy)]
    for name in changes:
        if name not in known:
            raise DefinitionError(f"policy: there is no field {name!r}; the fields are {', '.join(known)}")
    return replace(policy, **changes)


def with_policy(tool: BaseTool | Callable[..., Any], policy: ToolPolicy | None = None, **fields: Any) -> BaseTool:
    """A copy of a tool, of any kind, with another policy; the tool itself stays as it is.

    Args:
        tool: a tool, or a function to make one of.
        policy: the new policy; the tool's own if not given.
        fields: fields of that policy to change.

    Raises:
        DefinitionError: a field does not exist or its value makes no sense.
    """
    original = as_tool_object(tool)
    copy = original.model_copy()
    attach_policy(copy, revised(policy if policy is not None else policy_of(original), fields))
    return copy

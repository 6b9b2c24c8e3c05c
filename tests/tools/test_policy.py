"""Policies: what they refuse, what they decide, and how every kind of tool gets one."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import BaseTool as LangChainBaseTool
from langchain_core.tools import Tool
from langchain_core.tools import tool as langchain_tool
from tool_calls import run_sync

from agentkit.errors import DefinitionError
from agentkit.tools import ToolPolicy, policy_of, tool, with_policy


class Foreign(LangChainBaseTool):
    name: str = "foreign"
    description: str = "Foreign."
    calls: int = 0

    def _run(self, x: int) -> int:
        self.calls += 1
        return x


def function(x: int) -> int:
    """Do."""
    return x


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("timeout", 0, "a number of more than 0, or None for no limit"),
        ("timeout", -1.5, "more than 0"),
        ("timeout", "30", "a number"),
        ("timeout", True, "a number"),
        ("timeout", float("nan"), "a number"),
        ("timeout", float("inf"), "None for no limit"),
        ("retries", -1, "a whole number of at least 0"),
        ("retries", 1.0, "a whole number"),
        ("retries", None, "a whole number"),
        ("retry_on", "ValueError", "exception classes, or a function"),
        ("retry_on", (ValueError, "x"), "exception classes"),
        ("retry_on", (KeyboardInterrupt,), "exception classes"),
        ("retry_on", 3, "exception classes"),
        ("initial_delay", -1, "at least 0"),
        ("backoff_factor", 0.5, "at least 1"),
        ("max_delay", None, "at least 0"),
        ("jitter", "yes", "True or False"),
        ("on_crash", "retry", "'unknown', 'rerun', 'ask' or a function"),
        ("on_crash", None, "'unknown', 'rerun', 'ask' or a function"),
        ("on_error", "ignore", "'report', 'hide', 'raise' or a function"),
        ("on_error", ValueError, "or a function"),
        ("sequential", 1, "True or False"),
        ("group", "", "a name, or None"),
        ("group", 3, "a name, or None"),
        ("limit", 0, "at least 1"),
        ("limit", True, "a whole number"),
        ("writes", "notes", r"a tuple of state keys: writes=\('notes',\)"),
        ("writes", ("notes", 3), "a tuple of state keys"),
        ("writes", 3, "a tuple of state keys"),
        ("max_output", 0, "at least 1"),
        ("dedupe", None, "True or False"),
        ("on_replay", "again", "'rerun', 'reuse'"),
        ("on_replay", len, "'rerun', 'reuse'"),
        ("transactional", "yes", "True or False"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_naming_field_and_fix(field, value, wanted):
    extra = {"limit": 1} if field == "group" else {}
    with pytest.raises(DefinitionError, match=rf"^policy: {field}=.* makes no sense; give .*{wanted}") as caught:
        ToolPolicy(**{field: value}, **extra)
    assert len(str(caught.value)) < 300


def test_every_field_is_checked():
    """A field whose nonsense is taken would fail in the middle of a run instead."""

    class Nonsense:
        pass

    for field in fields(ToolPolicy):
        with pytest.raises(DefinitionError, match=f"policy: {field.name}="):
            ToolPolicy(**{field.name: Nonsense()})


def test_a_group_needs_a_limit():
    with pytest.raises(DefinitionError, match="group='db' does nothing alone; add limit="):
        ToolPolicy(group="db")
    assert ToolPolicy(group="db", limit=2).limit == 2


def test_a_policy_is_frozen_and_has_no_positional_fields():
    with pytest.raises(FrozenInstanceError):
        ToolPolicy().timeout = 3
    with pytest.raises(TypeError):
        ToolPolicy(3)


def test_collections_are_taken_for_what_they_mean():
    policy = ToolPolicy(writes=["a", "b"], retry_on=ValueError)
    assert (policy.writes, policy.retry_on) == (("a", "b"), (ValueError,))
    assert ToolPolicy(retry_on=[ValueError, OSError]).retry_on == (ValueError, OSError)
    assert hash(policy) == hash(ToolPolicy(writes=("a", "b"), retry_on=(ValueError,)))


def test_which_errors_are_tried_again_and_how_often():
    by_class = ToolPolicy(retries=2, retry_on=(OSError,))
    by_function = ToolPolicy(retries=2, retry_on=lambda error: "again" in str(error))
    assert [by_class.should_retry(ConnectionError(), attempt) for attempt in (1, 2, 3)] == [True, True, False]
    assert not by_class.should_retry(ValueError(), 1)
    assert by_function.should_retry(ValueError("once again"), 1)
    assert not by_function.should_retry(ValueError("never"), 1)
    assert not ToolPolicy().should_retry(OSError(), 1)


def test_the_wait_grows_to_its_maximum():
    policy = ToolPolicy(initial_delay=1, backoff_factor=3, max_delay=10, jitter=False)
    assert [policy.delay(attempt) for attempt in (1, 2, 3, 4, 9_999)] == [1, 3, 9, 10, 10]
    assert ToolPolicy(initial_delay=0, jitter=False).delay(5) == 0


@given(st.integers(1, 50))
def test_jitter_takes_at_most_half_of_the_wait(attempt):
    whole = ToolPolicy(jitter=False).delay(attempt)
    assert whole / 2 <= ToolPolicy().delay(attempt) <= whole


TOOLS = {
    "function": lambda: function,
    "ours": lambda: tool(function),
    "langchain": lambda: langchain_tool(function),
    "subclass": Foreign,
    "one text": lambda: Tool("upper", str.upper, "Upper."),
    "headless": lambda: tool(name="headless", description="d", args_schema={"type": "object", "properties": {}}),
}


@pytest.mark.parametrize("kind", TOOLS)
def test_every_kind_of_tool_gets_a_policy_and_the_original_keeps_its_own(kind):
    original = TOOLS[kind]()
    policy = ToolPolicy(timeout=3, sequential=True)
    changed = with_policy(original, policy)
    assert policy_of(changed) == policy
    assert policy_of(with_policy(changed, timeout=5)) == ToolPolicy(timeout=5, sequential=True)
    assert changed is not original
    if kind != "function":
        assert policy_of(original) == ToolPolicy()
        assert (changed.name, changed == original) == (original.name, True)
        assert repr(changed) == repr(original)


def test_a_copy_of_a_tool_keeps_its_policy():
    made = with_policy(Foreign(), timeout=3)
    for same in (made.model_copy(), made.model_copy(update={"name": "other"}), copy.copy(made), copy.deepcopy(made)):
        assert policy_of(same).timeout == 3
    assert policy_of(pickle.loads(pickle.dumps(made))).timeout == 3


def test_a_tool_with_a_policy_runs_as_before_and_does_not_touch_the_original():
    original = Foreign()
    changed = with_policy(original, retries=1)
    assert run_sync(changed, {"x": 1}) == 1
    assert (original.calls, changed.calls) == (0, 1)


def test_an_unknown_policy_field_is_refused():
    with pytest.raises(DefinitionError, match=r"no field 'timeuot'; the fields are timeout, retries"):
        with_policy(Foreign(), timeuot=3)
    with pytest.raises(DefinitionError, match="timeout=0 makes no sense"):
        with_policy(Foreign(), timeout=0)

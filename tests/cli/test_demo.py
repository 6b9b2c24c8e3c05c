import re

from agentkit.cli import _demo
from agentkit.cli._demo_steps import STEPS, Step


def test_the_demonstration_holds_twice_and_says_where_the_data_is(agentkit):
    for _ in range(2):
        said = agentkit("demo")
        assert said.code == 0, said
        assert re.search(r"^   ✗", said.out, re.MULTILINE) is None
        assert len(re.findall(r"^   ✓", said.out, re.MULTILINE)) == 11
        assert re.search(r"^All 5 steps held, in \d+\.\d s\.$", said.out, re.MULTILINE)
        assert re.search(r"Postgres: \S+, database \w+, user demo-\w+, \d threads", said.out)


async def breaks(scene):
    raise RuntimeError("the reducer lost an item")


async def does_not_hold(scene):
    return [("this holds", True), ("this does not", False)]


def test_a_step_that_does_not_hold_ends_the_demonstration_with_1_and_the_others_are_still_shown(agentkit, monkeypatch):
    played = [Step(title="It breaks", act=breaks), Step(title="It fails", act=does_not_hold), STEPS[1]]
    monkeypatch.setattr(_demo, "STEPS", played)
    said = agentkit("demo")
    assert said.code == 1
    assert "✗ RuntimeError: the reducer lost an item" in said.out
    assert "✗ this does not" in said.out
    assert "✓ the conversation went on" in said.out
    assert "2 of 4 steps did not hold" in said.out

"""`agentkit demo`: the story of what an agent has to survive, played on a real Postgres."""

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from agentkit.cli._demo_steps import STEPS, Checks, Scene, Step
from agentkit.cli._failures import FAILED, first_line
from agentkit.cli._find import ready_made
from agentkit.cli._view import View
from agentkit.memory import aopen_memory

__all__ = ["demo"]


def demo() -> int:
    """Play all steps; 0 if every claim held, else 1."""
    return asyncio.run(_play(View()))


async def _play(view: View) -> int:
    began = time.monotonic()
    view.say("agentkit demo: what an agent has to survive", "bold")
    view.say(
        "The database is a real Postgres. The model is no LLM: it matches patterns, so nothing here needs a key.", "dim"
    )
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(aopen_memory())
        scene = await Scene.set(memory, view, stack)
        held = [await _step(number, step, scene) for number, step in enumerate(STEPS, 1)]
    held.append(await _kept(scene))
    took = time.monotonic() - began
    view.say("")
    if not all(held):
        view.say(f"{held.count(False)} of {len(held)} steps did not hold (lines marked ✗)", "red")
        return FAILED
    view.say(f"All {len(held)} steps held, in {took:.1f} s.", "green")
    view.say(_next(scene.user))
    return 0


async def _step(number: int, step: Step, scene: Scene) -> bool:
    scene.view.say(f"\n{number}. {step.title}", "bold")
    try:
        checks = await step.act(scene)
    except Exception as error:  # noqa: BLE001  the next steps are still worth seeing; this one did not hold
        checks = [(f"{type(error).__name__}: {first_line(error)}", False)]
    return _told(checks, scene.view)


async def _kept(scene: Scene) -> bool:
    """The database is closed and opened again: what was said must be there."""
    view = scene.view
    view.say(f"\n{len(STEPS) + 1}. Where the data is", "bold")
    facts = conninfo_to_dict(scene.memory.url)
    where = facts.get("host") or facts.get("hostaddr") or "local"
    view.say(f"   Postgres: {where}, database {facts.get('dbname')}, user {scene.user}, {len(scene.threads)} threads")
    async with aopen_memory() as again:
        found = [await again.checkpointer.aget_tuple({"configurable": {"thread_id": each}}) for each in scene.threads]
    return _told([("opened again, it still has every thread", all(found))], view)


def _told(checks: Checks, view: View) -> bool:
    for claim, held in checks:
        view.say(f"   {'✓' if held else '✗'} {claim}", "green" if held else "red")
    return all(held for _, held in checks)


def _next(user: str) -> str:
    """What to look at now, as it is called from here."""
    program = Path(sys.executable).with_name("agentkit")
    here = program.is_relative_to(Path.cwd()) and program.exists()
    agentkit = str(program.relative_to(Path.cwd())) if here else "agentkit"
    return f"""\
Next:
  {agentkit} chat
      talk to the assistant; with --model openai:gpt-5.5 it has a language model
  {agentkit} chat --user {user}
      what this demonstration left: /threads, /memory, /resume
  {ready_made() / "assistant.py"}
      the agent you saw; start from it"""

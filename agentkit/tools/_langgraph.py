"""The private names of langgraph that the tools package needs: here and nowhere else.

Each is looked up once, at import. Where a later langgraph has moved one, the feature behind it is switched off with one
warning, and everything else keeps working.
"""

import logging
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import Runtime

logger = logging.getLogger(__name__)

CONF: Final = "configurable"
_NAMES = {
    "READ": "CONFIG_KEY_READ",
    "READ_STATE": "CONFIG_KEY_READ_STATE",
    "CHECKPOINTER": "CONFIG_KEY_CHECKPOINTER",
    "DURABILITY": "CONFIG_KEY_DURABILITY",
    "RESUMING": "CONFIG_KEY_RESUMING",
    "RUNTIME": "CONFIG_KEY_RUNTIME",
    "CALL": "CONFIG_KEY_CALL",
    "SCRATCHPAD": "CONFIG_KEY_SCRATCHPAD",
}


def _lookup() -> dict[str, str]:
    try:
        from langgraph._internal import _constants as constants
    except ImportError:  # pragma: no cover - a langgraph we do not know
        logger.warning("this langgraph has no known internals: durable tool calls and parallel interrupts are off")
        return {}
    found = {short: getattr(constants, name, None) for short, name in _NAMES.items()}
    missing = sorted(_NAMES[short] for short, value in found.items() if value is None)
    if missing:  # pragma: no cover - a langgraph we do not know
        logger.warning("this langgraph lacks %s: what depends on it is off", ", ".join(missing))
    return {short: value for short, value in found.items() if value is not None}


_KEYS = _lookup()
_READ = _KEYS.get("READ", "")
_READ_STATE = _KEYS.get("READ_STATE", "")
_CHECKPOINTER = _KEYS.get("CHECKPOINTER", "")
_DURABILITY = _KEYS.get("DURABILITY", "")
_RESUMING = _KEYS.get("RESUMING", "")
_RUNTIME = _KEYS.get("RUNTIME", "")
_CALL = _KEYS.get("CALL", "")
_SCRATCHPAD = _KEYS.get("SCRATCHPAD", "")
_NO_RUNTIME: Runtime[Any] = Runtime()


def runtime_of(config: RunnableConfig) -> Runtime[Any]:
    """The runtime of the node that runs with this config; an empty one outside a graph."""
    return cast("Runtime[Any]", config.get(CONF, {}).get(_RUNTIME) or _NO_RUNTIME)


def state_of(config: RunnableConfig) -> Any:
    """The state that this node would get from an edge; {} outside a graph."""
    conf = config.get(CONF, {})
    if read_state := conf.get(_READ_STATE):
        return read_state()
    if read := conf.get(_READ):
        return read(list(read.args[1]), True)
    return {}


def checkpointer_of(config: RunnableConfig) -> BaseCheckpointSaver[Any] | None:
    """The saver that keeps the graph which the node with this config belongs to, or None.

    A subgraph compiled with `checkpointer=False` keeps nothing, though its config still names its parent's saver.
    """
    conf = config.get(CONF, {})
    saver = conf.get(_CHECKPOINTER)
    if not isinstance(saver, BaseCheckpointSaver):
        return None
    loop = getattr(getattr(conf.get(_CALL), "keywords", {}).get("schedule_task"), "__self__", None)
    return saver if getattr(loop, "checkpointer", saver) is not None else None


def durability_of(config: RunnableConfig) -> str:
    """When this run's checkpoints are written: "sync", "async" or "exit"."""
    return str(config.get(CONF, {}).get(_DURABILITY) or "async")


def is_resuming(config: RunnableConfig) -> bool:
    """Whether this step may have run before: in this or in another process, up to an interrupt, a crash or an error.

    langgraph says so for the first step of an invocation and takes the word back after it: later steps are new.
    """
    return bool(config.get(CONF, {}).get(_RESUMING, not _RESUMING))


def scratchpad_of(config: RunnableConfig) -> Any:
    """What langgraph keeps for the task that runs with this config, or None where its form is not the known one."""
    scratchpad = config.get(CONF, {}).get(_SCRATCHPAD)
    return scratchpad if hasattr(scratchpad, "interrupt_counter") and hasattr(scratchpad, "resume") else None


def answers_given(config: RunnableConfig) -> int:
    """How many questions of the task that runs with this config have an answer."""
    scratchpad = config.get(CONF, {}).get(_SCRATCHPAD)
    return len(getattr(scratchpad, "resume", ()))


def can_run_tasks(config: RunnableConfig) -> bool:
    """Whether a langgraph task can be started from the node that runs with this config."""
    return bool(config.get(CONF, {}).get(_CALL))


def plain_keys(config: RunnableConfig) -> frozenset[str]:
    """The state keys of this graph that hold one value a step, without a reducer."""
    from langgraph.channels import LastValue

    read = config.get(CONF, {}).get(_READ)
    if read is None:
        return frozenset()
    return frozenset(key for key, channel in read.args[1].items() if isinstance(channel, LastValue))


def nested_at(config: RunnableConfig, namespace: str, *, resuming: bool) -> RunnableConfig:
    """What to run a graph with, inside the node of this config, so that its checkpoints are in `namespace`.

    `resuming` says whether it goes on from its last checkpoint there, or begins with its input on top of it.
    """
    own = {"checkpoint_ns": namespace, "checkpoint_id": None, _RESUMING: resuming}
    return {"configurable": {**config.get("configurable", {}), **own}}

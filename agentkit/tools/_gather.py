"""Running several calls inside one node, and waiting until each of them has ended."""

import contextvars
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphInterrupt

from agentkit.tools._batch import Batch
from agentkit.tools._langgraph import can_run_tasks
from agentkit.tools._outcome import Outcome, results_in, results_of

_MIN_WORKERS_FOR_TASKS = 3  # with fewer, the node that waits for its tasks holds the worker they need
_POOL_SIZE = 32


def as_tasks(batch: Batch) -> bool:
    """Whether each call is to run as a langgraph task: where a checkpointer could resume one of several."""
    limit = batch.config.get("max_concurrency")
    return (
        batch.saver is not None
        and len(batch.calls) > 1
        and (limit is None or limit >= _MIN_WORKERS_FOR_TASKS)
        and can_run_tasks(batch.config)
    )


def shown(outcome: Outcome, messages_key: str) -> dict[str, Any]:
    """What a task that stands for a call returns: shaped as an update of the node, since it is streamed and stored."""
    kept = [*outcome.items]
    if outcome.result is not None and outcome.result not in results_in(outcome.items, messages_key):
        kept.append(outcome.result)
    items = [
        item.model_copy(update={"id": str(uuid.uuid4())}) if isinstance(item, ToolMessage) and not item.id else item
        for item in kept
    ]
    return {messages_key: items}


def outcome_shown(batch: Batch, position: int, value: dict[str, Any]) -> Outcome:
    """The outcome behind the value of a task, also one that an earlier run stored."""
    items = tuple(value[batch.messages_key])
    results = results_of(items, batch.calls[position], batch.messages_key)
    return Outcome(result=results[0] if results else None, items=items)


def caught(work: Callable[[], Any]) -> Any:
    """What `work` returns, or the exception it raises."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - looked at when all have ended
        return error


def settled(ended: Sequence[Any], read: Callable[[int, Any], Outcome] | None = None) -> list[Outcome]:
    """The outcomes of calls that have all ended, in call order; else what has to be raised.

    An exception goes before questions: the first in call order. The questions of all calls are raised together, and
    taken from the exceptions of the tasks, where langgraph would list them a second time.
    """
    for error in ended:
        if isinstance(error, BaseException) and not isinstance(error, GraphInterrupt):
            raise error
    questions = [error for error in ended if isinstance(error, GraphInterrupt)]
    if questions:
        asked = tuple(question for error in questions for question in error.args[0])
        for error in questions:
            error.args = ((),)
        raise GraphInterrupt(asked)
    return [value if read is None else read(position, value) for position, value in enumerate(ended)]


def in_threads(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run all, in parallel, and return what each returned or raised, in order.

    The pool is shared and bounded; what no worker has taken up, this thread runs itself. So it cannot deadlock, however
    deep agents call agents in tools.
    """
    if not works:
        return []
    futures: list[Future[Any]] = [_pool().submit(contextvars.copy_context().run, caught, work) for work in works[1:]]
    ended = [caught(works[0])]
    for work, future in zip(works[1:], futures, strict=True):
        ended.append(caught(work) if future.cancel() else future.result())
    return ended


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_POOL_SIZE, thread_name_prefix="agentkit-tools")

"""Once more: what may be done twice is done again when the connection is lost in the middle of it."""

import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import psycopg
from psycopg_pool import PoolTimeout

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger("agentkit.memory")

_SHUT_DOWN = ("57P01", "57P02", "57P03")  # by an administrator, by a crash, not yet started


def is_lost(error: psycopg.OperationalError) -> bool:
    """Whether it was the connection that failed, not the statement, nor the wait for a connection."""
    if isinstance(error, PoolTimeout):
        return False
    return error.sqlstate is None or error.sqlstate.startswith("08") or error.sqlstate in _SHUT_DOWN


def patient(method: Callable[P, R]) -> Callable[P, R]:
    """A method that is called once more when its connection is lost. It must be idempotent."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except psycopg.OperationalError as error:
            if not is_lost(error):
                raise
            logger.warning("a connection was lost in %s; it is done once more", method.__qualname__)
            return method(*args, **kwargs)

    return call


def apatient(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """As `patient`."""

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await method(*args, **kwargs)
        except psycopg.OperationalError as error:
            if not is_lost(error):
                raise
            logger.warning("a connection was lost in %s; it is done once more", method.__qualname__)
            return await method(*args, **kwargs)

    return call

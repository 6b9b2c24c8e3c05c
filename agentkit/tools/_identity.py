"""Whose memory is it: the one place that answers, from what a client cannot forge."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from langgraph.config import get_config

from agentkit.errors import InjectionError

_UNSAFE = re.compile("[.%*\x00-\x1f\x7f\ud800-\udfff]")
_LONGEST = 256


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who a run acts for.

    `kind` is "user" for a person (or "anonymous" where nobody is known, then `id` is the thread's).
    """

    kind: Literal["user", "anonymous"]
    id: str

    @property
    def namespace(self) -> tuple[str, str]:
        """Two labels for the store. No two identities share them, and an anonymous one is never a user's."""
        return (self.kind, _label(self.id))


def user_identity(user: str) -> Identity:
    """The identity of the user with this id, as `identity` gives it during that user's runs."""
    return Identity(kind="user", id=user)


def identity(runtime: object) -> Identity:
    """Who the run behind `runtime` (a ToolRuntime or langgraph Runtime) acts for.

    On a server: the authenticated user, or, without one, nobody: an anonymous identity of the thread. What a client
    sets, in `context` or `configurable`, never counts there. Off the server: `context.user_id` (dataclass, pydantic
    model or dict), else `user_id` in `configurable`, else an anonymous identity of the thread, so that people are
    never mixed up where a program forgot to say who is who.

    Raises:
        InjectionError: nobody is known and there is no thread either, or the user id is no str, int or UUID.
    """
    server = getattr(runtime, "server_info", None)
    configurable = _configurable(runtime)
    if server is not None:
        found = _authenticated(getattr(server, "user", None))
    else:
        found = _text(_field(getattr(runtime, "context", None), "user_id"), "context.user_id")
        found = found or _text(configurable.get("user_id"), "configurable.user_id")
    if found is not None:
        return user_identity(found)
    thread = getattr(getattr(runtime, "execution_info", None), "thread_id", None) or configurable.get("thread_id")
    if not thread:
        raise InjectionError(
            "nobody knows whose memory this is: pass user_id in the run's context, or a thread_id in configurable"
        )
    return Identity(kind="anonymous", id=str(thread))


def _configurable(runtime: object) -> Mapping[str, object]:
    config = getattr(runtime, "config", None)
    if config is None:
        try:
            config = get_config()
        except RuntimeError:  # outside of a run
            return {}
    found: Mapping[str, object] = config.get("configurable") or {}
    return found


def _authenticated(user: object) -> str | None:
    if user is None or _field(user, "is_authenticated") is False:
        return None
    return _text(_field(user, "identity"), "the server's user")


def _field(holder: object, name: str) -> object:
    # servers' users may know attributes only, or look like dicts without being any
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


def _text(value: object, where: str) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str | UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise InjectionError(f"{where} is a {type(value).__name__}; a user id is a str, int or UUID")


def _label(text: str) -> str:
    """`text` as a namespace label: reversible where short, else its start and a digest."""
    label = _UNSAFE.sub(lambda match: f"%{ord(match[0]):04X}", text)
    if len(label) <= _LONGEST:
        return label
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{label[:64]}%-{digest}"

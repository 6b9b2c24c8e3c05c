"""An example of authentication for LangGraph Server: bearer tokens, and each user sees only what is their own.

    "auth": {"path": "agentkit.server.auth:auth"}
    AGENTKIT_TOKENS='{"a long random token": "ann", "another one": "ben"}'

Threads, runs and crons belong to the user who made them; others get a 404. Assistants can be read by every user and
changed by none. Of the store, users reach the namespaces that agents keep their memories in
(`agentkit.tools.identity`), and nothing else. Without AGENTKIT_TOKENS nobody gets in.

For a real deployment, copy this file and check the tokens of your identity provider in `authenticate`.
"""

import hmac
import json
import os
from collections.abc import Mapping
from typing import Any

from agentkit.errors import DefinitionError, MissingExtraError
from agentkit.tools._identity import user_identity

try:
    from langgraph_sdk import Auth
except ImportError as error:
    raise MissingExtraError(
        "authentication needs the SDK of LangGraph Server: pip install 'agentkit[server]'"
    ) from error

auth = Auth()


def _users() -> Mapping[str, str]:
    try:
        users = json.loads(os.environ.get("AGENTKIT_TOKENS") or "{}")
    except ValueError:
        users = None
    if not isinstance(users, dict) or not all(isinstance(user, str) and user for user in users.values()):
        raise DefinitionError('AGENTKIT_TOKENS must be a JSON object of tokens and users: {"token": "ann"}')
    return users


_USERS = _users()


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """The user whose token the request carries, as `Authorization: Bearer TOKEN`; else 401."""
    scheme, _, token = (authorization or "").partition(" ")
    given = token.strip().encode()
    found = [user for known, user in _USERS.items() if hmac.compare_digest(known.encode(), given)]
    if scheme.lower() != "bearer" or not found:
        raise Auth.exceptions.HTTPException(status_code=401, detail="send a valid token: Authorization: Bearer TOKEN")
    return {"identity": found[0], "is_authenticated": True}


@auth.on
async def own_only(ctx: Auth.types.AuthContext, value: Any) -> Auth.types.FilterType:
    """What is made is marked with its owner, and only what is marked so is seen."""
    owner = {"owner": ctx.user.identity}
    if isinstance(value, dict):
        metadata = value.setdefault("metadata", {})
        if isinstance(metadata, dict):
            metadata.update(owner)  # in place: the server keeps the very object
    return owner


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001 - the SDK passes both by name
    """Every user may use the assistants that the server has, and nobody changes them."""
    return ctx.action in ("read", "search")


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: Any) -> bool:
    """Users reach their own namespaces; listing and searching without one is narrowed to the memories of the user."""
    own = user_identity(ctx.user.identity).namespace
    namespace = tuple(value.get("namespace") or ())
    if not namespace and ctx.action in ("search", "list_namespaces"):
        value["namespace"] = ("memories", *own)
        return True
    return own in (namespace[:2], namespace[1:3])

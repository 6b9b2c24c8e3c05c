"""What threads are stored as: langgraph's serializer, which says so when something would not come back."""

import base64
import binascii
import os
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentkit.errors import DefinitionError, MissingExtraError, NotStorableError
from agentkit.memory._squeeze import squeeze, unsqueeze

_KEY_BYTES = (16, 24, 32)
_NONCE = 12
_found: set[type] = set()  # classes that are known to come back


class Serializer(JsonPlusSerializer):
    """langgraph's serializer, which refuses objects of classes it could not find again.

    Such an object would silently come back as a dict or a string: its class is nested in another one or in a function.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """The object's type tag and bytes. Raises NotStorableError for what would not come back."""
        _check(obj, "the value")
        try:
            return squeeze(*super().dumps_typed(obj))
        except NotStorableError:
            raise
        except (TypeError, ValueError) as error:  # MsgpackEncodeError is a TypeError
            raise NotStorableError(f"a {type(obj).__qualname__} cannot be stored: {str(error)[:200]}") from error

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The object again."""
        return super().loads_typed(unsqueeze(*data))


def _check(value: Any, path: str) -> None:
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(item) not in _PLAIN:
                _check(item, f"{path}[{key!r}]")
    elif kind in (list, tuple, set):
        for index, item in enumerate(value):
            if type(item) not in _PLAIN:
                _check(item, f"{path}[{index}]")
    elif kind not in _found and kind not in _PLAIN and not isinstance(value, BaseMessage):
        if _is_rebuilt_by_name(value) and not _comes_back(kind):
            raise NotStorableError(
                f"{path} is a {kind.__module__}.{kind.__qualname__}, which could not be found again; "
                "define the class at the top level of its module"
            )
        _found.add(kind)


_PLAIN = frozenset({str, int, float, bool, type(None), bytes})


def _is_rebuilt_by_name(value: Any) -> bool:
    return is_dataclass(value) or isinstance(value, Enum) or hasattr(value, "model_dump") or hasattr(value, "_asdict")


def _comes_back(kind: type) -> bool:
    try:
        return getattr(import_module(kind.__module__), kind.__name__, None) is kind
    except ImportError:
        return False


def serializer(key: str | bytes | None) -> SerializerProtocol:
    """The serializer for threads, encrypting if there is a key."""
    key = key or os.environ.get("AGENTKIT_ENCRYPTION_KEY")
    return EncryptedSerializer(_AesGcm(_key_bytes(key)), Serializer()) if key else Serializer()


def _key_bytes(key: str | bytes) -> bytes:
    if isinstance(key, str):
        try:
            key = base64.b64decode(key, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            key = b""
    if len(key) not in _KEY_BYTES:
        raise DefinitionError(
            "the encryption key must be 16, 24 or 32 bytes, as base64 in AGENTKIT_ENCRYPTION_KEY; "
            "make one with: python -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'"
        )
    return key


class _AesGcm(CipherProtocol):
    """AES-GCM: what was changed in the database is noticed when it is read."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise MissingExtraError("encryption needs pip install 'agentkit[encryption]'") from error
        self._cipher = AESGCM(key)

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """The cipher's name and the encrypted bytes."""
        nonce = os.urandom(_NONCE)
        return "agentkit-aes-gcm", nonce + self._cipher.encrypt(nonce, plaintext, None)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """The bytes again. Raises NotStorableError with a wrong key, or if they were changed."""
        from cryptography.exceptions import InvalidTag

        if ciphername != "agentkit-aes-gcm":
            raise NotStorableError(f"the thread is encrypted with {ciphername!r}, which agentkit does not know")
        try:
            return self._cipher.decrypt(ciphertext[:_NONCE], ciphertext[_NONCE:], None)
        except InvalidTag:
            raise NotStorableError(
                "the thread cannot be decrypted: AGENTKIT_ENCRYPTION_KEY is not the key it was written with"
            ) from None

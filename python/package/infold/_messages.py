"""Messages of SDKs as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ._errors import UsageError

# How JSON is written by the clients: compact, and text as it is.
_PLAIN = {"separators": (",", ":"), "allow_nan": False}


def encode_lines(messages: Iterable[Any]) -> bytes:
    """Returns messages as JSON Lines."""
    return b"".join(
        _encode(message, number) + b"\n" for number, message in enumerate(messages, 1)
    )


def encode_conversation(messages: Any) -> bytes:
    """Returns what `infold.fold` takes as a transcript: messages, or a request with them."""
    if isinstance(messages, (bytes, bytearray, str)):
        raise UsageError(
            "messages are a list, not a text", "json.loads() turns JSON into a list of messages"
        )
    if isinstance(messages, Mapping):
        return _encode(messages, None)
    if not isinstance(messages, Iterable):
        raise UsageError(f"messages are a list, not of type {type(messages).__name__}")
    return encode_lines(messages)


def decode(text: bytes | str) -> Any:
    """Returns what a JSON text stands for."""
    return json.loads(text)


def _encode(message: Any, number: int | None) -> bytes:
    if isinstance(message, (bytes, bytearray)):
        return _check_json(bytes(message), number)
    plain = _to_plain(message)
    if isinstance(plain, dict) and plain.get("type") == "message" and "stop_reason" in plain:
        # A reply of Anthropic's API has more than may be sent back.
        plain = {"role": plain["role"], "content": plain["content"]}
    try:
        text = json.dumps(plain, default=_to_plain_or_fail, ensure_ascii=False, **_PLAIN)
        return text.encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8; JSON can escape it.
        return json.dumps(plain, default=_to_plain_or_fail, **_PLAIN).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{_name(number)} cannot be written as JSON: {error}") from None


def _check_json(text: bytes, number: int | None) -> bytes:
    try:
        json.loads(text)
    except ValueError as error:
        raise UsageError(f"{_name(number)} is not JSON: {error}") from None
    # A line break can only stand between tokens.
    return text.replace(b"\n", b" ").replace(b"\r", b" ")


def _name(number: int | None) -> str:
    return "the request" if number is None else f"message {number}"


def _to_plain(value: Any) -> Any:
    """Converts what JSON does not know: an object of an SDK, a mapping, an iterable."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        # As the SDKs themselves send it: what the server did not say is left out.
        exclude = getattr(value, "__api_exclude__", None)
        return dump(exclude_unset=True, mode="json", exclude=exclude)
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict) and not isinstance(value, type):
        return to_dict()
    if isinstance(value, (dict, list, str)):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    return value


def _to_plain_or_fail(value: Any) -> Any:
    plain = _to_plain(value)
    if plain is not value:
        return plain
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("it holds bytes; the APIs take them as base64 text")
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"it holds a value of type {type(value).__name__}")

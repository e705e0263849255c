"""Folding without a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _infold
from ._messages import decode, encode_conversation
from ._options import fold_options, warn_of
from ._view import View


def fold(
    messages: Iterable[Any] | Mapping[str, Any],
    window: int | str | None = None,
    *,
    format: str | None = None,
    **options: Any,
) -> View:
    """Folds messages to fit a window, as `infold fold` does; nothing is stored."""
    native = fold_options({"window": window, **options})
    text, outcome = _infold.fold(encode_conversation(messages), native, format)
    outcome = decode(outcome)
    warn_of(outcome)
    return View(decode(text), outcome)

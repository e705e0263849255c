"""The options of a fold, as the native half takes them."""

from __future__ import annotations

import warnings
from typing import Any

from ._errors import FoldWarning, UsageError

_NAMES = frozenset(
    (
        "window",
        "model",
        "strategy",
        "threshold",
        "max_tokens",
        "max_bytes",
        "summarizer",
        "summarizer_timeout",
        "force",
    )
)
_NUMBERS = ("window", "max_tokens", "max_bytes")


def fold_options(options: dict[str, Any]) -> dict[str, Any]:
    """Checks the names of options and converts their values."""
    unknown = sorted(set(options) - _NAMES)
    if unknown:
        raise UsageError(
            f"there is no option {', '.join(unknown)}", f"options: {', '.join(sorted(_NAMES))}"
        )
    native = dict.fromkeys(_NAMES)
    native.update(options)
    native["force"] = bool(options.get("force"))
    for name in _NUMBERS:
        if native[name] is not None:
            native[name] = str(native[name])
    summarizer = native["summarizer"]
    if callable(summarizer):
        native["summarizer"] = (summarizer, getattr(summarizer, "__name__", type(summarizer).__name__))
    elif summarizer is not None and not isinstance(summarizer, str):
        raise UsageError("a summarizer is a name or a function")
    return native


def warn_of(outcome: dict[str, Any]) -> None:
    """Warns of what went differently than asked for."""
    for text in [*outcome.get("warnings", ()), *outcome.get("errors", ())]:
        warnings.warn(text, FoldWarning, stacklevel=3)

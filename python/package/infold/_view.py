"""What a model is shown."""

from __future__ import annotations

from typing import Any


class View(list):
    """A list of messages to send, as dictionaries of the same API.

    `outcome` says what was folded to get it.
    """

    outcome: dict[str, Any]

    def __init__(self, messages: Any = (), outcome: dict[str, Any] | None = None) -> None:
        super().__init__(messages)
        self.outcome = outcome or {}

    def __reduce__(self):
        return (View, (list(self), self.outcome))

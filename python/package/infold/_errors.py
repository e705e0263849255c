"""The exceptions of Infold. Each has a `hint`: what to do about it."""

from __future__ import annotations


class Error(Exception):
    """A call failed; `hint` says what to do about it, if that is known."""

    hint: str | None

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nhint: {self.hint}" if self.hint else message

    def __reduce__(self):
        return (type(self), (self.args[0], self.hint))


class UsageError(Error, ValueError):
    """An argument is wrong, or a message is none."""


class RefusedError(Error):
    """It was understood and not done, such as an undo where there is nothing to undo."""


class TooLargeError(Error):
    """What cannot be folded is larger than the window; nothing was folded."""


class StoreError(Error):
    """The contexts directory could not be read or written."""


class BusyError(StoreError):
    """Another process is writing to the task."""


class FoldWarning(UserWarning):
    """A fold was done differently from what was asked for, such as without the given summarizer."""

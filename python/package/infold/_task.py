"""Tasks: conversations that are kept."""

from __future__ import annotations

import datetime
import os
import pathlib
from collections.abc import Iterable
from typing import Any

from . import _infold
from ._errors import UsageError
from ._messages import decode, encode_lines
from ._options import fold_options, warn_of
from ._view import View


def contexts_directory(contexts: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """Returns the directory of the tasks: the given one, or the command's default."""
    if contexts is not None:
        return pathlib.Path(contexts)
    if named := os.environ.get("INFOLD_CONTEXTS"):
        return pathlib.Path(named)
    here = pathlib.Path("contexts")
    if (here / "tasks.db").is_file():
        return here
    data = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data):
        data = os.path.join(os.path.expanduser("~"), ".local", "share")
    return pathlib.Path(data, "infold", "contexts")


class Task:
    """A conversation in a contexts directory: everything said, and what a model is shown of it.

    It is opened for each call, so the command and other processes can use it in between.
    """

    def __init__(self, native: _infold.Task, contexts: pathlib.Path) -> None:
        self._native = native
        self._contexts = contexts

    @classmethod
    def create(
        cls,
        contexts: str | os.PathLike[str] | None = None,
        *,
        wire: str = "openai",
        model: str | None = None,
        provider: str | None = None,
        window: int | None = None,
        user: str | None = None,
        agent: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        redact: bool = False,
    ) -> Task:
        """Creates a task. `wire` is the form of its messages: openai, anthropic, responses, gemini or ollama."""
        place = contexts_directory(contexts)
        about = {
            "wire": wire,
            "model": model,
            "provider": provider,
            "window": window,
            "user": user,
            "agent": agent,
            "directory": None if directory is None else os.fspath(directory),
        }
        return cls(_infold.Task.create(os.fspath(place), redact, about), place)

    @classmethod
    def open(
        cls,
        task: str = "@",
        contexts: str | os.PathLike[str] | None = None,
        *,
        redact: bool = False,
    ) -> Task:
        """Opens a task by its id or the start of it; `@` is the newest."""
        place = contexts_directory(contexts)
        return cls(_infold.Task.open(os.fspath(place), redact, str(task)), place)

    @property
    def id(self) -> str:
        """The id."""
        return self._native.id

    @property
    def contexts(self) -> pathlib.Path:
        """The contexts directory."""
        return self._contexts

    def __repr__(self) -> str:
        return f"Task({self.id!r})"

    def info(self) -> dict[str, Any]:
        """Returns what is known of the task: sizes, status, model, directory."""
        return decode(self._native.info())

    def append(self, messages: Any, *, key: str | None = None) -> range:
        """Appends a message or several, all or none, and returns their numbers.

        With a key, doing it again appends nothing and returns the same numbers.
        """
        several = isinstance(messages, Iterable) and not isinstance(messages, (str, bytes, bytearray))
        if isinstance(messages, dict) or hasattr(messages, "model_dump") or not several:
            messages = [messages]
        ends = self._native.append(encode_lines(messages), key)
        return range(0) if ends is None else range(ends[0], ends[1] + 1)

    def view(self, at: int | str | datetime.datetime | None = None) -> View:
        """Returns what the model is shown, now or as it was at a message, an event (`e3`) or a time."""
        return View(decode(self._native.view(_target(at))))

    def manage(self, window: int | str | None = None, **options: Any) -> dict[str, Any]:
        """Folds as far as the window requires, and says what was done; undo() takes it back."""
        outcome = decode(self._native.manage(fold_options({"window": window, **options})))
        warn_of(outcome)
        return outcome

    def fold(
        self,
        messages: int | str | range | None = None,
        text: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Folds messages (`"4..8"`, `range(4, 9)`) behind a summary: the given text, or one that is written.

        Without a range: what manage() would fold.
        """
        native = fold_options(options)
        result = decode(self._native.condense(_span(messages), text, native))
        warn_of(result)
        return result

    condense = fold

    def unfold(self, fold: int | str) -> dict[str, Any]:
        """Opens a fold, such as `e3`."""
        return self._step("unfold", f"e{fold}" if isinstance(fold, int) else fold)

    def undo(self) -> dict[str, Any]:
        """Takes the newest step back."""
        return self._step("undo")

    def redo(self) -> dict[str, Any]:
        """Takes the newest undo back."""
        return self._step("redo")

    def rewind(
        self,
        to: int | str | datetime.datetime | None = None,
        *,
        before: int | str | datetime.datetime | None = None,
    ) -> dict[str, Any]:
        """Returns to an earlier message, event or time; what came later is hidden and not lost."""
        if (to is None) == (before is None):
            raise UsageError("give one of `to` and `before`")
        if to is None:
            return self._step("rewind-before", _target(before))
        return self._step("rewind-to", _target(to))

    def pin(self, message: int) -> dict[str, Any]:
        """Keeps a message and its round in view."""
        return self._step("pin", str(message))

    def note(self, text: str) -> dict[str, Any]:
        """Adds a text to every view."""
        return self._step("note", text)

    def unpin(self, pinned: int | str) -> dict[str, Any]:
        """Removes the pin of a message, or a note (`e3`)."""
        return self._step("unpin", str(pinned))

    def recall(self, messages: int | str | range) -> list[dict[str, Any]]:
        """Returns messages in full, hidden or not: `12`, `"12..40"`, `"12.."`, or those of a fold (`"e3"`)."""
        return decode(self._native.recall(_span(messages)))

    def search(self, text: str, **options: Any) -> list[dict[str, Any]]:
        """Finds messages of this task, as infold.search() does."""
        return search(text, contexts=self._contexts, task=self.id, **options)

    def _step(self, verb: str, target: str | None = None) -> dict[str, Any]:
        return decode(self._native.step(verb, target))


def search(
    text: str,
    *,
    contexts: str | os.PathLike[str] | None = None,
    task: str | None = None,
    exact: bool = False,
    regex: bool = False,
    hidden: bool = False,
    role: str | None = None,
    tool: str | None = None,
    file: str | None = None,
    since: str | datetime.datetime | None = None,
    until: str | datetime.datetime | None = None,
    limit: int = 20,
) -> list[dict[str, Any]]:
    """Finds messages of all tasks, hidden or not, as `infold search` does; the best come first."""
    options = {
        "text": text,
        "exact": exact,
        "regex": regex,
        "task": task,
        "hidden": hidden,
        "role": role,
        "tool": tool,
        "file": file,
        "since": _target(since),
        "until": _target(until),
        "limit": limit,
    }
    return decode(_infold.search(os.fspath(contexts_directory(contexts)), options))["hits"]


def tasks(
    contexts: str | os.PathLike[str] | None = None, *, limit: int | None = None
) -> list[dict[str, Any]]:
    """Lists the tasks of a contexts directory, the newest first."""
    return decode(_infold.list_tasks(os.fspath(contexts_directory(contexts)), limit))


def _target(at: int | str | datetime.datetime | None) -> str | None:
    if isinstance(at, datetime.datetime):
        return str(int(at.timestamp() * 1000))
    return None if at is None else str(at)


def _span(messages: int | str | range | None) -> str | None:
    if isinstance(messages, range):
        if messages.step != 1 or not messages:
            raise UsageError("a range of messages has one at least, and a step of 1")
        return f"{messages.start}..{messages.stop - 1}"
    return None if messages is None else str(messages)

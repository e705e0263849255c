import datetime
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

Strategy = Literal["infold", "roo", "gemini", "file", "truncate"]
Summarizer = str | Callable[[str, int], str]
Path = str | os.PathLike[str]
Point = int | str | datetime.datetime

__version__: str

class Error(Exception):
    hint: str | None
    def __init__(self, message: str, hint: str | None = None) -> None: ...

class UsageError(Error, ValueError): ...
class RefusedError(Error): ...
class TooLargeError(Error): ...
class StoreError(Error): ...
class BusyError(StoreError): ...
class FoldWarning(UserWarning): ...

class View(list[Any]):
    outcome: dict[str, Any]
    def __init__(self, messages: Iterable[Any] = (), outcome: dict[str, Any] | None = None) -> None: ...

def fold(
    messages: Iterable[Any] | Mapping[str, Any],
    window: int | str | None = None,
    *,
    model: str | None = None,
    strategy: Strategy | None = None,
    threshold: float | None = None,
    max_tokens: int | str | None = None,
    max_bytes: int | str | None = None,
    summarizer: Summarizer | None = None,
    summarizer_timeout: float | None = None,
    force: bool = False,
    format: str | None = None,
) -> View: ...
def search(
    text: str,
    *,
    contexts: Path | None = None,
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
) -> list[dict[str, Any]]: ...
def tasks(contexts: Path | None = None, *, limit: int | None = None) -> list[dict[str, Any]]: ...

class Task:
    @classmethod
    def create(
        cls,
        contexts: Path | None = None,
        *,
        wire: Literal["openai", "anthropic", "responses", "gemini", "ollama"] = "openai",
        model: str | None = None,
        provider: str | None = None,
        window: int | None = None,
        user: str | None = None,
        agent: str | None = None,
        directory: Path | None = None,
        redact: bool = False,
    ) -> Task: ...
    @classmethod
    def open(cls, task: str = "@", contexts: Path | None = None, *, redact: bool = False) -> Task: ...
    @property
    def id(self) -> str: ...
    @property
    def contexts(self) -> pathlib.Path: ...
    def info(self) -> dict[str, Any]: ...
    def append(self, messages: Any, *, key: str | None = None) -> range: ...
    def view(self, at: Point | None = None) -> View: ...
    def manage(
        self,
        window: int | str | None = None,
        *,
        model: str | None = None,
        strategy: Strategy | None = None,
        threshold: float | None = None,
        max_tokens: int | str | None = None,
        max_bytes: int | str | None = None,
        summarizer: Summarizer | None = None,
        summarizer_timeout: float | None = None,
        force: bool = False,
    ) -> dict[str, Any]: ...
    def fold(
        self,
        messages: int | str | range | None = None,
        text: str | None = None,
        *,
        window: int | str | None = None,
        model: str | None = None,
        strategy: Strategy | None = None,
        threshold: float | None = None,
        max_tokens: int | str | None = None,
        max_bytes: int | str | None = None,
        summarizer: Summarizer | None = None,
        summarizer_timeout: float | None = None,
    ) -> dict[str, Any]: ...
    condense = fold
    def unfold(self, fold: int | str) -> dict[str, Any]: ...
    def undo(self) -> dict[str, Any]: ...
    def redo(self) -> dict[str, Any]: ...
    @overload
    def rewind(self, to: Point) -> dict[str, Any]: ...
    @overload
    def rewind(self, *, before: Point) -> dict[str, Any]: ...
    def pin(self, message: int) -> dict[str, Any]: ...
    def note(self, text: str) -> dict[str, Any]: ...
    def unpin(self, pinned: int | str) -> dict[str, Any]: ...
    def recall(self, messages: int | str | range) -> list[dict[str, Any]]: ...
    def search(
        self,
        text: str,
        *,
        exact: bool = False,
        regex: bool = False,
        hidden: bool = False,
        role: str | None = None,
        tool: str | None = None,
        file: str | None = None,
        since: str | datetime.datetime | None = None,
        until: str | datetime.datetime | None = None,
        limit: int = 20,
    ) -> list[dict[str, Any]]: ...

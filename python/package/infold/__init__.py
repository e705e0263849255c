"""Folds the messages of LLM agents to fit a model's window; every fold can be opened again.

>>> import infold
>>> view = infold.fold(messages, window=32_000)            # send this; nothing is stored
>>> task = infold.Task.create("./contexts")                # or keep everything:
>>> task.append(messages)
>>> task.manage(window=32_000)
>>> view = task.view()
"""

from ._errors import (
    BusyError,
    Error,
    FoldWarning,
    RefusedError,
    StoreError,
    TooLargeError,
    UsageError,
)
from ._fold import fold
from ._infold import VERSION as __version__
from ._task import Task, search, tasks
from ._view import View

__all__ = [
    "BusyError",
    "Error",
    "FoldWarning",
    "RefusedError",
    "StoreError",
    "Task",
    "TooLargeError",
    "UsageError",
    "View",
    "__version__",
    "fold",
    "search",
    "tasks",
]

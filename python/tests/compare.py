"""Folds recorded sessions with the library and with the command: the views must be the same. Prints the times of both.

Usage: compare.py [--windows 8k,32k] FILE…      (INFOLD_COMMAND: the command)

Needs the library and the openai and anthropic clients: their objects are what the library gets.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import command
import infold
from sdk_objects import as_anthropic, as_openai

REPEATS = 5


def conversations(path):
    """Returns the conversations of a file, each with its name and the form of its messages."""
    if path.name.startswith("tau"):
        for at, record in enumerate(command.lines(path.read_bytes()), 1):
            yield f"{path.name} {at}", "openai", record["messages"]
        return
    whole = command.run("fold", path, "--window", "1000m", "--out-format", "anthropic")
    yield path.name, "anthropic", [message for message in _messages(whole)]


def _messages(text):
    try:
        parsed = json.loads(text)
    except ValueError:
        return command.lines(text)
    return parsed["messages"] if isinstance(parsed, dict) else parsed


def timed(call):
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - started)
    return result, statistics.median(times) * 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", default="8k,32k")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    print(f"{'session':<28}{'form':<11}{'window':>7}{'messages':>9}{'view':>6}{'library':>11}{'command':>11}  same")
    different = 0
    for path in arguments.files:
        for name, form, messages in conversations(path):
            objects = as_openai(messages) if form == "openai" else as_anthropic(messages)
            with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
                # As the clients send them: sizes count for what fits into a summary.
                file.writelines(json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n" for message in messages)
                file.flush()
                for window in arguments.windows.split(","):
                    try:
                        view, ours = timed(lambda: infold.fold(objects, window=window))
                    except infold.TooLargeError as error:
                        print(f"{name[:27]:<28}{form:<11}{window:>7}  {str(error).splitlines()[0][:70]}")
                        continue
                    printed, theirs = timed(lambda: command.run("fold", file.name, "--window", window))
                    is_same = view == command.lines(printed)
                    different += not is_same
                    print(
                        f"{name[:27]:<28}{form:<11}{window:>7}{len(messages):>9}{len(view):>6}"
                        f"{ours:>8.1f} ms{theirs:>8.1f} ms  {'yes' if is_same else 'NO'}",
                        flush=True,
                    )
    sys.exit(different > 0)


if __name__ == "__main__":
    main()

"""The command `infold`, to compare the library with."""

import json
import os
import subprocess
import tempfile

INFOLD = os.environ.get("INFOLD_COMMAND", "infold")


def run(*args, stdin=None):
    """Runs the command without configuration, and returns its output."""
    command = [INFOLD, "--config", "/dev/null", *map(str, args)]
    return subprocess.run(command, check=True, capture_output=True, input=stdin).stdout


def fold(messages, *flags):
    """Folds messages with the command."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        for message in messages:
            # As short as the library writes it, for the limit on bytes; a lone surrogate needs the escapes.
            file.write(json.dumps(message, separators=(",", ":")) + "\n")
        file.flush()
        return lines(run("fold", file.name, *flags))


def lines(output):
    """Returns the objects of JSON Lines."""
    return [json.loads(line) for line in output.splitlines() if line.strip()]

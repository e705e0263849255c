"""Has a small real model carry out a task through `infold run` in a small window, and checks loop, context and record.

The first process of the task is killed in the middle, another goes on. The model may fail at the task. What must hold:
every request fits and is accepted, every call has one result and one end, the view is valid, `verify` is clean, and the
task ends in a clear state.
"""

import collections
import json
import pathlib
import subprocess
import sys
import time

infold, work = sys.argv[1], pathlib.Path(sys.argv[2])
TASK = (
    "The file notes/rivers.txt names five rivers, one on each line with its length. Read the files in notes, then write "
    "the name of the longest river into answer.txt. Call one tool at a time, and call done when answer.txt is written."
)
RIVERS = ["Rhine 1230", "Danube 2850", "Volga 3530", "Elbe 1090", "Loire 1006"]
# The model repeats itself: a task that was paused for that goes on where it stands, so often at most.
MAX_RUNS = 6
CALLS_BEFORE_KILL = 2
# It also calls `done` early: the task is given to it again until one was killed in the middle and had a fold.
MAX_TASKS = 12


def command(*arguments):
    return subprocess.run([infold, *arguments], capture_output=True, text=True, cwd=work)


def succeed(*arguments):
    done = command(*arguments)
    if done.returncode != 0:
        sys.exit(f"infold {' '.join(arguments[:2])} failed: {done.stderr}")
    return done.stdout


def lines(directory, name):
    path = directory / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def status_of(task):
    [row] = [row for row in map(json.loads, succeed("--json", "task", "list").splitlines()) if row["uuid"] == task]
    return row["status"]


def prepare():
    notes = work / "files/notes"
    notes.mkdir(parents=True)
    (notes / "rivers.txt").write_text("\n".join(RIVERS) + "\n")
    for name in ("wool", "lamps", "boats"):
        text = "".join(f"{number}. What is written of {name} here matters little.\n" for number in range(60))
        (notes / f"{name}.txt").write_text(text)


def run_until_killed():
    """Runs the task until some calls have ended, and kills it: nothing of that process is left but its record."""
    before = set((work / "contexts").glob("*/*/tools.jsonl"))
    said = work / "killed.log"
    process = subprocess.Popen([infold, "run", TASK, "--workspace", "files", "--require-calls"], cwd=work,
                               stdout=said.open("w"), stderr=subprocess.STDOUT)
    while process.poll() is None:
        for records in set((work / "contexts").glob("*/*/tools.jsonl")) - before:
            calls = records.read_text().count("\n")
            if calls >= CALLS_BEFORE_KILL:
                process.kill()
                process.wait()
                task = records.parent.name
                if status_of(task) != "running":
                    print(f"  {status_of(task)} before it was killed")
                    return None
                print(f"  killed after {calls} calls")
                return task
        time.sleep(0.05)
    text = said.read_text()
    if process.returncode != 0:
        sys.exit(f"the run ended with {process.returncode}: {text}")
    print(f"  ended before it was killed: {text.splitlines()[-1]}")
    return None


def resume_until_ended(task):
    """Goes on with the task as long as it is paused; returns what each run said of its end."""
    ends = []
    arguments = ["run", "--resume", task]
    while len(ends) < MAX_RUNS:
        done = command("--json", *arguments, "--require-calls")
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        said = [one for one in said if "steps" in one]
        if not said:
            sys.exit(f"the run ended with {done.returncode} and said nothing of it: {done.stderr}")
        ends.append(said[-1])
        print(f"  {said[-1]['status']} after {said[-1]['steps']} steps, {said[-1]['tool_calls']} calls, "
              f"{said[-1]['tokens']} tokens, {said[-1]['folds']} folds: {said[-1]['text'][:90]}")
        is_stuck = len(ends) > 1 and ends[-2]["steps"] == ends[-1]["steps"]
        if said[-1]["status"] not in ("paused", "queued") or is_stuck:
            break
        arguments = ["run", "--resume", said[-1]["uuid"]]
    return ends


def check(task, status):
    [directory] = [path for path in (work / "contexts").glob(f"*/{task}")]
    messages = [line.get("message", line) for line in lines(directory, "messages.jsonl")]
    called = [call["id"] for message in messages for call in message.get("tool_calls") or []]
    answered = [message["tool_call_id"] for message in messages if message.get("role") == "tool"]
    if called != answered:
        sys.exit(f"calls without one result: {set(called) ^ set(answered)}")
    records = lines(directory, "tools.jsonl")
    if len(records) != len(called):
        sys.exit(f"{len(called)} calls, {len(records)} records")
    statuses = [record["status"] for record in records]
    print(f"  {len(called)} calls, each with one result and one record: {statuses.count('success')} worked, "
          f"{statuses.count('error')} were told why not")
    names = collections.Counter(record["tool"] for record in records)
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(names.items())))
    failures = succeed("log", task, "--json").count('"what":"no reply')
    view = succeed("view", task, "--raw").splitlines()
    print(f"  {len(messages)} messages, {len(view)} in view, {failures} requests without a reply")
    succeed("verify", task)
    if status_of(task) != status:
        sys.exit(f"the run said {status}, the registry {status_of(task)}")
    return failures


def run_task():
    """Runs a task that is killed in the middle; returns the number of its folds, or 0 if it ended before."""
    task = run_until_killed()
    if task is None:
        return 0
    ends = resume_until_ended(task)
    last = ends[-1]
    failures = check(task, last["status"])
    answer = work / "files/answer.txt"
    print(f"  answer.txt: {answer.read_text().strip()[:60]!r}" if answer.exists() else "  no answer.txt")
    if last["status"] not in ("completed", "failed", "paused"):
        sys.exit("it has no clear end")
    if failures:
        sys.exit("a request was refused")
    return last["folds"]


prepare()
if not any(run_task() for _ in range(MAX_TASKS)):
    sys.exit("nothing was folded: give it a smaller window")

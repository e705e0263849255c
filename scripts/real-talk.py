"""Talks to a real model through `infold ask`, and prints what came of it; exits with 1 if it went wrong."""

import json
import subprocess
import sys
import urllib.error
import urllib.request

infold = sys.argv[1]

TOPICS = ["rivers", "bread", "clocks", "bridges", "maps", "wool", "lamps", "boats", "glass", "bees"]


def question(turn):
    topic = TOPICS[turn % len(TOPICS)]
    return (
        f"Question {turn}: tell me one thing about {topic} that a child would remember, "
        f"and why part {turn} of it matters to the people who work with {topic} every day."
    )


def run(*arguments):
    done = subprocess.run([infold, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"infold {' '.join(arguments[:2])} failed: {done.stderr}")
    return done.stdout


def told(errors, dropped):
    for error in errors:
        print(f"  but {error}")
    for line in dropped:
        print(f"  dropped, nobody said it: {line}")


def summary():
    """Has the model summarise the longest task there is, and says what became of it."""
    tasks = [json.loads(line) for line in run("--json", "task", "list").splitlines()]
    task = max(tasks, key=lambda row: row["llm_call_count"])["uuid"]
    run("rewind", task, "--to", "24")
    made = json.loads(run("--json", "condense", task, "2..20", "--preview", "--summarizer", "model:smollm2"))
    print(f"{made['messages']} messages, {made['leaves']} tokens, became {made['enters']}, by {made['summarizer']}")
    told(made["errors"], made["dropped"])
    run("verify", task)
    if made["enters"] >= made["leaves"]:
        sys.exit("the summary is no smaller than what it replaces")


if sys.argv[2] == "summary":
    summary()
    sys.exit()

base, turns, window = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def direct():
    """The same conversation without infold: at which turn does the server refuse it?"""
    messages = []
    for turn in range(1, turns + 1):
        messages.append({"role": "user", "content": question(turn)})
        body = json.dumps({"model": "smollm2", "messages": messages, "max_tokens": 48, "temperature": 0})
        request = urllib.request.Request(
            base + "/v1/chat/completions", body.encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request) as reply:
                messages.append(json.load(reply)["choices"][0]["message"])
        except urllib.error.HTTPError as error:
            return turn, json.load(error)["error"]["message"]
    return None, None


turn, message = direct()
if turn is None:
    sys.exit("the conversation fits without infold: give more turns")
print(f"without infold: refused at turn {turn}: {message}")

task = run("task", "new", "--provider", "local", "--model", "smollm2").strip()
replies, folds, retried, writers, errors = [], 0, 0, {}, {}
for turn in range(1, turns + 1):
    reply = json.loads(run("--json", "ask", task, question(turn), "--temperature", "0"))
    folded = [step for outcome in reply["managed"] for step in outcome["steps"]]
    for step in folded:
        if step.get("summarizer"):
            writers[step["summarizer"]] = writers.get(step["summarizer"], 0) + 1
    for error in (error for outcome in reply["managed"] for error in outcome.get("errors", [])):
        errors[error] = errors.get(error, 0) + 1
    reply["folded"] = bool(folded)
    folds += bool(folded)
    retried += reply["requests"] - 1
    replies.append(reply)

sent = [reply["usage"]["tokens"] - reply["usage"]["output"] for reply in replies]
steady = [(reply, size) for reply, size in zip(replies[1:], sent[1:]) if not reply["folded"]]
cached = sum(reply["usage"]["cached"] for reply, _ in steady) / sum(size for _, size in steady)
wrong = [abs(reply["estimate"] - size) / size for reply, size in zip(replies, sent)]
before, after = wrong[0], sum(wrong[-10:]) / len(wrong[-10:])
failed = [line for line in run("log", task, "--json").splitlines() if '"what":"no reply' in line]

print(f"with infold:    {len(replies)} turns answered, {folds} with a fold, {retried} requests sent again")
print(f"largest request {max(sent)} of {window} tokens; {len(failed)} calls failed on the way")
print(f"cached between folds: {cached:.0%} of what was sent, over {len(steady)} turns")
print(f"estimate off by {before:.0%} at first, {after:.1%} over the last ten turns")
print("summaries by " + (", ".join(f"{name} {count}" for name, count in sorted(writers.items())) or "nobody"))
told((f"{error} ({count})" for error, count in errors.items()), [])
run("verify", task)

if max(sent) > window or len(replies) != turns or folds == 0:
    sys.exit("it did not fit")
if cached < 0.5:
    sys.exit("the prefix did not stay the same between folds")
if after > before:
    sys.exit("the estimate did not get better")

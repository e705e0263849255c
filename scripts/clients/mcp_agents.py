"""Agents with the server of `infold mcp`, configured as `infold mcp --print-config` says."""

import json
import os

import agents


def merge(path, printed):
    """Merges printed JSON into a file of JSON."""
    with open(path) as file:
        settings = json.load(file)
    settings.update(json.loads(printed))
    with open(path, "w") as file:
        json.dump(settings, file)


class ClaudeCode(agents.ClaudeCode):
    agent = "claude"

    def prepare(self, home, base):
        super().prepare(home, base)
        self.servers = os.path.join(home, "work", ".mcp.json")
        with open(self.servers, "w") as file:
            file.write(self.printed)

    def command(self, prompt, further):
        # A project's own servers have to be approved by a person, those of a flag do not.
        flags = ["--mcp-config", self.servers, "--allowedTools", "mcp__infold__search_history"]
        return [*super().command(prompt, further), *flags]


class Codex(agents.Codex):
    agent = "codex"

    def prepare(self, home, base):
        super().prepare(home, base)
        with open(os.path.join(home, ".codex", "config.toml"), "a") as file:
            file.write(self.printed)


class GeminiCli(agents.GeminiCli):
    agent = "gemini"

    def prepare(self, home, base):
        super().prepare(home, base)
        merge(os.path.join(home, ".gemini", "settings.json"), self.printed)


class Goose(agents.Goose):
    agent = "goose"

    def prepare(self, home, base):
        super().prepare(home, base)
        folder = os.path.join(home, ".config", "goose")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.yaml"), "w") as file:
            file.write(self.printed)


class OpenCode(agents.OpenCode):
    agent = "opencode"

    def prepare(self, home, base):
        super().prepare(home, base)
        merge(os.path.join(home, ".config", "opencode", "opencode.json"), self.printed)


AGENTS = [ClaudeCode, Codex, GeminiCli, Goose, OpenCode]

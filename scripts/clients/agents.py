"""How each client is started, unmodified, with one base URL changed.

A client is a class with `prepare` (its configuration), `env` and `command`; the first prompt begins
a conversation, each further one continues it.
"""

import json
import os
import re
import shutil
import subprocess

MODEL = "testkit"
KEY = "no-key"


class Client:
    """A program that is started once for each prompt."""

    name = ""
    directory = ""
    executable = ""
    wire = ""
    tools = True
    # Its history cannot be told from another's, so its base URL names the task: /t/NAME.
    named = False
    # How long one prompt may take.
    seconds = 180
    # What the reply may have; counted by some providers as part of the window.
    most = 512

    def __init__(self, clients):
        self.clients = clients
        self.directory = self.directory or self.name

    def path(self, *parts):
        return os.path.join(self.clients, self.directory, *parts)

    def installed(self):
        return os.path.exists(self.path("installed"))

    def version(self):
        return installed_npm(self.path()) or installed_venv(self.path(), self.package)

    def prepare(self, home, base):
        """Writes the configuration."""

    def env(self, base):
        return {}

    def command(self, prompt, further):
        raise NotImplementedError

    def talk(self, base, home, prompts):
        """Runs the prompts as one conversation; yields what was printed and how it ended."""
        work = os.path.join(home, "work")
        os.makedirs(work, exist_ok=True)
        # A project of its own: some clients look for one above, and write into it.
        subprocess.run(["git", "init", "--quiet", work], check=True, env=clean(home))
        self.home = home
        self.prepare(home, base)
        for number, prompt in enumerate(prompts):
            yield self.start(self.command(prompt, number > 0), self.env(base), work)

    def start(self, command, env, work):
        try:
            done = subprocess.run(
                command,
                cwd=work,
                env={**clean(self.home), **env},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self.seconds,
            )
            return done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            said = [part.decode(errors="replace") if part else "" for part in (late.stdout, late.stderr)]
            return 124, said[0], said[1] + f"\n(no end after {self.seconds} s)"


def clean(home):
    """An environment with nothing of the user's in it."""
    tools = {os.path.dirname(found) for name in ("node", "python3", "git", "bash") if (found := shutil.which(name))}
    return {
        "PATH": ":".join([*sorted(tools), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": home,
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "SHELL": "/bin/bash",
    }


def installed_npm(directory):
    try:
        with open(os.path.join(directory, "package.json")) as file:
            package = next(iter(json.load(file)["dependencies"]))
        with open(os.path.join(directory, "node_modules", package, "package.json")) as file:
            return json.load(file)["version"]
    except (OSError, KeyError, StopIteration):
        return None


def installed_venv(directory, package):
    libraries = os.path.join(directory, "lib")
    for root in os.listdir(libraries) if os.path.isdir(libraries) else []:
        for entry in os.listdir(os.path.join(libraries, root, "site-packages")):
            if found := re.fullmatch(re.escape(package.replace("-", "_")) + r"-(.+)\.dist-info", entry):
                return found[1]
    return None


class Sdk(Client):
    """A provider's library; one process holds the whole conversation."""

    directory = "sdks"
    kind = ""

    def version(self):
        return installed_venv(self.path(), self.package)

    def talk(self, base, home, prompts):
        os.makedirs(home, exist_ok=True)
        self.home = home
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sdk.py")
        code, out, err = self.start([self.path("bin", "python"), program, self.kind, base, *prompts], {}, home)
        lines = out.splitlines()
        for number in range(len(prompts)):
            if number < len(lines):
                yield 0, lines[number], ""
            else:
                yield code or 1, "", err
                return


class OpenAiChat(Sdk):
    name, kind, package, wire = "openai-chat", "openai-chat", "openai", "chat"


class OpenAiResponses(Sdk):
    name, kind, package, wire = "openai-responses", "openai-responses", "openai", "responses"


class Anthropic(Sdk):
    name, kind, package, wire = "anthropic", "anthropic", "anthropic", "anthropic"


class OldAnthropic(Anthropic):
    name, directory = "anthropic-old", "old-sdks"


class GoogleGenAi(Sdk):
    name, kind, package, wire = "google-genai", "gemini", "google-genai", "gemini"


class Ollama(Sdk):
    name, kind, package, wire = "ollama", "ollama", "ollama", "ollama"


class Goose(Client):
    name, wire = "goose", "chat"

    def env(self, base):
        return {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": MODEL,
            "OPENAI_HOST": base,
            "OPENAI_API_KEY": KEY,
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
            "GOOSE_MODE": "auto",
        }

    def command(self, prompt, further):
        goose = self.path("node_modules", "@aaif", "goose-binary-linux-x64", "bin", "goose")
        return [goose, "run", "--name", "talk", *(["--resume"] if further else []), "-t", prompt]


class ClaudeCode(Client):
    name, directory, wire = "claude-code", "claude", "anthropic"
    most = 4096

    def env(self, base):
        return {
            "ANTHROPIC_BASE_URL": base,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(self.most),
        }

    def command(self, prompt, further):
        claude = self.path("node_modules", ".bin", "claude")
        return [claude, "-p", prompt, *(["--continue"] if further else []), "--allowedTools", "Bash"]


class Codex(Client):
    name, wire = "codex", "responses"

    def prepare(self, home, base):
        os.makedirs(os.path.join(home, ".codex"), exist_ok=True)
        with open(os.path.join(home, ".codex", "config.toml"), "w") as file:
            file.write(
                f"""model = "{MODEL}"
model_provider = "p"
check_for_update_on_startup = false
[model_providers.p]
name = "p"
base_url = "{base}/v1"
env_key = "K"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""
            )

    def env(self, base):
        return {"K": KEY}

    def command(self, prompt, further):
        codex = self.path("node_modules", ".bin", "codex")
        flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return [codex, "exec", *(["resume", "--last"] if further else []), *flags, prompt]


class CodexBuiltIn(Codex):
    """Codex with its own provider, which opens a WebSocket first."""

    name, directory = "codex-built-in", "codex"

    def prepare(self, home, base):
        os.makedirs(os.path.join(home, ".codex"), exist_ok=True)
        with open(os.path.join(home, ".codex", "config.toml"), "w") as file:
            file.write(
                f"""model = "{MODEL}"
openai_base_url = "{base}/v1"
check_for_update_on_startup = false
[analytics]
enabled = false
"""
            )

    def env(self, base):
        return {"CODEX_API_KEY": KEY}


class GeminiCli(Client):
    name, directory, wire = "gemini-cli", "gemini", "gemini"

    def prepare(self, home, base):
        os.makedirs(os.path.join(home, ".gemini"), exist_ok=True)
        with open(os.path.join(home, ".gemini", "settings.json"), "w") as file:
            json.dump(
                {
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "privacy": {"usageStatisticsEnabled": False},
                    "telemetry": {"enabled": False},
                },
                file,
            )

    def env(self, base):
        return {
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": base,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def command(self, prompt, further):
        gemini = self.path("node_modules", ".bin", "gemini")
        flags = ["-m", "gemini-2.5-flash", "--yolo", *(["--resume", "latest"] if further else [])]
        return [gemini, *flags, "-p", prompt]


class OpenCode(Client):
    name, directory, wire = "opencode", "opencode", "chat"

    def prepare(self, home, base):
        folder = os.path.join(home, ".config", "opencode")
        os.makedirs(folder, exist_ok=True)
        # Told of a large window, it leaves the history alone until it is refused.
        limit = {"context": 128000, "output": self.most}
        with open(os.path.join(folder, "opencode.json"), "w") as file:
            json.dump(
                {
                    "provider": {
                        "p": {
                            "npm": "@ai-sdk/openai-compatible",
                            "options": {"baseURL": base + "/v1", "apiKey": KEY},
                            "models": {MODEL: {"limit": limit}},
                        }
                    },
                    "model": f"p/{MODEL}",
                    "small_model": f"p/{MODEL}",
                    "autoupdate": False,
                    "share": "disabled",
                    "permission": "allow",
                },
                file,
            )

    def env(self, base):
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def command(self, prompt, further):
        opencode = self.path("node_modules", ".bin", "opencode")
        return [opencode, "run", *(["--continue"] if further else []), prompt]


class Aider(Client):
    name, wire, package = "aider", "chat", "aider-chat"
    # It edits files by what a reply says, and calls nothing.
    tools = False
    # Every conversation begins with the same examples, and the newest exchange is put in before
    # the last messages rather than behind them.
    named = True

    def env(self, base):
        return {
            "OPENAI_API_BASE": base + "/v1",
            "OPENAI_API_KEY": KEY,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def command(self, prompt, further):
        flags = """--no-analytics --no-check-update --no-show-release-notes --yes-always --no-auto-commits
            --no-pretty --no-show-model-warnings --no-gitignore --no-git --map-tokens 0
            --max-chat-history-tokens 1000000""".split()
        further = ["--restore-chat-history"] if further else []
        return [self.path("bin", "aider"), "--model", "openai/" + MODEL, *flags, *further, "--message", prompt]


class Llm(Client):
    name, wire, package = "llm", "chat", "llm"
    FUNCTION = '''
def shell(command: str) -> str:
    "Runs a command and returns what it printed"
    import subprocess
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout
'''

    def prepare(self, home, base):
        with open(os.path.join(home, "extra-openai-models.yaml"), "w") as file:
            file.write(
                f"- model_id: {MODEL}\n  model_name: {MODEL}\n  api_base: {base}/v1\n  supports_tools: true\n"
            )

    def env(self, base):
        return {"LLM_USER_PATH": self.home, "OPENAI_API_KEY": KEY}

    def command(self, prompt, further):
        further = ["--continue"] if further else []
        return [self.path("bin", "llm"), "prompt", "-m", MODEL, "--functions", self.FUNCTION, *further, prompt]


class Continue(Client):
    name, directory, wire = "cn", "cn", "chat"

    def prepare(self, home, base):
        self.config = os.path.join(home, "config.yaml")
        with open(self.config, "w") as file:
            file.write(
                f"""name: test
version: 1.0.0
schema: v1
models:
  - name: {MODEL}
    provider: openai
    model: {MODEL}
    apiBase: {base}/v1
    apiKey: {KEY}
    roles: [chat]
    capabilities: [tool_use]
"""
            )

    def env(self, base):
        return {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"}

    def command(self, prompt, further):
        cn = self.path("node_modules", ".bin", "cn")
        return [cn, "--config", self.config, "--auto", *(["--resume"] if further else []), "-p", prompt]


ALL = [
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    OldAnthropic,
    GoogleGenAi,
    Ollama,
    Goose,
    ClaudeCode,
    Codex,
    CodexBuiltIn,
    GeminiCli,
    OpenCode,
    Aider,
    Llm,
    Continue,
]

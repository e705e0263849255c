"""Carries out a task with the tools of real MCP servers through `infold run`, kills one during a call, and checks the
record of every call."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading

from mcp_servers_run import descendants

LONG = "trigger-long-running-operation"


def steps(files):
    """The calls of the scripted model: server, tool, arguments, and whether it works."""
    return [
        ("built in", "set_phase", {"phase": "executing"}, True),
        ("everything", "echo", {"message": "hello"}, True),
        ("everything", "get-sum", {"a": 40, "b": 2}, True),
        ("filesystem", "write_file", {"path": f"{files}/a.txt", "content": "one\ntwo\n"}, True),
        ("filesystem", "read_text_file", {"path": f"{files}/a.txt"}, True),
        ("filesystem", "read_text_file", {"path": "/etc/passwd"}, False),
        ("memory", "create_entities",
         {"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes"]}]}, True),
        ("memory", "search_nodes", {"query": "writes"}, True),
        ("time", "get_current_time", {"timezone": "UTC"}, True),
        ("git", "git_status", {"repo_path": str(files)}, True),
        ("git", "git_log", {"repo_path": str(files)}, True),
        ("everything", LONG, {"duration": 60, "steps": 60}, False),
        ("everything", "echo", {"message": "again"}, True),
        ("memory", "read_graph", {}, True),
        ("built in", "done", {"summary": "Every server was used."}, True),
    ]


def write_config(path, options, directory, files, url):
    npm = options.servers / "mcp-servers-npm/node_modules/.bin"
    pypi = options.servers / "mcp-servers-pypi/bin"
    memory = {"MEMORY_FILE_PATH": f"{directory}/memory.jsonl"}
    commands = [
        ("everything", [npm / "mcp-server-everything"], {}),
        ("filesystem", [npm / "mcp-server-filesystem", files], {}),
        ("memory", [npm / "mcp-server-memory"], memory),
        ("time", [pypi / "mcp-server-time"], {}),
        ("git", [pypi / "mcp-server-git", "--repository", files], {}),
    ]
    servers = [
        {"mcp_server_name": name, "command": [str(word) for word in words], "env": env} for name, words, env in commands
    ]
    model = {"provider": "openai", "model": "scripted", "base_url": url, "context_length": 64000}
    # JSON is YAML.
    path.write_text(json.dumps({"llm": {"scripted": model}, "mcp_servers": servers}))


def kill_server(pid):
    """Kills the process of a server itself; its wrapper and its guard are left."""
    server = [child for child, args in descendants(pid) if "server-everything" in args][-1]
    os.kill(server, signal.SIGKILL)


def run_task(infold, work, files):
    """Runs the task, and kills a server once its long call has begun."""
    command = [*infold, "run", "use every server", "--workspace", str(files)]
    run = subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        print(f"  {line}", end="")
        if line.startswith(f"{LONG} {{"):
            threading.Timer(1.0, kill_server, [run.pid]).start()
    assert run.wait() == 0, run.returncode
    assert run.stdout.read() == "Every server was used.\n"


def check_record(infold, work, expected):
    """Checks that each call is in tools.jsonl, and has one result among the messages."""
    [directory] = [path.parent for path in work.glob("contexts/*/*/tools.jsonl")]
    read = lambda name: [json.loads(line) for line in (directory / name).read_text().splitlines()]
    records = read("tools.jsonl")
    assert len(records) == len(expected), (len(records), len(expected))
    for record, (server, tool, arguments, works) in zip(records, expected):
        assert (record["tool"], record["args"]) == (tool, arguments), record
        assert record["status"] == ("success" if works else "error"), record
        assert ("result" if works else "error") in record and record["duration_ms"] >= 0, record
    interrupted = next(record for record in records if record["tool"] == LONG)
    assert "failed during the call" in interrupted["error"], interrupted
    messages = read("messages.jsonl")
    messages = [message.get("message", message) for message in messages]
    called = [call["id"] for message in messages for call in message.get("tool_calls") or []]
    answered = [message["tool_call_id"] for message in messages if message.get("role") == "tool"]
    assert called == answered and len(set(called)) == len(expected), (called, answered)
    subprocess.run([*infold, "verify"], cwd=work, check=True)
    servers = {}
    for server, *_ in expected:
        servers[server] = servers.get(server, 0) + 1
    counts = ", ".join(f"{server} {count}" for server, count in servers.items())
    print(f"  {len(records)} calls recorded, each with one result: {counts}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--infold", required=True)
    parser.add_argument("--testkit", required=True)
    parser.add_argument("--servers", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory).resolve()
        files = work / "files"
        files.mkdir()
        git = ["git", "-C", str(files), "-c", "user.name=a", "-c", "user.email=a@localhost"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "first"], check=True)
        expected = steps(files)
        script = [json.dumps({"call": tool, "arguments": arguments}) for _, tool, arguments, _ in expected]
        (work / "steps.jsonl").write_text("\n".join(script))
        command = [options.testkit, "serve", "--script", str(work / "steps.jsonl")]
        model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            url = next(word for word in model.stdout.readline().split() if word.startswith("http"))
            os.environ["INFOLD_CONTEXTS"] = str(work / "contexts")
            write_config(work / "config.yaml", options, directory, files, url)
            infold = [options.infold, "--config", "config.yaml"]
            print("== through `infold run`, one server killed during a call")
            run_task(infold, work, files)
            check_record(infold, work, expected)
        finally:
            model.kill()
            model.wait()
    print("all is well")


if __name__ == "__main__":
    main()

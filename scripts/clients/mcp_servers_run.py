"""Lists and calls the tools of real MCP servers through the toolbox, and kills one in the middle."""

import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time


class Driver:
    """The toolbox, spoken with a line at a time."""

    def __init__(self, program, servers):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.write({"servers": servers})

    def write(self, step):
        self.process.stdin.write(json.dumps(step) + "\n")
        self.process.stdin.flush()

    def ask(self, step):
        self.write(step)
        return json.loads(self.process.stdout.readline())

    def call(self, name, **arguments):
        said = self.ask({"call": name, "arguments": arguments})
        shown = said["text"].replace("\n", " ")[:70]
        print(f"  {'error' if said['is_error'] else 'ok   '} {said['ms']:8.1f} ms  {name}: {shown}")
        return said

    def works(self, name, expected, **arguments):
        said = self.call(name, **arguments)
        assert not said["is_error"], said
        assert expected in said["text"], said
        return said["text"]

    def fails(self, name, expected, **arguments):
        said = self.call(name, **arguments)
        assert said["is_error"] and expected in said["text"], said


def descendants(pid):
    """Returns the processes that a process started, with their command lines."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    found, pending = [], [str(pid)]
    while pending:
        parent = pending.pop()
        for child, its_parent, args in (row for row in rows if len(row) == 3):
            if its_parent == parent:
                found.append((int(child), args))
                pending.append(child)
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not listen")


def check_stdio(driver, files, repository):
    listed = driver.ask({"list": True})
    assert listed["problems"] == [], listed["problems"]
    counts = {}
    for tool in listed["tools"]:
        counts.setdefault(tool["server"], []).append(tool["read_only"])
    print(f"  listed in {listed['ms']} ms:", ", ".join(f"{s} {len(t)} tools ({sum(t)} read-only)" for s, t in counts.items()))
    assert set(counts) == {"everything", "filesystem", "memory", "time", "git"}
    names = [tool["name"] for tool in listed["tools"]]
    assert len(set(names)) == len(names)
    driver.works("echo", "hello", message="hello")
    driver.works("get-sum", "42", a=40, b=2)
    driver.works("get-tiny-image", "not shown")
    driver.works("write_file", "Success", path=str(files / "a.txt"), content="one\ntwo\n")
    driver.works("read_text_file", "two", path=str(files / "a.txt"))
    driver.fails("read_text_file", "denied", path="/etc/passwd")
    driver.works("create_entities", "Ada", entities=[{"name": "Ada", "entityType": "person", "observations": ["writes"]}])
    driver.works("search_nodes", "Ada", query="writes")
    driver.works("get_current_time", "UTC", timezone="UTC")
    driver.fails("get_current_time", "", timezone="Nowhere/None")
    driver.works("git_status", "a.txt", repo_path=str(repository))
    driver.works("git_log", "first", repo_path=str(repository))
    driver.fails("no_such_tool", "there is no tool")


def check_kill(driver):
    """Kills a server while it works on a call, and one between two calls."""
    # A wrapper and its guard aside: the process of the server itself.
    server = [pid for pid, args in descendants(driver.process.pid) if "server-everything" in args][-1]
    threading.Timer(1.0, os.kill, (server, signal.SIGKILL)).start()
    driver.fails("trigger-long-running-operation", "failed during the call", duration=60, steps=60)
    driver.works("echo", "again", message="again")
    memory = [pid for pid, args in descendants(driver.process.pid) if "server-memory" in args][-1]
    os.kill(memory, signal.SIGKILL)
    time.sleep(0.5)
    driver.works("read_graph", "Ada")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--servers", required=True, type=pathlib.Path)
    options = parser.parse_args()
    npm = options.servers / "mcp-servers-npm/node_modules/.bin"
    pypi = options.servers / "mcp-servers-pypi/bin"
    with tempfile.TemporaryDirectory() as directory:
        repository = files = pathlib.Path(directory).resolve() / "work"
        files.mkdir()
        git = ["git", "-C", str(files), "-c", "user.name=a", "-c", "user.email=a@localhost"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "first"], check=True)
        os.environ["MEMORY_FILE_PATH"] = f"{directory}/memory.jsonl"
        commands = {
            "everything": [npm / "mcp-server-everything"],
            "filesystem": [npm / "mcp-server-filesystem", files],
            "memory": [npm / "mcp-server-memory"],
            "time": [pypi / "mcp-server-time"],
            "git": [pypi / "mcp-server-git", "--repository", repository],
        }
        servers = [{"name": name, "command": [str(word) for word in words]} for name, words in commands.items()]
        print("== standard input and output")
        driver = Driver(options.driver, servers)
        check_stdio(driver, files, repository)
        print("== killed in the middle")
        check_kill(driver)
        left = [pid for pid, _ in descendants(driver.process.pid)]
        driver.process.stdin.close()
        assert driver.process.wait(30) == 0
        running = [pid for pid in left if pathlib.Path(f"/proc/{pid}").exists()]
        assert not running, running
        print(f"  {len(left)} processes, none left after the end")
        print("== streamable HTTP")
        port = free_port()
        environment = {**os.environ, "PORT": str(port)}
        command = [str(npm / "mcp-server-everything"), "streamableHttp"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(command, env=environment, **quiet)
        try:
            wait_for(port)
            driver = Driver(options.driver, [{"name": "web", "url": f"http://127.0.0.1:{port}/mcp"}])
            listed = driver.ask({"list": True})
            assert listed["problems"] == [] and listed["tools"], listed
            print(f"  listed in {listed['ms']} ms: {len(listed['tools'])} tools")
            driver.works("echo", "over HTTP", message="over HTTP")
            driver.works("trigger-long-running-operation", "completed", duration=1, steps=4)
            server.kill()
            server.wait()
            driver.fails("echo", "web", message="x")
            server = subprocess.Popen(command, env=environment, **quiet)
            wait_for(port)
            driver.works("echo", "back", message="back")
            driver.process.stdin.close()
            assert driver.process.wait(30) == 0
        finally:
            server.kill()
            server.wait()
    print("all is well")


if __name__ == "__main__":
    main()

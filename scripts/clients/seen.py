"""What a recorder wrote down."""

import json
import os
import re
from collections import defaultdict

REPLY = re.compile(
    r"/(?:chat/completions|responses|messages|api/chat|api/generate|models/[^/]+:(?:generateContent|streamGenerateContent))(?:\?|$)"
)


class Request:
    def __init__(self, directory, record):
        self.directory = directory
        self.__dict__.update(record)

    def file(self, kind):
        try:
            with open(os.path.join(self.directory, f"{self.number:04}.{kind}"), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def text(self):
        """The body as text, escapes undone where it is JSON."""
        body = self.file("body")
        try:
            return json.dumps(json.loads(body), ensure_ascii=False)
        except ValueError:
            return body.decode(errors="replace")

    def json(self):
        return json.loads(self.file("body"))

    def messages(self):
        """The messages, with what changes nothing made equal, and the tools."""
        body = self.json()
        listed = next((body[name] for name in ("messages", "input", "contents") if name in body), [])
        return [plain(message) for message in listed], body.get("tools")

    def tokens(self):
        """How many tokens the model says that it was sent."""
        reply = self.file("reply").decode(errors="replace")
        last = lambda name: max(map(int, re.findall(rf'"{name}":\s*(\d+)', reply)), default=0)
        anthropic = last("cache_read_input_tokens") + last("cache_creation_input_tokens")
        names = ["prompt_tokens", "promptTokenCount", "prompt_eval_count", "input_tokens"]
        return anthropic + max(map(last, names))


    def overflowed(self):
        """Says whether the model refused it as too long, or, as Ollama does, dropped its front unsaid."""
        reply = self.file("reply").decode(errors="replace")
        words = ["context_length_exceeded", "prompt is too long", "exceed context limit", "exceeds the maximum number"]
        words.append("x-testkit-dropped")
        return any(word in reply for word in words)


def plain(json):
    """Without cache markers, which move; a text alone is one block of text."""
    if isinstance(json, list):
        return [plain(value) for value in json]
    if isinstance(json, dict):
        json = {name: plain(value) for name, value in json.items() if name != "cache_control"}
        if isinstance(json.get("content"), str):
            json["content"] = [{"type": "text", "text": json["content"]}]
    return json


class Requests:
    """All requests of one side, in the order they came."""

    def __init__(self, directory):
        self.all = []
        path = os.path.join(directory, "requests.jsonl")
        if os.path.exists(path):
            with open(path) as file:
                self.all = [Request(directory, json.loads(line)) for line in file]
        self.all.sort(key=lambda request: request.number)

    def replies(self):
        """Those that ask a model for a reply."""
        return [request for request in self.all if request.method == "POST" and REPLY.search(request.path)]


def grown(requests):
    """How many requests begin with all messages of the one before, of how many that could."""
    pairs = kept = 0
    before = None
    for request in requests.replies():
        now = request.messages()
        # What has no tools is a title, a summary, or a client without any.
        if before and bool(before[1]) == bool(now[1]):
            pairs += 1
            kept += now[0][: len(before[0])] == before[0]
        before = now
    return kept, pairs


# What belongs to one connection, or to the address that was asked. How replies are compressed is
# between a proxy that reads them and the model.
HOP = {"host", "connection", "keep-alive", "te", "trailer", "upgrade", "transfer-encoding", "content-length"}
HOP.add("accept-encoding")


def passed_on(client, upstream):
    """How many of the client's requests with a body came out with the same bytes, of how many, and
    whether the headers of those did."""
    came = defaultdict(list)
    for request in upstream.all:
        came[request.method, request.path, request.sha256].append(request)
    sent = [request for request in client.all if request.bytes]
    same, headers = 0, True
    for request in sent:
        # A task that is named in the path is no business of the model's.
        path = re.sub(r"^/t/[^/]+", "", request.path)
        # Two at once may change places on the way.
        if found := came[request.method, path, request.sha256]:
            headers &= same_headers(request, found.pop(0))
            same += 1
    return same, len(sent), headers


def same_headers(request, came):
    """Says whether all that was sent came, and nothing of our own."""
    told = lambda one: [(name.lower(), value) for name, value in one.headers if name.lower() not in HOP]
    there = told(came)
    ours = any(name.startswith("x-infold-") for name, _ in there)
    return not ours and all(header in there for header in told(request) if not header[0].startswith("x-infold-"))

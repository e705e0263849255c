#!/usr/bin/env python3
"""Passes HTTP requests on unchanged, and writes down what went by.

Usage: recorder.py URL DIR

Listens on a free port of 127.0.0.1 and prints `ready at http://127.0.0.1:PORT`. Each request is a
line of DIR/requests.jsonl, written when its response has ended; bodies are NNNN.body, responses
NNNN.reply. Keys are left out. One connection carries one request, so that nothing has to be framed
anew: the bytes of a body and of a response pass as they are.
"""

import hashlib
import json
import os
import re
import socket
import sys
import threading
import time
from urllib.parse import urlsplit

SECRET = {"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "proxy-authorization"}
LONGEST_HEAD = 1 << 20
PIECE = 1 << 16


def read_head(line):
    """The bytes up to and with the empty line, and what came behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = line.recv(PIECE)
        if not more or len(data) > LONGEST_HEAD:
            return None, b""
        data += more
    head, rest = data.split(b"\r\n\r\n", 1)
    return head, rest


def read_body(line, headers, rest):
    """The body as it is framed on the wire, and as it is."""
    values = {name.lower(): value for name, value in headers}
    if values.get("expect", "").lower() == "100-continue":
        line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in values.get("transfer-encoding", "").lower():
        framed, body = bytearray(rest), bytearray()
        at = 0

        def fill(size):
            while len(framed) < size:
                more = line.recv(PIECE)
                if not more:
                    raise ConnectionError("cut in a chunk")
                framed.extend(more)

        while True:
            while (end := framed.find(b"\r\n", at)) < 0:
                fill(len(framed) + 1)
            size = int(framed[at:end].split(b";")[0], 16)
            fill(end + 2 + size + 2)
            body += framed[end + 2 : end + 2 + size]
            at = end + 2 + size + 2
            if size == 0:
                return bytes(framed), bytes(body)
    length = int(values.get("content-length", 0))
    body = bytearray(rest)
    while len(body) < length:
        more = line.recv(PIECE)
        if not more:
            raise ConnectionError("cut in a body")
        body += more
    return bytes(body), bytes(body)


class Recorder:
    def __init__(self, url, directory):
        parts = urlsplit(url)
        self.upstream = (parts.hostname, parts.port or 80)
        self.prefix = parts.path.rstrip("/")
        self.directory = directory
        self.lock = threading.Lock()
        self.number = 0
        os.makedirs(directory, exist_ok=True)

    def file(self, number, kind):
        return os.path.join(self.directory, f"{number:04}.{kind}")

    def handle(self, line):
        with line:
            try:
                self.exchange(line)
            except OSError:
                pass  # whoever went away has seen the end of the connection

    def exchange(self, line):
        head, rest = read_head(line)
        if head is None:
            return
        first, *fields = head.decode("latin-1").split("\r\n")
        method, target, version = first.split(" ", 2)
        headers = [tuple(part.strip() for part in field.split(":", 1)) for field in fields]
        framed, body = read_body(line, headers, rest)
        with self.lock:
            self.number += 1
            number = self.number
        came = time.time()
        with open(self.file(number, "body"), "wb") as out:
            out.write(body)
        status = None
        try:
            status = self.forward(line, number, (method, self.prefix + target, version), headers, framed)
        finally:
            self.write(number, came, method, target, headers, body, status)

    def forward(self, line, number, first, headers, framed):
        keep = [(name, value) for name, value in headers if name.lower() not in ("host", "connection", "expect")]
        keep = [("Host", "%s:%d" % self.upstream), *keep, ("Connection", "close")]
        head = "\r\n".join([" ".join(first), *(f"{name}: {value}" for name, value in keep)]) + "\r\n\r\n"
        seen = b""
        with socket.create_connection(self.upstream) as up, open(self.file(number, "reply"), "wb") as reply:
            up.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            up.sendall(head.encode("latin-1") + framed)
            while more := up.recv(PIECE):
                seen = seen or more
                line.sendall(more)
                reply.write(more)
        status = re.match(rb"HTTP/1\.\d (\d+)", seen)
        return int(status[1]) if status else None

    def write(self, number, came, method, target, headers, body, status):
        shown = [(name, "(left out)" if name.lower() in SECRET else value) for name, value in headers]
        record = {
            "number": number,
            "at": round(came, 3),
            "took": round(time.time() - came, 3),
            "method": method,
            "path": re.sub(r"([?&]key=)[^&]*", r"\1(left out)", target),
            "status": status,
            "bytes": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "headers": shown,
        }
        with self.lock, open(os.path.join(self.directory, "requests.jsonl"), "a") as out:
            out.write(json.dumps(record) + "\n")


def main():
    recorder = Recorder(sys.argv[1], sys.argv[2])
    door = socket.create_server(("127.0.0.1", 0), backlog=128)
    print("ready at http://127.0.0.1:%d" % door.getsockname()[1], flush=True)
    while True:
        line, _ = door.accept()
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=recorder.handle, args=(line,), daemon=True).start()


if __name__ == "__main__":
    main()

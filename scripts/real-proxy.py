"""Has the official clients talk to a real model through `infold serve`, and prints what came of it.

Called by scripts/test-real. Exits with 1 if a client saw an error, or the conversation was not kept
as one. Both clients talk at once, each to a model of its own, which takes two cores.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from pathlib import Path

import anthropic
import openai

HERE = Path(__file__).resolve().parent
SYSTEM = "You keep the log of a harbour. Answer in one short sentence."
BOATS = ["Wren", "Heron", "Plover", "Curlew", "Avocet", "Teal", "Dunlin"]
GOODS = ["wool", "glass", "lamps", "flour", "clocks", "rope", "honey", "slate", "maps", "salt", "oars"]


def question(turn, window):
    """What is asked: so long that a hundred of them outgrow the window."""
    boat, goods = BOATS[turn % len(BOATS)], GOODS[turn % len(GOODS)]
    asked = f"Entry {turn}: the {boat} came in with {turn % 40 + 3} crates of {goods}. What should we do with them first?"
    if window <= 1024:
        return asked
    return (
        f"{asked} The master says that the sea was rough near the northern rocks and that two ropes have to be "
        f"mended before she sails again. Berth {turn % 9 + 1} is free until the evening tide, and the clerk asks "
        f"whether the duty was paid."
    )


WRONG = """
summarizer: extractive
profiles:
  default:
    window: 8192
"""


class Service:
    """A process that is ready once it says so."""

    running = []

    def __init__(self, command, trace, ready, env=None):
        self.trace = trace
        self.out = open(trace, "wb")
        self.process = subprocess.Popen(
            command, stdout=self.out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env
        )
        Service.running.append(self)
        deadline = time.monotonic() + 60
        while not (found := re.search(ready, trace.read_text(errors="replace"))):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                sys.exit(f"error: {command[0]} did not start\n{trace.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        self.said = found[1] if found.groups() else ""

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.out.close()
        Service.running.remove(self)


class OpenAI:
    """Talks chat completions, streaming, with the official client."""

    name = "openai"

    def __init__(self, base):
        self.client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0, timeout=600)
        self.messages = [{"role": "system", "content": SYSTEM}]

    def say(self, text, most):
        self.messages.append({"role": "user", "content": text})
        raw = self.client.chat.completions.with_raw_response.create(
            model="smollm2", messages=self.messages, max_tokens=most, temperature=0, seed=1,
            stream=True, stream_options={"include_usage": True},
        )
        said, end, usage, first = "", None, None, None
        for chunk in raw.parse():
            usage = chunk.usage or usage
            for choice in chunk.choices:
                end = choice.finish_reason or end
                if choice.delta.content:
                    first = first or time.monotonic()
                    said += choice.delta.content
        self.messages.append({"role": "assistant", "content": said})
        return raw.headers, said, end, usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, first

    def send(self, messages):
        """Sends messages as they are; nothing is wanted but whether they are taken."""
        self.client.chat.completions.create(model="smollm2", messages=messages, max_tokens=1)


class Anthropic:
    """Talks messages, streaming, with the official client."""

    name = "anthropic"

    def __init__(self, base):
        self.client = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0, timeout=600)
        self.messages = []

    def say(self, text, most):
        self.messages.append({"role": "user", "content": text})
        raw = self.client.messages.with_raw_response.create(
            model="smollm2", system=SYSTEM, messages=self.messages, max_tokens=most, stream=True,
            extra_body={"temperature": 0},
        )
        said, end, usage, first = "", None, None, None
        for event in raw.parse():
            if event.type == "message_start":
                usage = event.message.usage
            elif event.type == "content_block_delta":
                first = first or time.monotonic()
                said += event.delta.text
            elif event.type == "message_delta":
                end = event.delta.stop_reason
        self.messages.append({"role": "assistant", "content": said})
        cached = usage.cache_read_input_tokens
        return raw.headers, said, end, usage.input_tokens + cached, cached, first

    def send(self, messages):
        """Sends messages as they are; nothing is wanted but whether they are taken."""
        self.client.messages.create(model="smollm2", system=SYSTEM, messages=messages, max_tokens=1)


class Turn:
    """What came of one turn: sizes in the model's own tokens."""

    def __init__(self, estimate, sent, cached, folded, waited, took):
        self.estimate, self.sent, self.cached, self.folded = estimate, sent, cached, folded
        self.waited, self.took = waited, took


class Conversation:
    """A client, a proxy before a model, and what they say to each other."""

    def __init__(self, args, client, window, place, config):
        self.args, self.window, self.place = args, window, place
        place.mkdir(parents=True)
        (place / "config.yaml").write_text(config)
        self.env = {
            **os.environ, "INFOLD_CONFIG": str(place / "config.yaml"), "INFOLD_CONTEXTS": str(place / "contexts"),
        }
        self.services = []
        port = free_port()
        self.direct = f"http://127.0.0.1:{port}"
        model = [args.python, HERE / "real-model.py", args.model, str(window), str(port)]
        self.start("model", model, r"(?m)^ready$")
        serve = [args.infold, "serve", "--port", "0", "--upstream", self.direct, "--trace", "json"]
        self.proxy = self.start("infold", serve, r"(?:ready|listening) (?:at|on) (http://127\.0\.0\.1:\d+)").said
        self.client = client(self.proxy)
        self.turns = []

    def start(self, name, command, ready):
        service = Service(command, self.place / f"{name}.trace", ready, self.env)
        self.services.append(service)
        return service

    def stop(self):
        for service in reversed(self.services):
            service.stop()

    def talk(self, turns, most):
        """Takes turns; an error of any kind ends it all."""
        folds = 0
        for turn in range(1, turns + 1):
            began = time.monotonic()
            headers, said, end, sent, cached, first = self.client.say(question(turn, self.window), most)
            ended = time.monotonic()
            if not end:
                sys.exit(f"{self.client.name}: the reply of turn {turn} has no end")
            before, folds = folds, self.counted("infold_folds_total")
            estimate = int(headers["x-infold-tokens-after"])
            waited = (first or ended) - began
            self.turns.append(Turn(estimate, sent, cached, folds > before, waited, ended - began))

    def counted(self, name, label=""):
        """A counter of the proxy: all of it, or what has such a label."""
        with urllib.request.urlopen(self.proxy + "/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if re.match(rf"{name}(?:[ ]|{{.*{label})", line))

    def errors(self):
        """Answers to the client that are none, and failures that it never saw."""
        seen = sum(self.counted("infold_requests_total", f'status="{kind}xx"') for kind in (4, 5))
        return seen, self.counted("infold_failures_total")

    def refused(self):
        """Without the proxy: from which turn on does the model refuse the client's requests, and how?"""
        straight, why, from_turn = type(self.client)(self.direct), None, None
        messages = self.client.messages
        asked = [place for place, message in enumerate(messages) if message["role"] == "user"]
        for turn in range(len(asked), 0, -1):
            upto = messages[: asked[turn - 1] + 1]
            # One that fits would be read, which takes long.
            if self.size(upto) <= self.window:
                break
            try:
                straight.send(upto)
            except (openai.BadRequestError, anthropic.BadRequestError) as error:
                from_turn, why = turn, error
            else:
                sys.exit(f"{self.client.name}: turn {turn} is too long, and was not refused")
        return from_turn, why

    def size(self, messages):
        """What a request comes to, as the model counts."""
        system = {} if messages[0]["role"] == "system" else {"system": SYSTEM}
        body = json.dumps({"model": "smollm2", "messages": messages, **system}).encode()
        request = urllib.request.Request(
            self.direct + "/v1/messages/count_tokens", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["input_tokens"]

    def infold(self, *words):
        done = subprocess.run([self.args.infold, *words], env=self.env, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"infold {' '.join(words)} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def check(self):
        """Is all that was said kept, as one task, and in order?"""
        tasks = [json.loads(line)["uuid"] for line in self.infold("task", "list", "--json").splitlines()]
        if len(tasks) != 1:
            sys.exit(f"{self.client.name}: {len(tasks)} tasks, where there was one conversation")
        self.infold("verify", tasks[0])
        log = [json.loads(line) for line in self.infold("log", tasks[0], "--json").splitlines()]
        kept = [entry["message"] for entry in log if entry.get("role") in ("user", "assistant")]
        said = [message for message in self.client.messages if message["role"] != "system"]
        if [text(message) for message in kept] != [text(message) for message in said]:
            sys.exit(f"{self.client.name}: {len(kept)} messages are kept, {len(said)} were said, or they differ")
        self.log = log
        return len(kept)


def text(message):
    content = message["content"]
    if isinstance(content, str):
        return message["role"], content
    return message["role"], "".join(block.get("text", "") for block in content)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def share(turns):
    return sum(turn.cached for turn in turns) / max(1, sum(turn.sent for turn in turns))


def read_again(turns):
    """Tokens of the turn before that the model had to read once more, where nothing was folded."""
    pairs = zip(turns, turns[1:])
    return sum(max(0, before.sent - turn.cached) for before, turn in pairs if not turn.folded)


def off(turns):
    return sum(abs(turn.estimate - turn.sent) / turn.sent for turn in turns) / len(turns)


def report(talk, turns):
    """Prints what came of a conversation; returns what is wrong with it."""
    kept = talk.check()
    refused, why = talk.refused()
    steady = [turn for turn in talk.turns[1:] if not turn.folded]
    folded = [turn for turn in talk.turns if turn.folded]
    seen, failures = talk.errors()
    again = talk.counted("infold_overflow_retries_total")
    largest = max(turn.sent for turn in talk.turns)
    between = statistics.median(turn.waited for turn in steady)
    with_one = statistics.median(turn.waited for turn in folded) if folded else 0
    lines = [
        f"{talk.client.name}, {talk.window} tokens:",
        f"  directly:   its requests are refused from turn {refused} on: {why}",
        f"  by infold:  {len(talk.turns)} turns answered in {sum(turn.took for turn in talk.turns):.0f} s, {seen:.0f} errors",
        f"  kept:       {kept} messages in one task, which is sound",
        f"  folds:      {len(folded)} turns folded, {again:.0f} requests sent again as too long, {failures:.0f} failures",
        f"  largest:    {largest} of {talk.window} tokens",
        f"  cached:     {share(steady):.1%} of what was sent between folds, {share(talk.turns):.1%} over all turns;"
        f" {read_again(talk.turns)} tokens read again between folds",
        f"  estimate:   off by {off(talk.turns[:1]):.1%} at first, {off(talk.turns[-10:]):.1%} over the last ten turns",
        f"  first word: after {between:.1f} s between folds, {with_one:.1f} s with one (median)",
    ]
    print("\n".join(lines), flush=True)
    wrong = [
        (refused is None, "the conversation fits without infold"),
        (len(talk.turns) != turns or kept != 2 * turns, "turns are missing"),
        (largest > talk.window, "a request was larger than the window"),
        (not folded, "nothing was folded"),
        (seen + failures > 0, "something failed on the way"),
        (share(steady) < 0.85, "the prefix did not stay the same between folds"),
    ]
    return [f"{talk.client.name}, {talk.window} tokens: {what}" for found, what in wrong if found]


def converse(args, client, window, place):
    """A whole conversation, on services of its own."""
    # A model this small takes minutes for a summary.
    talk = Conversation(args, client, window, place, "summarizer: extractive\n")
    try:
        # What is written is read faster than a long conversation is.
        talk.talk(args.turns, 16 if window <= 1024 else 12)
        return report(talk, args.turns)
    finally:
        talk.stop()


def summarise(args, place):
    """A shorter one, in which the model itself writes summaries, as is usual where no key is needed."""
    turns = 24
    talk = Conversation(args, OpenAI, 1024, place, "summarizer: model\n")
    try:
        talk.talk(turns, 16)
        talk.check()
        calls = [entry["what"] for entry in talk.log if "for a summary" in entry.get("what", "")]
        folded = sum(turn.folded for turn in talk.turns)
        seen, failures = talk.errors()
        waits = sorted(turn.waited for turn in talk.turns)
        added = talk.counted("infold_added_seconds_sum")
        print(f"openai, 1024 tokens, summaries by the model: {turns} turns, {folded} of them folded, {seen:.0f} errors")
        print(f"  the model wrote {len(calls)} times ({'; '.join(calls)})")
        print(f"  first word: after {statistics.median(waits):.1f} s, at most {waits[-1]:.1f} s; infold itself added {added:.2f} s in all")
        wrong = [(not folded, "nothing was folded"), (not calls, "the model wrote nothing"), (seen + failures > 0, "something failed")]
        return [f"summaries by the model: {what}" for found, what in wrong if found]
    finally:
        talk.stop()


def mistake(args, place):
    """A shorter one, in which infold is told a window that the model does not have."""
    turns = 24
    talk = Conversation(args, Anthropic, 1024, place, WRONG)
    try:
        talk.talk(turns, 16)
        talk.check()
        again, (seen, failures) = talk.counted("infold_overflow_retries_total"), talk.errors()
        print(
            f"anthropic, 1024 tokens, where infold is told 8192: {turns} turns, {seen:.0f} errors;"
            f" {again:.0f} refused by the model, folded and sent again",
            flush=True,
        )
        wrong = [(not again, "nothing was sent again"), (seen + failures > 0, "something failed")]
        return [f"a wrong window: {what}" for found, what in wrong if found]
    finally:
        talk.stop()


def ended(*_):
    """Somebody ends this: what was started ends too."""
    for service in list(Service.running):
        service.process.kill()
    os._exit(1)


def at_once(works):
    """Does all of it at once; returns what is wrong."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        done = [pool.submit(*work) for work in works]
        try:
            return [what for one in concurrent.futures.as_completed(done) for what in one.result()]
        except BaseException:
            traceback.print_exc()
            ended()


def main():
    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGINT, ended)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("infold", help="the command")
    parser.add_argument("python", help="the one that has the model's server")
    parser.add_argument("model", help="the model's file")
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--windows", type=int, nargs="*", default=[1024, 8192])
    parser.add_argument("--clients", nargs="+", default=["openai", "anthropic"])
    args = parser.parse_args()
    clients = [client for client in (OpenAI, Anthropic) if client.name in args.clients]
    place = Path(tempfile.mkdtemp(prefix="real-proxy-"))
    wrong = []
    for window in args.windows:
        wrong += at_once(
            (converse, args, client, window, place / f"{client.name}-{window}") for client in clients
        )
    wrong += at_once([(summarise, args, place / "summaries"), (mistake, args, place / "mistake")])
    if wrong:
        sys.exit("\n".join(wrong) + f"\ntraces are in {place}")
    shutil.rmtree(place)


if __name__ == "__main__":
    main()

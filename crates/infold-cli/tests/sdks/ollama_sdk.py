"""Ollama's chat, as the ollama client reads and writes it."""

import ollama
from ollama._types import ChatRequest

import shared

HELLO = [{"role": "user", "content": "Hello"}]


class Lines:
    stops = {"stop": "end", "length": "length"}

    def __init__(self, client):
        self.client = client

    def streamed(self, name):
        lines = list(self.client.chat(model=name, messages=HELLO, stream=True))
        said = [line.message for line in lines]
        message = ollama.Message(
            role=said[0].role,
            content="".join(it.content or "" for it in said),
            thinking="".join(it.thinking or "" for it in said) or None,
            tool_calls=[call for it in said for call in it.tool_calls or []] or None,
        )
        return self.parsed(message, lines[-1])

    def whole(self, name):
        reply = self.client.chat(model=name, messages=HELLO)
        return self.parsed(reply.message, reply)

    def parsed(self, message, last):
        stop = self.stops[last.done_reason]
        if stop == "end" and message.tool_calls:
            stop = "calls"
        return self.message(message) | {
            "stop": stop,
            "usage": shared.usage(last.prompt_eval_count, 0, last.eval_count),
        }

    def recorded(self, messages):
        [message] = messages
        return self.message(ollama.Message.model_validate(message))

    def message(self, message):
        return {
            "role": message.role,
            "text": message.content,
            "reasoning": message.thinking,
            "calls": [{"name": it.function.name, "arguments": it.function.arguments} for it in message.tool_calls or []],
        }

    def check(self, body):
        # Servers have ids of calls by now; this client has no type for them.
        for message in body["messages"]:
            message.pop("tool_call_id", None)
            for call in message.get("tool_calls", []):
                call.pop("id", None)
        request = ChatRequest.model_validate(body)
        # These types drop what they do not know, so what is left must be all there was.
        sent = request.model_dump(mode="json", exclude_none=True, exclude_unset=True)
        sent["messages"] = [typed(it).model_dump(mode="json", exclude_none=True, exclude_unset=True) for it in body["messages"]]
        if sent != body:
            return f"the client knows only {sent} of {body}"

    def talk(self):
        tools = [
            {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
            for name, about, schema in shared.TOOLS
        ]
        messages = [
            {"role": "system", "content": shared.SYSTEM},
            {"role": "user", "content": shared.ASKED, "images": [shared.PICTURE]},
        ]

        def say(model, tools=tools):
            reply = self.client.chat(model=model, messages=messages, tools=tools)
            messages.append(reply.message)
            return reply.message

        called = say("talk-1")
        for call, result in zip(called.tool_calls, shared.RESULTS):
            messages.append({"role": "tool", "content": result, "tool_name": call.function.name})
        say("talk-2")
        messages.append({"role": "user", "content": shared.MORE})
        # It has no choice of tools: where none may be called, none are shown.
        say("talk-3", tools=None)


def typed(message):
    """A message of the client's type, pictures included."""
    pictures = [ollama.Image(value=it) for it in message.get("images", [])]
    return ollama.Message.model_validate(message | ({"images": pictures} if pictures else {}))


def wires(url):
    return {"ollama": Lines(ollama.Client(host=url))}


shared.run(wires)

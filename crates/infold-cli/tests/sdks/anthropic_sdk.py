"""Messages, as the anthropic client reads and writes them."""

import anthropic
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming

import shared

HELLO = [{"role": "user", "content": "Hello"}]


class Messages:
    stops = {"end_turn": "end", "stop_sequence": "end", "max_tokens": "length", "tool_use": "calls", "refusal": "declined"}
    checks = {
        True: shared.strict(MessageCreateParamsStreaming),
        False: shared.strict(MessageCreateParamsNonStreaming),
    }

    def __init__(self, client):
        self.client = client

    def streamed(self, name):
        with self.client.messages.stream(model=name, max_tokens=100, messages=HELLO) as stream:
            return self.parsed(stream.get_final_message())

    def whole(self, name):
        return self.parsed(self.client.messages.create(model=name, max_tokens=100, messages=HELLO))

    def parsed(self, message):
        used = message.usage
        read, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
        return self.message(message.content) | {
            "stop": self.stops[message.stop_reason],
            "usage": shared.usage(used.input_tokens + read + written, read, used.output_tokens),
        }

    def recorded(self, messages):
        [message] = messages
        shell = {"id": "", "type": "message", "model": "", "stop_reason": None, "usage": {"input_tokens": 0, "output_tokens": 0}}
        return self.message(Message.model_validate(shell | message).content)

    def message(self, blocks):
        return {
            "text": "".join(it.text for it in blocks if it.type == "text"),
            "reasoning": "".join(it.thinking for it in blocks if it.type == "thinking"),
            "calls": [{"id": it.id, "name": it.name, "arguments": it.input} for it in blocks if it.type == "tool_use"],
            # Everything, in its order.
            "blocks": [it.to_dict(exclude_none=True) for it in blocks],
        }

    def check(self, body):
        return self.checks[body.get("stream", False)](body)

    def talk(self):
        tools = [{"name": name, "description": about, "input_schema": schema} for name, about, schema in shared.TOOLS]
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": shared.PICTURE}}
        messages = [{"role": "user", "content": [{"type": "text", "text": shared.ASKED}, picture]}]

        def say(model, choice):
            reply = self.client.messages.create(
                model=model, max_tokens=100, system=shared.SYSTEM, messages=messages, tools=tools, tool_choice=choice)
            messages.append({"role": "assistant", "content": reply.content})
            return reply.content

        called = [block for block in say("talk-1", {"type": "auto"}) if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call, result in zip(called, shared.RESULTS)
        ]
        messages.append({"role": "user", "content": results})
        say("talk-2", {"type": "tool", "name": "read"})
        messages.append({"role": "user", "content": shared.MORE})
        say("talk-3", {"type": "none"})


def wires(url):
    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    return {"anthropic": Messages(client)}


shared.run(wires)

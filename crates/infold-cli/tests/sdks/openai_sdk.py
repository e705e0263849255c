"""Chat completions and Responses, as the openai client reads and writes them."""

import json

import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming
from openai.types.responses import ResponseOutputItem
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming, ResponseCreateParamsStreaming
from pydantic import TypeAdapter

import shared

HELLO = [{"role": "user", "content": "Hello"}]


class Chat:
    stops = {"stop": "end", "length": "length", "tool_calls": "calls", "content_filter": "declined"}
    checks = {
        True: shared.strict(CompletionCreateParamsStreaming),
        False: shared.strict(CompletionCreateParamsNonStreaming),
    }

    def __init__(self, client):
        self.client = client

    def streamed(self, name):
        state = ChatCompletionStreamState()
        chunks = self.client.chat.completions.create(
            model=name, messages=HELLO, stream=True, stream_options={"include_usage": True})
        for chunk in chunks:
            state.handle_chunk(chunk)
        return self.parsed(state.current_completion_snapshot)

    def whole(self, name):
        return self.parsed(self.client.chat.completions.create(model=name, messages=HELLO))

    def parsed(self, completion):
        choice = completion.choices[0]
        used = completion.usage
        stop = self.stops[choice.finish_reason]
        # A refusal is a stop like any other to the service; the message tells.
        if stop == "end" and choice.message.refusal:
            stop = "declined"
        cached = used.prompt_tokens_details.cached_tokens if used.prompt_tokens_details else 0
        return self.message(choice.message) | {
            "stop": stop,
            "usage": shared.usage(used.prompt_tokens, cached, used.completion_tokens),
        }

    def recorded(self, messages):
        [message] = messages
        return self.message(ChatCompletionMessage.model_validate(message))

    def message(self, message):
        calls = [{"id": it.id, "name": it.function.name, "arguments": it.function.arguments} for it in message.tool_calls or []]
        return {
            "role": message.role,
            "text": message.content,
            "refusal": message.refusal,
            "reasoning": getattr(message, "reasoning_content", None),
            "calls": calls,
            "cited": [it.to_dict() for it in message.annotations or []],
        }

    def check(self, body):
        # DeepSeek's member, which its models want back; the client has no type for it.
        for message in body["messages"]:
            message.pop("reasoning_content", None)
        return self.checks[body["stream"]](body)

    def talk(self):
        tools = [
            {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
            for name, about, schema in shared.TOOLS
        ]
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{shared.PICTURE}"}}
        messages = [
            {"role": "system", "content": shared.SYSTEM},
            {"role": "user", "content": [{"type": "text", "text": shared.ASKED}, picture]},
        ]

        def say(model, choice):
            reply = self.client.chat.completions.create(model=model, messages=messages, tools=tools, tool_choice=choice)
            messages.append(reply.choices[0].message)
            return messages[-1]

        called = say("talk-1", "auto")
        for call, result in zip(called.tool_calls, shared.RESULTS):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        say("talk-2", {"type": "function", "function": {"name": "read"}})
        messages.append({"role": "user", "content": shared.MORE})
        say("talk-3", "none")


class Responses:
    items = TypeAdapter(list[ResponseOutputItem])
    checks = {
        True: shared.strict(ResponseCreateParamsStreaming),
        False: shared.strict(ResponseCreateParamsNonStreaming),
    }

    def __init__(self, client):
        self.client = client

    def streamed(self, name):
        with self.client.responses.stream(model=name, input="Hello") as stream:
            for event in stream:
                last = event
        return self.parsed(last.response)

    def whole(self, name):
        return self.parsed(self.client.responses.create(model=name, input="Hello"))

    def parsed(self, response):
        kinds = [item.type for item in response.output]
        refused = any(part.type == "refusal" for item in response.output if item.type == "message" for part in item.content)
        if response.status == "incomplete":
            stop = {"max_output_tokens": "length", "content_filter": "declined"}[response.incomplete_details.reason]
        else:
            stop = "calls" if "function_call" in kinds else "declined" if refused else "end"
        used = response.usage
        return self.message(response.output) | {
            "stop": stop,
            "usage": shared.usage(used.input_tokens, used.input_tokens_details.cached_tokens, used.output_tokens),
        }

    def recorded(self, messages):
        return self.message(self.items.validate_python(messages))

    def message(self, items):
        return {
            "text": "".join(
                getattr(part, "text", "") for item in items if item.type == "message" for part in item.content),
            "reasoning": [part.text for item in items if item.type == "reasoning" for part in item.summary],
            "calls": [
                {"id": it.call_id, "name": it.name, "arguments": json.loads(it.arguments)}
                for it in items if it.type == "function_call"],
            # Everything, in its order; the client adds members of its own where it parses.
            "items": [without(item.to_dict(), ["parsed", "parsed_arguments"]) for item in items],
        }

    def check(self, body):
        return self.checks[body["stream"]](body)

    def talk(self):
        tools = [
            {"type": "function", "name": name, "description": about, "parameters": schema, "strict": False}
            for name, about, schema in shared.TOOLS
        ]
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{shared.PICTURE}", "detail": "auto"}
        input = [
            {"role": "system", "content": shared.SYSTEM},
            {"role": "user", "content": [{"type": "input_text", "text": shared.ASKED}, picture]},
        ]

        def say(model, choice):
            reply = self.client.responses.create(model=model, input=input, tools=tools, tool_choice=choice, store=False)
            input.extend(reply.output)
            return reply.output

        called = [item for item in say("talk-1", "auto") if item.type == "function_call"]
        for call, result in zip(called, shared.RESULTS):
            input.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
        say("talk-2", {"type": "function", "name": "read"})
        input.append({"role": "user", "content": shared.MORE})
        say("talk-3", "none")


def without(value, names):
    if isinstance(value, dict):
        return {key: without(it, names) for key, it in value.items() if key not in names}
    if isinstance(value, list):
        return [without(it, names) for it in value]
    return value


def wires(url):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    return {"chat": Chat(client), "responses": Responses(client)}


shared.run(wires)

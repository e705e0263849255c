#!/usr/bin/env python3
"""One conversation with a provider's own SDK: each prompt in turn, tools run as they are called.

Usage: sdk.py KIND BASE_URL PROMPT…    (in a virtual environment that has the SDK)

Prints what the model said to each prompt, one JSON string a line. Written as the SDK's own
documentation would have it: what a reply was is what is sent back. Every other prompt streams.
"""

import json
import subprocess
import sys

MODEL = "testkit"
KEY = "no-key"
SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string", "description": "What to run"}},
    "required": ["command"],
}
SYSTEM = "You are a careful assistant. You run commands when asked."
WHAT = "Runs a command and returns what it printed"


def shell(command: str) -> str:
    """Runs a command and returns what it printed."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def openai_chat(base, prompts):
    from openai import OpenAI

    client = OpenAI(base_url=base + "/v1", api_key=KEY, max_retries=0)
    tools = [{"type": "function", "function": {"name": "shell", "description": WHAT, "parameters": SCHEMA}}]
    messages = [{"role": "system", "content": SYSTEM}]
    for number, prompt in enumerate(prompts):
        messages.append({"role": "user", "content": prompt})
        while True:
            given = dict(model=MODEL, messages=messages, tools=tools, max_completion_tokens=MOST)
            if number % 2:
                with client.chat.completions.stream(**given, stream_options={"include_usage": True}) as stream:
                    said = stream.get_final_completion().choices[0].message
            else:
                said = client.chat.completions.create(**given).choices[0].message
            messages.append(said)
            if not said.tool_calls:
                break
            for call in said.tool_calls:
                result = shell(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        yield said.content


def openai_responses(base, prompts):
    from openai import OpenAI

    client = OpenAI(base_url=base + "/v1", api_key=KEY, max_retries=0)
    tools = [{"type": "function", "name": "shell", "description": WHAT, "parameters": SCHEMA, "strict": False}]
    items = []
    for number, prompt in enumerate(prompts):
        items.append({"role": "user", "content": prompt})
        while True:
            given = dict(model=MODEL, instructions=SYSTEM, input=items, tools=tools, store=False)
            if number % 2:
                with client.responses.stream(**given) as stream:
                    reply = stream.get_final_response()
            else:
                reply = client.responses.create(**given)
            items += reply.output
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                result = shell(**json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
        yield reply.output_text


def anthropic(base, prompts):
    from anthropic import Anthropic

    client = Anthropic(base_url=base, api_key=KEY, max_retries=0)
    tools = [{"name": "shell", "description": WHAT, "input_schema": SCHEMA}]
    messages = []
    for number, prompt in enumerate(prompts):
        messages.append({"role": "user", "content": prompt})
        while True:
            given = dict(model="claude-testkit", max_tokens=MOST, system=SYSTEM, messages=messages, tools=tools)
            if number % 2:
                with client.messages.stream(**given) as stream:
                    reply = stream.get_final_message()
            else:
                reply = client.messages.create(**given)
            messages.append({"role": "assistant", "content": reply.content})
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                break
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": shell(**call.input)} for call in calls
            ]
            messages.append({"role": "user", "content": results})
        client.messages.count_tokens(model="claude-testkit", messages=messages)
        yield "".join(block.text for block in reply.content if block.type == "text")


def gemini(base, prompts):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key=KEY, http_options={"base_url": base})
    config = types.GenerateContentConfig(system_instruction=SYSTEM, tools=[shell], max_output_tokens=MOST)
    # The chat keeps the history, and runs the tools by itself.
    chat = client.chats.create(model="gemini-2.5-flash", config=config)
    for number, prompt in enumerate(prompts):
        if number % 2:
            yield "".join(chunk.text or "" for chunk in chat.send_message_stream(prompt))
        else:
            yield chat.send_message(prompt).text


def ollama(base, prompts):
    from ollama import Client

    client = Client(host=base)
    messages = [{"role": "system", "content": SYSTEM}]
    for number, prompt in enumerate(prompts):
        messages.append({"role": "user", "content": prompt})
        while True:
            given = dict(model=MODEL, messages=messages, tools=[shell])
            if number % 2:
                text, calls = "", []
                for part in client.chat(**given, stream=True):
                    text += part.message.content or ""
                    calls += part.message.tool_calls or []
                said = {"role": "assistant", "content": text}
                if calls:
                    said["tool_calls"] = calls
            else:
                said = client.chat(**given).message
                text, calls = said.content, said.tool_calls
            messages.append(said)
            if not calls:
                break
            for call in calls:
                result = shell(**call.function.arguments)
                messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
        yield text


MOST = 512
KINDS = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "ollama": ollama,
}

if __name__ == "__main__":
    kind, base, *asked = sys.argv[1:]
    for answer in KINDS[kind](base, asked):
        print(json.dumps(answer), flush=True)

"""A tool loop and what follows it, streamed, on a provider that speaks another API."""

import json
import sys

import shared

ASKED, MORE = "What is there?", "Thanks."
# Turns before that, as many as the job asks for.
OPENING = []
# The tool that is called, and others that the job asks for.
NAMES = ["ls"]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def anthropic(url):
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="sk-of-the-client", max_retries=0)
    tools = [{"name": name, "description": "Lists", "input_schema": SCHEMA} for name in NAMES]
    messages = [*OPENING, {"role": "user", "content": ASKED}]
    said = []

    def turn():
        with client.messages.stream(model="m", max_tokens=300, system="Be brief.", tools=tools, messages=messages) as stream:
            text = "".join(stream.text_stream)
            reply = stream.get_final_message()
        messages.append({"role": "assistant", "content": reply.content})
        said.append([text, reply.stop_reason, reply.usage.output_tokens > 0])
        return reply

    [call] = [it for it in turn().content if it.type == "tool_use"]
    said.append(call.input)
    messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "a.txt"}]})
    turn()
    messages.append({"role": "user", "content": MORE})
    turn()
    said.append(client.messages.count_tokens(model="m", messages=messages).input_tokens > 0)
    return said


def openai(url):
    import openai

    client = openai.OpenAI(base_url=url + "/v1", api_key="sk-of-the-client", max_retries=0)
    tools = [{"type": "function", "function": {"name": name, "description": "Lists", "parameters": SCHEMA}} for name in NAMES]
    messages = [{"role": "system", "content": "Be brief."}, *OPENING, {"role": "user", "content": ASKED}]
    said = []

    def turn():
        usage = {"include_usage": True}
        with client.chat.completions.stream(model="m", messages=messages, tools=tools, stream_options=usage) as stream:
            text = "".join(it.delta for it in stream if it.type == "content.delta")
            whole = stream.get_final_completion()
        reply = whole.choices[0]
        message = reply.message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
        for call in message.get("tool_calls", []):
            call.pop("index", None)
            call["function"].pop("parsed_arguments", None)
        messages.append(message)
        said.append([text, reply.finish_reason, whole.usage.completion_tokens > 0])
        return reply.message

    [call] = turn().tool_calls
    said.append(json.loads(call.function.arguments))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "a.txt"})
    turn()
    messages.append({"role": "user", "content": MORE})
    turn()
    return said


def responses(url):
    import openai

    client = openai.OpenAI(base_url=url + "/v1", api_key="sk-of-the-client", max_retries=0)
    tools = [{"type": "function", "name": name, "description": "Lists", "parameters": SCHEMA, "strict": False} for name in NAMES]
    items = [*OPENING, {"role": "user", "content": ASKED}]
    said = []

    def turn():
        with client.responses.stream(model="m", instructions="Be brief.", input=items, tools=tools, store=False) as stream:
            text = "".join(it.delta for it in stream if it.type == "response.output_text.delta")
            reply = stream.get_final_response()
        items.extend(it.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for it in reply.output)
        for item in items:
            for part in item["content"] if isinstance(item.get("content"), list) else []:
                part.pop("parsed", None)
        said.append([text, reply.status, reply.usage.output_tokens > 0])
        return reply

    [call] = [it for it in turn().output if it.type == "function_call"]
    said.append(json.loads(call.arguments))
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "a.txt"})
    turn()
    items.append({"role": "user", "content": MORE})
    turn()
    return said


def gemini(url):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="key-of-the-client", http_options={"base_url": url})
    tools = [{"function_declarations": [{"name": name, "description": "Lists", "parameters_json_schema": SCHEMA} for name in NAMES]}]
    config = {"system_instruction": "Be brief.", "tools": tools, "automatic_function_calling": {"disable": True}}
    roles = {"user": "user", "assistant": "model"}
    contents = [types.Content(role=roles[it["role"]], parts=[types.Part(text=it["content"])]) for it in OPENING]
    contents.append(types.Content(role="user", parts=[types.Part(text=ASKED)]))
    said = []

    def turn():
        parts, text, last = [], "", None
        for last in client.models.generate_content_stream(model="m", contents=contents, config=config):
            new = last.candidates[0].content.parts or []
            parts.extend(part for part in new if part.text != "")
            text += "".join(part.text or "" for part in new)
        contents.append(types.Content(role="model", parts=parts))
        said.append([text, last.candidates[0].finish_reason.name, last.usage_metadata.candidates_token_count > 0])
        return parts

    [call] = [part.function_call for part in turn() if part.function_call]
    said.append(call.args)
    answer = types.FunctionResponse(id=call.id, name=call.name, response={"output": "a.txt"})
    contents.append(types.Content(role="user", parts=[types.Part(function_response=answer)]))
    turn()
    contents.append(types.Content(role="user", parts=[types.Part(text=MORE)]))
    turn()
    return said


def ollama(url):
    import ollama

    client = ollama.Client(host=url)
    tools = [{"type": "function", "function": {"name": name, "description": "Lists", "parameters": SCHEMA}} for name in NAMES]
    messages = [{"role": "system", "content": "Be brief."}, *OPENING, {"role": "user", "content": ASKED}]
    said = []

    def turn():
        text, calls, last = "", [], None
        for last in client.chat(model="m", messages=messages, tools=tools, stream=True):
            text += last.message.content or ""
            calls.extend(last.message.tool_calls or [])
        reply = ollama.Message(role="assistant", content=text, tool_calls=calls or None)
        messages.append(reply)
        said.append([text, last.done_reason, last.eval_count > 0])
        return calls

    [call] = turn()
    said.append(dict(call.function.arguments))
    messages.append({"role": "tool", "tool_name": call.function.name, "content": "a.txt"})
    turn()
    messages.append({"role": "user", "content": MORE})
    turn()
    return said


if __name__ == "__main__":
    sys.addaudithook(shared.only_loopback)
    job = json.load(sys.stdin)
    OPENING.extend(job.get("opening", []))
    NAMES.extend(job.get("tools", []))
    json.dump(shared.guarded(lambda: globals()[job["client"]](job["url"])), sys.stdout)

"""generateContent, as the google-genai client reads and writes it."""

import base64

from google import genai
from google.genai import types
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

import shared


class Request(BaseModel):
    """The body of a request, of the client's own types."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")

    contents: list[types.Content]
    system_instruction: types.Content | None = None
    tools: list[types.Tool] | None = None
    tool_config: types.ToolConfig | None = None
    generation_config: types.GenerationConfig | None = None


class Contents:
    stops = {"STOP": "end", "MAX_TOKENS": "length", "SAFETY": "declined"}

    def __init__(self, client):
        self.client = client

    def streamed(self, name):
        chunks = list(self.client.models.generate_content_stream(model=name, contents="Hello"))
        parts = [part for chunk in chunks for it in chunk.candidates for part in it.content.parts or []]
        return self.parsed(parts, chunks[-1])

    def whole(self, name):
        response = self.client.models.generate_content(model=name, contents="Hello")
        return self.parsed(response.candidates[0].content.parts, response)

    def parsed(self, parts, last):
        used = last.usage_metadata
        stop = self.stops[last.candidates[0].finish_reason.value]
        if stop == "end" and any(part.function_call for part in parts):
            stop = "calls"
        output = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
        return self.message(parts) | {
            "stop": stop,
            "usage": shared.usage(used.prompt_token_count, used.cached_content_token_count or 0, output),
        }

    def recorded(self, messages):
        [message] = messages
        return self.message(types.Content.model_validate(message).parts)

    def message(self, parts):
        calls = [part.function_call for part in parts if part.function_call]
        return {
            "text": "".join(part.text for part in parts if part.text and not part.thought),
            "reasoning": "".join(part.text for part in parts if part.text and part.thought),
            "calls": [{"id": it.id, "name": it.name, "arguments": it.args} for it in calls],
            # Everything, in its order; pieces of one text as one.
            "parts": joined([part.model_dump(mode="json", exclude_none=True) for part in parts]),
        }

    def check(self, body):
        Request.model_validate(body)

    def talk(self):
        tools = [types.Tool(function_declarations=[
            types.FunctionDeclaration(name=name, description=about, parameters_json_schema=schema)
            for name, about, schema in shared.TOOLS
        ])]
        contents = [types.Content(role="user", parts=[
            types.Part.from_text(text=shared.ASKED),
            types.Part.from_bytes(data=base64.b64decode(shared.PICTURE), mime_type="image/png"),
        ])]

        def say(model, mode, names=None):
            calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=names)
            config = types.GenerateContentConfig(
                system_instruction=shared.SYSTEM,
                tools=tools,
                tool_config=types.ToolConfig(function_calling_config=calling),
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            )
            reply = self.client.models.generate_content(model=model, contents=contents, config=config)
            contents.append(reply.candidates[0].content)
            return reply.function_calls

        called = say("talk-1", "AUTO")
        contents.append(types.Content(role="user", parts=[
            types.Part.from_function_response(name=call.name, response={"result": result})
            for call, result in zip(called, shared.RESULTS)
        ]))
        say("talk-2", "ANY", ["read"])
        contents.append(types.Content(role="user", parts=[types.Part.from_text(text=shared.MORE)]))
        say("talk-3", "NONE")


def joined(parts):
    made = []
    for part in parts:
        bare = set(part) <= {"text", "thought"}
        last = made[-1] if made else None
        if bare and last and set(last) == set(part):
            last["text"] += part["text"]
        elif not (bare and part.get("text") == ""):
            made.append(part)
    return made


def wires(url):
    options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1))
    client = genai.Client(api_key="k", vertexai=False, http_options=options)
    return {"gemini": Contents(client)}


shared.run(wires)

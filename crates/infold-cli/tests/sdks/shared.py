"""What the comparison with each official client needs: a job in, findings out."""

import collections
import collections.abc
import json
import os
import sys
import types
import typing

import pydantic
import typing_extensions

# A picture of one point, and what the tools of the talk are.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SYSTEM = "You are careful. 🦉"
ASKED = "What is in this picture, and who made it?"
MORE = "Und jetzt? \"Quoted\" \\ and\nin two lines."
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
    "required": ["path"],
}
TOOLS = [("read", "Reads a file", SCHEMA), ("who", "Says who made it", {"type": "object", "properties": {"path": {"type": "string"}}})]
RESULTS = ["fn main() {}\n// ünïcode 🚀", "ada"]


def only_loopback(event, arguments):
    """Nothing here may reach beyond this machine."""
    if event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in ("127.0.0.1", "::1"):
        raise RuntimeError(f"a client connects to {arguments[1]}")


def run(wires):
    """Reads a job, does the part of each wire, and prints what was found."""
    sys.addaudithook(only_loopback)
    job = json.load(sys.stdin)
    found = {"replies": [], "requests": []}
    for name, wire in wires(job["url"]).items():
        for reply in job[name]["replies"]:
            for how, sdk in (("streamed", wire.streamed), ("whole", wire.whole)):
                ours = reply[how]
                found["replies"].append({
                    "name": f"{name}/{reply['name']}/{how}",
                    "sdk": guarded(lambda: sdk(reply["name"])),
                    "infold": guarded(lambda: wire.recorded(ours["messages"]) | {"stop": ours["stop"], "usage": ours["usage"]}),
                })
        for request in job[name]["requests"]:
            found["requests"].append({"name": f"{name}/{request['name']}", "wrong": guarded(lambda: wire.check(request["body"]))})
        wire.talk()
    json.dump(found, sys.stdout)


def guarded(work):
    """What fails is a finding like any other."""
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def usage(sent, cached, output):
    return {"tokens": sent + output, "cached": cached, "output": output}


def strict(params):
    """The check for a client's own type of a request: all members known, lists read to their end."""
    known = {}

    def tightened(type_):
        if typing_extensions.is_typeddict(type_):
            return of_members(type_)
        origin, arguments = typing.get_origin(type_), typing.get_args(type_)
        if origin is None or origin is typing.Literal:
            return type_
        if origin in (typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired):
            return tightened(arguments[0])
        if origin in (typing.Union, types.UnionType):
            # What a client parsed may be handed back as it is, and takes any member.
            inner = [it for it in arguments if not is_model(it)]
            return typing.Union[tuple(tightened(it) for it in inner)]
        if origin is collections.abc.Iterable or (isinstance(origin, type) and origin.__name__.startswith("Sequence")):
            return list[tightened(arguments[0])]
        return origin[tuple(tightened(it) for it in arguments)]

    def is_model(type_):
        origin = typing.get_origin(type_)
        if origin in (typing.Annotated, typing.Union):
            return is_model(typing.get_args(type_)[0])
        # Files are read before they are sent.
        return origin in (typing.IO, os.PathLike) or isinstance(type_, type) and issubclass(type_, pydantic.BaseModel)

    def of_members(type_):
        if type_ in known:
            return known[type_]
        # Types may hold themselves, so it is known before its members are.
        made = known[type_] = typing_extensions.TypedDict(type_.__name__, {}, total=False)
        hints = typing_extensions.get_type_hints(type_, include_extras=True)
        # Where annotations are texts, the keys of the type do not tell which are required.
        required = {
            name for name, hint in hints.items()
            if typing.get_origin(hint) is typing_extensions.Required
            or name in type_.__required_keys__ and typing.get_origin(hint) is not typing_extensions.NotRequired
        }
        made.__annotations__ = {name: tightened(hint) for name, hint in hints.items()}
        made.__required_keys__ = frozenset(required)
        made.__optional_keys__ = frozenset(hints) - required
        made.__pydantic_config__ = pydantic.ConfigDict(extra="forbid")
        return made

    adapter = pydantic.TypeAdapter(tightened(params))

    def check(body):
        try:
            adapter.validate_python(body, strict=True)
        except pydantic.ValidationError as error:
            return nearest(error.errors())

    return check


def nearest(errors):
    """Of each element, what the kind that it fits best has against it."""
    kinds = collections.defaultdict(lambda: collections.defaultdict(list))
    for error in errors:
        loc = error["loc"]
        at = next((at for at, step in enumerate(loc) if isinstance(step, int)), len(loc) - 1)
        kinds[loc[:at + 1]][loc[at + 1:at + 2]].append(f"{'.'.join(map(str, loc))}: {error['msg']}")
    return [min(kind.values(), key=len) for kind in kinds.values()]

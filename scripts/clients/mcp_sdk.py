"""The official Python client: lists and calls everything, and prints what came as JSON.

Usage: mcp_sdk.py 'JSON of what to call' URL
       mcp_sdk.py 'JSON of what to call' COMMAND ARGUMENT…
"""

import asyncio
import json
import os
import sys

import mcp


async def use(client, plan):
    tools = (await client.list_tools()).tools
    results = {}
    for name, arguments in plan["calls"].items():
        result = await client.call_tool(name, arguments)
        failed = getattr(result, "isError", None) or getattr(result, "is_error", None)
        results[name] = [bool(failed), result.content[0].text]
    resources = (await client.list_resources()).resources
    templates = await client.list_resource_templates()
    templates = getattr(templates, "resourceTemplates", None) or templates.resource_templates
    read = await client.read_resource(resources[-1].uri)
    return {
        "tools": [tool.name for tool in tools],
        "results": results,
        "resources": [str(resource.uri) for resource in resources],
        "templates": len(templates),
        "read": read.contents[0].text,
    }


async def main():
    plan, target = json.loads(sys.argv[1]), sys.argv[2:]
    is_url = target[0].startswith("http")
    command = None if is_url else mcp.StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
    if hasattr(mcp, "Client"):
        async with mcp.Client(target[0] if is_url else command) as client:
            return {"protocol": client.protocol_version, **await use(client, plan)}
    from mcp.client.streamable_http import streamablehttp_client

    transport = streamablehttp_client(target[0]) if is_url else mcp.stdio_client(command)
    async with transport as streams, mcp.ClientSession(streams[0], streams[1]) as client:
        hello = await client.initialize()
        return {"protocol": hello.protocolVersion, **await use(client, plan)}


print(json.dumps(asyncio.run(main())))

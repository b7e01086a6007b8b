"""``shoestring mcp``: the tools of ``agent_tools.py`` over the Model Context Protocol, on standard input and output only.

There is no port and no token: the program that starts it speaks to it through its pipes. The package ``mcp`` (extra ``agents``)
is imported when a server is made.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from ..storage.base import Storage
from ..web.api import Problem
from ..web.catalog import Catalog
from .agent_tools import TOOLS, AgentTool, call

log = logging.getLogger("shoestring")

INSTRUCTIONS = """Shoestring chooses settings for expensive evaluations, such as hyperparameters of a training run.
1. create_study once, with the space and a budget. 2. ask for settings. 3. Evaluate them yourself. 4. tell the value and the cost.
Repeat 2 to 4 until expect_next says stop_now, or ask says that the budget is used up. summary has the best settings.
An error says how to fix the call."""
BY_NAME = {tool.name: tool for tool in TOOLS}

Clean = Callable[[str], str]


def make_server(storage: Storage, clean: Clean = str, version: str = "") -> Any:
    """The server of a storage, a ``mcp.server.Server``; ``clean`` is applied to all texts, for example to hide passwords."""
    from anyio import to_thread
    from mcp.server import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

    catalog = Catalog(storage)

    def described(tool: AgentTool) -> Tool:
        hints = ToolAnnotations(
            read_only_hint=tool.read_only, destructive_hint=False, idempotent_hint=tool.read_only or tool.repeatable,
            open_world_hint=False,
        )  # fmt: skip
        return Tool(name=tool.name, description=tool.about, input_schema=tool.schema, annotations=hints)

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[described(tool) for tool in TOOLS])

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        wrong, document = await to_thread.run_sync(answered, catalog, params.name, params.arguments or {})
        shown = cleaned(document, clean)
        text = error_text(shown) if wrong else json.dumps(shown)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=shown, is_error=wrong)

    return Server(
        "shoestring", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def serve_stdio(storage: Storage, clean: Clean = str, version: str = "") -> None:
    """Serve until standard input ends."""
    import anyio
    from mcp.server.stdio import stdio_server

    server = make_server(storage, clean, version)

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)


def answered(catalog: Catalog, name: str, arguments: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether a call was wrong, and its answer or what is wrong with it."""
    tool = BY_NAME.get(name)
    try:
        if tool is None:
            raise Problem(404, f"there is no tool {name[:80]!r}", "name", f"call one of {', '.join(BY_NAME)}")
        check_arguments(tool, arguments)
        return False, call(catalog, tool, arguments)
    except Problem as problem:
        return True, problem.document
    except Exception as error:  # a defect of ours: the agent is told, and the traceback is in the log
        log.exception("the tool %s failed", name)
        what = f"unexpected error: {type(error).__name__}: {error}"
        return True, {"error": what, "where": name, "fix": "report it to the person you work for: shoestring doctor helps"}


def check_arguments(tool: AgentTool, arguments: dict[str, Any]) -> None:
    """Raise Problem for arguments that do not fit the schema of a tool."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    wrong = best_match(Draft202012Validator(tool.schema).iter_errors(arguments))
    if wrong is not None:
        where = ".".join(map(str, wrong.absolute_path)) or "arguments"
        raise Problem(422, wrong.message[:400], where, tool.how_to_call)


def error_text(document: dict[str, Any]) -> str:
    """What is wrong, where, and how to fix it."""
    return f"error: {document['error']}\nwhere: {document['where']}\nfix: {document['fix']}"


def cleaned(document: Any, clean: Clean) -> Any:
    """A JSON document whose texts are cleaned, and which holds no number that JSON has no word for."""
    if isinstance(document, str):
        return clean(document)
    if isinstance(document, dict):
        return {clean(str(name)): cleaned(value, clean) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [cleaned(each, clean) for each in document]
    return None if isinstance(document, float) and document - document != 0.0 else document

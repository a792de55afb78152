"""The Model Context Protocol over HTTP: one message per request, without a session."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from shared.agents.catalogue import BY_NAME, INSTRUCTIONS, TOOLS
from shared.agents.outside import clean
from shared.agents.plans import PLANS
from shared.agents.protocol import McpAnswer, McpMessage, ToolServer, respond
from shared.agents.tools import Desk
from shared.kernel.errors import TrainyardError
from shared.kernel.reply import Caller, CallOperation, Reply
from shared.runs.ports import RunPorts

VERSION = "1"
LONGEST_ERROR = 2000  # characters


def serve_mcp(
    ports: RunPorts, body: McpMessage, headers: Mapping[str, str], caller: Caller, call: CallOperation
) -> Annotated[Reply, {200: McpAnswer, 202: None}]:
    who = f"{caller.auth} {caller.person.id or caller.person.name}"
    desk = Desk(call, ports.store(PLANS), ports.clock, ports.new_token, who)

    def called(name: str, arguments: Any) -> tuple[str, bool]:
        return answered(desk, name, arguments)

    return respond(ToolServer("trainyard", VERSION, INSTRUCTIONS, declared_tools, called), body, headers)


@cache
def declared_tools() -> list[dict[str, Any]]:
    """Return the tools as tools/list shows them. Every call returns the shared list; do not modify it."""
    return [tool.declared() for tool in TOOLS]


def answered(desk: Desk, name: str, arguments: Any) -> tuple[str, bool]:
    """Return the text of a tool's answer, and whether it is an error. Raises KeyError for an unknown tool."""
    tool = BY_NAME[name]
    try:
        return tool.answer(desk, arguments).text(), False
    except TrainyardError as exc:
        return f"{exc.code}: {clean(str(exc), LONGEST_ERROR)}", True

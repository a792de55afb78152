"""The HTTP operation of the tools for agents."""

from __future__ import annotations

from shared.kernel.operation import READER, Operation, OperationGroup

GROUP = OperationGroup(
    "[Tools for agents](agents.md)",
    (
        Operation(
            "serve_mcp", "POST", "mcp", "shared.agents.api",
            "Answer a message of the Model Context Protocol",
            "Revision 2026-07-28, [without sessions](agents.md). A tool needs the roles of the operations it calls",
            problems=(404,), needs=READER, no_key="a plan is submitted once, however often its id is sent.",
        ),
    ),
)  # fmt: skip

"""Read and write Azure ML's expressions in a command: `${{inputs.lr}}`, and `$[[...]]` for an optional part. Pure.

https://learn.microsoft.com/azure/machine-learning/reference-yaml-core-syntax
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.jobs.command import LAUNCHER, Command, OptionalPart, Part, Reference, ReferenceGroup, joined

_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
_REFERENCE = re.compile(r"\$\{\{\s*(inputs|outputs)\.([\w-]+)\s*\}\}")
_ELASTIC = re.compile(rf"(?<![\w.]){re.escape(LAUNCHER)}(?![\w.])")


def read_command(text: str) -> Command:
    """Parse a command. An expression that is not a reference stays part of the text."""
    parts: list[Part] = []
    end = 0
    for match in _OPTIONAL.finditer(text):
        parts += [*_references(text[end : match.start()]), OptionalPart(tuple(_references(match[1])))]
        end = match.end()
    return Command(joined((*parts, *_references(text[end:]))), elastic=bool(_ELASTIC.search(text)))


def _references(text: str) -> Iterator[str | Reference]:
    """The text parts and the references, in order."""
    end = 0
    for match in _REFERENCE.finditer(text):
        if text[end : match.start()]:
            yield text[end : match.start()]
        yield Reference(ReferenceGroup(match[1]), match[2])
        end = match.end()
    if text[end:]:
        yield text[end:]


def command_text(command: Command) -> str:
    """The command in Azure ML's form. Reading the form gives an equal command."""
    return "".join(map(_written, command.parts))


def expression(reference: Reference) -> str:
    """The reference in Azure ML's form."""
    return f"${{{{{reference}}}}}"


def _written(part: Part) -> str:
    if isinstance(part, OptionalPart):
        return f"$[[{''.join(map(_written, part.parts))}]]"
    return expression(part) if isinstance(part, Reference) else part

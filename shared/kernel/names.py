"""Rules for names from outside: which path segments and paths are allowed."""

from __future__ import annotations

import re
import unicodedata

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}")  # Azure ML's rule for experiments
# Azure ML's rule for computes, in its own words: https://github.com/aztfmod/terraform-provider-azurecaf/issues/78
COMPUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]")
COMPUTE_RULE = "use 3 to 24 letters, digits and dashes, a letter first and no dash last"

_SEGMENT_LIMIT = 200  # characters of a route's or a drop's name; a whole blob name has at most 1,024


_FILE_NAME_LIMIT = 255  # bytes of one path segment on the nodes' file systems (ext4, NTFS in characters)


def path_problem(path: str) -> str | None:
    """Return why a node could not write this path below its own folder, as a sentence, or None."""
    for segment in path.split("/"):
        if fault := _segment_fault(segment, _FILE_NAME_LIMIT, in_bytes=True):
            return f"The name {path[:80]!r} can't be a file on a node: a segment {fault}."
    return None


def _segment_fault(segment: str, limit: int, in_bytes: bool = False) -> str | None:
    length = len(segment.encode(errors="replace")) if in_bytes else len(segment)
    if not segment:
        return "is empty"
    if segment in (".", ".."):
        return f"is {segment!r}"
    if length > limit:
        return f"has {length} {'bytes' if in_bytes else 'characters'}, the limit is {limit}"
    if "\\" in segment or any(unicodedata.category(c) in ("Cc", "Cs") for c in segment):
        return "has a backslash or a control character"
    return None

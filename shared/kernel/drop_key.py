"""The name of a drop: where its files lie in the drops container."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.names import _SEGMENT_LIMIT, _segment_fault

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, order=True)
class DropKey:
    """The name of a drop: `route/name`, the first two segments of its blobs' names in the drops container.

    Any text can be one, so that a drop with an unusable name can be recorded as rejected; `problem` says why.
    """

    route: str
    name: str

    def __str__(self) -> str:
        return f"{self.route}/{self.name}"

    @classmethod
    def of(cls, blob_name: str) -> DropKey:
        """The drop that this blob belongs to."""
        route, _, rest = blob_name.partition("/")
        return cls(route, rest.partition("/")[0])

    def problem(self) -> str | None:
        """Why this can't be a drop, as a sentence, or None."""
        for what, segment in (("route", self.route), ("name", self.name)):
            if fault := _segment_fault(segment, _SEGMENT_LIMIT) or _unmountable(segment):
                why = f"its {what} {fault}. Upload to drops/<route>/<name>/<files>."
                return f"{str(self)[:80]!r} is not the path of a drop: {why}"
        return None

    def prefix(self) -> str:
        """The prefix of the drop's blobs. A single-file drop is the blob of that name without the slash."""
        return f"{self}/"

    def is_archive(self) -> bool:
        """Whether the drop is a single archive right in the route's folder."""
        return self.name.lower().endswith(ARCHIVE_SUFFIXES)


def _unmountable(segment: str) -> str | None:
    """Azure ML finds no folder with these in its path: the job would fail, whatever is in the drop."""
    return "has a ':' or an '@', which Azure ML can't have in a path" if set(segment) & set(":@") else None

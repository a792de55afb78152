"""The name of a drop, which is also the folder of its files in the drops container."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.names import _SEGMENT_LIMIT, _segment_fault

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, order=True)
class DropKey:
    """The name of a drop: `route/name`, the first two segments of its blobs' names in the drops container.

    Any text can be a key, so that a drop with an unusable name can be recorded as rejected; `problem` gives the reason.
    """

    route: str
    name: str

    def __str__(self) -> str:
        return f"{self.route}/{self.name}"

    @classmethod
    def of(cls, blob_name: str) -> DropKey:
        """Return the key of this blob's drop."""
        route, _, rest = blob_name.partition("/")
        return cls(route, rest.partition("/")[0])

    def problem(self) -> str | None:
        """Return why this key can't name a drop, as a sentence, or None."""
        for what, segment in (("route", self.route), ("name", self.name)):
            if fault := _segment_fault(segment, _SEGMENT_LIMIT) or _unmountable(segment):
                why = f"its {what} {fault}. Upload to drops/<route>/<name>/<files>."
                return f"{str(self)[:80]!r} is not the path of a drop: {why}"
        return None

    def prefix(self) -> str:
        """Return the prefix of the drop's blobs. The blob of a single-file drop has this name without the final
        slash.
        """
        return f"{self}/"

    def is_archive(self) -> bool:
        """Return whether the drop is a single archive directly in the route's folder."""
        return self.name.lower().endswith(ARCHIVE_SUFFIXES)


def _unmountable(segment: str) -> str | None:
    """Return why Azure ML can't mount a path with this segment, or None. A job on such a path would fail, whatever the
    drop holds.
    """
    return "has a ':' or an '@', which Azure ML does not allow in a path" if set(segment) & set(":@") else None

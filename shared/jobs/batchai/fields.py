"""A mapping from a document. The mapping tracks reads, to report every ignored key. Pure.

Batch AI's own reader accepted keys in any case, and in Python's spelling (`process_count`). Published recipes rely on
both, so this reader accepts them too. A key with the value null counts as missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.batchai.report import TranslationReport

MOST_UNKNOWN = 100  # keys per mapping; a mapping with more is rejected without explaining each key
_SHOWN = 60  # characters of a wrong value in a message


class Fields:
    """Reading a key records the destination of the value in the job; `finish` reports the unread keys."""

    def __init__(self, content: Mapping[str, Any], path: str, report: TranslationReport) -> None:
        self.path, self.report = path, report
        self._names: dict[str, str] = {}
        for name, value in content.items():
            if value is not None:
                self._names.setdefault(_folded(name), name)
        self._content = content
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return _folded(key) in self._names

    def names(self) -> list[str]:
        return list(self._names.values())

    def at(self, key: str) -> str:
        """The key's path, in the document's spelling."""
        return f"{self.path}.{self._names.get(_folded(key), key)}".lstrip(".")

    def raw(self, key: str, where: str = "") -> Any:
        """The raw value, or None. Without `where`, the caller must report what becomes of the value."""
        if key not in self:
            return None
        name = self._names[_folded(key)]
        self._read.add(name)
        if where:
            self.report.land(self.at(key), where)
        return self._content[name]

    def peek(self, key: str) -> Any:
        """The value, without marking the key as read: `finish` may still report the key."""
        return self._content[self._names[_folded(key)]] if key in self else None

    def text(self, key: str, where: str = "", needed: bool = False) -> str:
        value = self.raw(key, where)
        if value is None or value == "":
            if needed:
                self.report.refuse(self.at(key), "is missing.")
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self._refuse(key, value, "text")
            return ""
        return str(value)

    def whole(self, key: str, where: str, otherwise: int, least: int = 1) -> int:
        value = self.raw(key, where)
        if value is None:
            return otherwise
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 10:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not least <= value <= 1_000_000:
            self._refuse(key, value, f"a whole number of at least {least}")
            return otherwise
        return value

    def mapping(self, key: str) -> Fields | None:
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._refuse(key, value, "a mapping")
            return None
        return Fields(value, self.at(key), self.report)

    def items(self, key: str) -> list[Fields]:
        """The mappings in a list, as Fields."""
        value = self.raw(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._refuse(key, value, "a list")
            return []
        items = []
        for index, item in enumerate(value):
            path = f"{self.at(key)}[{index}]"
            if isinstance(item, dict):
                items.append(Fields(item, path, self.report))
            else:
                self.report.refuse(path, f"must be a mapping, it is a {type(item).__name__}.")
        return items

    def lost(self, key: str, meant: str, instead: str, decide: str = "") -> None:
        """Report a key without an equivalent, if the key exists."""
        if key in self:
            self.raw(key)
            self.report.lost(self.at(key), meant, instead, decide)

    def changed(self, key: str, meant: str, instead: str) -> None:
        if key in self:
            self.raw(key)
            self.report.changed(self.at(key), meant, instead)

    def finish(self) -> None:
        unread = [name for name, value in self._content.items() if name not in self._read and value is not None]
        if len(unread) > MOST_UNKNOWN:
            names = ", ".join(unread[:3])[:_SHOWN]
            self.report.refuse(
                self.path or "document", f"has {len(unread):,} keys that Batch AI did not know: {names}..."
            )
            return
        for name, value in self._content.items():
            if name not in self._read:
                path = f"{self.path}.{name}".lstrip(".")
                if value is None:
                    self.report.land(path, "null: not set")
                else:
                    self.report.lost(
                        path, "No schema of Batch AI has it here; Batch AI ignored it.", "Ignored.", "Remove it."
                    )

    def _refuse(self, key: str, value: Any, expected_kind: str) -> None:
        """Report a wrong value. Only numbers are shown, because any other value may be a misplaced secret."""
        shown = f"{value!r:.{_SHOWN}}" if isinstance(value, int | float) else f"a {type(value).__name__}"
        if isinstance(value, str) and value.startswith("["):
            shown = "an expression of an ARM template, which only a deployment can fill in"
        self.report.refuse(self.at(key), f"must be {expected_kind}, it is {shown}.")


def _folded(key: str) -> str:
    return key.replace("_", "").lower()

"""A folder in place of the web, for offline jobs: the file WEB/HOST/PATH is the content of https://HOST/PATH."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class WebFolder:
    folder: Path

    def has(self, host: str) -> bool:
        """Return whether the folder has content for this host."""
        name = host.lower()
        return "/" not in name and name.strip(".") != "" and (self.folder / name).is_dir()

    def place(self, uri: str) -> Path | None:
        """Return where a copy of the content at a URL would stand for it; None for an invalid URL."""
        try:
            parts = urlsplit(uri)
        except ValueError:
            return None
        host = (parts.hostname or "").lower()
        found = self.folder / host / unquote(parts.path).lstrip("/")
        is_inside = "/" not in host and host.strip(".") != "" and found.resolve().is_relative_to(self.folder.resolve())
        return found if is_inside else None

    def tree(self, uri: str) -> Path | None:
        """Return the folder for a URL, or None."""
        parts = urlsplit(uri)
        root = (self.folder / (parts.hostname or "")).resolve()
        found = (root / unquote(parts.path).lstrip("/")).resolve()
        is_there = self.has(parts.hostname or "") and found.is_relative_to(root) and found.is_dir()
        return found if is_there else None

    def file(self, uri: str) -> Path | None:
        """Return the file for a URL, or None if the folder has no content for its host.

        Raises FileNotFoundError if the folder has the host but not the file.
        """
        try:
            parts = urlsplit(uri)
        except ValueError:
            return None
        if not self.has(host := parts.hostname or ""):
            return None
        root = (self.folder / host).resolve()
        found = (root / unquote(parts.path).lstrip("/")).resolve()
        if not found.is_relative_to(root) or not found.is_file():
            raise FileNotFoundError(f"the folder web/{host} answers for it, and has no {parts.path}")
        return found

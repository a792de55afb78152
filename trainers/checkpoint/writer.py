"""DCP's file writer, extended to report why the system refused a write.

PyTorch finishes its archive even after a write has failed. Finishing fails as well, and the error raised then
("unexpected pos 704 vs 598", torch 2.13) does not mention the full disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystem


class Writer(dcp.FileSystemWriter):
    """Writes a checkpoint's files. Raises OSError with the system's own reason."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._files = self.fs = _Files()

    def write_data(self, *arguments: Any) -> Any:
        try:
            return super().write_data(*arguments)
        except Exception as error:
            if self._files.refused:
                raise self._files.refused from error
            raise


class _Files(FileSystem):
    """Files that remember the last error of a write."""

    def __init__(self) -> None:
        self.refused: OSError | None = None

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        with super().create_stream(path, mode) as stream:
            yield _Stream(stream, self)


class _Stream:
    def __init__(self, stream: Any, files: _Files) -> None:
        self._stream, self._files = stream, files

    def write(self, content: Any) -> Any:
        try:
            return self._stream.write(content)
        except OSError as error:
            self._files.refused = error
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

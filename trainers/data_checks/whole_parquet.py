"""Checks all values of a Parquet file, if pyarrow is installed: on the uploading machine, and not in the app.

pyarrow has 166 MB, more than all other dependencies of the app together, so the app judges by the footer (parquet.py).
`pip install 'trainyard[parquet]'` installs pyarrow for the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .archive import stream
from .columns import Column
from .data import Data, TooSlow
from .source import File

ROWS = 10_000  # that are in memory at once


def check_values(data: Data, file: File, declared: Mapping[str, Column]) -> None:
    """Read every value of the file, and compare the values of declared columns. Does nothing without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return
    row = 0
    try:
        opened = pyarrow.parquet.ParquetFile(stream(data.source, file.path, file.size), page_checksum_verification=True)
        for batch in opened.iter_batches(ROWS):
            if data.over():
                raise TooSlow
            _batch(data, file.path, batch, row, declared)
            row += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        message = f"expected values that can be read, found after row {row:,}: {str(error).splitlines()[0][:200]}"
        data.findings.complain("page", file.path, message)


def _batch(data: Data, path: str, batch: Any, first: int, declared: Mapping[str, Column]) -> None:
    names = set(batch.schema.names)
    for name, column in declared.items():
        if name not in names or not column.schema:
            continue
        for at, value in enumerate(batch.column(name).to_pylist(), start=first + 1):
            plain = value if isinstance(value, str | int | float | bool | None) else str(value)
            if said := column.value(plain):
                data.findings.complain("value", f"{path}: row {at:,}: {name}", said)

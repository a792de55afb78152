"""Copies of two public tables, for machines that can't reach the storage account of Azure's examples.

A third of Azure's single-step examples read Fisher's Iris or the diabetes table of Efron et al. from
https://azuremlexamples.blob.core.windows.net. scikit-learn contains the same measurements. `web_folder` makes a folder
that stands for the web (emulators/README.md) of them, with the names of the columns that the examples read. A row of
the benchmark says when a file used such a copy.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HOST = "azuremlexamples.blob.core.windows.net"
CONTAINER = "datasets"
IRIS, DIABETES = "iris.csv", "diabetes.csv"
# The address of a table, of the whole container (which is listed), in each of its forms.
_ADDRESS = re.compile(rf"(?:{CONTAINER}@{re.escape(HOST)}|{re.escape(HOST)}/{CONTAINER})/?([\w.-]*)")


def is_reachable(host: str = HOST) -> bool:
    """Return whether this machine finds an address of the host."""
    try:
        return bool(socket.getaddrinfo(host, 443))
    except OSError:
        return False


def web_folder(folder: Path) -> Path:
    """Write the copies below the folder, and return it."""
    from sklearn import datasets

    place = folder / HOST / CONTAINER
    place.mkdir(parents=True)
    iris = datasets.load_iris()
    columns = ["sepal_length", "sepal_width", "petal_length", "petal_width", "species"]
    rows = ([*values, iris.target_names[kind]] for values, kind in zip(iris.data, iris.target, strict=True))
    (place / IRIS).write_text(_table(columns, rows))
    diabetes = datasets.load_diabetes()
    numbers = ([*values, target] for values, target in zip(diabetes.data, diabetes.target, strict=True))
    (place / DIABETES).write_text(_table([*diabetes.feature_names, "target"], numbers))
    return folder


def _table(columns: list[str], rows: Iterable[list[Any]]) -> str:
    lines = [",".join(value if isinstance(value, str) else f"{value:.12g}" for value in row) for row in rows]
    return "\n".join([",".join(columns), *lines, ""])


def copies_in(files: Iterable[Path]) -> tuple[str, ...]:
    """Return the copies that a job's files read. A job that reads the whole container reads Iris."""
    text = "\n".join(file.read_text("utf-8", "replace") for file in files)
    names = {name or IRIS for name in _ADDRESS.findall(text)}
    return tuple(name for name in (IRIS, DIABETES) if name in names)

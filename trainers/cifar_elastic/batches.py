"""Reads CIFAR-10 as published for Python (https://www.cs.toronto.edu/~kriz/cifar.html), without trusting its pickles.

A pickle is a program that runs when it is loaded. This reader allows only the few names below, which are defined here
and only store their arguments; no code of numpy or of any other package runs.
"""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from files import DataError, find
from labelled import Images

SIDE = 32  # pixels
VALUES = 3 * SIDE * SIDE  # of one image: red, green, blue, each row by row
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
FILES = {name: re.escape(name) for name in (*TRAIN, "test_batch", "batches.meta")}
MAX_BYTES = 2**28  # of one file; a published one has 30 MiB


def read(folder: Path) -> tuple[Images, Images, list[str]]:
    """Return the training images and the test images below `folder`, RGB (N, 3, 32, 32), and the names of the ten
    classes.

    The batches may hold any number of images. Raises DataError if a file is missing, broken, or asks for more than
    plain data.
    """
    paths = find(folder, FILES)
    classes = _classes(paths["batches.meta"])
    parts = [_images(paths[name], len(classes)) for name in TRAIN]
    train = Images(torch.cat([part.pixels for part in parts]), torch.cat([part.labels for part in parts]))
    return train, _images(paths["test_batch"], len(classes)), classes


def _classes(path: Path) -> list[str]:
    names = _dict(path).get("label_names")
    if not isinstance(names, list) or len(names) != 10:
        raise DataError(f"{path}: expected label_names with 10 names, found {str(names)[:80]}")
    return [_text(name) for name in names]


def _images(path: Path, classes: int) -> Images:
    batch = _dict(path)
    data, labels = batch.get("data"), batch.get("labels")
    if not isinstance(data, _Array) or not data.of_images():
        raise DataError(f"{path}: expected data, an array of bytes (N, {VALUES:,}), found {data}")
    count = data.shape[0]
    if not isinstance(labels, list) or len(labels) != count:
        found = f"{len(labels):,}" if isinstance(labels, list) else type(labels).__name__
        raise DataError(f"{path}: expected labels, a list of {count:,}, one per image, found {found}")
    if wrong := [label for label in labels if type(label) is not int or not 0 <= label < classes]:
        raise DataError(f"{path}: expected labels 0 to {classes - 1}, found {wrong[0]!r}")
    pixels = torch.frombuffer(bytearray(data.content), dtype=torch.uint8).view(count, 3, SIDE, SIDE)
    return Images(pixels, torch.tensor(labels))


def _dict(path: Path) -> dict[str, Any]:
    """Return the pickled dictionary. In the published files, Python 2 wrote the keys as bytes."""
    if (size := path.stat().st_size) > MAX_BYTES:
        raise DataError(f"{path}: expected at most {MAX_BYTES:,} bytes, found {size:,}")
    try:
        with path.open("rb") as file:
            content = _PlainData(file, encoding="bytes").load()
    except Exception as error:  # (a broken pickle makes its reader raise anything)
        text = f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: expected a pickled batch of CIFAR-10, found {text}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a pickled dictionary, found {type(content).__name__}")
    return {_text(key): value for key, value in content.items()}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class _Array:
    """The parts of a pickled numpy array."""

    shape: tuple[int, ...] = ()
    dtype: object = None
    content: bytes = b""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, self.shape, self.dtype, self.fortran, self.content = state

    def of_images(self) -> bool:
        """Return whether the array is complete and has N > 0 rows of bytes, one per image."""
        rows = len(self.content) // VALUES if isinstance(self.content, bytes) else 0
        plain = self.dtype == _Dtype("u1") and self.fortran in (False, 0)
        return plain and rows > 0 and self.shape == (rows, VALUES) and len(self.content) == rows * VALUES

    def __str__(self) -> str:
        return f"an array {self.shape} of {self.dtype} with {len(self.content):,} bytes"


@dataclass(frozen=True)
class _Dtype:
    name: str

    def __setstate__(self, state: object) -> None:
        """Byte order, alignment, and what else bytes have no use for."""

    def __str__(self) -> str:
        return self.name


def _array(_kind: object, _shape: object, _code: object) -> _Array:
    """Stand in for numpy's _reconstruct: an empty array, whose state follows."""
    return _Array()


def _whole_array(content: object, dtype: object, shape: tuple[int, ...], order: str | bytes) -> _Array:
    """Stand in for numpy's _frombuffer, which pickle's protocol 5 calls."""
    array = _Array()
    raw = bytes(content) if isinstance(content, bytes | bytearray) else b""
    array.__setstate__((1, shape, dtype, _text(order) != "C", raw))
    return array


def _dtype(name: str | bytes, *_: object) -> _Dtype:
    return _Dtype(_text(name).lstrip("|"))


def _latin1(text: str, encoding: str | bytes) -> bytes:
    """Stand in for the function with which Python 3 writes bytes for Python 2."""
    if _text(encoding) != "latin1":
        raise pickle.UnpicklingError(f"bytes encoded as {encoding!r}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """Stand in for the function with which Python 3 writes empty bytes for Python 2."""
    return b""


class _PlainData(pickle.Unpickler):
    KNOWN = {  # noqa: RUF012 (a constant)
        ("numpy.core.multiarray", "_reconstruct"): _array,  # up to numpy 1
        ("numpy._core.multiarray", "_reconstruct"): _array,
        ("numpy.core.numeric", "_frombuffer"): _whole_array,
        ("numpy._core.numeric", "_frombuffer"): _whole_array,
        ("numpy", "ndarray"): "numpy.ndarray",  # only named, as an argument of the above
        ("numpy", "dtype"): _dtype,
        ("_codecs", "encode"): _latin1,
        ("__builtin__", "bytes"): _no_bytes,
        ("builtins", "bytes"): _no_bytes,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.KNOWN:
            raise pickle.UnpicklingError(f"a call of {module}.{name}, which plain data does not need")
        return self.KNOWN[module, name]

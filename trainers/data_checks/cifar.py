"""CIFAR-10 as published for Python (https://www.cs.toronto.edu/~kriz/cifar.html), read without trusting its pickles.

A pickle is a program that runs when it is loaded. This reader allows only the few names below, which are defined here
and only store their arguments; no code of numpy or of any other package runs.
"""

from __future__ import annotations

import io
import pickle
import re
from dataclasses import dataclass
from typing import Any

from .findings import DataError

SIDE = 32  # pixels
VALUES = 3 * SIDE * SIDE  # of one image: red, green, blue, each row by row
CLASSES = 10
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST, META = "test_batch", "batches.meta"
FILES = {name: re.escape(name) for name in (*TRAIN, TEST, META)}
MAX_BYTES = 2**28  # of one file; a published one has 30 MiB


@dataclass(frozen=True)
class Batch:
    """The images of one file, VALUES bytes each, and their labels."""

    content: bytes
    labels: list[int]


def class_names(place: str, content: bytes) -> list[str]:
    """Return the names of the ten classes in batches.meta. Raises DataError for any other content."""
    names = _dict(place, content).get("label_names")
    if not isinstance(names, list) or len(names) != CLASSES:
        raise DataError(f"{place}: expected label_names with {CLASSES} names, found {str(names)[:80]}")
    return [_text(name) for name in names]


def batch(place: str, content: bytes, classes: int = CLASSES) -> Batch:
    """Return the images of one file. Raises DataError if the file is broken, or contains more than plain data."""
    read = _dict(place, content)
    data, labels = read.get("data"), read.get("labels")
    if not isinstance(data, _Array) or not data.of_images():
        raise DataError(f"{place}: expected data, an array of bytes (N, {VALUES:,}), found {data}")
    count = data.shape[0]
    if not isinstance(labels, list) or len(labels) != count:
        found = f"{len(labels):,}" if isinstance(labels, list) else type(labels).__name__
        raise DataError(f"{place}: expected labels, a list of {count:,}, one per image, found {found}")
    if wrong := [label for label in labels if type(label) is not int or not 0 <= label < classes]:
        raise DataError(f"{place}: expected labels 0 to {classes - 1}, found {wrong[0]!r}")
    return Batch(data.content, labels)


def check_size(place: str, size: int) -> None:
    """Raise DataError for a file that is larger than any batch."""
    if size > MAX_BYTES:
        raise DataError(f"{place}: expected at most {MAX_BYTES:,} bytes, found {size:,}")


def _dict(place: str, content: bytes) -> dict[str, Any]:
    """Return the pickled dictionary. In the published files, Python 2 wrote the keys as bytes."""
    check_size(place, len(content))
    try:
        read = _PlainData(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # (a broken pickle makes its reader raise anything)
        text = f"{type(error).__name__}: {error}"
        raise DataError(f"{place}: expected a pickled batch of CIFAR-10, found {text}") from error
    if not isinstance(read, dict):
        raise DataError(f"{place}: expected a pickled dictionary, found {type(read).__name__}")
    return {_text(key): value for key, value in read.items()}


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
        """Ignore byte order, alignment, and the other fields, which do not matter for bytes."""

    def __str__(self) -> str:
        return self.name


def _array(_kind: object, _shape: object, _code: object) -> _Array:
    """Stand in for numpy's _reconstruct: return an empty array, whose state follows."""
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

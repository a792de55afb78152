"""Fuzzed pickles compared with Python's own unpickler: an accepted file looks up only tensors and plain values."""

from __future__ import annotations

import io
import pickle
import random
from collections import OrderedDict
from typing import Any

import pytest
import torch

from shared.models.file_content import why_unsafe
from shared.models.pickles import SAFE
from tests.fakes.storage import FakeBlobs

FILES = 4_000
INTERESTING = (
    b"cos\nsystem\n",
    b"\x8c\x02os\x8c\x06system\x93",
    b"(S'x'\ntR",
    b"N.",
    b"R",
    b"b",
    b"\x81",
    b"\x93",
    b"i",
)


class Recorder(pickle.Unpickler):
    """Python's unpickler, which records each global and creates no object for it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.found: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.found.add(f"{module} {name}")
        return lambda *_: OrderedDict()

    def persistent_load(self, pid: Any) -> Any:
        return None


def seeds() -> list[bytes]:
    file = io.BytesIO()
    torch.save({"w": torch.ones(3), "step": 4}, file, _use_new_zipfile_serialization=False)
    plain = {"a": [1, 2.5, "x", None, True, (1, 2)], "b": {"c": {3, 4}}, "d": b"bytes"}
    return [file.getvalue(), *(pickle.dumps(plain, protocol) for protocol in range(6))]


def mutated(data: bytes, dice: random.Random) -> bytes:
    content = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(content) + 1)
        match dice.randrange(4):
            case 0 if content:
                content[at - 1] = dice.randrange(256)
            case 1:
                content[at:at] = dice.choice(INTERESTING)
            case 2:
                del content[at : at + dice.randint(1, 8)]
            case _:
                content[at:at] = bytes([dice.choice(b"cibRB\x81\x82\x8c\x93\x94q(t)0.")])
    return bytes(content)


@pytest.mark.parametrize("seed", range(4))
def test_what_passes_finds_no_other_name(seed: int) -> None:
    """Each file that is accepted as data is loaded, pickle by pickle, with the recording unpickler."""
    dice, passed = random.Random(seed), 0
    for _ in range(FILES // 4):
        data = mutated(dice.choice(seeds_of_test), dice)
        blobs = FakeBlobs()
        blobs.put("output", "m", data)
        if why_unsafe(blobs, "m", len(data)):
            continue
        passed += 1
        assert [name for name in found(data) if not SAFE.fullmatch(name)] == [], data
    assert passed > 0, "the seeds themselves are data, so some mutations are, too"


def found(data: bytes) -> set[str]:
    """Return every name that the pickles in these bytes look up, until one breaks."""
    reader = Recorder(data)
    try:
        while True:
            reader.load()
    except Exception:  # noqa: BLE001  # a broken pickle raises anything
        return reader.found


seeds_of_test = seeds()

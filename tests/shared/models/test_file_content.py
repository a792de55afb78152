"""A model file is judged by its content: no name hides code, and no name makes data suspicious."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import pytest

from shared.models.file_content import why_unsafe
from tests.fakes.storage import FakeBlobs


class Evil:
    def __reduce__(self) -> Any:
        return print, ("code",)


def evil(protocol: int = 2) -> bytes:
    return pickle.dumps(Evil(), protocol)


def zipped(members: Mapping[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def array(kind: str, data: bytes) -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (1,), }}\n".encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data


def safetensors(data: bytes, **header: Any) -> bytes:
    words = json.dumps(header or {"w": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(words)) + words + data


def old_torch(thing: bytes) -> bytes:
    """Return a file as torch.save wrote it before 1.6: magic number, version, machine, object, storage keys,
    numbers."""
    parts = [pickle.dumps(each, 2) for each in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    return b"".join([*parts, thing, pickle.dumps(["1"], 2), struct.pack("<q", 2), b"\x80\xff" * 4])


# A picture by its first bytes, and a pickle for pickle.load: 'G' pushes the next eight bytes.
GIF_PICKLE = b"GIF89a\0\0\0" + evil(0)
TORCH = {"m/data.pkl": pickle.dumps(OrderedDict(a=1), 2), "m/data/0": b"\x80\x02" * 9, "m/version": b"3\n"}

HOSTILE = {
    "model.pkl": evil(),
    "model.PKL": evil(),
    "model": evil(),
    "model.p": evil(4),
    "model.sav": evil(5),
    "model.dill": evil(3),
    "model.txt": evil(0),
    "old.pt": old_torch(evil()),
    "second.pkl": pickle.dumps([1, 2, 3]) + evil(),
    "second.json": pickle.dumps({}, 0) + evil(0),
    "array.npy": array("|O", evil()),
    "arrays.npz": zipped({"a.npy": array("<f4", bytes(4)), "b.npy": array("|O", evil())}),
    "model.pkl.gz": gzip.compress(evil()),
    "model.pkl.bz2": bz2.compress(evil()),
    "model.joblib": lzma.compress(evil()),
    "new.pt": zipped({**TORCH, "m/data.pkl": evil()}, zipfile.ZIP_DEFLATED),
    "other.pt": zipped({**TORCH, "m/extra.pkl": evil()}),
    "capital.pt": zipped({"m/DATA.PKL": evil()}),
    "script.pt": zipped({**TORCH, "m/code/model.py": b"import os"}),
    "nested.zip": zipped({"a.zip": zipped({"b.zip": zipped({"c": evil()})})}),
    "deep.zip": zipped({"a": zipped({"b": zipped({"c": zipped({"d": b"text"})})})}),
    "picture.gif": GIF_PICKLE,
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(50) + zipped({"data.pkl": evil()}),
    "polyglot.pt": evil() + zipped(TORCH),
    "weights.safetensors": evil(),
    "cut.safetensors": safetensors(b"1234") + b"\0\xff",
    "lambda.h5": b"\x89HDF\r\n\x1a\n" + bytes(64),
    "saved_model.pb": b"\x08\x01\x12\x80\x02" + bytes(range(256)),
    "truncated.pkl": pickle.dumps(list(range(300)))[:-5],
}
DATA = {
    "weights.safetensors": safetensors(b"\x80\x04" * 8),
    "named.bin": safetensors(b"1234"),
    "new.pt": zipped(TORCH),
    "old.pt": old_torch(pickle.dumps(OrderedDict(a=1), 2)),
    "model.onnx": b"\x08\x08" + b"\x12\x04test" + b"\x3a\x03abc" + b"\x42\x02\x10\x11",
    "array.npy": array("<f4", bytes(4)),
    "arrays.npz": zipped({"a.npy": array("<f4", bytes(4))}, zipfile.ZIP_DEFLATED),
    "model.json": b'{"classes": ["ant", "bee"]}',
    "vocabulary.txt": "ä\nthe\ncat\n".encode(),
    "README.md": b"# A model\n",
    "curve.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "photo.jpg": b"\xff\xd8\xff\xe0" + bytes(range(256)),
    "anim.gif": b"GIF89a" + bytes(range(256)),
    "empty": b"",
    "plain.pkl": pickle.dumps({"a": [1, 2.5, "x", None, True]}),
    "texts.zip": zipped({"a.txt": b"text", "b/c.json": b"{}"}),
}


def judged(name: str, data: bytes) -> str:
    blobs = FakeBlobs()
    blobs.put("output", name, data)
    return why_unsafe(blobs, name, len(data))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_and_no_wrapping_hides_code(name: str) -> None:
    """Every file that a loader may run is refused with a reason."""
    assert judged(name, HOSTILE[name])


@pytest.mark.parametrize("name", DATA)
def test_data_are_data(name: str) -> None:
    """Weights, arrays, pictures and text are accepted."""
    assert judged(name, DATA[name]) == ""


@pytest.mark.parametrize("name", ["model.pkl", "model.p", "model.txt", "picture.gif", "weights.safetensors"])
def test_the_hostile_pickles_do_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The files of this test are real: pickle.load of such a file runs its code."""
    pickle.loads(HOSTILE[name])
    assert "code" in capsys.readouterr().out


def test_the_library_of_each_form_writes_data() -> None:
    """Files that torch and safetensors write themselves are accepted, in torch's old form too."""
    torch = pytest.importorskip("torch")
    save = pytest.importorskip("safetensors.torch").save
    state = {"a": torch.ones(3), "b": torch.zeros(2, dtype=torch.int64)}
    for new in (True, False):
        file = io.BytesIO()
        torch.save(state, file, _use_new_zipfile_serialization=new)
        assert judged("m.pt", file.getvalue()) == ""
    assert judged("m.safetensors", save(state, {"classes": "[]"})) == ""

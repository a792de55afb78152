"""After any operations on blobs, each extent's count equals the rows that refer to it, and an unused extent is
removed."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulators.storage.blobs import staging
from emulators.storage.blobs.extents import SMALL, Piece, Upload
from emulators.storage.blobs.listing import Wanted
from emulators.storage.blobs.model import Blob, Content
from emulators.storage.blobs.page_ranges import hole
from emulators.storage.blobs.store import Blobs

NAMES = st.sampled_from(["a", "b"])
BLOCKS = st.sampled_from(["1", "2", "3"])
SIZES = st.sampled_from([0, 1, 7, SMALL - 3, SMALL, SMALL + 1, SMALL + 4000])
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, SIZES),
    st.tuples(st.just("append"), NAMES, SIZES),
    st.tuples(st.just("append"), NAMES, SIZES),
    st.tuples(st.just("write pages"), NAMES, SIZES, SIZES, st.booleans()),
    st.tuples(st.just("resize"), NAMES, SIZES),
    st.tuples(st.just("stage"), NAMES, BLOCKS, SIZES),
    st.tuples(st.just("stage from"), NAMES, BLOCKS, NAMES),
    st.tuples(st.just("commit"), NAMES, st.lists(BLOCKS, max_size=4)),
    st.tuples(st.just("copy"), NAMES, NAMES),
    st.tuples(st.just("snapshot"), NAMES),
    st.tuples(st.just("copy snapshot"), NAMES, NAMES),
    st.tuples(st.just("delete snapshots"), NAMES, st.booleans()),
    st.tuples(st.just("tag"), NAMES, st.dictionaries(BLOCKS, BLOCKS, max_size=2)),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("drop")),
    st.tuples(st.just("cut"), SIZES),
    st.tuples(st.just("purge")),
    st.tuples(st.just("wait")),
)

FIRST = [("put", "a", 7), ("put", "b", SMALL + 1), ("snapshot", "b"), ("snapshot", "a")]  # so that all have something


@dataclass
class Model:
    blobs: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    staged: dict[str, dict[str, bytes]] = field(default_factory=dict)
    committed: dict[str, dict[str, bytes]] = field(default_factory=dict)
    snapshots: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def written(self, name: str, data: bytes, blocks: dict[str, bytes] | None = None) -> None:
        self.blobs[name], self.committed[name] = data, blocks or {}
        self.staged.pop(name, None)

    def deleted(self, name: str) -> None:
        for place in (self.blobs, self.tags, self.staged, self.committed):
            place.pop(name, None)
        self.snapshots = {key: data for key, data in self.snapshots.items() if key[0] != name}


@dataclass
class World:
    """The store and its model, which get the same operations."""

    blobs: Blobs
    runner: asyncio.Runner
    now: list[float]
    model: Model = field(default_factory=Model)
    container: int = 0
    made: int = 0

    def data(self, size: int) -> bytes:
        self.made += 1
        return (self.made.to_bytes(4, "big") * (size // 4 + 1))[:size]

    def received(self, data: bytes) -> Upload:
        return self.runner.run(self.blobs.extents.receive(_parts(data)))

    def write(self, name: str, content: Content | Upload, size: int) -> None:
        self.blobs.write(self.container, name, Blob("BlockBlob", size, tags=self.model.tags.get(name, {})), content)

    def do(self, step: tuple[Any, ...]) -> None:
        kind, *rest = step
        getattr(self, kind.replace(" ", "_"))(*rest)

    def put(self, name: str, size: int) -> None:
        data = self.data(size)
        self.write(name, self.received(data), size)
        self.model.written(name, data)

    def append(self, name: str, size: int) -> None:
        if name in self.model.blobs and size:
            data = self.data(size)
            blob = self.blobs.find(self.container, name)
            assert blob is not None
            self.blobs.append(self.container, name, replace(blob, size=blob.size + size), self.received(data))
            self.model.blobs[name] += data
            self.model.committed[name] = {}

    def write_pages(self, name: str, begin: int, size: int, clear: bool) -> None:
        before = self.model.blobs.get(name, b"")
        blob = self.blobs.find(self.container, name)
        if blob is None or begin + size > len(before):
            return
        data = bytes(size) if clear else self.data(size)
        content = hole(size, self.blobs.new_clearing()) if clear else self.received(data)
        self.blobs.write_pages(self.container, name, blob, begin, content)
        self.model.blobs[name] = before[:begin] + data + before[begin + size :]
        self.model.committed[name] = {}

    def resize(self, name: str, size: int) -> None:
        blob = self.blobs.find(self.container, name)
        if blob is not None:
            self.blobs.resize(self.container, name, replace(blob, size=size))
            self.model.blobs[name] = self.model.blobs[name][:size].ljust(size, b"\0")
            self.model.committed[name] = {}

    def stage(self, name: str, block: str, size: int) -> None:
        data = self.data(size)
        self.blobs.blocks.put(self.container, name, block, self.received(data))
        self.model.staged.setdefault(name, {})[block] = data

    def stage_from(self, name: str, block: str, source: str) -> None:
        if source in self.model.blobs:
            self.blobs.blocks.put(self.container, name, block, self.blobs.content(self.container, source).pieces)
            self.model.staged.setdefault(name, {})[block] = self.model.blobs[source]

    def commit(self, name: str, wanted: list[str]) -> None:
        staged = self.blobs.blocks.of(self.container, name)
        assert staged.keys() == self.model.staged.get(name, {}).keys()
        blocks = [staged[block] for block in wanted if block in staged]
        data = {block.id: self.model.staged[name][block.id] for block in blocks}
        pieces = [piece for block in blocks for piece in block.pieces]
        content = Content(pieces, [(block.id, block.size) for block in blocks])
        self.write(name, content, sum(piece[2] for piece in pieces))
        self.model.written(name, b"".join(data[block.id] for block in blocks), data)

    def copy(self, source: str, target: str) -> None:
        if source in self.model.blobs:
            content = self.blobs.content(self.container, source)
            self.write(target, content, len(self.model.blobs[source]))
            self.model.written(target, self.model.blobs[source])

    def snapshot(self, name: str) -> None:
        blob = self.blobs.find(self.container, name)
        if blob is not None:
            taken = self.blobs.create_snapshot(self.container, name, blob)
            self.model.snapshots[name, taken.snapshot] = self.model.blobs[name]

    def copy_snapshot(self, source: str, target: str) -> None:
        for (name, time), data in sorted(self.model.snapshots.items()):
            if name == source:
                self.write(target, self.blobs.content(self.container, name, time), len(data))
                self.model.written(target, data)

    def delete_snapshots(self, name: str, first_alone: bool) -> None:
        times = sorted(time for other, time in self.model.snapshots if other == name)
        gone = times[:1] if first_alone else times
        if gone:
            self.blobs.delete_snapshots(self.container, name, gone[0] if first_alone else "")
        for time in gone:
            del self.model.snapshots[name, time]

    def tag(self, name: str, tags: dict[str, str]) -> None:
        blob = self.blobs.find(self.container, name)
        if blob is not None:
            self.blobs.change(self.container, name, replace(blob, tags=tags))
            self.model.tags[name] = tags

    def delete(self, name: str) -> None:
        self.blobs.delete(self.container, name)
        self.model.deleted(name)

    def drop(self) -> None:
        self.blobs.delete_container(self.blobs.container("c"))
        self.container, self.model = self.blobs.create_container("c", {}).id, Model()

    def cut(self, size: int) -> None:
        with pytest.raises(ConnectionError):
            self.runner.run(self.blobs.extents.receive(_cut(self.data(size))))

    def purge(self) -> None:
        self.blobs.purge()

    def wait(self) -> None:
        """Let time pass until uncommitted blocks expire."""
        self.now[0] += staging.SECONDS + 1
        while self.blobs.purge():
            pass
        self.model.staged.clear()

    async def read(self, pieces: list[Piece]) -> bytes:
        return b"".join([part async for part in self.blobs.extents.read(pieces)])

    def check(self) -> None:
        for name, data in self.model.blobs.items():
            assert self.runner.run(self.read(self.blobs.content(self.container, name).pieces)) == data
        for (name, time), data in self.model.snapshots.items():
            assert self.runner.run(self.read(self.blobs.content(self.container, name, time).pieces)) == data
        wanted = Wanted("", "", ("", ""), 1000, snapshots=True)
        listed = [(name, blob and blob.snapshot) for name, blob in self.blobs.listed(self.container, wanted)]
        there = [*((name, "~") for name in self.model.blobs), *self.model.snapshots]
        assert listed == [(name, time.strip("~")) for name, time in sorted(there)]


async def _parts(data: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), 40_000):
        yield data[begin : begin + 40_000]


async def _cut(data: bytes) -> AsyncIterator[bytes]:
    async for part in _parts(data):
        yield part
    raise ConnectionResetError


@settings(max_examples=40)
@given(steps=st.lists(STEPS, min_size=5, max_size=25))
def test_extents_are_held_as_often_as_rows_name_them(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    """After any steps every content is as written, the counts are correct, and a purge leaves only extents in use."""
    home, now = tmp_path_factory.mktemp("blobs"), [1e9]
    blobs = Blobs(home / "blobs.sqlite", home / "blobs", clock=lambda: now[0])
    with asyncio.Runner() as runner:
        world = World(blobs, runner, now)
        world.container = blobs.create_container("c", {}).id
        for step in [*FIRST, *steps]:
            world.do(step)
        world.check()
        while blobs.purge():
            pass
        world.check()
    blobs.close()
    _check_rows(home, world.model)


def _check_rows(home: Path, model: Model) -> None:
    with sqlite3.connect(home / "blobs.sqlite") as db:
        held = Counter[int]()
        for table in ("blobs", "snapshots"):
            for (text,) in db.execute(f"SELECT content FROM {table}"):
                held.update(piece[0] for piece in json.loads(text)[0])
        for (text,) in db.execute("SELECT pieces FROM blocks"):
            held.update(piece[0] for piece in json.loads(text))
        assert dict(db.execute("SELECT id, refs FROM extents")) == {one: n for one, n in held.items() if one > 0}
        files = {int(path.name) for path in (home / "blobs").rglob("*") if path.is_file()}
        assert files == {extent for (extent,) in db.execute("SELECT id FROM extents WHERE data IS NULL")}
        tags = {(name, key, value) for name, key, value in db.execute("SELECT name, key, value FROM blob_tags")}
        assert tags == {(name, key, value) for name, own in model.tags.items() for key, value in own.items()}


def test_bytes_stay_while_they_are_read(tmp_path: Path) -> None:
    """A download that began before its blob was deleted and purged can be read to its end."""
    blobs = Blobs(tmp_path / "blobs.sqlite", tmp_path / "blobs")
    asyncio.run(_read_while_it_goes(blobs, blobs.create_container("c", {}).id))
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    blobs.close()


async def _read_while_it_goes(blobs: Blobs, container: int) -> None:
    halves = [bytes([number]) * (SMALL + 1) for number in range(2)]
    for number, half in enumerate(halves):
        blobs.blocks.put(container, "a", str(number), await blobs.extents.receive(_parts(half)))
    pieces = [piece for block in blobs.blocks.of(container, "a").values() for piece in block.pieces]
    blobs.write(container, "a", Blob("BlockBlob", 2 * (SMALL + 1)), Content(pieces))
    parts = blobs.extents.read(blobs.content(container, "a").pieces)
    found = await anext(parts)
    blobs.delete(container, "a")
    blobs.purge()
    async for part in parts:
        found += part
    assert found == b"".join(halves)
    blobs.purge()

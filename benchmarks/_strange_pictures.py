"""Unusual damage of pictures for `bench data_checks`, and harmless oddities that the checks must not refuse.

The damages were written before the checks knew them. They are typical of cameras and operating systems. A harmless
oddity has no names.
"""

from __future__ import annotations

import random
import struct
import unicodedata
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks._data_damage import Damage

ORIENTATION = 0x0112


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n"


def append(path: Path, content: bytes) -> None:
    path.write_bytes(path.read_bytes() + content)


def leaf(name: str = "leaf0.jpg", split: str = "train", kind: str = "Ahorn") -> Path:
    return Path(split, kind, name)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(rows: bytes, size: int = 40, depth: int = 8, more: bytes = b"") -> bytes:
    head = struct.pack(">2I5B", size, size, depth, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


def noise(count: int, seed: int = 5) -> bytes:
    return random.Random(seed).randbytes(count)


def rows(size: int, depth: int = 8, seed: int = 5) -> bytes:
    """Return rows of noise for `png`, each with filter 0."""
    dice = random.Random(seed)
    return b"".join(b"\0" + dice.randbytes(size * 3 * depth // 8) for _ in range(size))


def saved(path: Path, size: tuple[int, int] = (50, 40), **how: Any) -> None:
    Image.frombytes("RGB", size, noise(3 * size[0] * size[1], len(str(path)))).save(path, **how)


def turned(path: Path) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    saved(path, exif=exif)


def progressive(path: Path) -> None:
    """Remove the last scan, and put the end marker after the remaining scans."""
    saved(path, (200, 150), progressive=True)
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"\xff\xda") + 20])


def overwritten(path: Path) -> None:
    """Overwrite the middle third with noise, as a bad disk block does."""
    content = path.read_bytes()
    third = len(content) // 3
    path.write_bytes(content[:third] + noise(third) + content[2 * third :])


def animated(path: Path) -> None:
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "blue", "green")]
    frames[0].save(path, save_all=True, append_images=frames[1:])


def images(_folder: Path) -> list[Damage]:
    return [*_jpegs(leaf()), *_other_formats(leaf()), *_folders_and_links(leaf())]


def _jpegs(one: Path) -> list[Damage]:
    return [
        Damage("progressive JPEG without its last scan", lambda d: progressive(d / one), (one.name,)),
        Damage("noise in the middle of a JPEG", lambda d: overwritten(d / one), (one.name,)),
        Damage("JPEG with a comment", lambda d: saved(d / one, comment=b"x" * 9000), ()),
        Damage("JPEG with restart markers", lambda d: saved(d / one, restart_marker_blocks=2), ()),
        Damage("bytes after a JPEG", lambda d: append(d / one, bytes(500) + b"camera"), ()),
        Damage(
            "JPEG, then zeros", lambda d: (d / one).write_bytes((d / one).read_bytes()[:900] + bytes(9000)), (one.name,)
        ),
        Damage("EXIF rotation, which the trainer undoes", lambda d: turned(d / one), ()),
        Damage(
            "pointer of Git LFS",
            lambda d: (d / one).write_text("version https://git-lfs.github.com/spec/v1\n"),
            (one.name,),
        ),
        Damage(
            "bytes after the end", lambda d: (d / one).write_bytes((d / one).read_bytes() + b"from a phone" * 99), ()
        ),
        Damage("thumbnail in EXIF", lambda d: saved(d / one, exif=b"Exif\0\0" + b"\xff\xd8thumb\xff\xd9" * 50), ()),
    ]


def _other_formats(one: Path) -> list[Damage]:
    return [
        Damage("16-bit PNG", lambda d: (d / leaf("deep.png")).write_bytes(png(rows(40, 16), depth=16)), ("deep.png",)),
        Damage("animated PNG", lambda d: animated(d / leaf("film.png")), ("film.png",)),
        Damage("animated WebP", lambda d: animated(d / leaf("film.webp")), ("film.webp",)),
        Damage(
            "PNG with too few rows",
            lambda d: (d / leaf("rows.png")).write_bytes(png(rows(40)[: 121 * 20])),
            ("rows.png",),
        ),
        Damage(
            "PNG with broken deflate",
            lambda d: (d / leaf("bad.png")).write_bytes(
                png(b"").replace(chunk(b"IDAT", zlib.compress(b"")), chunk(b"IDAT", b"x\x9c\xff\xff\xff"))
            ),
            ("bad.png",),
        ),
        Damage(
            "PNG with unknown filters",
            lambda d: (d / leaf("filters.png")).write_bytes(png(noise(121 * 40))),
            ("filters.png",),
        ),
        Damage("HEIC as .jpg", lambda d: (d / one).write_bytes(b"\0\0\0\x18ftypheic" + noise(900)), (one.name,)),
        Damage("webp", lambda d: saved(d / leaf("x.webp")), ()),
        Damage(
            "grey and palette",
            other_modes,
            (),
        ),
    ]


def _folders_and_links(one: Path) -> list[Damage]:
    return [
        Damage(
            "pointers of Git LFS",
            lambda d: [p.write_bytes(POINTER) for p in (d / one).parent.iterdir()],
            ("Git LFS",),
        ),
        Damage("unfinished download", lambda d: (d / one).rename(d / leaf("leaf0.jpg.part")), ("leaf0.jpg.part",)),
        Damage("class with a space", lambda d: spaced(d), ("Ahorn ",)),
        Damage("class in two Unicode forms", twice_in_unicode, ("Érable",)),
        Damage("Train and Val", lambda d: [(d / n).rename(d / n.title()) for n in ("train", "val")], ("Train",)),
        Damage("dangling link", lambda d: (d / leaf("lost.jpg")).symlink_to("nowhere.jpg"), ("lost.jpg",)),
        Damage(
            ".DS_Store and Thumbs.db",
            lambda d: [
                (d / "train/Ahorn" / n).write_bytes(noise(99))
                for n in (".DS_Store", "Thumbs.db", "desktop.ini", "._leaf0.jpg")
            ],
            (),
        ),
        Damage("folders in folders", lambda d: nested_class(d), ()),
        Damage("upper-case extension", lambda d: (d / one).rename(d / leaf("LEAF0.JPG")), ()),
        Damage(
            "link to a picture",
            lambda d: (d / leaf("link.jpg")).symlink_to(d / leaf("leaf1.jpg", "train", "Birke")),
            ("link.jpg",),
        ),
    ]


def other_modes(folder: Path) -> None:
    for mode in ("L", "P", "LA"):
        Image.new(mode, (40, 40), 7).save(folder / leaf(f"{mode}.png"))


def spaced(folder: Path) -> None:
    target = folder / "train/Ahorn "
    target.mkdir()
    for number in range(12):
        saved(target / f"x{number}.jpg", (40 + number, 40))


def twice_in_unicode(folder: Path) -> None:
    for form in ("NFC", "NFD"):
        target = folder / "train" / unicodedata.normalize(form, "Érable")
        target.mkdir()
        for number in range(12):
            saved(target / f"{form}{number}.jpg", (40 + number, 42))


def nested_class(folder: Path) -> None:
    inner = folder / "train/Ahorn/more/still"
    inner.mkdir(parents=True)
    (folder / leaf()).rename(inner / "leaf0.jpg")


def make_zip(path: Path) -> None:
    """Write images of two classes into one zip."""
    with zipfile.ZipFile(path, "w") as packed:
        for split, count in (("train", 12), ("val", 4)):
            for name in ("ant", "bee"):
                for number in range(count):
                    packed.writestr(f"set/{split}/{name}/{number}.png", png(rows(40, seed=hash((split, name, number)))))


def zipped(_path: Path) -> list[Damage]:
    def entry(name: str, content: bytes = b"x") -> Callable[[Path], object]:
        def harm(path: Path) -> None:
            with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "a") as packed:  # of a name twice
                packed.writestr(name, content)

        return harm

    def backslashes(path: Path) -> None:
        with zipfile.ZipFile(path) as packed:
            entries = {each.filename: packed.read(each) for each in packed.infolist()}
        with zipfile.ZipFile(path, "w") as packed:
            for name, content in entries.items():
                packed.writestr(name.replace("/", "\\"), content)

    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 0xFF
        path.write_bytes(content)

    return [
        Damage("a name that is a bomb", entry("set/train/ant/" + "a" * 60_000 + ".png"), ("aaaa",)),
        Damage("a name twice", entry("set/train/ant/0.png", png(rows(40, seed=99))), ("0.png",)),
        Damage("backslashes", backslashes, ("\\",)),
        Damage("a changed byte", flip, (".png",)),
        Damage("leads out by a backslash", entry("..\\out.png"), ("out.png",)),
        Damage("a drive", entry("C:/out.png"), ("C:",)),
        Damage("control characters", entry("set/train/ant/\x1b[31m.png", b"no picture"), ("[31m",)),
        Damage("Apple's double", entry("__MACOSX/set/train/ant/._0.png", b"\0\5\x16\7"), ()),
        Damage("hidden files", entry("set/train/ant/.DS_Store", b"\0\1"), ()),
    ]

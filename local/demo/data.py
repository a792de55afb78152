"""The data of the demo: four IDX files in MNIST's layout, from the user's folder or from scikit-learn's digits."""

from __future__ import annotations

from pathlib import Path

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


class NoData(ValueError):
    """The folder lacks some of the four files. The message names the missing files."""


def files(given: Path | None, scratch: Path) -> list[Path]:
    """Return the four files: from the given folder (raises NoData), or the digits, written into `scratch`."""
    if given:
        return find(given)
    from local import digits  # scikit-learn takes a second to import; not needed with --data

    return digits.write(scratch)


def find(folder: Path) -> list[Path]:
    """Find the four IDX files in this folder, plain or .gz; mirrors also use .idx instead of -idx. Raises NoData."""
    if not folder.is_dir():
        raise NoData(f"{folder} is not a folder. --data takes a folder with {', '.join(NAMES)} (.gz or not).")
    found = {name: next((p for p in _spellings(folder, name) if p.is_file()), None) for name in NAMES}
    if missing := [name for name, path in found.items() if path is None]:
        raise NoData(f"{folder} lacks {', '.join(missing)} (.gz or not).")
    return [path for path in found.values() if path]


def _spellings(folder: Path, name: str) -> list[Path]:
    return [folder / f"{stem}{suffix}" for stem in (name, name.replace("-idx", ".idx")) for suffix in ("", ".gz")]

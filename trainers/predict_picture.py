"""Draw images with a model's predictions: the class as text above the image, objects as boxes inside it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

from files import DataError, replacing
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image, ImageOps

COLUMNS = 4
MOST_IMAGES = 64
INCHES = 3.0  # of one image's side
SIDE = 600  # pixels; larger images are drawn smaller
COLOURS = ("tab:red", "tab:blue", "tab:green", "tab:orange", "tab:purple", "tab:cyan")

Row = tuple[str, list[dict[str, Any]]]  # a file and its guesses


def check(path: Path) -> None:
    """Raise DataError, before the model is loaded, if no picture can be written to this file."""
    if path.suffix.lower() != ".png":
        raise DataError(f"{path}: a picture is written as .png")
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the images into one .png, four in a row. Raises DataError for more than 64 images."""
    if len(rows) > MOST_IMAGES:
        raise DataError(f"{path}: a picture shows at most {MOST_IMAGES} images, not {len(rows)}")
    columns = min(COLUMNS, len(rows))
    lines = ceil(len(rows) / columns)
    figure = Figure(figsize=(INCHES * columns, (INCHES + 0.6) * lines), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).flat
    for axes, row in zip(grid, [*rows, *[None] * (lines * columns - len(rows))], strict=True):
        axes.axis("off")
        if row:
            _image(axes, *row)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=100)


def _image(axes: Axes, file: str, guesses: list[dict[str, Any]]) -> None:
    with Image.open(file) as opened:
        whole = opened.width
        image = ImageOps.contain(opened.convert("RGB"), (SIDE, SIDE)) if max(opened.size) > SIDE else opened.copy()
    axes.imshow(image, cmap="gray" if image.mode == "L" else None)
    labels = list(dict.fromkeys(guess["label"] for guess in guesses))
    for guess in guesses:
        if box := guess.get("box"):
            colour = COLOURS[labels.index(guess["label"]) % len(COLOURS)]
            _box(axes, [edge * image.width / whole for edge in box], f"{guess['label']} {guess['score']:.0%}", colour)
    boxed = any("box" in guess for guess in guesses)
    best = "" if boxed else "nothing" if not guesses else f"{guesses[0]['label']} ({guesses[0]['score']:.0%})"
    axes.set_title("\n".join(filter(None, (_short(Path(file).name), best))), fontsize=9, parse_math=False)


def _box(axes: Axes, edges: list[float], words: str, colour: str) -> None:
    left, top, right, bottom = edges
    axes.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor=colour, linewidth=2))
    label = {"facecolor": colour, "edgecolor": "none", "pad": 1}
    axes.text(left, top, words, color="white", fontsize=7, bbox=label, va="bottom", parse_math=False, clip_on=True)


def _short(name: str) -> str:
    """Return the printable characters of the name, at most 40."""
    shown = "".join(character if character.isprintable() else "?" for character in name)
    return shown if len(shown) <= 40 else f"{shown[:18]}...{shown[-19:]}"

"""Writes weights as safetensors, a format that contains no code. Equal weights give equal bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import files
from safetensors.torch import save
from torch import Tensor

NAME = "model.safetensors"


def write(folder: Path, weights: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> None:
    """Write model.safetensors with these entries in the header. The file is written whole or not at all."""
    content = save({name: value.cpu().contiguous() for name, value in weights.items()}, dict(about) if about else None)
    with files.replacing(folder / NAME) as path:
        path.write_bytes(_ordered(content) if about else content)  # not save_file, whose files only the owner can read


def describe(folder: Path, facts: Mapping[str, object]) -> None:
    """Write model.json: the content of model.safetensors, and how to build and feed the model. The file is written
    whole or not at all."""
    with files.replacing(folder / "model.json") as path:
        text = json.dumps({"weights": NAME, **facts}, indent=2, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


def _ordered(content: bytes) -> bytes:
    """Return the file's bytes with the header's entries sorted by name. The library writes the entries in any
    order, but equal weights must give equal bytes. https://huggingface.co/docs/safetensors/index#format"""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]

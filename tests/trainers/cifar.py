"""A small data set in CIFAR-10's layout that is learned in a few steps: ten plain colours under noise."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np


def write(folder: Path, per_batch: int, test: int, protocol: int = 2) -> Path:
    """Write five batches of `per_batch` images, one batch of `test` images, and batches.meta; always the same
    bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = np.random.default_rng(1)
    colours = dice.integers(0, 256, (10, 3))
    for name, count in (*((f"data_batch_{number}", per_batch) for number in range(1, 6)), ("test_batch", test)):
        labels = np.arange(count) % 10
        images = colours[labels][:, :, None] + dice.normal(0, 30, (count, 3, 1024))
        data = images.clip(0, 255).astype(np.uint8).reshape(count, 3072)
        batch = {b"batch_label": name.encode(), b"labels": labels.tolist(), b"data": data, b"filenames": [b""] * count}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=protocol))
    meta = {"label_names": [f"colour {number}" for number in range(10)], "num_vis": 3072}
    (folder / "batches.meta").write_bytes(pickle.dumps(meta, protocol=protocol))
    return folder

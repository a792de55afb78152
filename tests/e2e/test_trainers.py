"""Every other trainer, from a drop to its archive on the local cloud. (mnist is the demo; cifar_elastic has its own
test.)"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from local.cloud import Cloud, Options
from tests.e2e import notebook
from tests.e2e.lab import Lab

ROOT = Path(__file__).resolve().parents[2]
TRAINERS = ("transfer", "detection", "bert")
ROUTES = {name: {"trainer": name, "cluster": "cpu-cluster", "nodes": 1} for name in TRAINERS}
SIDE = 64  # pixels

Files = dict[str, bytes]


def picture(colour: tuple[int, int, int]) -> bytes:
    """A JPEG of a grey field with a square of this colour."""
    image = Image.new("RGB", (SIDE, SIDE), (90, 90, 90))
    image.paste(colour, (16, 16, 48, 48))
    out = io.BytesIO()
    image.save(out, "JPEG")
    return out.getvalue()


def classes() -> tuple[Files, dict[str, Any]]:
    """Red and blue squares, sorted into folders."""
    files = {
        f"{part}/{name}/{number}.jpg": picture(colour)
        for part in ("train", "val")
        for name, colour in (("red", (200, 30, 30)), ("blue", (30, 30, 200)))
        for number in range(4)
    }
    return files, {"epochs": 1, "batch_size": 4, "weights": "none"}


def boxes() -> tuple[Files, dict[str, Any]]:
    """The same squares with their boxes, in COCO's layout."""
    files: Files = {}
    for part in ("train", "val"):
        images = [{"id": n, "file_name": f"{n}.jpg", "width": SIDE, "height": SIDE} for n in range(4)]
        box = {"category_id": 7, "bbox": [16, 16, 32, 32], "area": 1024, "iscrowd": 0}
        annotations = [{"id": n + 1, "image_id": n, **box} for n in range(4)]
        told = {"images": images, "annotations": annotations, "categories": [{"id": 7, "name": "square"}]}
        files[f"annotations/instances_{part}2017.json"] = json.dumps(told).encode()
        files |= {f"{part}2017/{n}.jpg": picture((200, 30, 30)) for n in range(4)}
    return files, {"epochs": 1, "batch_size": 2, "min_size": SIDE, "max_size": SIDE}


def text() -> tuple[Files, dict[str, Any]]:
    """Some pages of this repository."""
    pages = sorted((ROOT / "docs").glob("*.md"))[:4]
    files = {f"{page.stem}.txt": page.read_bytes() for page in pages}
    return files, {"epochs": 1, "vocabulary": 300, "length": 32}


DATA: dict[str, Callable[[], tuple[Files, dict[str, Any]]]] = {"transfer": classes, "detection": boxes, "bert": text}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A cloud that received a drop for each trainer at once."""
    home = tmp_path_factory.mktemp("trainers")
    (home / "routes.yaml").write_text(json.dumps({"routes": ROUTES}))
    with Cloud.start(home / "cloud", Options(routes=home / "routes.yaml", node_start_seconds=0.2)) as cloud:
        lab = Lab(cloud, home)
        for name, make in DATA.items():
            files, inputs = make()
            job = {"inputs": inputs, "environment_variables": {"OMP_NUM_THREADS": "1"}}  # three at once on this machine
            lab.upload(f"{name}/small", {**files, "job.json": json.dumps(job).encode()})
        yield lab


@pytest.mark.timeout(300)
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_drop_becomes_a_model(lab: Lab, trainer: str) -> None:
    """The run completes, and its archive has a model with its description, metrics and the log's last line."""
    run = lab.archived(f"{trainer}/small")
    assert run["state"] == "completed", run["reason"]
    files = lab.output(run)
    assert {"models/model.json", "metrics/metrics.jsonl", "manifest.json"} <= files.keys()
    assert any(name.endswith((".pt", ".safetensors")) for name in files)
    assert {"train_loss", "learning_rate", "data_wait_share", "world_size"} <= run["metrics"]["last"].keys()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("trainer", ["transfer", "bert"])
def test_the_notebook_shows_the_model(lab: Lab, trainer: str, tmp_path: Path) -> None:
    """examples/look_at_model.ipynb needs only the archive's folder of any trainer, and shows facts, curves and
    predictions."""
    archive = notebook.fetched(lab, lab.archived(f"{trainer}/small"), tmp_path / "archive")
    file = tmp_path / ("look.txt" if trainer == "bert" else "look.jpg")
    file.write_bytes(b"the [MASK] is here" if trainer == "bert" else picture((30, 30, 200)))
    said = notebook.look(archive, [file])
    assert "architecture" in said or "classes" in said
    what = "the [MASK] is here: " if trainer == "bert" else "look.jpg: "
    assert what in said, said
    if trainer == "transfer":
        assert "blue" in said.partition(what)[2], "its two classes are guessed"

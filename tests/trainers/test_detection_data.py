"""The detection trainer's data: reading, batches, and metrics."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from detection import coco, layouts
from detection.data import Category, Example, Examples, Pictures, grouped, load, remaining, target
from detection.options import Settings, arguments
from detection.train import learning_rate
from files import DataError
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from tests.trainers.launch import ROOT

TINY = ROOT.parent / "shared" / "data" / "coco-tiny"
needs_tiny = pytest.mark.skipif(not TINY.is_dir(), reason=f"{TINY} is not there")

CATEGORIES = [{"id": 3, "name": "square"}, {"id": 17, "name": "disc"}]  # in two steps, as COCO's ids have gaps
Box = tuple[int, int, int, int]


def shapes(folder: Path, count: int = 6, parts: tuple[str, ...] = ("train2017", "val2017")) -> Path:
    """Write a data set in COCO's layout: a red square and a blue disc in each image, alternately wide and high."""
    for part in parts:
        images: list[dict[str, Any]] = []
        things: list[dict[str, Any]] = []
        (folder / "images" / part).mkdir(parents=True)
        for number in range(1, count + 1):
            size = (64, 32) if number % 2 else (32, 64)
            name = f"{number:04}.png"
            boxes = [(4 + number, 5, 24 + number, 25), (size[0] - 22, size[1] - 20, size[0] - 4, size[1] - 2)]
            picture = Image.new("RGB", size, (40, 40, 40))
            ImageDraw.Draw(picture).rectangle(_inclusive(boxes[0]), fill=(220, 60, 60))
            ImageDraw.Draw(picture).ellipse(_inclusive(boxes[1]), fill=(60, 120, 230))
            picture.save(folder / "images" / part / name)
            images.append({"id": 10 * number, "file_name": name, "width": size[0], "height": size[1]})
            for category, (x1, y1, x2, y2) in zip(CATEGORIES, boxes, strict=True):
                thing = {"image_id": 10 * number, "category_id": category["id"], "bbox": [x1, y1, x2 - x1, y2 - y1]}
                things.append({**thing, "id": len(things) + 1, "area": (x2 - x1) * (y2 - y1), "iscrowd": 0})
        write(folder, part, {"images": images, "annotations": things, "categories": CATEGORIES})
    return folder


def _inclusive(box: Box) -> Box:
    return (box[0], box[1], box[2] - 1, box[3] - 1)


def write(folder: Path, part: str, content: dict[str, Any]) -> None:
    (folder / "annotations").mkdir(exist_ok=True)
    (folder / "annotations" / f"instances_{part}.json").write_text(json.dumps(content))


def change(folder: Path, edit: Callable[[dict[str, Any]], object], part: str = "train2017") -> None:
    content = json.loads((folder / "annotations" / f"instances_{part}.json").read_text())
    edit(content)
    write(folder, part, content)


def table(pictures: Pictures, boxes: torch.Tensor | None = None) -> torch.Tensor:
    """Return detections that are the true boxes, or `boxes` instead, each with another score."""
    images = torch.arange(len(pictures)).repeat_interleave(pictures.starts.diff())[:, None]
    scores = torch.linspace(0.9, 0.1, len(images), dtype=torch.float64)[:, None]
    found = pictures.boxes if boxes is None else boxes
    return torch.cat([images.double(), found, scores, pictures.labels[:, None].double()], 1)


@needs_tiny
def test_published_coco_is_read_as_it_is() -> None:
    """80 categories whose ids go up to 90, images in train2017/, and crowds that are not trained on."""
    data = layouts.read(TINY)
    assert (data.layout, len(data.categories), data.categories[-1]) == ("COCO", 80, Category(90, "toothbrush"))
    assert (str(data.train), str(data.val)) == ("32 images with 284 objects", "24 images with 180 objects")
    assert int(data.train.trained.sum()) == 279
    assert load(data.train, 0).shape == (3, *data.train.sizes[0].flip(0).tolist())


@needs_tiny
def test_the_metrics_are_those_of_the_published_code() -> None:
    """For slightly wrong boxes, the twelve numbers equal pycocotools' own, computed from its own two files."""
    pictures = layouts.read(TINY).val
    assert pictures
    categories = layouts.read(TINY).categories
    moved = pictures.boxes + 6 * torch.rand(pictures.boxes.shape, generator=torch.Generator().manual_seed(1)).double()
    found = table(pictures, moved)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(TINY / "annotations" / "instances_val2017.json")
        rows = [
            {
                "image_id": pictures.ids[int(row[0])],
                "category_id": categories[int(row[6]) - 1].id,
                "bbox": [row[1], row[2], row[3] - row[1], row[4] - row[2]],
                "score": row[5],
            }
            for row in found.tolist()
        ]
        theirs = COCOeval(truth, truth.loadRes(rows), "bbox")
        for step in (theirs.evaluate, theirs.accumulate, theirs.summarize):
            step()
    ours = coco.measure(pictures, categories, found)
    assert list(ours.values()) == pytest.approx(theirs.stats.tolist(), abs=1e-12)
    assert 0.1 < ours["map"] < 0.9


def test_perfect_and_no_boxes(tmp_path: Path) -> None:
    """The true boxes have a map of 1, no boxes have a map of 0, and numbers that can't be measured are left out."""
    data = layouts.read(shapes(tmp_path))
    perfect = coco.measure(data.train, data.categories, table(data.train))
    nothing = coco.measure(data.train, data.categories, table(data.train)[:0])
    assert (perfect["map"], perfect["recall_100"], nothing["map"]) == (1.0, 1.0, 0.0)
    assert "map_small" in perfect
    assert "map_large" not in perfect


def test_a_crowd_counts_neither_for_nor_against(tmp_path: Path) -> None:
    """A box in a crowd is not a mistake, a missed crowd is not a miss, and training ignores the crowd."""
    shapes(tmp_path, 2)
    crowd = {"id": 99, "image_id": 10, "category_id": 3, "bbox": [30, 20, 20, 20], "area": 400, "iscrowd": 1}
    change(tmp_path, lambda content: content["annotations"].append(crowd))
    data = layouts.read(tmp_path)
    found = table(data.train)
    assert len(target(data.train, 0)[1]) == 2
    for rows in (found, found[found[:, 1] != 30]):
        assert coco.measure(data.train, data.categories, rows)["map"] == 1.0


def test_boxes_for_training_end_at_the_border(tmp_path: Path) -> None:
    """A box that leaves the image is cut, a box without area is left out, and an image without boxes stays."""
    shapes(tmp_path, 3)

    def edit(content: dict[str, Any]) -> None:
        content["annotations"][0]["bbox"] = [-10, -10, 30, 30]
        content["annotations"][1]["bbox"] = [8, 8, 0, 5]
        content["annotations"] = [thing for thing in content["annotations"] if thing["image_id"] != 20]

    change(tmp_path, edit)
    data = layouts.read(tmp_path)
    boxes, labels = target(data.train, 0)
    assert (boxes.tolist(), labels.tolist()) == ([[0, 0, 20, 20]], [1])
    assert [len(target(data.train, index)[1]) for index in range(3)] == [1, 0, 2]


def test_a_mirrored_image_has_mirrored_boxes(tmp_path: Path) -> None:
    """A mirrored box contains the same pixels, mirrored."""
    pictures = layouts.read(shapes(tmp_path)).train
    examples: Any = Examples(pictures)[[(0, False), (0, True)]]
    plain, mirrored = examples
    assert isinstance(plain, Example)
    for before, after in zip(plain.boxes.int().tolist(), mirrored.boxes.int().tolist(), strict=True):
        assert torch.equal(_crop(plain.pixels, before), _crop(mirrored.pixels, after).flip(2))


def _crop(pixels: torch.Tensor, box: list[int]) -> torch.Tensor:
    return pixels[:, box[1] : box[3], box[0] : box[2]]


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no categories": (lambda c: c.pop("categories"), 'found no categories (a category is {"id": 1, "name": "person"})'),
    "no list": (lambda c: c.update(images={}), "found no images"),
    "twice the id": (lambda c: c["categories"].append(CATEGORIES[0]), "an id of their own each, found 2 different ids"),
    "no image id": (
        lambda c: c["annotations"][1].pop("image_id"),
        "annotations[1]: expected image_id (int), found None",
    ),
    "strange image": (lambda c: c["annotations"][1].update(image_id=7), "annotations[1]: expected an image_id of"),
    "strange class": (
        lambda c: c["annotations"][0].update(category_id=4),
        "expected a category_id of categories, found 4",
    ),
    "short box": (lambda c: c["annotations"][0].update(bbox=[1, 2, 3]), "expected bbox [x, y, width, height], found"),
    "negative box": (lambda c: c["annotations"][0].update(bbox=[9, 9, -1, 2]), "found [9, 9, -1, 2]"),
    "same image": (
        lambda c: c["images"][1].update(id=10),
        "images[1]: expected an id of its own and a size, found id 10",
    ),
    "no such file": (lambda c: c["images"][1].update(file_name="x.png"), "expected its images beside it, found no"),
    "way out": (lambda c: c["images"][1].update(file_name="../x.png"), "inside the data set, found '../x.png'"),
    "nothing to learn": (lambda c: c["annotations"].clear(), "expected objects to train on, found none in 6 images"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_coco_files_lack_is_told(tmp_path: Path, name: str) -> None:
    """An unusable annotation file raises DataError with the file, the place and the found content."""
    edit, message = BROKEN[name]
    change(shapes(tmp_path), edit)
    with pytest.raises(DataError) as caught:
        layouts.read(tmp_path)
    assert message in str(caught.value)


def test_what_does_not_fit_together_is_told(tmp_path: Path) -> None:
    """A missing layout, invalid JSON, different categories in the two files, and an empty test part each raise
    DataError."""
    with pytest.raises(DataError, match=r"expected annotations/instances_train.*, found none of them"):
        layouts.read(tmp_path)
    shapes(tmp_path)
    change(tmp_path, lambda content: content["annotations"].clear(), "val2017")
    with pytest.raises(DataError, match="expected objects to test on, found none in 6 images"):
        layouts.read(tmp_path)
    change(tmp_path, lambda content: content["categories"].pop(), "val2017")
    with pytest.raises(DataError, match=r"expected the categories of instances_train2017.json, found others"):
        layouts.read(tmp_path)
    (tmp_path / "annotations" / "instances_val2017.json").write_text("{")
    with pytest.raises(DataError, match="expected JSON, found"):
        layouts.read(tmp_path)


def test_broken_images_are_told(tmp_path: Path) -> None:
    """A file that is not an image, or has another size than its annotation, raises DataError with its name."""
    pictures = layouts.read(shapes(tmp_path)).train
    Path(pictures.paths[0]).write_bytes(b"\x89PNG no more")
    Image.new("RGB", (10, 10)).save(pictures.paths[1])
    for index, message in (
        (0, "0001.png: expected an image, found"),
        (1, "expected 32 x 64 pixels, as its annotation"),
    ):
        error = Examples(pictures)[[(index, False)]]
        assert isinstance(error, DataError)
        assert message in str(error)


def to_csv(source: Path, folder: Path, header: bool) -> Path:
    """Write the same data set as keras-retinanet's .csv files, with one more image without objects."""
    folder.mkdir()
    names = {category["id"]: category["name"] for category in CATEGORIES}
    for part, file in (("train2017", "annotations.csv"), ("val2017", "val_annotations.csv")):
        content = json.loads((source / "annotations" / f"instances_{part}.json").read_text())
        paths = {image["id"]: f"{part}/{image['file_name']}" for image in content["images"]}
        rows = ["image,xmin,ymin,xmax,ymax,class"] if header else []
        for thing in content["annotations"]:
            x, y, width, height = thing["bbox"]
            rows.append(f"{paths[thing['image_id']]},{x},{y},{x + width},{y + height},{names[thing['category_id']]}")
        (folder / part).mkdir()
        for name in paths.values():
            (folder / name).write_bytes((source / "images" / name).read_bytes())
        Image.new("RGB", (30, 20)).save(folder / part / "empty.png")
        (folder / file).write_text("\n".join([*rows, f"{part}/empty.png,,,,,"]) + "\n")
    (folder / "classes.csv").write_text("square,0\ndisc,1\n")
    return folder


def to_voc(source: Path, folder: Path) -> Path:
    """Write the same data set as Pascal VOC's files, with the first object of each part marked difficult."""
    for name in ("Annotations", "ImageSets/Main", "JPEGImages"):
        (folder / "VOCdevkit" / "VOC2012" / name).mkdir(parents=True)
    root = folder / "VOCdevkit" / "VOC2012"
    names = {category["id"]: category["name"] for category in CATEGORIES}
    for part in ("train", "val"):
        content = json.loads((source / "annotations" / f"instances_{part}2017.json").read_text())
        for image in content["images"]:
            stem = f"{part}_{image['id']}"
            pixels = (source / "images" / f"{part}2017" / image["file_name"]).read_bytes()
            (root / "JPEGImages" / f"{stem}.png").write_bytes(pixels)
            objects = ""
            for thing in (thing for thing in content["annotations"] if thing["image_id"] == image["id"]):
                x, y, width, height = thing["bbox"]
                objects += (
                    f"<object><name>{names[thing['category_id']]}</name><difficult>{int(thing['id'] == 1)}</difficult>"
                    f"<bndbox><xmin>{x + 1}</xmin><ymin>{y + 1}</ymin><xmax>{x + width}</xmax>"
                    f"<ymax>{y + height}</ymax></bndbox></object>"
                )
            size = f"<size><width>{image['width']}</width><height>{image['height']}</height><depth>3</depth></size>"
            (root / "Annotations" / f"{stem}.xml").write_text(f"<annotation>{size}{objects}</annotation>")
        stems = [f"{part}_{image['id']}" for image in content["images"]]
        (root / "ImageSets" / "Main" / f"{part}.txt").write_text("\n".join(stems) + "\n")
    return folder


@pytest.mark.parametrize("header", [True, False])
def test_csv_says_the_same(tmp_path: Path, header: bool) -> None:
    """keras-retinanet's .csv files give the same boxes and classes, with or without a header; empty rows give empty
    images."""
    expected = layouts.read(shapes(tmp_path / "coco"))
    found = layouts.read(to_csv(tmp_path / "coco", tmp_path / "csv", header))
    assert (found.layout, found.categories) == ("CSV", [Category(0, "square"), Category(1, "disc")])
    assert len(found.train) == len(expected.train) + 1
    assert found.train.boxes.tolist() == expected.train.boxes.tolist()
    assert found.train.labels.tolist() == expected.train.labels.tolist()
    assert found.train.sizes[-1].tolist() == [30, 20]
    assert found.val


def test_voc_says_the_same(tmp_path: Path) -> None:
    """Pascal VOC's files give the same boxes, with classes in alphabetical order and difficult objects as crowds."""
    expected = layouts.read(shapes(tmp_path / "coco"))
    found = layouts.read(to_voc(tmp_path / "coco", tmp_path / "voc"))
    assert (found.layout, found.categories) == ("Pascal VOC", [Category(1, "disc"), Category(2, "square")])
    assert found.train.boxes.tolist() == expected.train.boxes.tolist()
    assert found.train.labels.tolist() == [3 - label for label in expected.train.labels.tolist()]
    assert found.train.crowd.tolist() == [True, *[False] * 11]
    assert found.val
    assert len(found.val) == 6


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train2017/0001.png,1,2,3", "line 14: expected image,xmin,ymin,xmax,ymax,class, found 4 values"),
        ("train2017/0001.png,9,2,3,4,disc", "line 14: expected xmin < xmax and ymin < ymax, found 9, 2, 3, 4"),
        ("train2017/0001.png,a,2,3,4,disc", "line 14: expected four numbers, found a,2,3,4"),
        ("train2017/0001.png,1,2,3,4,cat", "line 14: expected a class of classes.csv, found 'cat'"),
        ("train2017/none.png,1,2,3,4,disc", "expected its images beside it, found no"),
    ],
)
def test_what_csv_files_lack_is_told(tmp_path: Path, line: str, message: str) -> None:
    """An unusable row raises DataError with its line."""
    folder = to_csv(shapes(tmp_path / "coco"), tmp_path / "csv", header=False)
    with (folder / "annotations.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError) as caught:
        layouts.read(folder)
    assert message in str(caught.value)


@settings(max_examples=100)
@given(wide=st.lists(st.booleans(), min_size=1, max_size=40), size=st.integers(1, 9), seed=st.integers(0, 99))
def test_batches_take_each_image_once(wide: list[bool], size: int, seed: int) -> None:
    """Every image is in one batch, the number of batches is minimal, and at most one batch has both wide and high
    images."""
    order = torch.randperm(len(wide), generator=torch.Generator().manual_seed(seed)).tolist()
    batches = grouped(order, torch.tensor(wide), size)
    assert sorted(index for batch in batches for index in batch) == list(range(len(wide)))
    assert len(batches) == math.ceil(len(wide) / size)
    assert sum(len({wide[index] for index in batch}) > 1 for batch in batches) <= 1


@settings(max_examples=100)
@given(
    wide=st.lists(st.booleans(), min_size=1, max_size=40),
    stops=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), max_size=3),
    size=st.integers(1, 9),
)
def test_restarts_neither_repeat_nor_skip(wide: list[bool], stops: list[tuple[int, int]], size: int) -> None:
    """An epoch that is stopped repeatedly and continues with another batch size each time takes each image once.

    With the same size it takes the same batches as without a stop.
    """
    groups, order = torch.tensor(wide), list(range(len(wide)))
    taken: list[int] = []
    cuts: list[tuple[int, int]] = []
    for earlier, count in stops:
        batches = remaining(order, groups, cuts, earlier)[:count]
        taken += [index for batch in batches for index in batch]
        cuts.append((earlier, sum(map(len, batches))))
    rest = remaining(order, groups, cuts, size)
    assert sorted([*taken, *(index for batch in rest for index in batch)]) == order
    for count, batch in enumerate(grouped(order, groups, size)):
        assert remaining(order, groups, [(size, min(count * size, len(order)))], size)[0] == batch


def test_the_learning_rate_follows_the_batch() -> None:
    """The rate is linear in the batch for SGD, and follows the batch's root for AdamW; it rises in the warm-up, and
    falls to a tenth at 2/3 and 8/9."""

    def rate(batch: int, seen: int, *more: str) -> float:
        settings = Settings.of(arguments("").parse_args(["--data", "x", "--warmup-steps", "5", *more]))
        return learning_rate(settings, batch, seen, 9000)

    assert [rate(16, 1000), rate(32, 1000), rate(4, 1000)] == pytest.approx([0.01, 0.02, 0.0025])
    assert [rate(batch, 1000, "--optimizer", "adamw") for batch in (16, 64)] == pytest.approx([1e-4, 2e-4])
    assert [rate(16, 16 * step) for step in range(6)] == pytest.approx([0.002, 0.004, 0.006, 0.008, 0.01, 0.01])
    assert [rate(16, seen) for seen in (5999, 6000, 8000)] == pytest.approx([0.01, 0.001, 0.0001])


def test_flags_that_contradict_are_told() -> None:
    """--backbone, --anchor and sizes are accepted only with models that support them."""
    for more, message in (
        (["--model", "ssd300_vgg16", "--min-size", "100"], "ssd300_vgg16, which has one size"),
        (["--model", "fcos_resnet50_fpn", "--anchor", "16"], "--anchor needs --model retinanet"),
        (["--model", "ssd300_vgg16", "--backbone", "resnet18"], "--backbone needs --model"),
        (["--weights", "a", "--weights-backbone", "b"], "--weights has a backbone in it"),
    ):
        with pytest.raises(ValueError, match=message):
            Settings.of(arguments("").parse_args(["--data", "x", *more]))

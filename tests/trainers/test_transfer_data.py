"""transfer's folder of images: which images it uses, which it skips and why, and how a network sees an image."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import dist
import files
import pytest
import torch
from files import DataError
from PIL import Image
from transfer import backbone, folder, images

from tests.trainers.launch import ROOT

pytestmark = pytest.mark.usefixtures("alone")  # for its one thread
BEES = ROOT.parent / "shared" / "data" / "hymenoptera_data"
VIEW = images.View(resize=36, size=32, mean=[0.5] * 3, std=[0.25] * 3)


def picture(path: Path, colour: tuple[int, ...] = (200, 30, 30), size: tuple[int, int] = (40, 30)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)
    return path


@pytest.fixture
def two_classes(tmp_path: Path) -> Path:
    """Folders train/ and val/ with two classes of two images each."""
    for name in ("train/cat/a", "train/cat/b", "train/dog/a", "train/dog/b", "val/cat/c", "val/dog/c"):
        picture(tmp_path / f"{name}.png")
    return tmp_path


def broken(found: folder.Folder) -> dict[str, str]:
    place = dist.Place(0, 1, "env://", "gloo")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        reasons = folder.check(found, VIEW.side, 2, place, dist.StopRequest())
    finally:
        torch.distributed.destroy_process_group()
    return {str(path.relative_to(found.root)): why for path, why in reasons.items()}


def test_train_and_val_are_found_with_their_classes(two_classes: Path) -> None:
    """Classes are the sub-folders of train by name; images may be at any depth; other files are named, except
    hidden files and those of an operating system."""
    picture(two_classes / "train" / "cat" / "deep" / "er" / "UP.JPG")
    (two_classes / "train" / "cat" / ".DS_Store").touch()
    (two_classes / "train" / "notes.txt").touch()
    (two_classes / "val" / "dog" / "moving.gif").touch()
    found = folder.find(two_classes)
    assert found.classes == ["cat", "dog"]
    assert [(sample.path.name, sample.label) for sample in found.train] == [
        *[("a.png", 0), ("b.png", 0), ("UP.JPG", 0)],
        *[("a.png", 1), ("b.png", 1)],
    ]
    assert [sample.label for sample in found.val] == [0, 1]
    assert {path.name for path in found.skipped} == {"moving.gif"}


def test_an_archive_may_hold_the_folder_in_a_folder(two_classes: Path, tmp_path: Path) -> None:
    """hymenoptera_data.zip holds hymenoptera_data/train: a single sub-folder counts as the data set."""
    outer = tmp_path / "outer"
    for part in ("train", "val"):
        shutil.move(two_classes / part, outer / "inner" / "set" / part)
    (outer / "__MACOSX").mkdir()
    archive = shutil.make_archive(str(tmp_path / "set"), "zip", outer)
    with files.opened(Path(archive)) as unpacked:
        found = folder.find(unpacked)
        assert found.root == unpacked / "inner" / "set"
        assert len(found.train) == 4


def test_classes_alone_are_split_by_the_seed(tmp_path: Path) -> None:
    """Without val, a share of each class becomes val: the same share for the same seed, another for another seed."""
    for name, count in (("few", 2), ("many", 20)):
        for i in range(count):
            picture(tmp_path / name / f"{i}.png")
    found = folder.find(tmp_path)
    splits = [folder.split(found, 0.25, seed) for seed in (1, 1, 2)]
    assert splits[0] == splits[1] != splits[2]
    for one in splits:
        assert [sum(sample.label == label for sample in one.val) for label in (0, 1)] == [1, 5]
        assert sorted(s.path for s in one.train + one.val) == sorted(s.path for s in found.train)


Change = Callable[[Path], object]
FIRST_LINES: list[tuple[Change, str]] = [
    (lambda d: shutil.rmtree(d / "train" / "dog"), "expected a folder for each of at least 2 classes, found ['cat']"),
    (lambda d: shutil.rmtree(d / "train"), "expected a folder for each of at least 2 classes, found"),
    (lambda d: (d / "train" / "fox").mkdir(), r"train/fox: expected images (.jpg, .jpeg, .png"),
    (lambda d: picture(d / "val" / "fox" / "a.png"), "val/fox: expected only the classes of train (cat, dog), found"),
]


@pytest.mark.parametrize(("change", "message"), FIRST_LINES)
def test_a_folder_that_is_no_data_set_is_named(two_classes: Path, change: Change, message: str) -> None:
    """The message names the folder, the expected content and the found content."""
    change(two_classes)
    (two_classes / "val" / "cat" / "c.png").unlink()
    (two_classes / "val" / "cat").rmdir()
    with pytest.raises(DataError) as error:
        folder.find(two_classes)
    assert message in str(error.value)


def test_broken_images_are_named_with_their_reason(two_classes: Path) -> None:
    """Truncated, empty, other and impossibly large images are each found, and none ends the check."""
    train = two_classes / "train"
    whole = picture(train / "cat" / "large.jpg", size=(200, 200)).read_bytes()
    (train / "cat" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (train / "cat" / "empty.png").touch()
    (train / "dog" / "page.jpg").write_text("<html>not found</html>")
    png = (train / "dog" / "a.png").read_bytes()
    (train / "dog" / "damaged.png").write_bytes(png[:50] + bytes(20) + png[70:])
    # 60,000 x 60,000 pixels would take 10 GB of memory.
    (train / "dog" / "bomb.png").write_bytes(png[:16] + (60_000).to_bytes(4, "big") * 2 + png[24:])
    reasons = broken(folder.find(two_classes))
    assert reasons.keys() == {
        *("train/cat/cut.jpg", "train/cat/empty.png", "train/dog/page.jpg", "train/dog/damaged.png"),
        "train/dog/bomb.png",
    }
    assert "truncated" in reasons["train/cat/cut.jpg"]
    assert reasons["train/dog/page.jpg"] == "not an image of any kind that Pillow reads"


def test_too_many_broken_images_are_bad_data(two_classes: Path) -> None:
    """Up to the share --max-broken, broken images are left out and listed; beyond the share, or if a class has no
    other image, the training ends."""
    found = folder.find(two_classes)
    reasons = {found.train[0].path: "cut"}  # 1 of 6
    used = folder.without(found, reasons, 0.2)
    assert (len(used.train), used.skipped) == (3, reasons)
    with pytest.raises(DataError, match=r"at most 10% of 6 .*--max-broken.*found 1, as train/cat/a.png: cut"):
        folder.without(found, reasons, 0.1)
    with pytest.raises(DataError, match="expected images of cat to train on, found broken ones only"):
        folder.without(found, {sample.path: "cut" for sample in found.train[:2]}, 0.5)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA"])
def test_every_kind_of_picture_becomes_rgb(tmp_path: Path, mode: str) -> None:
    """Grey, palette, transparent and CMYK pictures give three channels of bytes."""
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    Image.new("RGB", (6, 4), (255, 255, 255)).convert(mode).save(path)
    pixels = images.decode(path, 4)
    assert (pixels.shape, pixels.dtype) == ((3, 4, 6), torch.uint8)
    assert pixels.min() > 250


def test_a_photo_is_turned_as_it_was_taken(tmp_path: Path) -> None:
    """The orientation that a camera records is applied."""
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise
    Image.new("RGB", (60, 20)).save(tmp_path / "a.jpg", exif=exif)
    assert images.decode(tmp_path / "a.jpg", 60).shape == (3, 60, 20)


def test_a_large_photo_is_decoded_small_and_looks_the_same(tmp_path: Path) -> None:
    """A JPEG far larger than needed is decoded at a fraction, never below `side`, and the view hardly changes."""
    ramp = Image.linear_gradient("L").resize((1600, 1200)).convert("RGB")
    ramp.save(tmp_path / "a.jpg", quality=95)
    small, large = (images.decode(tmp_path / "a.jpg", side) for side in (VIEW.side, 10_000))
    assert large.shape == (3, 1200, 1600)
    assert small.shape == (3, 150, 200)
    assert (VIEW.crop(small).int() - VIEW.crop(large).int()).abs().max() <= 2


@pytest.mark.parametrize("size", [(1, 1), (3000, 1), (1, 3000), (33, 500)])
def test_any_shape_gives_the_same_view_size(size: tuple[int, int]) -> None:
    """Thin strips and single pixels are cropped and augmented like any image."""
    pixels = torch.zeros(3, *size, dtype=torch.uint8)
    assert VIEW.crop(pixels).shape == VIEW.augment(pixels).shape == (3, 32, 32)


def test_chance_belongs_to_the_image_and_not_to_its_batch(two_classes: Path) -> None:
    """An image is augmented the same way in every batch; another epoch's chance gives another view.

    Other random numbers (dropout) continue undisturbed.
    """
    generator = torch.Generator().manual_seed(0)
    for path in two_classes.rglob("*.png"):
        noise = torch.randint(0, 256, (30, 40, 3), generator=generator, dtype=torch.uint8)
        Image.fromarray(noise.numpy()).save(path)
    samples = folder.find(two_classes).train
    torch.manual_seed(7)
    together, labels = images.ClassImages(samples, VIEW, chance=5)[[3, 0, 1]]
    after = torch.rand(1)
    alone, _ = images.ClassImages(samples, VIEW, chance=5)[[0]]
    other, _ = images.ClassImages(samples, VIEW, chance=99)[[0]]
    assert labels.tolist() == [1, 0, 0]
    assert torch.equal(together[1], alone[0])
    assert not torch.equal(other, alone)
    assert after == torch.rand(1, generator=torch.Generator().manual_seed(7))


def test_ants_and_bees_as_they_were_published() -> None:
    """The real folder has 244 and 153 images, and a GIF with the text `image not found` is not an ant."""
    if not BEES.is_dir():
        pytest.skip(f"the ants and bees are not in {BEES}")
    found = folder.find(BEES)
    assert (found.classes, len(found.train), len(found.val)) == (["ants", "bees"], 244, 153)
    assert [str(path.relative_to(BEES)) for path in found.skipped] == ["train/ants/imageNotFound.gif"]
    view = backbone.view_for("resnet18", None)
    assert (view.resize, view.size, view.mean) == (256, 224, [0.485, 0.456, 0.406])
    pixels, labels = images.ClassImages(found.val, view)[[0, 152]]
    assert labels.tolist() == [0, 1]
    assert view.normalise(pixels).abs().max() < 3

"""Data checks on the page: the data card of a drop, the warnings of a run, and the check before an upload."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from PIL import Image

from shared.data_checks.model import CheckVerdict, DataCheck
from shared.drops.model import Drop, DropState, generation_of
from shared.kernel.drop_key import DropKey
from shared.kernel.places import DROPS_CONTAINER, OUTPUT_CONTAINER
from shared.runs.data import CARD, PackedListing, keep_listing
from tests.page.lab import NOW, PATIENCE, Lab, a_run

if TYPE_CHECKING:
    from playwright.sync_api import Route

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)

EVIL = "<img src=x onerror=\"document.title='pwned'\">\u202e"
SEEN = EVIL.replace("\u202e", "⟨U+202E⟩")


def a_check() -> DataCheck:
    """A check's result for pictures of two classes, one with a hostile name."""
    card = {
        **{"kind": "image_folder", "unit": "images", "files": 1840, "bytes": 9_200_000, "read": f"1,000 of {EVIL}"},
        **{"splits": {"train": {"ant": 1200, EVIL: 40}, "test": {"ant": 600}}, "totals": {"train": 1240, "test": 600}},
        **{"sizes": [900, 5000, 80_000], "widths": [64, 224, 640], "heights": [], "modes": {"JPEG RGB": 1000}},
        "duplicates": {"within": 3, "across": 1},
    }
    return DataCheck(
        CheckVerdict.WARNED, (), (f"In train, ant has 1,200, over 10 times as many as: {EVIL} (40)",), (), card
    )


def test_a_drop_shows_the_data_card_of_its_generation(lab: Lab) -> None:
    """The card has bars of the classes of each split, sizes, equal files, the amount read and the findings; names
    stay text."""
    drop = Drop(DropKey("mnist", "carded"), DropState.SEALED, "t", NOW, 2, "f" * 64, "carded-1", sealed_at=NOW)
    lab.system.drops.insert(drop)
    place = f"{generation_of(drop).folder}/{CARD}"
    lab.system.blobs.write(OUTPUT_CONTAINER, place, msgspec.json.encode(a_check()), "application/json")
    page = lab.page("drops/mnist/carded")
    card = page.locator(".card", has=page.get_by_role("heading", name="Data card of generation 2"))
    bars = [("ant", "1200"), (SEEN, "40"), ("ant", "600")]
    expect(card.locator(".bars li")).to_have_text([f"{name}{re.sub('^1200$', '1,200', n)}" for name, n in bars])
    assert card.locator("progress").evaluate_all("(all) => all.map((bar) => [bar.max, bar.value])") == [
        [1200, 1200],
        [1200, 40],
        [1200, 600],
    ]
    expect(card.get_by_role("heading", level=3)).to_have_text(["train: 1,240 images", "test: 600 images"])
    expect(card.locator(".findings li")).to_have_text(
        [f"In train, ant has 1,200, over 10 times as many as: {SEEN} (40)"]
    )
    for fact in (
        "900 B to 80.0 kB, median 5.00 kB",
        "64 px to 640 px",
        "3 within a split, 1 in several",
        f"1,000 of {SEEN}",
    ):
        expect(card.locator(".facts")).to_contain_text(fact)
    expect(card.locator(".facts")).not_to_contain_text("Heights")
    lab.shot(page, "data-card-light")
    page.emulate_media(color_scheme="dark")
    lab.shot(page, "data-card-dark")
    page.set_viewport_size({"width": 380, "height": 800})
    lab.shot(page, "data-card-narrow")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() != "pwned"
    assert lab.faults == []
    page.close()


def test_a_data_card_has_a_strip_of_pictures(lab: Lab) -> None:
    """Pictures of the drop are loaded from storage; a hostile name stays text, and an SVG's script does not run."""
    key, png = DropKey("mnist", "strip"), io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(png, "PNG")
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=\'pwned\'"><script>alert(1)</script></svg>'
    contents = {f"train/ant/{EVIL}.png": png.getvalue(), "train/bee/1.png": svg, "train/bee/2.svg": svg}
    drop = Drop(key, DropState.SEALED, "t", NOW, 1, "f" * 64, "strip-1", sealed_at=NOW)
    lab.system.drops.insert(drop)
    listing = PackedListing()
    for name, content in contents.items():
        kind = "image/svg+xml" if content == svg else "image/png"
        listing.add(lab.system.blobs.write(DROPS_CONTAINER, f"{key}/{name}", content, kind))
    folder = generation_of(drop).folder
    keep_listing(lab.system.blobs, folder, listing)
    lab.system.blobs.write(OUTPUT_CONTAINER, f"{folder}/{CARD}", msgspec.json.encode(a_check()), "application/json")
    page = lab.page("drops/mnist/strip")
    strip = page.locator(".card", has=page.get_by_role("heading", name="Data card of generation 1")).locator("figure")
    expect(strip).to_have_text([f"train/ant/{SEEN}.png", "train/bee/1.png"])
    page.wait_for_function("document.querySelector('figure img').naturalWidth === 40")
    lab.shot(page, "data-strip")
    assert page.title() != "pwned"
    assert lab.faults == []
    page.close()


def test_a_run_shows_the_warnings_about_its_data(lab: Lab) -> None:
    """The warnings lead to the card of the drop. A run with faultless data has no such notice."""
    lab.system.runs.insert(a_run("warned-1", drop="mnist/carded").having(a_check()))
    lab.system.runs.insert(a_run("fine-1", drop="mnist/carded").having(DataCheck(CheckVerdict.FINE)))
    page = lab.page("run/warned-1")
    expect(page.locator(".findings li")).to_have_text(
        [f"In train, ant has 1,200, over 10 times as many as: {SEEN} (40)"]
    )
    expect(page.locator(".findings a")).to_have_attribute("href", "#/drops/mnist/carded")
    lab.shot(page, "run-warned")
    page.goto(f"{lab.cloud.api}/page#/run/fine-1")
    expect(page.get_by_role("heading", name="fine-1")).to_be_visible()
    expect(page.locator(".findings")).to_have_count(0)
    assert lab.faults == []
    page.close()


def folder(place: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    for name, content in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return place


def test_files_are_checked_before_the_upload(lab: Lab, tmp_path: Path) -> None:
    """Files that the trainer can't use stop the upload before the first byte, unless the person insists."""
    evil = "<img src=x onerror=alert(1)>"
    bad = folder(tmp_path / "bad", [("Notes.txt", b"a"), ("notes.txt", b"b"), (f"{evil}.gz", b"")])
    page, uploads = lab.page("drops"), list[str]()
    page.on("dialog", lambda dialog: lab.faults.append(dialog.message))

    def refuse(route: Route) -> None:
        uploads.append(route.request.url)
        route.fulfill(status=403, json={"detail": "Not now."})

    page.route("**/uploads", refuse)
    page.get_by_label("Choose a folder").set_input_files(bad)
    page.locator(".zone select").select_option("mnist")
    page.get_by_role("button", name="Upload").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("A drop with these files would be rejected")
    expect(alert).to_contain_text("train-images-idx3-ubyte")
    expect(alert).to_contain_text("Names differ only in upper and lower case")
    lab.shot(page, "upload-refused")
    assert uploads == []
    page.get_by_role("button", name="Upload anyway").click()
    expect(page.get_by_text("Not now.")).to_be_visible()
    assert len(uploads) == 1
    page.close()
    assert lab.faults == []


def test_equal_pictures_in_two_splits_are_found_before_the_upload(lab: Lab, tmp_path: Path) -> None:
    """Files of equal size are compared by content; the warning does not stop the upload."""
    files = [(f"{split}/ant/{i}.png", bytes(1024)) for i, split in enumerate(("train", "val"))]
    page = lab.page("drops")
    page.route("**/uploads", lambda route: route.fulfill(status=403, json={"detail": "Not now."}))
    page.get_by_label("Choose a folder").set_input_files(folder(tmp_path / "twins", files))
    page.locator(".zone select").select_option("transfer")
    with page.expect_request(re.compile("/routes/transfer/check$")) as sent:
        page.get_by_role("button", name="Upload").click()
    sums = {file["md5"] for file in json.loads(sent.value.post_data or "")["files"]}
    assert len(sums) == 1
    assert re.fullmatch("[0-9a-f]{64}", sums.pop())
    expect(page.locator(".findings")).to_contain_text("The same file is in several splits")
    page.close()
    assert lab.faults == []

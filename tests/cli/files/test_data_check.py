"""The check of a folder by `drop`, and the data card on the terminal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.files.data_check import check_items
from cli.files.drop_upload import items
from cli.show import data_cards

RULE: dict[str, Any] = {"mode": "refuse", "declared": {"kind": "csv", "columns": ["age"]}, "bounds": {"few": 3}}


def printed(renderable: Any) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def checked(folder: Path, **rule: Any) -> Any:
    return check_items(items(folder, "tables", "a"), "tables/a", RULE | rule)


def test_the_route_decides_what_a_result_means(tmp_path: Path) -> None:
    """The same folder is refused, warned about or not checked, depending on the route."""
    (tmp_path / "train.csv").write_text("age\n1\n2\n")
    assert checked(tmp_path)["verdict"] == "fine"
    (tmp_path / "test.csv").write_text("years\n1\n")
    assert checked(tmp_path)["verdict"] == "refused"
    assert "test.csv: expected the columns age, found years" in checked(tmp_path)["refusals"][0]
    assert checked(tmp_path, mode="warn")["verdict"] == "warned"
    assert checked(tmp_path, mode="off")["verdict"] == "off"
    assert check_items(items(tmp_path, "tables", "a"), "tables/a", {})["verdict"] == "off"


def test_a_card_is_drawn_with_bars(tmp_path: Path) -> None:
    """The largest class has the longest bar; names from outside are printed without control characters."""
    (tmp_path / "train.csv").write_text("age\n" + "1\n" * 40)
    (tmp_path / "test.csv").write_text("age\n" + "1\n" * 10)
    said = checked(tmp_path)
    said["warnings"] = ["\x1b[31mred"]
    text = printed(data_cards.check(said, "tables/a"))
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if "█" in line]
    assert [line.count("█") for line in rows] == [8, 30] or [line.count("█") for line in rows] == [30, 8]
    assert "train: 40 rows" in text
    assert printed(data_cards.card({})).strip() == "Nothing was checked."

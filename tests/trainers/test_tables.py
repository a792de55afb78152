"""The checks of tables: CSV, and Parquet, whose footers pyarrow writes here and reads a second time."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_checks import parquet
from data_checks.check import Task, check
from data_checks.data import Settings
from data_checks.findings import DataError, Severity
from data_checks.kinds import problem
from data_checks.source import Folder

from tests.trainers.damaged import checked, codes, cut, mark, words

AGE = {"age": {"type": "integer", "minimum": 0, "maximum": 130}}


def test_tables_of_csv(tmp_path: Path) -> None:
    """A missing declared column, rows of another length, a byte order mark and another encoding are named."""
    (tmp_path / "train.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "test.csv").write_text("a,b\n5,6\n")
    result = checked(tmp_path, "csv", columns=["a", "b"])
    assert (result.findings, result.card.totals) == ((), {"train": 2, "test": 1})
    assert result.card.read == "All 2 were read."
    (tmp_path / "test.csv").write_text("a,c\n5,6,7\n")
    (tmp_path / "other.csv").write_bytes(b"a,b\n\xe9,1\n")
    mark(tmp_path / "train.csv")
    result = checked(tmp_path, "csv", columns=["a", "b"])
    assert set(codes(result)) == {"column", "values", "table", "bom"}
    assert "test.csv: line 2: expected 2 values, as in the first line, found 3" in words(result)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 0}, ["0", " 12 ", "3.0"], ["-1", "1.5", "x", "", "NaN"]),
        ({"type": ["integer", "null"]}, ["", "NA", "7"], ["seven"]),
        ({"type": "number", "exclusiveMaximum": 1}, ["0.5", "-1e3"], ["1", "inf", "nan", "0,5"]),
        ({"type": "boolean"}, ["true", "False"], ["yes", "1"]),
        ({"enum": ["Bern", "Biel", 3]}, ["Bern", "3"], ["bern", ""]),
        ({"type": "string", "minLength": 1, "maxLength": 3}, ["ab", "NA"], ["", "abcd"]),
        ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}, ["AB-1"], ["AB-", "ab-1"]),
        ({"type": "string", "format": "date"}, ["2026-11-28"], ["28.11.2026", "2026-02-30"]),
        ({"maximum": 5}, ["5"], ["6", "many"]),
    ],
)
def test_values_are_those_of_the_schema(
    tmp_path: Path, schema: dict[str, Any], good: list[str], bad: list[str]
) -> None:
    """Each valid cell passes; each invalid cell is named with its line."""
    assert problem({"kind": "csv", "columns": {"x": schema}}) == ""
    lines = ["x,y", *(f'"{cell}",1' for cell in good)]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    assert not checked(tmp_path, "csv", columns={"x": schema}).findings
    for cell in bad:
        (tmp_path / "train.csv").write_text("\n".join([*lines, f'"{cell}",1']))
        result = checked(tmp_path, "csv", whole=False, columns={"x": schema})
        assert codes(result) == {"value": Severity.REFUSE}, cell
        assert f"train.csv: line {len(lines) + 1}: x: expected " in words(result)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"kind": "csv", "colums": []}, "'colums' is not an option of csv; options: columns, required, additionalProp"),
        ({"kind": "csv", "rows": True}, "rows is 'True'; it must be a int"),
        ({"kind": "csv", "rows": -1}, "must not be negative"),
        ({"kind": "csv", "delimiter": "::"}, "must be one character"),
        ({"kind": "csv", "columns": 3}, "it must be a list or dict"),
        ({"kind": "csv", "columns": {"a": {"minimun": 3}}}, "columns.a: unknown keyword 'minimun'; known keywords: ty"),
        ({"kind": "csv", "columns": {"a": {"type": "int"}}}, "columns.a: type is 'int'; choose from integer, number"),
        ({"kind": "csv", "columns": {"a": {"minimum": "0"}}}, "minimum is '0'; it must be a number"),
        ({"kind": "csv", "columns": {"a": {"pattern": "("}}}, "which is not a regular expression"),
        ({"kind": "csv", "columns": {"a": {"format": "ip"}}}, "choose from date, date-time"),
        ({"kind": "csv", "columns": {"a": 3}}, "columns.a: '3' is not a schema"),
        ({"kind": "csv", "columns": {"a": {}}, "required": ["b"]}, "required names 'b', which is not a column"),
        ({"kind": "parquet", "delimiter": ","}, "not an option of parquet"),
        ({"kind": "image_folder", "classes": [1]}, "it must be a list of names"),
    ],
)
def test_wrong_declarations_are_told_with_what_is_known(declared: dict[str, Any], message: str) -> None:
    assert message in problem(declared)


def test_columns_may_be_optional_or_closed(tmp_path: Path) -> None:
    """`required` names the required columns, by default all; additionalProperties false allows no others."""
    (tmp_path / "train.csv").write_text("age,more\n1,2\n")
    columns = {**AGE, "city": {"type": "string"}}
    assert codes(checked(tmp_path, "csv", columns=columns)) == {"column": Severity.REFUSE}
    assert not checked(tmp_path, "csv", columns=columns, required=["age"]).findings
    result = checked(tmp_path, "csv", columns=columns, required=["age"], additionalProperties=False)
    assert "expected no other columns, found more" in words(result)


def test_a_packed_and_a_large_table(tmp_path: Path) -> None:
    """A gzip file is read; of a file over the document limit, the first block is read; a cell without an end is
    named."""
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress(b"age\n" + b"7\n" * 1000))
    assert checked(tmp_path, "csv", whole=False, columns=AGE).card.totals == {"train": 1000}
    cut(tmp_path / "train.csv.gz")
    assert "expected a complete gzip file" in words(checked(tmp_path, "csv", columns=AGE))
    (tmp_path / "train.csv.gz").unlink()
    (tmp_path / "train.csv").write_text("age,text\n1,é\n" + f"2,{'ü' * 500}\n" * 2000 + "999,late\n")
    result = check(Folder(tmp_path, 0), Task({"kind": "csv", "columns": AGE}, Settings(document=1 << 20)))
    assert not result.findings
    assert result.card.read == "All 1 were read. Of 1 of them only parts were read."
    assert "line 2003: age: expected integer" in words(checked(tmp_path, "csv", columns=AGE))
    (tmp_path / "train.csv").write_text('age,text\n1,"open\n' + f"2,{'a' * 500}\n" * 3000)
    assert "expected CSV, found field larger than field limit" in words(checked(tmp_path, "csv"))


TABLE = {
    "age": pa.array([1, 2, 40, 90] * 50, pa.int32()),
    "size": pa.array([0.5, -2.0, 7.5, None] * 50),
    "city": pa.array(["Bern", "Biel", "Bern", None] * 50),
    "born": pa.array([date(2000, 1, 1)] * 200),
    "seen": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 200),
    "good": pa.array([True, False] * 100),
    "tags": pa.array([["a"], []] * 100),
    "place": pa.array([{"x": 1, "y": 2}] * 200),
    "kind": pa.array(["a", "b"] * 100).dictionary_encode(),
    "many": pa.array([2**63 + 5] * 200, pa.uint64()),
}
TYPES = ["integer", "number", "string", "date", "date-time", "boolean", "list", "group", "string", "integer"]


def write(path: Path, compression: str = "snappy", version: str = "2.6", **columns: Any) -> Path:
    pq.write_table(
        pa.table({**TABLE, **columns}), path, row_group_size=60, compression=compression, version=version,
        data_page_version="2.0" if version == "2.6" else "1.0", write_page_checksum=True,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("compression", ["snappy", "gzip", "zstd", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_a_footer_says_what_pyarrow_reads(tmp_path: Path, compression: str, version: str) -> None:
    """Columns, rows, chunks and statistics equal those that pyarrow reads from the same file."""
    path = write(tmp_path / "train.parquet", compression, version)
    content, known = path.read_bytes(), pq.read_metadata(path)
    size = parquet.footer_size("x", content[:4], content[-8:])
    found = parquet.read_footer("x", content[-8 - size : -8])
    assert list(found.columns) == known.schema.to_arrow_schema().names
    assert [each.type for each in found.columns.values()] == TYPES
    assert found.rows == known.num_rows == 200
    assert len(found.chunks) == known.num_row_groups * known.num_columns
    of_group = [known.row_group(group).column(column) for group in range(4) for column in range(known.num_columns)]
    assert [each.end - each.begin for each in found.chunks] == [each.total_compressed_size for each in of_group]
    assert not list(parquet.bad_chunks(found, len(content) - 8 - size))
    assert not any(parquet.bad_page(each, lambda at, length: content[at : at + length]) for each in found.chunks)
    age, number = found.columns["age"], found.columns["size"]
    assert (age.least, age.most, age.nulls) == (1, 90, 0)
    assert (number.least, number.most, number.nulls) == (-2.0, 7.5, 50)
    assert found.columns["many"].most == 2**63 + 5 or version == "1.0"
    result = checked(tmp_path, "parquet", whole=False, columns=list(TABLE))
    assert (result.findings, result.card.totals) == ((), {"train": 200})


def test_parquet_is_judged_by_its_footer(tmp_path: Path) -> None:
    """Without reading values, types, bounds and missing values are compared with the declaration."""
    path = write(tmp_path / "train.parquet")
    maybe = {name: {"type": [kind, "null"]} for name, kind in (("size", "number"), ("city", "string"))}
    good = {**AGE, **maybe, "good": {"type": "boolean"}}
    assert not checked(tmp_path, "parquet", whole=False, columns=good).findings
    for name, schema, said in (
        ("age", {"type": "integer", "maximum": 80}, "age: expected integer, maximum 80, found '90'"),
        ("age", {"type": "string"}, "age: expected string, found the type integer"),
        ("size", {"type": "number"}, "size: expected number, found 50 rows without a value"),
        ("size", {"type": ["integer", "null"]}, "found the type number"),
        ("missing", {}, "expected the columns missing"),
    ):
        assert said in words(checked(tmp_path, "parquet", whole=False, columns={name: schema}))
    assert "expected at least 201 rows, found 200" in words(checked(tmp_path, "parquet", whole=False, rows=201))
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    assert "expected the first page of age at 4" in words(checked(tmp_path, "parquet", whole=False))
    path.write_bytes(content[:4] + content[1000:])  # a part in the middle is lost
    assert codes(checked(tmp_path, "parquet", whole=False)) == {"page": Severity.REFUSE}
    cut(path, 0.9)
    assert "no PAR1 at its end" in words(checked(tmp_path, "parquet", whole=False))


def test_values_of_parquet_are_read_where_pyarrow_is(tmp_path: Path) -> None:
    """On a machine with pyarrow, `drop` finds a value that the statistics do not show, and a changed byte."""
    path = write(tmp_path / "train.parquet")
    columns = {"city": {"enum": ["Bern", "Thun", None]}}
    assert not checked(tmp_path, "parquet", whole=False, columns=columns).findings
    result = checked(tmp_path, "parquet", columns=columns)
    assert "train.parquet: row 2: city: expected one of Bern, None, Thun, found 'Biel'; 49 more" in words(result)
    whole = path.read_bytes()
    footer = whole[-8 - parquet.footer_size("x", whole[:4], whole[-8:]) : -8]
    content, at = bytearray(whole), parquet.read_footer("x", footer).chunks[7].end
    content[at - 3] ^= 0xFF
    path.write_bytes(content)
    assert "expected values that can be read, found after row 0" in words(checked(tmp_path, "parquet"))


def test_a_crafted_footer_is_no_work(tmp_path: Path) -> None:
    """Every truncation and every changed byte of a footer gives a footer or DataError, whatever the footer claims."""
    content = write(tmp_path / "train.parquet").read_bytes()
    footer = content[-8 - parquet.footer_size("x", content[:4], content[-8:]) : -8]
    for at in range(0, len(footer), 7):
        for crafted in (footer[:at], footer[:at] + bytes([footer[at] ^ 0xFF]) + footer[at + 1 :]):
            with suppress(DataError):
                assert parquet.read_footer("x", crafted).columns is not None
    with pytest.raises(DataError):
        parquet.read_footer("x", b"\x29\xfc\xff\xff\xff\xff\x07" + bytes(9))
    whole = b"PAR1" + footer + struct.pack("<I", 2**31) + b"PAR1"
    (tmp_path / "train.parquet").write_bytes(whole)
    assert "expected a footer within" in words(checked(tmp_path, "parquet", whole=False))

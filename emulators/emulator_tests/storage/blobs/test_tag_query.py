"""The language of searches by tags, and of conditions on tags."""

from __future__ import annotations

import pytest

from emulators.storage.blobs.tag_query import Query, Term, condition, parse


def test_terms_and_a_container() -> None:
    """Keys may be quoted or not; AND and blanks are free; the container is a separate term."""
    text = """ "my key"='a b'  and k>='1'AND"k"<'2' And @container = 'logs' """
    terms = (Term("my key", "=", "a b"), Term("k", ">=", "1"), Term("k", "<", "2"))
    assert parse(text) == Query(terms, "logs")


@pytest.mark.parametrize(("text", "where"), [
    ("", "at character 1"),
    ("k", "at character 1"),
    ("k = v", "at character 1"),
    ("k <> 'v'", "are for conditions"),
    ("k = 'v' OR l = 'w'", "are for conditions"),
    ("k = 'v' XOR l = 'w'", "AND is expected at character 9"),
    ("k = 'v' AND", "at character 12"),
    ("(k = 'v')", "at character 1"),
    ("@container = 'c'", "needs 1 to 10 tags"),
    ("@container > 'c' AND k = 'v'", "once, with ="),
    (" AND ".join(["k = 'v'"] * 11), "needs 1 to 10 tags"),
    ("k = '" + "v" * 5000 + "'", "4096 are allowed"),
    ("k = '" + "v" * 257 + "'", "is no value of a tag"),
    ("k = 'v!'", "'v!' is no value of a tag"),
])  # fmt: skip
def test_what_is_no_search(text: str, where: str) -> None:
    """The error gives the position, and the operators."""
    with pytest.raises(ValueError, match=where) as caught:
        parse(text)
    assert "= > >= < <= and AND" in str(caught.value)


@pytest.mark.parametrize(("text", "holds"), [
    ("k = 'b'", True), ("k > 'a'", True), ("k < 'b'", False), ("k <= 'b'", True), ("k >= 'c'", False),
    ("k = 'b' AND l = '2'", True), ("k = 'b' AND l = '10'", False), ("m = ''", False), ("k > 'B'", True),
])  # fmt: skip
def test_a_condition_holds(text: str, holds: bool) -> None:
    """Every term must hold, each for an existing tag; values compare as texts."""
    assert condition(text).holds({"k": "b", "l": "2"}) is holds


def test_a_condition_has_no_container() -> None:
    """A condition is about one blob."""
    with pytest.raises(ValueError, match="@container"):
        condition("k = 'v' AND @container = 'c'")

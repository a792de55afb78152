"""The query language for searches by tags and for conditions on tags."""

from __future__ import annotations

import pytest

from emulators.storage.blobs.tag_query import Query, Term, condition, parse


def test_terms_and_a_container() -> None:
    """Keys may be quoted or not, AND is case-insensitive, spaces are optional, and the container is read
    separately."""
    text = """ "my key"='a b'  and k>='1'AND"k"<'2' And @container = 'logs' """
    terms = (Term("my key", "=", "a b"), Term("k", ">=", "1"), Term("k", "<", "2"))
    assert parse(text) == Query(terms, "logs")


@pytest.mark.parametrize(("text", "where"), [
    ("", "near character position 1:"),
    ("k", "near character position 1:"),
    ("k = v", "near character position 1:"),
    ("k <> 'v'", "are for conditions"),
    ("k = 'v' OR l = 'w'", "are for conditions"),
    ("k = 'v' XOR l = 'w'", "near character position 9: AND is expected"),
    ("k = 'v' AND", "near character position 12:"),
    ("(k = 'v')", "near character position 1:"),
    ("@container = 'c'", "needs 1 to 10 tags"),
    ("@container > 'c' AND k = 'v'", "once, with ="),
    ("k = '" + "v" * 5000 + "'", "4096 are allowed"),
    ("k = '" + "v" * 257 + "'", "tag value must be between 0 and 256 characters in length"),
    ("k = 'v!'", "'v!' has a character that is not permitted in tag name or value"),
    ("k" * 129 + " = 'v'", "tag must be between 1 and 128 characters in length"),
    ("\"k#\" = 'v'", "not permitted in tag name or value"),
    ("k = 'v' AND @place = 'c'", "unsupported parameter '@place'"),
])  # fmt: skip
def test_what_is_no_search(text: str, where: str) -> None:
    """The error has the position and the allowed operators."""
    with pytest.raises(ValueError, match=where) as caught:
        parse(text)
    assert "= > >= < <= and AND" in str(caught.value)


@pytest.mark.parametrize(("text", "holds"), [
    ("k = 'b'", True), ("k > 'a'", True), ("k < 'b'", False), ("k <= 'b'", True), ("k >= 'c'", False),
    ("k = 'b' AND l = '2'", True), ("k = 'b' AND l = '10'", False), ("m = ''", False), ("k > 'B'", True),
])  # fmt: skip
def test_a_condition_holds(text: str, holds: bool) -> None:
    """Every term must hold for an existing tag. Values are compared as strings."""
    assert condition(text).holds({"k": "b", "l": "2"}) is holds


def test_limits_of_terms() -> None:
    """A search may have at most ten terms. A condition may have as many terms as fit into a header."""
    with pytest.raises(ValueError, match="there can be at most 10 unique tags in a query"):
        parse(" AND ".join(["k = 'v'"] * 11))
    assert condition(" AND ".join(f"k <> 'v{number}'" for number in range(700))).holds({"k": "w"})


def test_a_condition_may_be_about_what_no_tag_can_be() -> None:
    """A condition on too long a name does not hold, and one on too long a value can. Characters are checked."""
    assert not condition("k" * 129 + " <> 'v'").holds({"k": "v"})
    assert condition("k <> '" + "v" * 257 + "'").holds({"k": "v"})
    with pytest.raises(ValueError, match="not permitted in tag name or value"):
        condition("k = 'v$'")


def test_a_condition_has_no_container() -> None:
    """A condition can't name a container, because it is about one blob."""
    with pytest.raises(ValueError, match="@container"):
        condition("k = 'v' AND @container = 'c'")

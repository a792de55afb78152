"""Which events match a subscription's filter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulators.eventgrid import filters
from emulators.eventgrid.filters import BadFilter
from emulators.eventgrid.schema import Event

DATA = {
    "api": "PutBlob",
    "size": 512,
    "ratio": 0.5,
    "zero": 0,
    "done": True,
    "off": False,
    "nothing": None,
    "inner": {"name": "Digits", "deep": {"n": 3}},
    "tags": ["red", "Green"],
    "numbers": [1, 5],
}
SUBJECT = "/blobServices/default/containers/drops/blobs/Digits/a.JSON"
EVENT = Event("/topic", "/source", "id-1", "Some.Type", SUBJECT, "t", DATA, "2", {"tenant": "Blue"})


def holds(operator: str, key: str, operand: Any = None, arrays: bool = False) -> bool:
    single = operator in ("BoolEquals", *[f"Number{c}Than{e}" for c in ("Less", "Greater") for e in ("", "OrEquals")])
    advanced = {"operatorType": operator, "key": key, "value" if single else "values": operand}
    return filters.read({"advancedFilters": [advanced], "enableAdvancedFilteringOnArrays": arrays}).matches(EVENT)


CASES = [
    ("StringIn", "data.api", ["putblob", "CopyBlob"], True),
    ("StringIn", "data.api", ["PutBlo"], False),
    ("StringNotIn", "data.api", ["CopyBlob"], True),
    ("StringNotIn", "data.api", ["PUTBLOB"], False),
    ("StringContains", "data.api", ["xx", "TBL"], True),
    ("StringContains", "data.api", ["xx"], False),
    ("StringNotContains", "data.api", ["xx"], True),
    ("StringNotContains", "data.api", ["xx", "blob"], False),
    ("StringBeginsWith", "data.api", ["put"], True),
    ("StringBeginsWith", "data.api", ["blob"], False),
    ("StringNotBeginsWith", "data.api", ["blob"], True),
    ("StringNotBeginsWith", "data.api", ["put"], False),
    ("StringEndsWith", "data.api", ["BLOB"], True),
    ("StringEndsWith", "data.api", ["put"], False),
    ("StringNotEndsWith", "data.api", ["put"], True),
    ("StringNotEndsWith", "data.api", ["blob"], False),
    ("NumberIn", "data.size", [1, 512], True),
    ("NumberIn", "data.ratio", [0.5], True),
    ("NumberIn", "data.size", [1], False),
    ("NumberNotIn", "data.size", [1], True),
    ("NumberNotIn", "data.size", [512], False),
    ("NumberLessThan", "data.size", 513, True),
    ("NumberLessThan", "data.size", 512, False),
    ("NumberLessThanOrEquals", "data.size", 512, True),
    ("NumberLessThanOrEquals", "data.size", 511, False),
    ("NumberGreaterThan", "data.size", 511, True),
    ("NumberGreaterThan", "data.size", 512, False),
    ("NumberGreaterThanOrEquals", "data.size", 512, True),
    ("NumberGreaterThanOrEquals", "data.size", 513, False),
    ("NumberInRange", "data.size", [[0, 1], [512, 600]], True),
    ("NumberInRange", "data.size", [[0, 511.9]], False),
    ("NumberNotInRange", "data.size", [[0, 511]], True),
    ("NumberNotInRange", "data.size", [[0, 512]], False),
    ("BoolEquals", "data.done", True, True),
    ("BoolEquals", "data.done", False, False),
    ("BoolEquals", "data.off", False, True),
    ("IsNullOrUndefined", "data.nothing", None, True),
    ("IsNullOrUndefined", "data.absent", None, True),
    ("IsNullOrUndefined", "data.zero", None, False),
    ("IsNotNull", "data.zero", None, True),
    ("IsNotNull", "data.off", None, True),
    ("IsNotNull", "data.nothing", None, False),
    ("IsNotNull", "data.absent", None, False),
    # keys
    ("StringIn", "data.inner.name", ["digits"], True),
    ("NumberIn", "data.inner.deep.n", [3], True),
    ("StringIn", "data.API", ["PutBlob"], False),
    ("StringIn", "data.inner.name.more", ["digits"], False),
    ("StringEndsWith", "Subject", [".json"], True),
    ("StringIn", "eventType", ["Some.Type"], True),
    ("StringIn", "type", ["Some.Type"], True),
    ("StringIn", "topic", ["/topic"], True),
    ("StringIn", "source", ["/source"], True),
    ("StringIn", "dataVersion", ["2"], True),
    ("StringIn", "tenant", ["blue"], True),
    # another type does not match
    ("NumberIn", "data.done", [1], False),
    ("NumberIn", "data.api", [1], False),
    ("BoolEquals", "data.zero", False, False),
    ("StringIn", "data.size", ["512"], False),
    ("NumberLessThan", "data.nothing", 1, False),
]


@pytest.mark.parametrize(("operator", "key", "operand", "expected"), CASES)
def test_an_operator_decides(operator: str, key: str, operand: Any, expected: bool) -> None:
    """Each operator of the API matches as documented: case-insensitively, and only values of its type."""
    assert holds(operator, key, operand) is expected


def test_every_operator_is_tried_both_ways() -> None:
    """The table has a matching and a non-matching event for every operator."""
    for expected in (True, False):
        tried = {operator for operator, _, _, outcome in CASES if outcome is expected}
        assert tried == {*filters.OPERATORS, *filters.NULL_OPERATORS}


NEGATIVE = [name for name, operator in filters.OPERATORS.items() if operator.negative]


@pytest.mark.parametrize("name", NEGATIVE)
def test_a_negative_operator_matches_what_is_not_there(name: str) -> None:
    """A missing key equals no value, so the negative operators match."""
    operand: Any = [[0, 9]] if "Range" in name else [1] if "Number" in name else ["x"]
    assert holds(name, "data.absent", operand)


@given(st.sampled_from(NEGATIVE), st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.none()))
def test_a_negative_operator_is_the_opposite(name: str, value: Any) -> None:
    """For every value, an operator and its negation give opposite results."""
    operand: Any = [[0, 9]] if "Range" in name else [1, 2.5] if "Number" in name else ["a", "Bc"]
    event = Event("t", "s", "i", "y", "u", "z", {"k": value})
    twins = [
        filters.read({"advancedFilters": [{"operatorType": operator, "key": "data.k", "values": operand}]})
        for operator in (name, name.replace("Not", ""))
    ]
    assert twins[0].matches(event) != twins[1].matches(event)


@given(st.text(max_size=20), st.text(max_size=5), st.text(max_size=5), st.booleans())
def test_subjects_match_by_their_ends(middle: str, begins: str, ends: str, case_sensitive: bool) -> None:
    """A subject with the filter's prefix and suffix matches. With the case flag the case must be equal."""
    spec = {"subjectBeginsWith": begins, "subjectEndsWith": ends, "isSubjectCaseSensitive": case_sensitive}
    wanted = filters.read(spec)
    assert wanted.may_match("T", begins + middle + ends)
    if begins.isascii() and begins.swapcase() != begins:
        assert wanted.may_match("T", begins.swapcase() + middle + ends) is not case_sensitive


@pytest.mark.parametrize(
    ("types", "expected"), [([], True), (None, True), (["All"], True), (["Some.Type"], True), (["Other"], False)]
)
def test_event_types_select(types: list[str] | None, expected: bool) -> None:
    """No types, or All, means every type."""
    assert filters.read({"includedEventTypes": types}).matches(EVENT) is expected


def test_all_conditions_must_hold() -> None:
    """Advanced filters are joined by `and`, so one filter that fails is enough to reject the event."""
    good = {"operatorType": "StringIn", "key": "data.api", "values": ["PutBlob"]}
    bad = {"operatorType": "NumberIn", "key": "data.size", "values": [1]}
    assert filters.read({"advancedFilters": [good, good]}).matches(EVENT)
    assert not filters.read({"advancedFilters": [good, bad]}).matches(EVENT)


def test_arrays_are_searched_only_when_asked() -> None:
    """With enableAdvancedFilteringOnArrays one matching element is enough. Without the flag an array matches
    nothing."""
    assert holds("StringIn", "data.tags", ["green"], arrays=True)
    assert holds("NumberInRange", "data.numbers", [[4, 6]], arrays=True)
    assert not holds("StringIn", "data.tags", ["blue"], arrays=True)
    assert not holds("StringIn", "data.tags", ["green"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"operatorType": "StringLike", "key": "data.a", "values": []}, "unknown operatorType 'StringLike'; choose"),
        ({"operatorType": "StringIn", "values": ["a"]}, "needs a key"),
        ({"operatorType": "StringIn", "key": "data.a"}, "needs 'values'"),
        ({"operatorType": "BoolEquals", "key": "data.a", "values": [True]}, "needs 'value'"),
        ({"operatorType": "NumberIn", "key": "data.a", "values": ["1"]}, "can't compare with '1'"),
        ({"operatorType": "NumberIn", "key": "data.a", "values": [True]}, "can't compare with True"),
        ({"operatorType": "NumberInRange", "key": "data.a", "values": [[1]]}, "can't compare with"),
        ({"operatorType": "StringIn", "key": "data.a", "values": ["x" * 513]}, "over 512 characters"),
        ({"operatorType": "StringIn", "key": "data.a", "values": ["x"] * 26}, "25 values in all"),
    ],
)
def test_what_azure_refuses_is_refused(spec: dict[str, Any], message: str) -> None:
    """A filter that Azure would refuse to deploy is an error with a reason."""
    with pytest.raises(BadFilter, match=message):
        filters.read({"advancedFilters": [spec]})

"""The keys of table rows are valid, distinct and ordered, for any text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.tables import keys
from shared.kernel.drop_key import DropKey

texts = st.text(max_size=60) | st.text(st.sampled_from("aA0-_.~!=/ é🚂\x00"), max_size=60)
long_texts = st.builds(lambda text, count: text * count, st.text(min_size=1, max_size=5), st.integers(1, 1024))
drop_keys = st.builds(DropKey, texts, texts)
VALID = re.compile(r"[^/\\#?\x00-\x1f\x7f-\x9f]{0,512}")  # Microsoft: Understanding the Table service data model


@given(st.builds(DropKey, texts | long_texts, texts | long_texts))
def test_a_drops_key_is_valid(key: DropKey) -> None:
    """Any names make a key of at most 512 ASCII characters (1 KiB), without characters that tables refuse."""
    encoded = keys.drop_key(key)
    assert encoded.isascii()
    assert VALID.fullmatch(encoded)


@given(drop_keys, drop_keys)
def test_keys_sort_as_the_drops(one: DropKey, other: DropKey) -> None:
    """Different drops have different keys, sorted by route and name."""
    assert (keys.drop_key(one) < keys.drop_key(other)) == (one < other)
    assert (keys.drop_key(one) == keys.drop_key(other)) == (one == other)


@given(long_texts, long_texts)
def test_long_names_do_not_meet(one: str, other: str) -> None:
    """Truncated names stay distinct."""
    assert (keys.token(one) == keys.token(other)) == (one == other)
    assert keys.token(one) != keys.token(one + "x")


@given(drop_keys, texts | long_texts)
def test_a_range_holds_its_routes_drops_and_no_others(key: DropKey, route: str) -> None:
    """A drop's key is in the range of its own route and of no other."""
    low, high = keys.route_range(route)
    assert (low <= keys.drop_key(key) < high) == (key.route == route)
    assert low <= keys.drop_key(DropKey(route, key.name)) < high


@given(st.datetimes(datetime(1970, 1, 1), datetime(4000, 1, 1)), st.integers(1, 10**9), st.text("ab-"))
def test_later_times_come_first(at: datetime, milliseconds: int, name: str) -> None:
    """Keys of times sort newest first, to the millisecond, in any time zone."""
    early = at.replace(tzinfo=UTC)
    later = (early + timedelta(milliseconds=milliseconds)).astimezone()
    assert keys.newest_first(later, name) < keys.newest_first(early, "")


@given(st.text() | st.from_regex(r"[0-9]{1,40}", fullmatch=True))
def test_any_text_means_a_time(text: str) -> None:
    """A text that is not such a key, or has more digits than a time, means the epoch."""
    assert keys.EPOCH <= keys.time_of(text) <= keys.LAST

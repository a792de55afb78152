"""The contract of shared.notices.ports.Notices, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.notice_table import TableNotices
from shared.kernel.errors import Changed
from shared.notices.model import Channel, Delivery, DeliveryState, Notice, NoticeKind, Subscription
from shared.notices.ports import Notices
from tests.fakes.ports import FakeNotices

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["fake", "tables", "own_tables"])
def notices(request: pytest.FixtureRequest) -> Notices:
    if request.param == "fake":
        return FakeNotices()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableNotices(tables.table)


def delivery(event: str, at: datetime = NOW) -> Delivery:
    return Delivery("n-1", Notice(event, NoticeKind.FAILED, "Größe", at, {"why": "no luck"}, "mnist-1", "mnist"))


def test_a_subscription_comes_back_until_it_is_removed(notices: Notices) -> None:
    """Every field survives. Subscriptions are listed by id, no id is used twice, and removing one returns whether
    it existed."""
    made = Subscription(
        "n-1", (NoticeKind.FAILED, NoticeKind.IDLE), Channel.TEAMS, "https://x/y?z=ü", NOW, "ada", "mnist", "e", "s"
    )
    notices.add(made)
    notices.add(replace(made, id="n-0"))
    with pytest.raises(Changed):
        notices.add(made)
    assert notices.get("n-1") == made
    assert [found.id for found in notices.all()] == ["n-0", "n-1"]
    assert (notices.remove("n-1"), notices.remove("n-1"), notices.get("n-1")) == (True, False, None)


def test_an_event_has_one_delivery(notices: Notices) -> None:
    """A second insert of the same event changes nothing, whatever its time; another subscription gets its own
    delivery."""
    assert notices.insert(delivery("RunArchived:a/b#c"))
    assert not notices.insert(delivery("RunArchived:a/b#c", NOW + timedelta(hours=1)))
    assert notices.insert(replace(delivery("RunArchived:a/b#c"), subscription="n-2"))
    stored = notices.delivery("n-1", "RunArchived:a/b#c")
    assert stored is not None
    assert stored.value == delivery("RunArchived:a/b#c")
    assert notices.delivery("n-1", "other") is None


def test_of_two_writers_the_second_is_told(notices: Notices) -> None:
    """An update needs the etag of the delivery that was read."""
    notices.insert(delivery("e"))
    stored = notices.delivery("n-1", "e")
    assert stored is not None
    after = notices.update(stored, tries=1, next_at=NOW, error="x")
    assert (after.value.tries, after.value.next_at) == (1, NOW)
    with pytest.raises(Changed):
        notices.update(stored, tries=2)
    done = notices.update(after, state=DeliveryState.DELIVERED, next_at=None)
    assert notices.delivery("n-1", "e") == done


def test_a_delivery_is_pending_until_it_ends(notices: TableNotices | FakeNotices) -> None:
    """`pending` returns the time of the event, and None for an ended or unknown delivery."""
    notices.insert(delivery("e"))
    stored = notices.delivery("n-1", "e")
    assert stored is not None
    assert (notices.pending("n-1", "e"), notices.pending("n-1", "other")) == (NOW, None)
    notices.update(stored, state=DeliveryState.GAVE_UP)
    assert notices.pending("n-1", "e") is None


def test_the_newest_event_comes_first(notices: Notices) -> None:
    """A subscription's deliveries are returned by the time of their events, newest first, up to a limit."""
    for number in range(3):
        notices.insert(delivery(f"e{number}", NOW + timedelta(seconds=number)))
    assert [each.notice.id for each in notices.newest("n-1", 2)] == ["e2", "e1"]
    assert notices.newest("n-2") == []


def test_old_deliveries_are_forgotten(notices: Notices) -> None:
    """Deliveries of events before a given time are deleted for every subscription; each later delivery stays once."""
    for number in range(5):
        notices.insert(delivery(f"e{number}", NOW + timedelta(days=number)))
    notices.insert(replace(delivery("e0"), subscription="gone"))
    assert [notices.prune(NOW + timedelta(days=3), 3), notices.prune(NOW + timedelta(days=3), 9)] == [3, 1]
    assert [each.notice.id for each in notices.newest("n-1")] == ["e4", "e3"]
    assert notices.newest("gone") == []
    assert notices.delivery("n-1", "e0") is None
    assert not notices.insert(delivery("e3", NOW + timedelta(days=3)))


def test_that_nobody_listens_is_believed_until_someone_subscribes(tables: StorageClients) -> None:
    """`anyone` reads the table only now and then; a subscription added by this process counts at once."""
    notices = TableNotices(tables.table)
    assert not notices.anyone()
    TableNotices(tables.table).add(Subscription("n-1", (NoticeKind.FAILED,), Channel.TEAMS, "https://x/y", NOW, "ada"))
    assert not notices.anyone()
    notices.add(Subscription("n-2", (NoticeKind.FAILED,), Channel.TEAMS, "https://x/y", NOW, "ada"))
    assert notices.anyone()


def test_a_delivery_that_can_not_be_read_is_forgotten_too(tables: StorageClients) -> None:
    """An unreadable row stops no list, is deleted with the other old rows, and keeps no other row from deletion."""
    notices = TableNotices(tables.table)
    for number in range(3):
        notices.insert(delivery(f"e{number}"))
    table = tables.table.get_table_client("notices")
    row = next(iter(table.query_entities("RowKey ge 't!'")))
    table.update_entity({"PartitionKey": row["PartitionKey"], "RowKey": row["RowKey"], "notice": "[["})
    assert len(notices.newest("n-1")) == 2
    assert notices.prune(NOW + timedelta(days=1), 9) == 3
    assert notices.newest("n-1") == []

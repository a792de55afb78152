"""Custom topics, used by Microsoft's own publisher client."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from azure.core.credentials import AccessToken, AzureKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, ResourceNotFoundError
from azure.core.messaging import CloudEvent
from azure.eventgrid import EventGridEvent, EventGridPublisherClient, generate_sas

from emulators.eventgrid import access
from emulators.eventgrid.config import Topic

KEY = base64.b64encode(b"a key of the topic").decode()


@pytest.fixture(scope="module")
def queues(store: Any) -> dict[str, str]:
    return {"EventGridSchema": store.queue(), "CloudEventSchemaV1_0": store.queue()}


@pytest.fixture(scope="module")
def grid(new_grid: Callable[..., Any], to_queue: Callable[..., Any], queues: dict[str, str]) -> Any:
    return new_grid([to_queue("team", queue, eventDeliverySchema=name) for name, queue in queues.items()])


@pytest.fixture(autouse=True)
def _empty_queues(grid: Any, store: Any, queues: dict[str, str]) -> Iterator[None]:
    yield
    grid.barrier()
    for queue in queues.values():
        store.messages(queue)


@pytest.fixture
def client(grid: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., EventGridPublisherClient]:
    """Microsoft's unmodified client. It trusts our authority through the environment, as the app does."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(grid.bundle))
    return lambda credential, topic="team": EventGridPublisherClient(grid.topic(topic), credential, retry_total=0)


class Token:
    """A token credential, like a managed identity."""

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        return AccessToken("token", 9_999_999_999)


def test_the_publisher_client_sends_event_grid_events(
    grid: Any, client: Any, store: Any, queues: dict[str, str]
) -> None:
    """EventGridEvents arrive in both delivery schemas, and the service adds the topic's resource id."""
    sent = [EventGridEvent(f"runs/{n}", "Team.RunArchived", {"n": n}, "1.0") for n in range(3)]
    with client(AzureKeyCredential(KEY)) as publisher:
        publisher.send(sent)
    grid.barrier()
    got = sorted(store.messages(queues["EventGridSchema"]), key=lambda event: str(event["subject"]))
    assert [(e["id"], e["subject"], e["data"], e["dataVersion"]) for e in got] == [
        (str(e.id), e.subject, e.data, "1.0") for e in sent
    ]
    assert {e["topic"].rsplit("/")[-1] for e in got} == {"team"}
    assert [e["specversion"] for e in store.messages(queues["CloudEventSchemaV1_0"])] == ["1.0"] * 3


def test_the_publisher_client_sends_cloud_events(grid: Any, client: Any, store: Any, queues: dict[str, str]) -> None:
    """CloudEvents arrive with their source and extension attributes."""
    sent = CloudEvent("/team", "Team.ClusterAtZero", data={"cluster": "cpu"}, extensions={"tenant": "blue"})
    with client(AzureKeyCredential(KEY)) as publisher:
        publisher.send(sent)
    grid.barrier()
    (got,) = store.messages(queues["CloudEventSchemaV1_0"])
    assert (got["id"], got["source"], got["type"], got["data"], got["tenant"]) == (
        (sent.id, "/team", "Team.ClusterAtZero", {"cluster": "cpu"}, "blue")
    )
    (converted,) = store.messages(queues["EventGridSchema"])
    assert (converted["eventType"], converted["data"]) == ("Team.ClusterAtZero", {"cluster": "cpu"})


def test_a_signed_token_and_a_bearer_token_may_publish(grid: Any, client: Any, custom_event: Any) -> None:
    """A SAS token made with the topic's key, and any bearer token, are accepted."""
    good = generate_sas(grid.topic(), KEY, datetime.now(UTC) + timedelta(hours=1))
    for credential in (AzureSasCredential(good), Token()):
        with client(credential) as publisher:
            publisher.send(custom_event())
    assert grid.barrier()["pending"] == 0


@pytest.mark.parametrize(("hours", "topic", "why"), [(-1, "team", "expired at"), (1, "storage", "not for this topic")])
def test_a_token_is_good_for_its_topic_until_it_expires(
    grid: Any, client: Any, custom_event: Any, hours: int, topic: str, why: str
) -> None:
    """An expired token, or a token for another topic, is a 401 with the reason, even if its signature is correct."""
    old = generate_sas(grid.topic(topic), KEY, datetime.now(UTC) + timedelta(hours=hours))
    with client(AzureSasCredential(old)) as publisher, pytest.raises(ClientAuthenticationError, match=why):
        publisher.send(custom_event())


@pytest.mark.parametrize(
    "expiry", ["11/22/2999 3:00:00 PM", "2999-01-02T03:04:05Z", "2999-01-02 03:04:05.123456+02:00"]
)
def test_expiries_of_other_clients_are_read(expiry: str) -> None:
    """A token's expiry may be in the format of .NET, ISO 8601 or Python. Any other text is refused."""
    topic, path = Topic("t", "/topics/t", key=access.new_key()), "/topics/t/api/events"
    for written, good in ((expiry, True), (expiry.replace("2999", "1999"), False), ("soon", False)):
        sas = generate_sas(f"https://127.0.0.1{path}", str(topic.key), written)  # type: ignore[arg-type]
        why = access.refusal(topic, {"aeg-sas-token": sas}, path, datetime.now(UTC))
        assert (why is None) is good, why


@pytest.mark.parametrize("name", ["aeg-sas-key", "aeg-sas-token"])
def test_a_key_that_is_no_text_may_not_publish(name: str) -> None:
    """A key header with a byte that is not UTF-8 is a wrong key."""
    topic, path = Topic("t", "/topics/t", key=access.new_key()), "/topics/t/api/events"
    for text in ("\udcff", "r=x&e=y&s=\udcff", "r=\udcff&s=x"):
        assert access.refusal(topic, {name: text}, path, datetime.now(UTC)) == access.NEEDS


@pytest.mark.parametrize("token", [False, True])
def test_another_key_may_not_publish(grid: Any, client: Any, custom_event: Any, token: bool) -> None:
    """A wrong key, or a token signed with a wrong key, is a 401, and the event is not delivered."""
    wrong = base64.b64encode(b"another key").decode()
    sas = generate_sas(grid.topic(), wrong, datetime.now(UTC) + timedelta(hours=1))
    before = grid.counts()["received"]
    credential = AzureSasCredential(sas) if token else AzureKeyCredential(wrong)
    with client(credential) as publisher, pytest.raises(ClientAuthenticationError, match="aeg-sas-key"):
        publisher.send(custom_event())
    assert grid.counts()["received"] == before


def test_no_credential_is_401_and_no_topic_is_404(grid: Any, client: Any, custom_event: Any) -> None:
    """A request without a credential is a 401. A request to an unknown topic is a 404 with the names of the topics."""
    assert grid.publish(custom_event(), headers={}).status_code == 401
    answer = requests.post(grid.topic("none"), json=[custom_event()], verify=grid.bundle, timeout=10)
    assert answer.status_code == 404
    assert "no topic 'none' among storage, team" in answer.json()["error"]["message"]
    with client(AzureKeyCredential(KEY), "none") as publisher, pytest.raises(ResourceNotFoundError):
        publisher.send(custom_event())


def test_a_bad_event_refuses_the_whole_request(grid: Any, custom_event: Any) -> None:
    """One bad event in an array is a 400 with its position and key, and no event of the array is accepted."""
    before = grid.counts()["received"]
    bad = custom_event("2")
    del bad["subject"]
    answer = grid.publish(custom_event("1"), bad)
    assert answer.status_code == 400
    assert "event 1 has no 'subject'" in answer.json()["error"]["message"]
    odd = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "subject": 5}
    assert "'subject' must be a string" in grid.publish(odd).json()["error"]["message"]
    assert grid.counts()["received"] == before


def test_over_one_mebibyte_is_413(grid: Any, custom_event: Any) -> None:
    """A request may hold 1 MiB, as in Azure."""
    assert grid.publish(custom_event(data="x" * (1 << 20))).status_code == 413


def test_subscriptions_get_what_they_filter_for(
    new_grid: Callable[..., Any], to_queue: Callable[..., Any], store: Any, custom_event: Any
) -> None:
    """Each subscription gets exactly the events of its topic that match its filter."""
    archived, large = store.queue(), store.queue()
    conditions = [{"operatorType": "NumberGreaterThan", "key": "data.size", "value": 10}]
    grid = new_grid(
        [
            to_queue("team", archived, filter={"includedEventTypes": ["Team.RunArchived"]}),
            to_queue("team", large, filter={"advancedFilters": conditions}),
        ]
    )
    grid.publish(
        custom_event("a", data={"size": 5}),
        custom_event("b", data={"size": 50}),
        custom_event("c", data={"size": 50}, eventType="Team.Other"),
    ).raise_for_status()
    state = grid.barrier()
    assert sorted(event["id"] for event in store.messages(archived)) == ["a", "b"]
    assert sorted(event["id"] for event in store.messages(large)) == ["b", "c"]
    assert (state["received"], state["matched"], state["delivered"]) == (3, 4, 4)

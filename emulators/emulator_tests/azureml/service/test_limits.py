"""Resource Manager's limits: a bucket for each principal and kind of request, refilled over time."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from emulator_tests.azureml.clouds import Cloud
from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.limits import Bucket, Limits, Throttle
from emulators.azureml.service.server import _principal, number

SMALL = Limits(reads=Bucket(5, 2), writes=Bucket(3, 1), deletes=Bucket(1, 1))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def bearer(principal: str) -> dict[str, str]:
    claims = base64.urlsafe_b64encode(json.dumps({"oid": principal}).encode()).decode()
    return {"Authorization": f"Bearer x.{claims}.y"}


@pytest.mark.parametrize("claims", ["[]", "1", '"oid"', "{}", "no JSON"])
def test_a_token_without_an_id_counts_as_itself(claims: str) -> None:
    """Requests with a token whose claims have no id are counted by the token itself."""
    text = f"x.{base64.urlsafe_b64encode(claims.encode()).decode()}.y"
    assert _principal(make_mocked_request("GET", "/", {"Authorization": f"Bearer {text}"})) == text


@pytest.mark.parametrize("text", ["%C2%B2", "9" * 20, "9" * 5000, "-1", "x"], ids=range(5))
def test_a_number_in_an_address_is_one_that_can_be_counted_to(text: str) -> None:
    """A number with other digits than 0 to 9, or with too many digits, is a client error."""
    with pytest.raises(BadRequest, match=r"\$skip is .*; it must be a whole number"):
        number(make_mocked_request("GET", f"/?$skip={text}"), "$skip")


def test_a_bucket_empties_and_fills() -> None:
    """A burst of the bucket's size passes, and then the refill rate applies. After Retry-After the next request
    passes."""
    clock = Clock()
    throttle = Throttle(SMALL, clock)
    assert [throttle.acquire("me", "GET").left for _ in range(5)] == [4, 3, 2, 1, 0]
    refused = throttle.acquire("me", "GET")
    assert (refused.allowed, refused.retry_after) == (False, 1)
    clock.now += refused.retry_after
    assert [throttle.acquire("me", "GET").allowed for _ in range(3)] == [True, True, False]
    clock.now += 1000
    assert throttle.acquire("me", "GET").left == 4


def test_kinds_and_principals_are_apart() -> None:
    """Reads, writes and deletes have separate buckets, and so has every principal."""
    throttle = Throttle(SMALL, Clock())
    while throttle.acquire("me", "GET").allowed:
        pass
    assert throttle.acquire("other", "GET").allowed
    assert [throttle.acquire("me", method).allowed for method in ("PUT", "POST", "PATCH", "PUT")] == [True] * 3 + [
        False
    ]
    assert [throttle.acquire("me", "DELETE").allowed for _ in range(2)] == [True, False]


@given(st.lists(st.floats(0, 3), max_size=60))
def test_never_more_than_bucket_and_refill(pauses: list[float]) -> None:
    """For any order of requests, at most the bucket's size plus the refill is admitted."""
    clock = Clock()
    throttle = Throttle(SMALL, clock)
    passed = 0
    for pause in pauses:
        clock.now += pause
        passed += throttle.acquire("me", "GET").allowed
    assert passed <= SMALL.reads.size + clock.now * SMALL.reads.refill + 1e-6


def test_the_control_plane_refuses(own_cloud: Callable[..., Cloud]) -> None:
    """Over the limit Resource Manager answers 429 with Retry-After and the remaining count. Requests to the run
    history are not counted."""
    cloud = own_cloud(arm_limits={"reads": [3, 0.5]})
    path = f"{cloud.workspace}/computes"
    answers = [cloud.call("GET", path, headers=bearer("me")) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [a.headers["x-ms-ratelimit-remaining-subscription-reads"] for a in answers] == ["2", "1", "0", "0"]
    assert answers[3].headers["Retry-After"] == "2"
    assert answers[3].json()["error"]["code"] == "SubscriptionRequestsThrottled"
    assert cloud.call("GET", path, headers=bearer("other")).status_code == 200
    history = f"/history/v1.0{cloud.workspace}/runs/none/details"
    assert {cloud.call("GET", history, headers=bearer("me")).status_code for _ in range(6)} == {404}

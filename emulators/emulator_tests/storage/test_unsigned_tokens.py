"""Tokens whose signature is not checked, as with `azurite --oauth basic`: only the claims matter."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest

from emulators.storage.common.errors import StorageError
from emulators.storage.common.rights import Right
from emulators.storage.common.unsigned import Unsigned
from emulators.storage.config import parse

NOW = 1_800_000_000.0
GOOD = {
    "aud": "https://storage.azure.com",
    "iss": "https://sts.windows.net/t/",
    "oid": "me",
    "nbf": NOW,
    "exp": NOW + 9,
}


def principal(**claims: object) -> str:
    token = jwt.encode({**GOOD, **claims}, "any key of any program will do for this", "HS256")
    return Unsigned("mine", "queue", lambda: NOW).principal(token)


@pytest.mark.parametrize("audience", [
    "https://storage.azure.com/", "e406a681-f3d4-42a8-90b6-c2b029497af1", "https://mine.queue.core.windows.net",
    "https://mine.queue.core.cloudapi.de/",
])  # fmt: skip
def test_audiences_of_the_service(audience: str) -> None:
    """The audience may be Azure Storage, or this account's address in any cloud."""
    assert principal(aud=audience) == "me"


@pytest.mark.parametrize(("claims", "word"), [
    ({"aud": "https://mine.blob.core.windows.net"}, "audience"),
    ({"iss": "https://example.com/"}, "issuer"),
    ({"nbf": NOW + 1}, "Lifetime"),
    ({"exp": NOW}, "expired"),
    ({"exp": "soon"}, "exp"),
])  # fmt: skip
def test_a_wrong_claim_is_named(claims: dict[str, object], word: str) -> None:
    """A wrong claim is a 403 that names the claim in AuthenticationErrorDetail."""
    with pytest.raises(StorageError) as caught:
        principal(**claims)
    assert (caught.value.status, caught.value.code) == (403, "AuthenticationFailed")
    assert word in str(caught.value.details["AuthenticationErrorDetail"])


def test_what_is_no_token() -> None:
    """An invalid token is a client error, not a server error."""
    with pytest.raises(StorageError, match="AuthenticationFailed"):
        Unsigned("mine", "blob", lambda: NOW).principal("invalid token")


def test_stored_access_policies_need_the_key() -> None:
    """A token allows everything except stored access policies."""
    some = Unsigned("mine", "blob", lambda: NOW)
    some.check("me", "blob", Right("o", ("d",)))
    with pytest.raises(StorageError, match="AuthorizationFailure"):
        some.check("me", "blob", Right("c", (), "box", "containers/getAcl/action"))


def test_the_configuration_says_so(tmp_path: Path) -> None:
    """`oauth` is `basic` or absent, and can't be combined with identities."""
    assert parse({"state": str(tmp_path), "oauth": "basic"}).oauth == "basic"
    with pytest.raises(ValueError, match="it may be 'basic'"):
        parse({"state": str(tmp_path), "oauth": "full"})
    with pytest.raises(ValueError, match="one of them"):
        parse({"state": str(tmp_path), "oauth": "basic", "identities": {"key": "k"}})

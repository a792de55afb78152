"""User delegation: keys with which an identity signs in place of the account.

https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import escape

from emulators.storage.common.account import Account
from emulators.storage.common.calls import VERSION, Call, moment
from emulators.storage.common.errors import StorageError, bad_xml
from emulators.storage.common.rights import Right
from emulators.storage.common.sas import Delegation
from emulators.storage.common.service_xml import HEAD, parsed
from emulators.tokens import TENANT

LONGEST = timedelta(days=7)
RIGHT = Right("s", (), action="generateUserDelegationKey/action")


def delegation_key(account: Account, call: Call) -> bytes:
    """Return the requested key as XML. Raises StorageError, 400, 401 and 403."""
    principal = account.admit_identity(call, RIGHT)
    root = parsed(call.body)
    start, expiry = root.findtext("Start", ""), root.findtext("Expiry", "")
    now = datetime.fromtimestamp(account.clock(), UTC)
    begin, end = _moment(start) if start else now, _moment(expiry)
    if not begin < end <= now + LONGEST:
        sentence = f"The key's Expiry, {expiry}, must be after its Start and within {LONGEST.days} days."
        raise StorageError(400, "InvalidXmlNodeValue", f"The XML node's value is invalid. {sentence}")
    grant = Delegation(
        principal,
        TENANT,
        start,
        expiry,
        account.service[0],
        call.headers.get("x-ms-version", VERSION),
        root.findtext("DelegatedUserTid", ""),
    )
    names = ["SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedService", "SignedVersion"]
    names += ["SignedDelegatedUserTid"] if grant.user_tenant else []
    facts = [*zip(names, grant.signed, strict=False), ("Value", account.delegation_key(grant))]
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in facts)
    return f"{HEAD}<UserDelegationKey>{inner}</UserDelegationKey>".encode()


def _moment(text: str) -> datetime:
    try:
        return moment(text)
    except ValueError:
        raise bad_xml(f"{text!r:.80} is not a time as in ISO 8601.") from None

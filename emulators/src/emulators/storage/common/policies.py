"""Stored access policies. A signature may refer to a policy instead of having its own terms.

https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from emulators.storage.common.errors import bad_xml
from emulators.storage.common.rights import PERMISSIONS, Terms
from emulators.storage.common.service_xml import HEAD, parsed

MOST = 5
NONE = f"{HEAD}<SignedIdentifiers/>"


def policies_of(body: bytes) -> dict[str, Terms]:
    """Parse stored access policies, by their ids. Raises StorageError, 400."""
    if not body.strip():
        return {}
    root = parsed(body)
    found = root.findall("SignedIdentifier")
    if root.tag != "SignedIdentifiers":
        raise bad_xml("SignedIdentifiers is expected.")
    if len(found) > MOST or any(not 1 <= len(one.findtext("Id", "")) <= 64 for one in found):
        raise bad_xml(f"There may be {MOST} policies, with ids of at most 64 characters.")
    return {
        one.findtext("Id", ""): Terms(
            one.findtext("AccessPolicy/Permission") or "",
            one.findtext("AccessPolicy/Start") or None,
            one.findtext("AccessPolicy/Expiry") or None,
        )
        for one in found
    }


def text_of(body: bytes, service: str) -> str:
    """Return a request's policies in their stored form, without empty elements. Raises StorageError, 400."""
    for name, terms in policies_of(body).items():
        if unknown := set(terms.permissions) - set(PERMISSIONS[service]):
            known = f"{service}s know the permissions {PERMISSIONS[service]}"
            raise bad_xml(f"The policy {name!r} has the permissions {''.join(sorted(unknown))!r:.40}; {known}.")
    return f"{HEAD}<SignedIdentifiers>{''.join(map(_text, policies_of(body).items()))}</SignedIdentifiers>"


def _text(one: tuple[str, Terms]) -> str:
    name, terms = one
    parts = (("Start", terms.start), ("Expiry", terms.end), ("Permission", terms.permissions))
    inner = "".join(f"<{tag}>{escape(value)}</{tag}>" for tag, value in parts if value)
    policy = f"<AccessPolicy>{inner}</AccessPolicy>" if inner else ""
    return f"<SignedIdentifier><Id>{escape(name)}</Id>{policy}</SignedIdentifier>"

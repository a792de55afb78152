"""Cross-origin rules of the blob service: the web pages whose scripts may use it. A page without a rule is refused.

https://learn.microsoft.com/rest/api/storageservices/cross-origin-resource-sharing--cors--support-for-the-azure-storage-services
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from emulators.storage.common.errors import StorageError, bad_xml
from emulators.storage.common.service_xml import parsed

MOST_RULES, LONGEST_RULES = 5, 2048
METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "MERGE", "PATCH"})
PREFLIGHT = "CORS not enabled or no matching rule found for this request."


@dataclass(frozen=True)
class Rule:
    origins: tuple[str, ...]
    methods: tuple[str, ...]
    allowed: tuple[str, ...]
    exposed: str
    seconds: str

    def fits(self, origin: str, method: str, asked: tuple[str, ...] = ()) -> bool:
        """Return whether the rule allows requests with this method and these headers from pages of this origin, by
        name or by `*`."""
        return (
            ("*" in self.origins or origin in self.origins)
            and method in self.methods
            and all(any(_matches(name, pattern) for pattern in self.allowed) for name in asked)
        )


def rules(properties: str) -> list[Rule]:
    """Return the rules of the service's properties, a StorageServiceProperties document. Raises StorageError, 400."""
    if not properties:
        return []
    found = parsed(properties.encode()).findall("./Cors/CorsRule")
    if len(found) > MOST_RULES:
        raise bad_xml(f"There may be {MOST_RULES} rules.")
    if sum(len(text) for one in found for text in one.itertext()) > LONGEST_RULES:
        raise bad_xml(f"The rules together may have {LONGEST_RULES} characters.")
    return [_rule(one) for one in found]


def _rule(one: Element) -> Rule:
    said = {tag: one.findtext(tag, "") for tag in ("AllowedOrigins", "AllowedMethods", "MaxAgeInSeconds")}
    methods = _words(said["AllowedMethods"])
    if not (said["AllowedOrigins"] and methods and set(methods) <= METHODS and said["MaxAgeInSeconds"].isdecimal()):
        sentence = "has AllowedOrigins, AllowedMethods and MaxAgeInSeconds; the methods are of"
        raise bad_xml(f"A CorsRule {sentence} {', '.join(sorted(METHODS))}.")
    allowed = tuple(word.lower() for word in _words(one.findtext("AllowedHeaders")))
    exposed = one.findtext("ExposedHeaders") or ""
    return Rule(_words(said["AllowedOrigins"]), methods, allowed, exposed, said["MaxAgeInSeconds"])


def names(found: list[Rule], origin: str) -> bool:
    """Return whether a rule allows pages of this origin, by name or by `*`, to send some requests."""
    return any("*" in rule.origins or origin in rule.origins for rule in found)


def preflight(found: list[Rule], headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the answer to a browser's preflight request. Raises StorageError, 400 and 403."""
    origin, method = headers.get("Origin"), headers.get("Access-Control-Request-Method")
    if not origin or not method:
        missing = "Access-Control-Request-Method" if origin else "Origin"
        sentence = "A required CORS header is not present."
        raise StorageError(400, "InvalidHeaderValue", sentence, {"HeaderName": missing})
    asked = tuple(word.lower() for word in _words(headers.get("Access-Control-Request-Headers")))
    for rule in found:
        if rule.fits(origin, method, asked):
            return {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Methods": method,
                "Access-Control-Allow-Headers": ",".join(asked),
                "Access-Control-Max-Age": rule.seconds,
                "Access-Control-Allow-Credentials": "true",
                "Vary": "Origin",
            }
    raise StorageError(403, "CorsPreflightFailure", PREFLIGHT)


def answered(found: list[Rule], method: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the CORS headers of an answer; empty for a page that no rule allows."""
    origin = headers.get("Origin")
    rule = next((rule for rule in found if origin and rule.fits(origin, method)), None)
    if origin is None:
        return {}
    if rule is None:
        return {"Vary": "Origin"}
    told = {"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true", "Vary": "Origin"}
    if "*" in rule.origins:
        told = {"Access-Control-Allow-Origin": "*"}
    return {**told, "Access-Control-Expose-Headers": rule.exposed} if rule.exposed else told


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern

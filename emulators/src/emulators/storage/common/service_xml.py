"""The services' XML: request bodies, the service's properties, and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape, quoteattr

from emulators.storage.common.calls import http_date
from emulators.storage.common.errors import StorageError, bad_xml

HEAD = '<?xml version="1.0" encoding="utf-8"?>'
ECHOED = (
    ("where", "Where"),
    ("prefix", "Prefix"),
    ("marker", "Marker"),
    ("maxresults", "MaxResults"),
    ("delimiter", "Delimiter"),
)
MOST_DAYS = 365  # of retention of logs and metrics
DEFAULT_PROPERTIES = (
    "<StorageServiceProperties>"
    "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"
    "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>"
    "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors/>"
    "</StorageServiceProperties>"
)


def parsed(body: bytes) -> ET.Element:
    """Parse the XML document in a body as UTF-8, whatever encoding it declares. Raises StorageError, 400."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise bad_xml("It is not UTF-8.") from None
    if "\0" in text or "<!DOCTYPE" in text or "<!ENTITY" in text:  # UTF-16 would be full of zeros
        raise bad_xml("A document type is not allowed, nor an encoding other than UTF-8.")
    try:
        return ET.fromstring(text)  # noqa: S314 (no entities, by the lines above)
    except ET.ParseError as error:
        raise bad_xml(str(error)) from None


def merged(before: str, body: bytes) -> str:
    """Return the service's properties after a request. Properties that the request omits keep their values."""
    asked = parsed(body)
    if asked.tag != "StorageServiceProperties":
        raise bad_xml("StorageServiceProperties is expected.")
    for days in asked.iter("Days"):
        if not (days.text or "").strip().isdecimal() or not 1 <= int(days.text or 0) <= MOST_DAYS:
            sentence = "The value for one of the XML nodes is not in the correct format."
            details = {
                "XmlNodeName": "Days",
                "XmlNodeValue": (days.text or "")[:40],
                "Reason": f"1 to {MOST_DAYS} days.",
            }
            raise StorageError(400, "InvalidXmlNodeValue", sentence, details)
    found = {one.tag: one for one in parsed((before or DEFAULT_PROPERTIES).encode())}
    root = ET.Element(asked.tag)
    root.extend((found | {one.tag: one for one in asked}).values())
    return HEAD + ET.tostring(root, encoding="unicode")


def listing(endpoint: str, asked: Mapping[str, str], entries: str, following: str, attributes: str = "") -> bytes:
    """Return a page of a list as XML, with the parameters of its request and the marker of the next page."""
    echoed = "".join(f"<{name}>{text_of(asked[key])}</{name}>" for key, name in ECHOED if key in asked)
    where = f"ServiceEndpoint={quoteattr(endpoint)}{attributes}"
    inner = f"{echoed}{entries}<NextMarker>{following}</NextMarker>"
    return f"{HEAD}<EnumerationResults {where}>{inner}</EnumerationResults>".encode()


def pairs(tag: str, found: Mapping[str, str]) -> str:
    return f"<{tag}>{''.join(f'<{key}>{text_of(value)}</{key}>' for key, value in found.items())}</{tag}>"


def text_of(value: str) -> str:
    # An unescaped carriage return would be read back as a line feed.
    return escape(value if value.isprintable() else printable(value), {"\r": "&#13;"})


def statistics(now: float) -> bytes:
    """Return the statistics of the secondary region, which is always in sync here."""
    inner = f"<Status>live</Status><LastSyncTime>{http_date(now)}</LastSyncTime>"
    return f"{HEAD}<StorageServiceStats><GeoReplication>{inner}</GeoReplication></StorageServiceStats>".encode()


def failure(error: StorageError, note: str) -> bytes:
    """Return the XML of an error. `note` follows the message: the request's id and the time."""
    details = "".join(f"<{key}>{escape(printable(value))}</{key}>" for key, value in error.details.items())
    message = escape(printable(f"{error.message}\n{note}"))
    return f"{HEAD}<Error><Code>{error.code}</Code><Message>{message}</Message>{details}</Error>".encode()


def printable(value: object) -> str:
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", str(value))

"""Names of containers, queues and tables, and the metadata of containers, blobs and queues.

https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from emulators.storage.common.errors import StorageError, bad_length

PREFIX = "x-ms-meta-"
MOST_METADATA = 8 * 1024
METADATA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def checked_name(name: str, pattern: re.Pattern[str]) -> str:
    """Return the name if it has 3 to 63 characters and matches the pattern. Raises StorageError, 400."""
    if not 3 <= len(name) <= 63:
        raise bad_length()
    if not pattern.fullmatch(name):
        raise StorageError(400, "InvalidResourceName", "The specified resource name contains invalid characters.")
    return name


def metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """Return a request's metadata by name. Raises StorageError, 400, for an invalid name or value."""
    found = {key[len(PREFIX) :]: value for key, value in headers.items() if key.lower().startswith(PREFIX)}
    if len({name.lower() for name in found}) < len(found) or sum(map(len, (*found, *found.values()))) > MOST_METADATA:
        sentence = f"The metadata is at most {MOST_METADATA} characters, and each name is there once."
        raise StorageError(400, "InvalidMetadata", f"The metadata specified is invalid. {sentence}")
    for name, value in found.items():
        if not METADATA_NAME.fullmatch(name) or not value.isascii():
            raise StorageError(400, "InvalidMetadata", "The metadata specified is invalid. It has invalid characters.")
    return found


def as_headers(metadata: Mapping[str, str]) -> dict[str, str]:
    return {f"{PREFIX}{name}": value for name, value in metadata.items()}

"""Find Blobs by Tags, in the whole account or in one container.

https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags
"""

from __future__ import annotations

from dataclasses import replace

from emulators.storage.blobs import xml
from emulators.storage.blobs.containers import marker_of, page_of
from emulators.storage.blobs.requests import Operations, checked_container
from emulators.storage.blobs.tag_query import parse
from emulators.storage.blobs.tags import Start
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, bad_parameter
from emulators.storage.common.service import XML


class SearchOperations(Operations):
    def of_all(self, call: Call, endpoint: str) -> Answer:
        self._requests.admit(call, "f", kind="s")
        return self._found(call, endpoint, "")

    def of_container(self, call: Call, endpoint: str) -> Answer:
        self._requests.admit(call, "f", kind="c")
        return self._found(call, endpoint, self._blobs.container(checked_container(call.resource)).name)

    def _found(self, call: Call, endpoint: str, container: str) -> Answer:
        try:
            query = parse(call.text("where"))
        except ValueError as error:
            raise StorageError(400, "InvalidQueryParameterValue", str(error)) from None
        if container and query.container not in ("", container):
            raise bad_parameter("where", query.container, f"The search is in the container {container}.")
        limit, start = page_of(call)
        wanted = replace(query, container=container or query.container)
        found = self._blobs.tags.search(wanted, _start(call, start), limit + 1)
        following = marker_of(f"{found[limit][0]}\0{found[limit][1]}") if len(found) > limit else ""
        page = xml.Page(endpoint, call.query, frozenset(), self._blobs.clock(), following)
        return Answer(200, xml.found_by_tags(page, {term.key for term in wanted.terms}, found[:limit]), XML)


def _start(call: Call, marker: str) -> Start:
    number, separator, name = marker.partition("\0")
    if not marker:
        return 0, ""
    if not separator or not (number.isascii() and number.isdecimal() and len(number) < 18):
        raise bad_parameter("marker", call.text("marker"), "It is none that an answer had as NextMarker.")
    return int(number), name

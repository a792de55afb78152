"""Lease Blob and Lease Container.

https://learn.microsoft.com/rest/api/storageservices/lease-container
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from emulators.storage.blobs import headers
from emulators.storage.blobs.conditions import Conditions
from emulators.storage.blobs.leases import FOR_EVER, Lease
from emulators.storage.blobs.requests import Operations, checked_container, lease_id
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import invalid_header, missing_header

STATUS = {"acquire": 201, "renew": 200, "change": 200, "release": 200, "break": 202}


class LeaseOperations(Operations):
    def of_blob(self, call: Call) -> Answer:
        action = _action(call)
        self._requests.admit(call, "w")
        target = self._requests.target(call)
        Conditions.of(call.headers).allow_write(target.there.etag, target.there.modified, target.there.tags)
        changed, told = self._changed(call, target.there.lease)
        self._blobs.change(target.container.id, target.name, replace(target.there, lease=changed))
        return Answer(STATUS[action], headers={**headers.version(target.there), **told})

    def of_container(self, call: Call) -> Answer:
        action = _action(call)
        self._requests.admit(call, "w", kind="c")
        container = self._blobs.container(checked_container(call.resource))
        Conditions.of(call.headers).allow_write(container.etag, container.modified)
        changed, told = self._changed(call, container.lease)
        self._blobs.change_container(replace(container, lease=changed))
        return Answer(STATUS[action], headers={**headers.version(container), **told})

    def _changed(self, call: Call, lease: Lease) -> tuple[Lease, dict[str, str]]:
        """Return the lease after the request's action, and the headers that report it."""
        now, asked = self._blobs.clock(), lease_id(call)
        wanted = lease_id(call, "x-ms-proposed-lease-id")
        match _action(call):
            case "acquire":
                made = lease.acquired(now, _duration(call), wanted or str(uuid.uuid4()))
            case "renew":
                made = lease.renewed(now, asked)
            case "change":
                if not wanted:
                    raise missing_header("x-ms-proposed-lease-id")
                made = lease.changed(now, asked, wanted)
            case "release":
                return lease.released(asked), {}
            case _:
                period = headers.whole_number(call, "x-ms-lease-break-period")
                if period is not None and not 0 <= period <= 60:
                    raise invalid_header("x-ms-lease-break-period", period)
                made = lease.breaking(now, period)
                return made, {"x-ms-lease-time": str(max(0, round(made.ends - now)))}
        return made, {"x-ms-lease-id": made.id}


def _action(call: Call) -> str:
    action = call.headers.get("x-ms-lease-action", "").lower()
    if not action:
        raise missing_header("x-ms-lease-action")
    if action not in STATUS:
        raise invalid_header("x-ms-lease-action", action)
    return action


def _duration(call: Call) -> int:
    seconds = headers.whole_number(call, "x-ms-lease-duration")
    if seconds is None:
        raise missing_header("x-ms-lease-duration")
    if seconds != FOR_EVER and not 15 <= seconds <= 60:
        raise invalid_header("x-ms-lease-duration", seconds)
    return seconds

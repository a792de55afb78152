"""Clusters and leases over HTTP."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from shared.api import records
from shared.api.answers import Scaled
from shared.api.requests import LeaseExtension, LeaseRequest, ScaleQuery
from shared.clusters import lease_actions, lease_model, scaling
from shared.clusters.ports import ClusterPorts
from shared.kernel.encode import Json
from shared.kernel.names import COMPUTE
from shared.kernel.person import Person

ClusterName = Annotated[str, Meta(pattern=f"^{COMPUTE.pattern}$")]
LeaseName = Annotated[str, Meta(pattern=f"^{lease_model.LEASE_ID.pattern}$")]


def make_lease(
    ports: ClusterPorts, cluster: ClusterName, body: LeaseRequest, by: Person
) -> Annotated[Json, records.LeaseAnswer]:
    spec = lease_model.LeaseSpec(int(body.nodes), body.seconds, body.why)
    return records.lease(lease_actions.lease(ports, cluster, spec, by), ports.clock())


def extend_lease(ports: ClusterPorts, lease: LeaseName, body: LeaseExtension) -> Annotated[Json, records.LeaseAnswer]:
    return records.lease(lease_actions.extend(ports, lease, body.seconds), ports.clock())


def release_lease(ports: ClusterPorts, lease: LeaseName, by: Person) -> Annotated[Json, records.LeaseAnswer]:
    return records.lease(lease_actions.release(ports, lease, by), ports.clock())


def scale_to_zero(ports: ClusterPorts, cluster: ClusterName, query: ScaleQuery, by: Person) -> Annotated[Json, Scaled]:
    decision = scaling.scale_to_zero(ports, cluster, query.force, by)
    return {"cluster": decision.cluster, "action": decision.action, "why": decision.why}

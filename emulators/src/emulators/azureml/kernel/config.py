"""The part's configuration: one JSON file, read once, checked and frozen."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from emulators.arm.roles import Role
from emulators.azureml.kernel.limits import Bucket, Limits
from emulators.azureml.kernel.models import Status

PROVIDER = "Microsoft.MachineLearningServices"
ARTIFACT_CONTAINER = "azureml"
DEFAULT_DATASTORE = "workspaceblobstore"
# Namespace of the GUIDs. Azure's are random, and ours are the same after every restart.
NAMESPACE = uuid.UUID("5f0c1d7e-8c3b-4a57-9d0e-6f3f6f0b9a11")


@dataclass(frozen=True)
class Life:
    """The course of each job on a simulated cluster. Without `running_seconds`, a job runs until a request ends it."""

    queued_seconds: float = 0.0
    running_seconds: float | None = None
    end: Status = Status.COMPLETED

    def __post_init__(self) -> None:
        if self.end not in (Status.COMPLETED, Status.FAILED):
            raise ValueError(f"a simulated job's end is {self.end!r}; it must be Completed or Failed")


@dataclass(frozen=True)
class ClusterSeed:
    """A cluster to create at the start. An existing cluster of this name is kept. Jobs on a `simulated` cluster run
    no processes."""

    name: str
    vm_size: str = "Standard_D2s_v5"
    tier: str = "low_priority"
    min_instances: int = 0
    max_instances: int = 4
    idle_seconds: float = 120
    simulated: Life | None = None


@dataclass(frozen=True)
class EventTarget:
    """The target of status events: the endpoint of a custom topic, and the authority of the endpoint's certificate."""

    url: str
    ca: Path | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class NodeIdentity:
    """The identity of the clusters' nodes. `token_key` signs the tokens, and services that accept them have the
    same key."""

    principal: str
    client_id: str
    token_key: str = field(repr=False)


@dataclass(frozen=True)
class Config:
    certs: Path
    state: Path
    connection_string: str = field(repr=False)
    python: str
    subscription_id: str
    resource_group: str
    workspace: str
    host: str = "127.0.0.1"
    port: int = 0
    location: str = "local"
    datastores: Mapping[str, str] = field(default_factory=dict)
    clusters: tuple[ClusterSeed, ...] = ()
    node_start_seconds: float = 1.0
    preemption_grace_seconds: float = 5.0
    measured_every_seconds: float = 5.0  # interval of measuring nodes; Azure Monitor has the sums per minute
    job_day_seconds: float = 86_400.0  # the length of a day of a job's lifetime limit; shorter in tests
    events: EventTarget | None = None
    arm_limits: Limits | None = None
    roles: tuple[Role, ...] | None = None  # the app's roles; None allows everything
    nodes: NodeIdentity | None = None  # None: nodes have no identity
    environments: Path | None = None  # where jobs' environments are built; None: with the state
    registries: Path | None = None  # a folder for each of the owner's registries; None: with the state
    web: Path | None = None  # a folder for each host; None: with the state
    # Environments, by name, whose requirements here differ from their own files.
    made_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Variables of every node in addition to Azure ML's own.
    node_environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    record_bodies: bool = False

    @property
    def workspace_id(self) -> str:
        group = f"/subscriptions/{self.subscription_id}/resourceGroups/{self.resource_group}"
        return f"{group}/providers/{PROVIDER}/workspaces/{self.workspace}"

    @property
    def bundle(self) -> Path:
        """Return the file of root certificates for verifying this control plane, as written by emulators.certs."""
        return (self.certs / "bundle.pem").resolve()

    @property
    def web_folder(self) -> Path:
        return self.web or self.state / "web"

    @property
    def workspace_guid(self) -> str:
        return self.guid("workspace")

    def guid(self, *parts: str) -> str:
        """Return a GUID that depends only on the workspace and these words."""
        return str(uuid.uuid5(NAMESPACE, "/".join((self.workspace_id.lower(), *parts))))


def parse(source: Mapping[str, Any]) -> Config:
    """Make a Config from the JSON document. Raises ValueError with the unknown, missing or wrong key."""
    values = dict(source)
    try:
        values["connection_string"] = values.pop("storage")["connection_string"]
        values["certs"], values["state"] = Path(values["certs"]), Path(values["state"])
        values["clusters"] = tuple(_cluster(seed) for seed in values.get("clusters", ()))
        for key in ("environments", "registries", "web"):
            if (folder := values.get(key)) is not None:
                values[key] = Path(folder)
        values["made_of"] = {name: tuple(lines) for name, lines in values.get("made_of", {}).items()}
        if (limits := values.get("arm_limits")) is not None:
            values["arm_limits"] = Limits(**{kind: Bucket(*bucket) for kind, bucket in limits.items()})
        if (listed := values.get("roles")) is not None:
            values["roles"] = tuple(
                Role("", role["name"], tuple(role["actions"]), tuple(role.get("not_actions", ()))) for role in listed
            )
        if (nodes := values.get("nodes")) is not None:
            values["nodes"] = NodeIdentity(**nodes)
        if (events := values.get("events")) is not None:
            ca = events.get("ca")
            values["events"] = EventTarget(**{**events, "ca": Path(ca) if ca else None})
    except KeyError as error:
        raise ValueError(f"the configuration lacks {error}") from None
    except TypeError as error:
        raise ValueError(f"the configuration is wrong: {error}") from None
    if unknown := values.keys() - {f.name for f in fields(Config)}:
        raise ValueError(f"unknown configuration keys: {sorted(unknown)}")
    try:
        return Config(**values)
    except TypeError as error:
        raise ValueError(f"the configuration is incomplete: {error}") from None


def _cluster(seed: Mapping[str, Any]) -> ClusterSeed:
    if (life := seed.get("simulated")) is None:
        return ClusterSeed(**seed)
    end = Status(life.get("end", Status.COMPLETED))
    return ClusterSeed(**{**seed, "simulated": Life(**{**life, "end": end})})

"""Models as the HTTP API takes and answers them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta, Struct

from shared.api.encode import model_of, plain, plain_fields
from shared.kernel.errors import Impossible, NotFound
from shared.kernel.has import HasBlobs, HasClock
from shared.kernel.person import Person
from shared.kernel.places import OUTPUT_CONTAINER
from shared.models import model as models
from shared.models.decide import Asked
from shared.models.evidence import MODELS
from shared.models.find import aliases_of, model_named, version_of
from shared.models.ports import HasModels, HasSigner
from shared.models.promote import Ports as PromotePorts
from shared.models.promote import let_go, point, promote_run, undo
from shared.models.reproduce import Comparison as _Comparison
from shared.models.signature import SIGNATURE, key_digest, read_signature
from shared.models.why import PROOF_LIMIT, Link
from shared.runs.ports import HasRuns
from shared.runs.results.archive import MANIFEST
from shared.runs.results.artifacts import ADDRESS_LIFE
from shared.runs.results.outputs import archive_folder

Json = dict[str, Any]
Text = Annotated[str, Meta(max_length=200)]


class Ports(HasBlobs, HasClock, HasRuns, HasModels, HasSigner, Protocol):
    """What is needed here from outside."""


class PromoteRequest(Struct, forbid_unknown_fields=True):
    """A run to make a version of."""

    run: Annotated[str, Meta(min_length=1, max_length=63)]
    alias: Annotated[str, Meta(max_length=31, description="To point at it, such as production.")] = ""
    why: Annotated[Text, Meta(description="For the model's history.")] = ""
    allow_code: Annotated[bool, Meta(description="Take files that run code when they are loaded.")] = False


class AliasRequest(Struct, forbid_unknown_fields=True):
    """Where an alias is to point: at a version, or with `undo` where it was before."""

    version: Annotated[int, Meta(ge=1, le=999_999_999)] | None = None
    undo: bool = False
    why: Text = ""


class LetGoRequest(Struct, forbid_unknown_fields=True):
    why: Text = ""


class Alias(Struct):
    alias: str
    version: int
    at: str
    by: str
    by_id: str
    why: str
    earlier: Annotated[list[int], Meta(description="The versions before, the last one last.")]


_ALSO: dict[str, Any] = {"aliases": list[str], "promoted_at": str}
Version = model_of(__name__, models.Version, _ALSO, ("at", "let_go_at", "proof"))
Change = model_of(__name__, models.Change, {}, ("model",))


class Model(Struct):
    model: str
    latest: Annotated[int, Meta(description="The number of the newest version that was ever made.")]
    aliases: list[Alias]


class ModelPage(Model):
    versions: Annotated[list[Version], Meta(description="The newest first, up to 100.")]  # type: ignore[valid-type]
    history: Annotated[list[Change], Meta(description="The newest first, up to 100.")]  # type: ignore[valid-type]


class Chain(Struct):
    """The links from the alias to the data. `state`: good, bad or unknown."""

    version: Version  # type: ignore[valid-type]
    links: list[Link]
    holds: Annotated[bool, Meta(description="False if a link is bad.")]


class Key(Struct):
    """The public key that this deployment signs with."""

    pem: str
    sha256: str


Comparison = msgspec.defstruct(
    "Comparison",
    [("run", str), ("equal", bool), ("weights", dict[str, bool]), ("others", list[str]), ("differs", list[str])],
    module=__name__,
)


def all_models(ports: Ports) -> list[Json]:
    return [_head(model) for model in ports.models.all()]


def one_model(ports: Ports, name: str) -> Json:
    model = model_named(ports.models, name)
    versions = [_version(model, each) for each in ports.models.versions(name)]
    return _head(model) | {
        "versions": versions,
        "history": [plain_fields(each, ("model",)) for each in ports.models.history(name)],
    }


def one_version(ports: Ports, name: str, which: str) -> Json:
    return _version(model_named(ports.models, name), version_of(ports.models, name, which))


def promote(ports: PromotePorts, name: str, body: PromoteRequest, by: Person) -> Json:
    asked = Asked(ports.clock(), by, body.why)
    version = promote_run(ports, body.run, name, body.alias, asked, body.allow_code)
    return _version(model_named(ports.models, name), version)


def move(ports: PromotePorts, name: str, alias: str, body: AliasRequest, by: Person) -> Json:
    if body.undo == (body.version is not None):
        raise Impossible("Give one of version and undo.", "bad_request")
    asked = Asked(ports.clock(), by, body.why)
    moved = undo(ports, name, alias, asked) if body.version is None else point(ports, name, body.version, alias, asked)
    return _head(moved)


def release(ports: PromotePorts, name: str, which: str, body: LetGoRequest, by: Person) -> Json:
    version = version_of(ports.models, name, which)
    released = let_go(ports, name, version.number, Asked(ports.clock(), by, body.why))
    return _version(model_named(ports.models, name), released)


def address(ports: Ports, name: str, which: str, path: str) -> str:
    """A signed address of this file of the version. Raises NotFound unless the signature names it."""
    version = version_of(ports.models, name, which)
    signed, _ = read_signature(ports.blobs.read(OUTPUT_CONTAINER, f"{version.proof}/{SIGNATURE}", PROOF_LIMIT))
    if path not in signed and path != SIGNATURE:
        raise NotFound(f"{version} has no file {path[:200]!r}.")
    in_archive = path.startswith(MODELS) or path == MANIFEST
    folder = archive_folder(ports.runs.get(version.run).value) if in_archive else version.proof
    return ports.blobs.read_url(OUTPUT_CONTAINER, f"{folder}/{path}", ADDRESS_LIFE)


def chain(ports: Ports, version: models.Version, links: list[Link]) -> Json:
    rows = [asdict(link) for link in links]
    model = model_named(ports.models, version.model)
    return {"version": _version(model, version), "links": rows, "holds": all(each["state"] != "bad" for each in rows)}


def comparison(run: str, compared: _Comparison) -> Json:
    return {"run": run, **asdict(compared)}


def key(ports: Ports) -> Json:
    pem = ports.signer.public_key()
    return {"pem": pem.decode(), "sha256": key_digest(pem)}


def _head(model: models.Model) -> Json:
    aliases = [
        {"alias": name, "version": at.number, "at": plain(at.at), "by": at.by, "by_id": at.by_id, "why": at.why}
        | {"earlier": list(at.earlier)}
        for name, at in sorted(model.aliases.items())
    ]
    return {"model": model.name, "latest": model.latest, "aliases": aliases}


def _version(model: models.Model, version: models.Version) -> Json:
    fields = plain_fields(version, ("at", "let_go_at", "proof"))
    fields["reads"] = list(version.reads)
    return fields | {"aliases": aliases_of(model, version.number), "promoted_at": plain(version.at)}

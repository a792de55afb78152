"""Models as JSON of the HTTP API."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.jobs.route import Routes
from shared.kernel.encode import model_of, plain, plain_fields
from shared.kernel.errors import Impossible, NotFound
from shared.kernel.person import Person
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.reply import Reply
from shared.models import attestations, promote, reproduce
from shared.models import model as models
from shared.models import why as whys
from shared.models.attestations import Attestation
from shared.models.decide import ChangeRequest
from shared.models.evidence import MODELS
from shared.models.find import aliases_of, chosen_by, model_named, version_of
from shared.models.ports import ModelPorts, Models
from shared.models.signature import SIGNATURE, read_signature
from shared.models.signing_key import SigningKey
from shared.models.signing_keys import known_keys, withdraw_key
from shared.runs.answers import Accepted, FileAddress, FilePath, FileQuery, accepted, file_address
from shared.runs.intake.request import RunName
from shared.runs.results.archive import MANIFEST
from shared.runs.results.artifacts import ADDRESS_LIFE
from shared.runs.results.outputs import archive_folder
from shared.runs.views.summary import metric_named, most_telling_first

Json = dict[str, Any]
ModelName = Annotated[str, Meta(pattern=f"^{models.NAME.pattern}$")]
AliasName = Annotated[str, Meta(pattern=f"^{models.ALIAS.pattern}$")]
VersionName = Annotated[str, Meta(pattern=f"^({models.NUMBER.pattern}|{models.ALIAS.pattern})$")]
ATTESTATION_FILE = re.compile(rf"{attestations.FOLDER}/{models.ALIAS.pattern}-\w{{1,40}}\.json")
KeyDigest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Text = Annotated[str, Meta(max_length=200)]


class PromoteRequest(Struct, forbid_unknown_fields=True):
    """A run to promote to a version."""

    run: Annotated[str, Meta(min_length=1, max_length=63)]
    alias: Annotated[str, Meta(max_length=31, description="The alias to move to it, such as production.")] = ""
    why: Annotated[Text, Meta(description="For the model's history.")] = ""
    allow_code: Annotated[bool, Meta(description="Accept files that run code when they are loaded.")] = False


class AliasRequest(Struct, forbid_unknown_fields=True):
    """The new target of an alias: a version, or with `undo` the previous target."""

    version: Annotated[int, Meta(ge=1, le=999_999_999)] | None = None
    undo: bool = False
    why: Text = ""


class ReasonRequest(Struct, forbid_unknown_fields=True):
    why: Text = ""


_NO_REASON = ReasonRequest()


class ReproduceRequest(Struct, forbid_unknown_fields=True):
    """The number of the repetition. Each repetition is a separate run, to show how much a metric scatters."""

    repetition: Annotated[int, Meta(ge=1, le=reproduce.MOST_REPETITIONS)] = 1


_ONCE = ReproduceRequest()


class AttestRequest(Struct, forbid_unknown_fields=True):
    """Later evidence about a version: a person's own statement, or a bundle that a program signed."""

    kind: Annotated[str, Meta(pattern=f"^{models.ALIAS.pattern}$", description="Such as approval, test or scan.")]
    passed: bool = True
    says: Annotated[str, Meta(max_length=2000)] = ""
    bundle: Annotated[
        dict[str, Any] | None, Meta(description="A Sigstore bundle with a DSSE envelope around an in-toto statement.")
    ] = None
    public_key: Annotated[str, Meta(max_length=2000, description="The PEM of the key that signed the bundle.")] = ""


AttestationAnswer = model_of(__name__, Attestation, {})


class AliasAnswer(Struct):
    alias: str
    version: int
    value: Annotated[float | None, Meta(description="The version's metric by which versions were compared last.")]
    at: str
    by: str
    by_id: str
    why: str
    earlier: Annotated[list[int], Meta(description="Earlier versions, oldest first.")]


_JudgedBy = Annotated[list[str], Meta(description="Its metrics by which versions of the model are compared.")]
_ALSO: dict[str, Any] = {"aliases": list[str], "promoted_at": str, "judged_by": _JudgedBy}
VersionAnswer = model_of(__name__, models.Version, _ALSO, ("at", "let_go_at", "proof"))
ChangeAnswer = model_of(__name__, models.Change, {}, ("model",))


class ModelAnswer(Struct):
    model: str
    latest: Annotated[int, Meta(description="The highest version number so far.")]
    chosen_by: Annotated[
        str, Meta(description="The metric by which versions were compared last; '' if they never were.")
    ]
    aliases: list[AliasAnswer]


class ModelPage(ModelAnswer):
    versions: Annotated[list[VersionAnswer], Meta(description="The newest first, up to 100.")]  # type: ignore[valid-type]
    history: Annotated[list[ChangeAnswer], Meta(description="The newest first, up to 100.")]  # type: ignore[valid-type]


class Chain(Struct):
    """The links from the alias to the data. `state`: good, bad or unknown."""

    version: VersionAnswer  # type: ignore[valid-type]
    links: list[whys.Link]
    holds: Annotated[bool, Meta(description="False if a link is bad.")]


KeyAnswer = model_of(__name__, SigningKey, {})


class Key(Struct):
    """The public key with which this deployment signs, and all keys that it ever signed with."""

    pem: str
    sha256: str
    keys: list[KeyAnswer]  # type: ignore[valid-type]


ComparisonAnswer = model_of(__name__, reproduce.Comparison, {"run": str})


def list_models(ports: ModelPorts) -> Annotated[list[Json], list[ModelAnswer]]:
    return [_head(ports.models, model) for model in ports.models.all()]


def get_model(ports: ModelPorts, model: ModelName) -> Annotated[Json, ModelPage]:
    named = model_named(ports.models, model)
    versions = [_version(named, each) for each in ports.models.versions(model)]
    history = [plain_fields(each, ("model",)) for each in ports.models.history(model)]
    return _head(ports.models, named) | {"versions": versions, "history": history}


def get_version(ports: ModelPorts, model: ModelName, version: VersionName) -> Annotated[Json, VersionAnswer]:
    return _version(model_named(ports.models, model), version_of(ports.models, model, version))


def promote_run(
    ports: ModelPorts, model: ModelName, body: PromoteRequest, by: Person, admit_code: Callable[[], None]
) -> Annotated[Json, VersionAnswer]:
    """Promote a run. Files that run code, and a protected alias, need the role coder."""
    if body.allow_code or is_protected(ports.routes, model, body.alias):
        admit_code()
    asked = ChangeRequest(ports.clock(), by, body.why)
    version = promote.promote_run(ports, body.run, model, body.alias, asked, body.allow_code)
    return _version(model_named(ports.models, model), version)


def move_alias(
    ports: ModelPorts,
    model: ModelName,
    alias: AliasName,
    body: AliasRequest,
    by: Person,
    admit_code: Callable[[], None],
) -> Annotated[Json, ModelAnswer]:
    if body.undo == (body.version is not None):
        raise Impossible("Give one of version and undo.", "bad_request")
    if is_protected(ports.routes, model, alias):
        admit_code()
    asked = ChangeRequest(ports.clock(), by, body.why)
    if body.version is None:
        return _head(ports.models, promote.undo(ports, model, alias, asked))
    return _head(ports.models, promote.point(ports, model, body.version, alias, asked))


def is_protected(routes: Routes, model: str, alias: str) -> bool:
    """Return whether a route of this model protects the alias."""
    rules = (route.model for route in routes.values() if route.model and route.model.name == model)
    return any(alias in rule.protect for rule in rules)


def let_go_version(
    ports: ModelPorts, model: ModelName, version: VersionName, by: Person, body: ReasonRequest = _NO_REASON
) -> Annotated[Json, VersionAnswer]:
    number = version_of(ports.models, model, version).number
    released = promote.let_go(ports.models, ports.clock, model, number, ChangeRequest(ports.clock(), by, body.why))
    return _version(model_named(ports.models, model), released)


def read_model_file(
    ports: ModelPorts, model: ModelName, version: VersionName, path: FilePath, query: FileQuery
) -> Annotated[Reply, {200: FileAddress, 302: None}]:
    """Return a signed URL of this file of the version. Raises NotFound unless the signature names the file, or the file
    is an attestation.
    """
    found = version_of(ports.models, model, version)
    signed, _ = read_signature(ports.blobs.read(OUTPUT_CONTAINER, f"{found.proof}/{SIGNATURE}", promote.PROOF_LIMIT))
    if path not in signed and path != SIGNATURE and not ATTESTATION_FILE.fullmatch(path):
        raise NotFound(f"{found} has no file {path[:200]!r}.")
    in_archive = path.startswith(MODELS) or path == MANIFEST
    folder = archive_folder(ports.runs.get(found.run).value) if in_archive else found.proof
    return file_address(ports.blobs.read_url(OUTPUT_CONTAINER, f"{folder}/{path}", ADDRESS_LIFE), query)


def list_attestations(
    ports: ModelPorts, model: ModelName, version: VersionName
) -> Annotated[list[Json], list[AttestationAnswer]]:
    return [
        plain_fields(each, ()) for each in attestations.attestations(ports, version_of(ports.models, model, version))
    ]


def attest_version(
    ports: ModelPorts, model: ModelName, version: VersionName, body: AttestRequest, by: Person
) -> Annotated[Json, AttestationAnswer]:
    """Add an attestation. A bundle speaks for its signer; without a bundle, the app signs for the caller."""
    found = version_of(ports.models, model, version)
    if (body.bundle is None) != (not body.public_key):
        raise Impossible(
            "Give bundle and public_key together: the signed statement, and the key that signed it.", "bad_request"
        )
    if body.bundle is not None:
        return plain_fields(attestations.add(ports, found, body.kind, body.bundle, body.public_key), ())
    return plain_fields(attestations.attest(ports, found, body.kind, body.passed, body.says, by), ())


def explain_version(ports: ModelPorts, model: ModelName, version: VersionName) -> Annotated[Json, Chain]:
    found = version_of(ports.models, model, version)
    rows = [asdict(link) for link in whys.chain(ports, found)]
    holds = all(each["state"] != "bad" for each in rows)
    return {"version": _version(model_named(ports.models, model), found), "links": rows, "holds": holds}


def reproduce_version(
    ports: ModelPorts, model: ModelName, version: VersionName, by: Person, body: ReproduceRequest = _ONCE
) -> Annotated[Reply, {202: Accepted}]:
    return accepted(reproduce.reproduce(ports, version_of(ports.models, model, version), by, body.repetition))


def compare_reproduction(
    ports: ModelPorts, model: ModelName, version: VersionName, run: RunName
) -> Annotated[Json, ComparisonAnswer]:
    return {"run": run, **asdict(reproduce.compare(ports, version_of(ports.models, model, version), run))}


def sign_version_again(
    ports: ModelPorts, model: ModelName, version: VersionName, by: Person, body: ReasonRequest = _NO_REASON
) -> Annotated[Json, VersionAnswer]:
    number = version_of(ports.models, model, version).number
    again = promote.sign_again(ports, model, number, ChangeRequest(ports.clock(), by, body.why))
    return _version(model_named(ports.models, model), again)


def get_model_key(ports: ModelPorts) -> Annotated[Json, Key]:
    known = known_keys(ports.models, ports.signer, ports.clock())
    keys = sorted(known.keys.values(), key=lambda key: key.since, reverse=True)
    return {
        "pem": known.keys[known.current].pem,
        "sha256": known.current,
        "keys": [plain_fields(key, ()) for key in keys],
    }


def withdraw_model_key(
    ports: ModelPorts, sha256: KeyDigest, by: Person, body: ReasonRequest = _NO_REASON
) -> Annotated[Json, KeyAnswer]:
    asked = ChangeRequest(ports.clock(), by, body.why)
    return plain_fields(withdraw_key(ports.models, ports.signer, sha256, asked), ())


def _head(stored: Models, model: models.Model) -> Json:
    metric = chosen_by(model)
    aliases = [
        {"alias": name, "version": at.number, "at": plain(at.at), "by": at.by, "by_id": at.by_id, "why": at.why}
        | {"value": _value(stored.version(model.name, at.number), metric), "earlier": list(at.earlier)}
        for name, at in sorted(model.aliases.items())
    ]
    return {"model": model.name, "latest": model.latest, "chosen_by": metric, "aliases": aliases}


def _value(version: models.Version | None, metric: str) -> float | None:
    name = metric_named(metric, version.metrics) if version and metric else None
    return version.metrics[name] if version and name else None


def _version(model: models.Model, version: models.Version) -> Json:
    fields = plain_fields(version, ("at", "let_go_at", "proof"))
    fields["reads"] = list(version.reads)
    judged_by = [name for goal in model.goals if (name := metric_named(goal, version.metrics))]
    fields["metrics"] = {name: version.metrics[name] for name in most_telling_first(version.metrics, chosen_by(model))}
    also = {"aliases": aliases_of(model, version.number), "judged_by": judged_by}
    return fields | also | {"promoted_at": plain(version.at)}

"""The sources of a model, as resources of an in-toto statement: data, code, environment, packages, parents.

An unknown fact is in no resource. `not_known` names it in a sentence, so that readers of the proof see the gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from shared.jobs.card import FACTS
from shared.jobs.location import DROPS_STORE, Location
from shared.jobs.readers.git import source_of
from shared.jobs.readers.pipeline import step_inputs, steps
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import Environment, JobSpec, uses_own_code
from shared.jobs.upload import digest_in
from shared.kernel.storage import Blob
from shared.models.evidence import Evidence

Json = dict[str, Any]
OF_TRAINERS = (
    "SHA-256 over, for each file in the order of paths: path, a zero byte, size, a line feed, content; without hidden "
    "files and __pycache__"
)
OF_UPLOAD = "SHA-256 over, for each file in the order of paths: path, a zero byte, size, a zero byte, MD5, a line feed"


def resources(evidence: Evidence) -> list[Json]:
    """Return the resources, each with its digest if known."""
    data = [_file(blob, sha256, Location(DROPS_STORE, quote(blob.name))) for blob, sha256 in evidence.data]
    made_by = [*_code(evidence), *_environments(evidence), *_packages(evidence)]
    return [*data, *_inputs(evidence), *made_by, *_parents(evidence)]


def not_known(evidence: Evidence) -> list[str]:
    """Return a sentence for each fact missing from this proof."""
    return [
        *_unknown_data(evidence),
        *_unknown_code(evidence),
        *_unknown_result(evidence),
        *(f"{name.replace('_', ' ').capitalize()}: nobody stated {what}." for name, what in _unstated(evidence)),
    ]


def _unstated(evidence: Evidence) -> Iterator[tuple[str, str]]:
    return ((name, what) for name, what in FACTS.items() if name not in evidence.stated)


def _unknown_data(evidence: Evidence) -> Iterator[str]:
    run = evidence.run
    yield from (each.not_known for each in evidence.inputs if each.not_known)
    if evidence.unhashed and (run.asked.drop or not evidence.inputs):
        yield f"The content of the data: {evidence.unhashed}"
    if run.asked.continues:
        yield f"The content of the checkpoints of run {run.asked.continues}, from which the run continued."
    if evidence.parent and not evidence.parent_digest:
        yield f"The content of the parent model {evidence.parent}: the run is not a version of a model."


def _unknown_code(evidence: Evidence) -> Iterator[str]:
    for name, job in jobs_of(evidence):
        if why := _no_code(evidence, job):
            yield f"The content of the code{_of(name)}: {why}"
    if not source_of(evidence.run.asked.request).commit:
        yield "The commit of the code: the client that submitted the job did not name one."
    tags = [image for image in sorted(_images(evidence)) if "@sha256:" not in image]
    yield from (f"The content of image {image}: it is named by a tag." for image in tags)
    if not evidence.node:
        yield "The packages and the processor: the job wrote no outputs/environment.json."


def _unknown_result(evidence: Evidence) -> Iterator[str]:
    run = evidence.run
    if not run.measured.of_model:
        yield "The quality of the model: the run has no metrics."
    elif not run.measured.saved:
        yield "Whether the metrics are those of the saved weights: they are last values, as the trainer did not say."
    if not run.people.owner_id:
        claim = f"{run.people.owner} is the client's own claim" if run.people.owner else "nobody signed in"
        yield f"Who requested the run: {claim}."
    trials = evidence.maker is not run  # the sweep's part has the cost of its trials
    if not trials and (run.money.cost is None or run.money.cost.unpriced):
        yield "The cost of the run: no price is known for all of its nodes."


def jobs_of(evidence: Evidence) -> list[tuple[str, JobSpec]]:
    """Return the finished jobs, by step name; '' for a run of one job, or of members of one job."""
    request = evidence.maker.asked.request
    return [(step.name, step.job) for step in steps(request)] or [("", request)]


def packages(node: Json) -> dict[str, str]:
    """Return a node's recorded packages, with versions."""
    versions = node.get("packages")
    return {str(name): str(version) for name, version in versions.items()} if isinstance(versions, dict) else {}


def of_packages(evidence: Evidence, key: str) -> Json:
    """Return one fact of the packages by name, as the nodes recorded it: `licences` or `records`."""
    said = (facts.get(key) for facts in evidence.nodes.values())
    return {str(name): value for each in said if isinstance(each, dict) for name, value in each.items()}


def all_packages(evidence: Evidence) -> list[tuple[str, str]]:
    """Return name and version of every package of any node."""
    every = {pair for node in evidence.nodes.values() for pair in packages(node).items()}
    return sorted(every, key=lambda pair: (pair[0].lower(), pair[1]))


def _of(name: str) -> str:
    return f" of step {name}" if name else ""


def _file(blob: Blob, sha256: str, where: Location) -> Json:
    return {
        "name": blob.name,
        "uri": place_text(where),
        "digest": {kind: value for kind, value in (("sha256", sha256), ("md5", blob.md5)) if value},
        "annotations": {"etag": blob.etag.strip('"'), "size": blob.size},
    }


def _inputs(evidence: Evidence) -> Iterator[Json]:
    for each in evidence.inputs:
        yield {"name": f"input {each.name}", "uri": each.place, "annotations": {"files": len(each.files)}}
        for blob, sha256 in each.files:
            file = _file(blob, sha256, Location(DROPS_STORE, quote(blob.name)))
            yield file | {"uri": f"{each.place.rstrip('/')}#{quote(blob.name)}"}


def code_digests(evidence: Evidence) -> dict[str, str]:
    """Return the SHA-256 of the code of the job, or of each step; '' where it is not known."""
    made = evidence.maker.jobs.code
    return {
        f"code{_of(name)}": digest_in(job.code) or (made if uses_own_code(job) else "")
        for name, job in jobs_of(evidence)
    }


def parameters_of(evidence: Evidence) -> Json:
    """Return the parameters of the job, without data inputs. A pipeline has the parameters of each step, as
    `STEP.NAME`.
    """
    steps = step_inputs(evidence.run.asked.request)
    values = {f"{step}.{name}": value for step, its in steps.items() for name, value in its.items()}
    return evidence.maker.asked.parameters | {name: each for name, each in values.items() if not isinstance(each, dict)}


def _code(evidence: Evidence) -> Iterator[Json]:
    """Yield the code of the job, or of each step, with the digest and the digest's method."""
    source, digests = source_of(evidence.run.asked.request), code_digests(evidence)
    for name, job in jobs_of(evidence):
        sent, digest = digest_in(job.code), digests[f"code{_of(name)}"]
        known = {kind: value for kind, value in (("sha256", digest), ("gitCommit", source.commit)) if value}
        if not known:
            continue
        how: Json = {"digestOf": OF_UPLOAD if sent else OF_TRAINERS} if digest else {}
        if source.commit:
            how["changedSinceCommit"] = source.dirty
        uri = f"git+{source.repository}@{source.commit}" if source.commit and source.repository else ""
        yield {"name": f"code{_of(name)}", "digest": known, "annotations": how} | ({"uri": uri} if uri else {})


def _no_code(evidence: Evidence, job: JobSpec) -> str:
    if digest_in(job.code) or (uses_own_code(job) and evidence.maker.jobs.code):
        return ""
    if not job.code:
        return "the job has no code except its command."
    return f"the job names {place_text(job.code)}, which Trainyard did not hash."


def _environments(evidence: Evidence) -> Iterator[Json]:
    for name, job in jobs_of(evidence):
        own = job.environment
        uri = evidence.maker.jobs.environment if not name else ""
        described = str(own) if isinstance(own, Environment) else place_text(own)
        row: Json = {"name": f"environment{_of(name)}", "uri": uri or described}
        if isinstance(own, Environment):
            digest = own.image.partition("@sha256:")[2]
            row |= {"annotations": {"image": own.image, "conda": own.conda}}
            row |= {"digest": {"sha256": digest}} if digest else {}
        yield row


def _images(evidence: Evidence) -> set[str]:
    own = (job.environment for _, job in jobs_of(evidence))
    return {each.image for each in own if isinstance(each, Environment) and each.image}


def _packages(evidence: Evidence) -> list[Json]:
    named = all_packages(evidence)
    return [{"name": name, "uri": f"pkg:pypi/{quote(name.lower())}@{quote(version)}"} for name, version in named]


def _parents(evidence: Evidence) -> Iterator[Json]:
    if evidence.parent:
        digest = {"digest": {"sha256": evidence.parent_digest}} if evidence.parent_digest else {}
        yield {"name": "parent model", "uri": f"urn:trainyard:model:{evidence.parent}", **digest}
    for run in evidence.continued:
        yield {"name": "continued run", "uri": f"urn:trainyard:run:{run}"}

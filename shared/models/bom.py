"""The bill of materials of a model: CycloneDX 1.6 with a machine-learning-model, data and packages. Pure.

The library writes every part for which it has classes. It has no class for the model card yet, so the card is added to
the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from shared.kernel.storage import Blob
from shared.models.decide import ChangeRequest
from shared.models.evidence import Evidence
from shared.models.sources import all_packages, code_digests, not_known, of_packages, parameters_of

if TYPE_CHECKING:
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component
    from cyclonedx.model.contact import OrganizationalContact, OrganizationalEntity
    from cyclonedx.model.license import License
    from cyclonedx.model.tool import ToolRepository

Json = dict[str, Any]
BOM = "bom.json"


def bom(evidence: Evidence, name: str, number: int, asked: ChangeRequest) -> bytes:
    """Return the document as JSON. The library is imported here because its import takes a third of a second."""
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion

    made = _made(evidence, name, number, asked)
    document: Json = json.loads(make_outputter(made, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string())
    document["metadata"]["component"]["modelCard"] = _model_card(evidence)
    return json.dumps(document, indent=1).encode()


def components(document: Json, kind: str) -> list[Json]:
    """Return the components of one type, for example library."""
    return [each for each in document.get("components", []) if each.get("type") == kind]


def _made(evidence: Evidence, name: str, number: int, asked: ChangeRequest) -> Bom:
    from cyclonedx.model.bom import Bom, BomMetaData

    model = _model(evidence, name, number)
    parts = [*_data(evidence), *_libraries(evidence)]
    serial = uuid5(NAMESPACE_URL, f"urn:trainyard:{name}:{number}:{evidence.run.name}")
    metadata = BomMetaData(
        component=model, timestamp=asked.at, tools=_tools(), authors=_authors(evidence), supplier=_supplier(evidence)
    )
    made = Bom(serial_number=serial, metadata=metadata, components=parts)
    made.register_dependency(model, parts)
    return made


def _tools() -> ToolRepository:
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.tool import ToolRepository

    return ToolRepository(components=[Component(name="trainyard", type=ComponentType.APPLICATION)])


def _authors(evidence: Evidence) -> list[OrganizationalContact]:
    from cyclonedx.model.contact import OrganizationalContact

    author = evidence.stated.get("author")
    return [OrganizationalContact(name=author)] if author else []


def _supplier(evidence: Evidence) -> OrganizationalEntity | None:
    from cyclonedx.model.contact import OrganizationalEntity

    supplier = evidence.stated.get("supplier")
    return OrganizationalEntity(name=supplier) if supplier else None


def _licences(text: str | None) -> list[License]:
    """Return the licence in its own words, because nobody has checked which SPDX identifier would apply."""
    from cyclonedx.model.license import DisjunctiveLicense

    return [DisjunctiveLicense(name=text)] if text else []


def _model(evidence: Evidence, name: str, number: int) -> Component:
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType

    files = [
        Component(name=file, type=ComponentType.FILE, hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)])
        for file, digest in evidence.weights.items()
    ]
    code = {name: digest for name, digest in code_digests(evidence).items() if digest}
    properties = {"run": evidence.run.name, **code, "parent": evidence.parent}
    return Component(
        name=name,
        version=str(number),
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref=f"{name}@{number}",
        components=files,
        description=evidence.stated.get("task"),
        licenses=_licences(evidence.stated.get("licence")),
        properties=[Property(name=f"trainyard:{key}", value=value) for key, value in properties.items() if value],
    )


def _data(evidence: Evidence) -> Iterator[Component]:
    """Yield the drop and the other inputs, with the files as subcomponents."""
    from cyclonedx.model.component import Component, ComponentType

    asked = evidence.run.asked
    sources: list[tuple[str, str | None, str, Iterable[tuple[Blob, str]]]] = []
    if evidence.data:
        sources.append((asked.drop, str(asked.generation), f"drop:{asked.drop}", evidence.data))
    sources += [(f"input {each.name}", None, f"input:{each.name}", each.files) for each in evidence.inputs]
    for name, version, reference, files in sources:
        yield Component(
            name=name,
            version=version,
            type=ComponentType.DATA,
            bom_ref=reference,
            components=_files(files),
            description=evidence.stated.get("data_origin"),
            licenses=_licences(evidence.stated.get("data_licence")),
        )


def _files(files: Iterable[tuple[Blob, str]]) -> list[Component]:
    """Return the files, each with SHA-256 or MD5."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component, ComponentType

    components = []
    for blob, sha256 in files:
        kinds = ((HashAlgorithm.SHA_256, sha256), (HashAlgorithm.MD5, blob.md5))
        hashes = [HashType(alg=kind, content=digest) for kind, digest in kinds if digest]
        components.append(Component(name=blob.name, type=ComponentType.FILE, hashes=hashes))
    return components


def _libraries(evidence: Evidence) -> Iterator[Component]:
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    licences, records = of_packages(evidence, "licences"), of_packages(evidence, "records")
    for name, version in all_packages(evidence):
        url = PackageURL("pypi", name=name.lower(), version=version)
        record = [Property(name="trainyard:sha256 of RECORD", value=str(records[name]))] if name in records else []
        yield Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            purl=url,
            bom_ref=str(url),
            licenses=_licences(licences.get(name)),
            properties=record,
        )


def _model_card(evidence: Evidence) -> Json:
    """Return CycloneDX's model card: how the model was trained, on which data, and its metrics."""
    run = evidence.run
    data = [{"ref": f"drop:{run.asked.drop}"}] if evidence.data else []
    data += [{"ref": f"input:{each.name}"} for each in evidence.inputs]
    metrics = [{"type": name, "value": f"{value:g}"} for name, value in sorted(run.measured.of_model.items())]
    properties = [
        {"name": f"hyperparameter:{name}", "value": str(value)}
        for name, value in sorted(parameters_of(evidence).items())
    ]
    stated = evidence.stated
    uses, limits = stated.get("intended_use"), stated.get("limits")
    considerations = ({"useCases": [uses]} if uses else {}) | ({"technicalLimitations": [limits]} if limits else {})
    return {
        "modelParameters": {"datasets": data} | ({"task": stated["task"]} if "task" in stated else {}),
        "considerations": considerations,
        "quantitativeAnalysis": {"performanceMetrics": metrics},
        "properties": [*properties, *({"name": "not known", "value": gap} for gap in not_known(evidence))],
    }

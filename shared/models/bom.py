"""The bill of materials of a model: CycloneDX 1.6 with a machine-learning-model, data and packages. Pure.

The library writes everything that it has classes for. The model card, for which it has no class yet, is added to the
JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from shared.models.decide import ChangeRequest
from shared.models.evidence import Evidence
from shared.models.sources import all_packages, not_known

if TYPE_CHECKING:
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component

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
    made = Bom(serial_number=serial, metadata=BomMetaData(component=model, timestamp=asked.at), components=parts)
    made.register_dependency(model, parts)
    return made


def _model(evidence: Evidence, name: str, number: int) -> Component:
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType

    files = [
        Component(name=file, type=ComponentType.FILE, hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)])
        for file, digest in evidence.weights.items()
    ]
    properties = {"run": evidence.run.name, "code": evidence.maker.jobs.code, "parent": evidence.parent}
    return Component(
        name=name,
        version=str(number),
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref=f"{name}@{number}",
        components=files,
        properties=[Property(name=f"trainyard:{key}", value=value) for key, value in properties.items() if value],
    )


def _data(evidence: Evidence) -> Iterator[Component]:
    """Yield the drop, with the files as subcomponents, each with SHA-256 or MD5."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component, ComponentType

    if not evidence.data:
        return
    files = []
    for blob, sha256 in evidence.data:
        kinds = ((HashAlgorithm.SHA_256, sha256), (HashAlgorithm.MD5, blob.md5))
        hashes = [HashType(alg=kind, content=digest) for kind, digest in kinds if digest]
        files.append(Component(name=blob.name, type=ComponentType.FILE, hashes=hashes))
    asked = evidence.run.asked
    yield Component(
        name=asked.drop,
        version=str(asked.generation),
        type=ComponentType.DATA,
        bom_ref=f"drop:{asked.drop}",
        components=files,
    )


def _libraries(evidence: Evidence) -> Iterator[Component]:
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    for name, version in all_packages(evidence):
        url = PackageURL("pypi", name=name.lower(), version=version)
        yield Component(name=name, version=version, type=ComponentType.LIBRARY, purl=url, bom_ref=str(url))


def _model_card(evidence: Evidence) -> Json:
    """Return CycloneDX's model card: how the model was trained, on which data, and its metrics."""
    run = evidence.run
    data = [{"ref": f"drop:{run.asked.drop}"}] if evidence.data else []
    metrics = [{"type": name, "value": f"{value:g}"} for name, value in sorted(run.measured.of_model.items())]
    properties = [
        {"name": f"parameter:{name}", "value": str(value)}
        for name, value in sorted(evidence.maker.asked.parameters.items())
    ]
    return {
        "modelParameters": {"datasets": data},
        "quantitativeAnalysis": {"performanceMetrics": metrics},
        "properties": [*properties, *({"name": "not known", "value": gap} for gap in not_known(evidence))],
    }

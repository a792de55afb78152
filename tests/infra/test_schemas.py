"""azure.yaml, host.json and the Bicep conform to Microsoft's schemas; parameters are those of the templates."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from emulators.arm import syntax
from tests.infra.declared import ABSENT, INFRA, ROOT, TOOLS, azure_yaml, parameters

SCHEMAS = Path(__file__).with_name("schemas")
TYPES = Path(__file__).with_name("types.json")  # resource types that the shared cut lacks, from ARM's documentation


def errors(schema_file: Path, value: Any) -> list[str]:
    schema = json.loads(schema_file.read_text("utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def test_azure_yaml_is_valid() -> None:
    """azd's own schema accepts azure.yaml."""
    assert errors(SCHEMAS / "azure.yaml.json", azure_yaml()) == []


def test_host_json_is_valid() -> None:
    """The published schema of host.json accepts ours."""
    assert errors(SCHEMAS / "host.json", json.loads((ROOT / "host.json").read_text())) == []


def test_a_wrong_azure_yaml_is_found() -> None:
    """The schema rejects a hook with an unknown name."""
    wrong = azure_yaml() | {"hooks": {"preprovisoin": {"shell": "sh", "run": "true"}}}
    assert errors(SCHEMAS / "azure.yaml.json", wrong)


def checked(file: Path, folder: Path) -> str:
    tool, types = TOOLS / "bicepcheck.py", TOOLS / "bicep-types.json"
    if not tool.exists():
        pytest.skip(ABSENT)
    merged, own = json.loads(types.read_text()), json.loads(TYPES.read_text())
    merged = {part: merged[part] | own[part] for part in ("types", "versions")}
    (folder / "types.json").write_text(json.dumps(merged))
    done = subprocess.run([sys.executable, tool, folder / "types.json", file], capture_output=True, text=True)
    assert not done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["main.bicep", "subscription.bicep"])
def test_the_bicep_has_no_fault(name: str, tmp_path: Path) -> None:
    """Names, types, versions, enums, parameters and outputs of every file agree with Azure's published types."""
    assert checked(INFRA / name, tmp_path) == "0 errors, 0 warnings"


def test_a_fault_in_the_bicep_is_found(tmp_path: Path) -> None:
    """The checker finds faults, also in our own types."""
    text = (INFRA / "subscription.bicep").read_text().replace("timeGrain:", "timeGrian:")
    (tmp_path / "wrong.bicep").write_text(text)
    assert "did you mean 'timeGrain'?" in checked(tmp_path / "wrong.bicep", tmp_path)


def test_the_parameters_are_those_of_the_template() -> None:
    """main.parameters.json sets every parameter of main.bicep, except those whose default azd can't express."""
    file = syntax.read(INFRA / "main.bicep")
    assert parameters().keys() <= file.parameters.keys()
    assert file.parameters.keys() - parameters().keys() == {"pythonVersion"}


def test_azd_finds_what_it_looks_for() -> None:
    """The tags and files by which azd finds the resource group, the app and the hooks exist."""
    text = "\n".join(file.read_text() for file in INFRA.rglob("*.bicep"))
    assert "'azd-env-name': environmentName" in text
    for service in azure_yaml()["services"]:
        assert f"'azd-service-name': '{service}'" in text
    commands = re.findall(r"\binfra/hooks/\w+\.py", (ROOT / "azure.yaml").read_text())
    assert commands
    assert [command for command in commands if not (ROOT / command).is_file()] == []


def test_every_pipeline_variable_is_a_parameter() -> None:
    """Each variable that azd hands to the pipeline is read by a template or a hook."""
    readers = [INFRA / "main.parameters.json", *INFRA.glob("hooks/*.py")]
    text = "\n".join(file.read_text() for file in readers)
    assert [name for name in azure_yaml()["pipeline"]["variables"] if name not in text] == []

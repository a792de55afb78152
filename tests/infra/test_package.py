"""The deployed package: its contents, that it runs without the repository, and that host.json is explained."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import package
from tests.infra.declared import ROOT

MOST_FILES, MOST_BYTES = 770, 3_690_000  # the docs, which the page shows, are 37 files and 344,000 bytes
FOR_A_CLONE = ("development.md", "dependencies.md")
INDEX = """
import json, pathlib, sys
from function_app import app
ours = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] in ("functions", "shared", "function_app")]
print(json.dumps({"functions": [f.get_function_name() for f in app.get_functions()], "files": ours}))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip of this repository, unpacked, with everything read-only."""
    home = tmp_path_factory.mktemp("package")
    built = package.build(home / "package")
    folder = home / "unpacked"
    with zipfile.ZipFile(built.archive) as archive:
        archive.extractall(folder)
    for file in folder.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    return folder


def test_the_package_holds_the_app_and_nothing_else(unpacked: Path) -> None:
    """The package has the app, routes and trainers, but no tests, emulators, infrastructure, secrets or hidden
    files."""
    names = {file.relative_to(unpacked).as_posix() for file in unpacked.rglob("*") if file.is_file()}
    assert {"function_app.py", "host.json", "requirements.txt", "routes.yaml", "trainers/conda.yaml"} <= names
    tops = {name.partition("/")[0] for name in names if "/" in name}
    assert tops <= {"functions", "shared", "trainers", "page", "docs"}
    assert {name for name in names if name.startswith("docs/")} == {
        f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md") if p.name not in FOR_A_CLONE
    }
    others = [name for name in names if not name.startswith("docs/")]  # the page shows the docs
    assert not [name for name in others if re.search(r"(^|/)(\.|__pycache__|test)|local\.settings|\.md$|\.pyc$", name)]
    routes = yaml.safe_load((unpacked / "routes.yaml").read_text())["routes"]
    assert {f"trainers/{route['trainer']}/job.yaml" for route in routes.values() if "cluster" in route} <= names


def test_the_package_stays_small(unpacked: Path) -> None:
    """The number of files and bytes is bounded, because every instance downloads them at its start."""
    files = [file for file in unpacked.rglob("*") if file.is_file()]
    assert len(files) < MOST_FILES
    assert sum(file.stat().st_size for file in files) < MOST_BYTES


def test_the_package_stands_alone(unpacked: Path) -> None:
    """In the package's folder alone, every function of the app is indexed, and all of our modules come from that
    folder."""
    env = {"PATH": "", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, "-P", "-s", "-c", INDEX], cwd="/", env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "create_run" in told["functions"]
    assert told["files"]
    assert [file for file in told["files"] if not file.startswith(str(unpacked))] == []


def test_the_same_files_make_the_same_zip(tmp_path: Path) -> None:
    """Two builds give the same bytes, so a hash shows whether anything changed."""
    digests = {hashlib.sha256(package.build(tmp_path / n).archive.read_bytes()).hexdigest() for n in ("a", "b")}
    assert len(digests) == 1


def test_the_image_goes_into_the_package_alone(tmp_path: Path) -> None:
    """With an image, the packaged environment is that image without a conda file; the repository's environment
    stays unchanged."""
    before = (ROOT / package.ENVIRONMENT).read_text()
    built = package.build(tmp_path, "cr1.azurecr.io/trainyard:abc", "cr1.azurecr.io/trainyard-gpu:abc")
    for file, image in ((package.ENVIRONMENT, "trainyard:abc"), (package.GPU_ENVIRONMENT, "trainyard-gpu:abc")):
        environment = yaml.safe_load((built.folder / file).read_text())
        assert environment["image"] == f"cr1.azurecr.io/{image}"
        assert "conda_file" not in environment
    assert (ROOT / package.ENVIRONMENT).read_text() == before


def test_the_image_is_made_of_the_nodes_pins() -> None:
    """The Dockerfile uses the base image that both environments name, and an equal conda file."""
    dockerfile = (ROOT / "infra" / "image" / "Dockerfile").read_text()
    for file in (package.ENVIRONMENT, package.GPU_ENVIRONMENT):
        environment = yaml.safe_load((ROOT / file).read_text())
        assert f"FROM {environment['image']}\n" in dockerfile
    assert "COPY conda.yaml " in dockerfile


def keys(value: Any, path: str = "") -> list[str]:
    if not isinstance(value, dict):
        return [path]
    return [key for name, inner in value.items() for key in keys(inner, f"{path}.{name}" if path else name)]


def at(settings: dict[str, Any], name: str) -> Any:
    """The value under a dotted name; a key itself may contain dots, like `Host.Results`."""
    if name in settings:
        return settings[name]
    key = next(key for key in settings if name.startswith(f"{key}."))
    return at(settings[key], name.removeprefix(f"{key}."))


def test_every_setting_of_host_json_has_its_reason() -> None:
    """host.json can't hold comments, so docs/azure-reference.md has exactly one row for each setting."""
    page = (ROOT / "docs" / "azure-reference.md").read_text()
    section = page.partition("## host.json")[2].partition("\n## ")[0]
    described = re.findall(r"^\| `([^`]+)` = `([^`]+)` \|", section, re.MULTILINE)
    settings = json.loads((ROOT / "host.json").read_text())
    for name, value in described:
        assert str(at(settings, name)).lower() == value.lower(), name
    assert sorted(name for name, _ in described) == sorted(set(keys(settings)) - {"version"})

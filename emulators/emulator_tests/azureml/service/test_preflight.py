"""What a job in Azure ML's YAML schema needs from this machine, without a server."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulators.azureml.bodies.distribution import Distribution
from emulators.azureml.environments.model import Recipe
from emulators.azureml.kernel.errors import BadRequest, DataError
from emulators.azureml.kernel.sources import AssetRef, Location
from emulators.azureml.running.launchers import MOST_RAY_NODES, launched, with_launcher
from emulators.azureml.service.preflight import Download, Needs, described
from emulators.azureml.storage.blobs import Place
from emulators.azureml.storage.web_folder import WebFolder

RAY = Recipe(("ray[default]",))


def test_a_job_file_is_read_as_its_body_would_be() -> None:
    """Environment, data and distribution are read as in the job's REST body. Literals, and addresses that the job
    itself reads, need nothing."""
    wanted = described({
        "environment": "azureml://registries/team/environments/base/labels/latest",
        "inputs": {"lr": 0.1, "rows": {"type": "uri_file", "path": "azureml://datastores/drops/paths/a.csv"},
                   "far": {"path": "azureml:far:1", "mode": "direct"},
                   "coming": {"path": "azureml://jobs/r/outputs/o"}},
        "distribution": {"type": "pytorch", "process_count_per_instance": 3},
        "resources": {"instance_count": 2},
    })  # fmt: skip
    assert wanted.environment == AssetRef("environments", "base", "latest", "team")
    assert wanted.inputs == {"rows": ("uri_file", Location("drops", "a.csv"))}
    assert wanted.spread == Distribution("PyTorch", 2, 3)


@pytest.mark.parametrize(
    ("environment", "properties"),
    [
        ({"image": "r-base", "conda_file": {"dependencies": ["pip"]}}, {"image": "r-base", "isAnonymous": True,
         "condaFile": "dependencies:\n- pip\n"}),
        ({"build": {"path": "azureml://datastores/d/paths/c/"}}, {"image": None, "isAnonymous": True,
         "build": {"contextUri": "azureml://datastores/d/paths/c/", "dockerfilePath": None}}),
        (None, None),
    ],
)  # fmt: skip
def test_an_inline_environment_is_its_properties(environment: Any, properties: Any) -> None:
    """A job's inline environment equals the body of an environment version. A job without an environment needs no
    check."""
    assert described({"environment": environment}).environment == properties


def test_an_unknown_distribution_is_refused() -> None:
    """The error has the allowed distributions."""
    with pytest.raises(BadRequest, match="'horovod' is not supported here; supported: PyTorch, Mpi, TensorFlow, Ray"):
        described({"distribution": {"type": "horovod"}})


def test_ray_needs_ray_and_few_nodes() -> None:
    """An environment without Ray, and more nodes than a machine can hold, are refused with the reason."""
    assert with_launcher(RAY, Distribution("Ray", 2)) == RAY
    with pytest.raises(DataError, match="asks for no package ray"):
        with_launcher(Recipe(("pandas",)), Distribution("Ray", 2))
    with pytest.raises(DataError, match=f"at most {MOST_RAY_NODES} of Ray"):
        with_launcher(RAY, Distribution("Ray", MOST_RAY_NODES + 1))


def test_the_launcher_gets_the_command_as_it_is() -> None:
    """The job's own shell reads the quotes and pipes of a command. Other distributions have no launcher before the
    command."""
    command = "python a.py 'two words' | tee \"$HOME/x\""
    assert launched(command, Distribution("Ray", 2)).endswith(
        "ray_cluster.py --nodes 2 --command 'python a.py '\"'\"'two words'\"'\"' | tee \"$HOME/x\"'"
    )
    assert launched(command, Distribution("Mpi", 2)) == command


def needs(web: Path) -> Needs:
    nothing: Any = None
    return Needs(nothing, nothing, nothing, nothing, WebFolder(web), nothing)


def test_what_a_job_downloads_must_be_in_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable server is named. A file in PyTorch's cache or in the web folder needs no server."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    wanted = described({"downloads": [{"url": "https://models.invalid/a/", "cached": "hub/checkpoints/net-*.pth"}]})
    with pytest.raises(BadRequest, match=r"The nodes can't reach it: .*models\.invalid"):
        asyncio.run(needs(tmp_path).check_wanted(wanted))

    (tmp_path / "models.invalid").mkdir()
    asyncio.run(needs(tmp_path).check_wanted(wanted))

    (tmp_path / "models.invalid").rmdir()
    (tmp_path / "torch" / "hub" / "checkpoints").mkdir(parents=True)
    (tmp_path / "torch" / "hub" / "checkpoints" / "net-1.pth").touch()
    asyncio.run(needs(tmp_path).check_wanted(wanted))


@pytest.mark.parametrize("cached", ["../net-*.pth", "/tmp/net-*.pth", ""])
def test_only_the_cache_is_looked_into(cached: str) -> None:
    """A pattern that leads out of PyTorch's cache folder matches nothing."""
    assert not Download("https://models.invalid/", cached).is_cached()


class Stored:
    """Blobs with one file at `d/there/a.csv`, and places that are their own."""

    async def holds(self, place: Place, kind: str) -> bool:
        return place.path == "there/a.csv" if kind == "uri_file" else place.path.rstrip("/") == "there"

    def place(self, where: Location) -> Place:
        return Place(where.datastore, where.path)


@pytest.mark.parametrize(
    ("kind", "path", "sentence"),
    [
        ("uri_file", "there/a.csv", ""),
        ("uri_folder", "there/", ""),
        (
            "uri_file",
            "there/b.csv",
            r"Input 'rows': there is nothing at azureml://datastores/d/paths/there/b\.csv; is it",
        ),
        ("uri_folder", "gone/", "Input 'rows': there is nothing at azureml://datastores/d/paths/gone/; is it a file"),
    ],
)
def test_data_in_the_workspaces_storage_must_be_there(tmp_path: Path, kind: str, path: str, sentence: str) -> None:
    """A job that would fail for want of its data is refused before there is a run."""
    stored: Any = Stored()
    able = replace(needs(tmp_path), places=stored, blobs=stored)
    wanted = described({"inputs": {"rows": {"type": kind, "path": f"azureml://datastores/d/paths/{path}"}}})
    with pytest.raises(BadRequest, match=sentence) if sentence else contextlib.nullcontext():
        asyncio.run(able.check_stored(wanted))

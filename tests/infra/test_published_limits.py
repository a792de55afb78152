"""Azure ML's documented limits at every entrance: a value that passes one entrance does not fail at the next.

The entrances are routes.yaml, clusters.yaml, a request, a drop's job file, a step of a pipeline, infra/, and the
stand-in that MLClient and `az ml` use.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.errors import CliError
from cli.files import clusters_file
from emulators.arm import deploy, refusals, vm_sizes
from emulators.azureml.bodies.enumerations import respelled
from emulators.azureml.kernel.errors import ArmError
from emulators.azureml.kernel.service_limits import check_run
from emulators.azureml.service.compute_routes import COMPUTE_NAME
from shared.jobs import routes_file, vm_size
from shared.jobs.limits import MOST_ENTRIES, RESERVED, Limits, over_azures_limits, over_limits
from shared.jobs.readers.azureml import read_layer
from shared.kernel.errors import BadSetting
from tests.fakes.world import World, trainers_folder
from tests.infra.azd import READY, Azd
from tests.infra.declared import INFRA, ROOT, main, parameters

# https://github.com/aztfmod/terraform-provider-azurecaf/issues/78 gives the service's rule: 3 to 24 characters
NAMES = {
    "ab": False,
    "abc": True,
    "a" * 24: True,
    "a" * 25: False,
    "1ab": False,
    "ab-": False,
    "a_b": False,
    "a--b": True,
    "GPU-Cluster": True,
}
# https://learn.microsoft.com/azure/virtual-machines/sizes/retirement/retired-sizes-list
SIZES = {
    "Standard_NC6": True,
    "STANDARD_NC24R": True,
    "Standard_NC6_Promo": True,
    "standard_nc12s_v2": True,
    "Standard_NC24rs_v3": True,
    "Standard_ND6s": True,
    "Standard_NV12": True,
    "Standard_NV24s_v3": True,
    "Standard_HB60rs": True,
    "Standard_HB120-64rs_v3": False,
    "Standard_NC4as_T4_v3": False,
    "Standard_NC24ads_A100_v4": False,
    "Standard_ND96isr_H200_v5": False,
    "Standard_ND40rs_v2": False,
    "Standard_D2s_v3": False,
}


def taken(door: Callable[[], Any]) -> bool:
    """Return whether an entrance accepts the value."""
    try:
        return not list(door() or ())
    except (CliError, BadSetting, ArmError):
        return False


def routes(tmp_path: Path, route: str) -> None:
    """Read a routes file with this route."""
    file = tmp_path / "routes.yaml"
    file.write_text(f"routes: {{mnist: {{trainer: mnist, {route}}}}}")
    routes_file.load(file, ROOT / "trainers")


def job_faults(**fields: Any) -> list[Any]:
    """The faults of a job that has these fields."""
    layer = read_layer({"command": "x", "environment": "azureml:e:1", **fields})
    return [*over_limits(layer, layer.job, Limits()), *over_azures_limits(layer.job)]


@pytest.mark.parametrize(("name", "good"), NAMES.items())
def test_every_door_has_one_rule_for_the_name_of_a_cluster(tmp_path: Path, name: str, good: bool) -> None:
    """A cluster name that Azure ML would refuse is refused before any request to Azure ML, and no other name is."""
    assert bool(COMPUTE_NAME.fullmatch(name)) == good
    assert bool(re.fullmatch(refusals.NAMES[refusals.COMPUTES], name)) == good
    clusters = f"clusters: {{{name}: {{size: Standard_D2s_v3, max: 1}}}}"
    assert taken(lambda: clusters_file.read(clusters, "clusters.yaml") and ()) == good
    assert taken(lambda: job_faults(compute=f"azureml:{name}")) == good
    for route in (f"cluster: {name}", f"cluster: abc, clusters: [{name}]", f"cluster: abc, move_to: {name}"):
        assert taken(lambda route=route: routes(tmp_path, route)) == good, route  # type: ignore[misc]


@pytest.mark.parametrize("name", ["ab", "a" * 25])
def test_a_drop_can_not_name_such_a_cluster(tmp_path: Path, name: str) -> None:
    """Neither a drop's job nor a step of a pipeline can name such a cluster."""
    step = f"{{command: x, environment: 'azureml:e:1', compute: 'azureml:{name}'}}"
    for job in (f"compute: azureml:{name}", f"{{type: pipeline, jobs: {{one: {step}}}}}"):
        world = World(trainers_folder(tmp_path))
        world.complete("1.bin", job_file=job)
        (drop,) = [stored.value for stored in world.drops.rows.values()]
        assert drop.state == "rejected", drop
        assert "use 3 to 24 letters" in drop.why


@pytest.mark.parametrize(("size", "gone"), SIZES.items())
def test_every_door_knows_the_retired_sizes(tmp_path: Path, azd: Azd, size: str, gone: bool) -> None:
    """A retired VM size is refused wherever a size can be given, in any spelling."""
    assert ("has retired" in vm_sizes.refused_size(size, "Dedicated")) == gone
    assert bool(vm_size.why_retired(size)) == gone
    clusters = f"clusters: {{abc: {{size: {size}, max: 1}}}}"
    assert taken(lambda: clusters_file.read(clusters, "clusters.yaml") and ()) != gone
    assert taken(lambda: job_faults(resources={"instance_type": size})) != gone
    assert taken(lambda: routes(tmp_path, f"cluster: abc, gpus: 1, vm_size: {size}")) != gone
    if gone:
        azd.set(TRAINYARD_CLUSTER_VM_SIZE=size)
        done, _ = azd.hook("preprovision", READY)
        assert (done.returncode, f"Azure has retired VM size {size}." in done.stderr) == (1, True), done.stderr
        after = deploy.deploy(INFRA / "main.bicep", parameters(TRAINYARD_CLUSTER_VM_SIZE=size))
        assert any("has retired" in refusal for refusal in refusals.refusals(after))


# https://learn.microsoft.com/azure/machine-learning/resource-limits-capacity
TOO_MUCH = {
    "51 tags": {"tags": {f"t{n}": "" for n in range(51)}},
    "51 properties": {"properties": {f"p{n}": "" for n in range(51)}},
    "a key of 101": {"tags": {"k" * 101: ""}},
    "a value of 1,001": {"tags": {"t": "v" * 1001}},
    "a property of 1,001": {"properties": {"p": "v" * 1001}},
    "a description of 5,001": {"description": "d" * 5001},
}
JUST_RIGHT = {
    "tags": {f"t{n}": "v" * 1000 for n in range(MOST_ENTRIES - RESERVED - 1)} | {"k" * 100: ""},
    "properties": {f"p{n}": "v" * 1000 for n in range(MOST_ENTRIES - RESERVED)},
    "description": "d" * 5000,
}


@pytest.mark.parametrize("fields", TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_azure_ml_does_not_store_is_refused_by_both(fields: dict[str, Any]) -> None:
    """Trainyard refuses such values before a run is made, and so does the stand-in that MLClient and `az ml` use,
    as in Azure."""
    assert job_faults(**fields)
    with pytest.raises(ArmError, match="A field of the entity is over the size limit"):
        check_run(fields)


def test_what_trainyard_accepts_fits_with_its_own_entries() -> None:
    """The most that a job may have plus the most that Trainyard adds is within Azure ML's limit."""
    assert job_faults(**JUST_RIGHT) == []
    for group in ("tags", "properties"):
        ours = {f"trainyard.{n}": "" for n in range(RESERVED)}
        check_run({**JUST_RIGHT, group: {**JUST_RIGHT[group], **ours}})  # type: ignore[dict-item]


@pytest.mark.parametrize("spelling", ["LowPriority", "Lowpriority", "lowpriority", "LOWPRIORITY"])
def test_a_tier_in_any_spelling_is_one_tier(spelling: str) -> None:
    """Azure/azure-sdk-for-python's own docstring has LowPriority, and the SDK sends `Lowpriority`: the stand-in and
    the plan of clusters.yaml treat both as one tier."""
    inner = {
        "vmSize": "STANDARD_D2S_V3",
        "vmPriority": spelling,
        "scaleSettings": {"maxNodeCount": 2, "minNodeCount": 0},
    }
    body = respelled({"properties": {"computeType": "amlcompute", "properties": inner}})
    assert body["properties"]["properties"]["vmPriority"] == "LowPriority"
    existing = {"name": "abc", "properties": {"computeType": "AmlCompute", "properties": inner}}
    declared = clusters_file.read("clusters: {abc: {size: Standard_D2s_v3, max: 2}}", "clusters.yaml")
    assert clusters_file.plan(declared, {"abc": existing}) == []


def test_the_template_has_a_cluster_that_azure_takes() -> None:
    """The declaration of infra/ passes every rule of the emulated Resource Manager."""
    assert refusals.refusals(main()) == []

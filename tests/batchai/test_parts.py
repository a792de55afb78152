"""Kinds of documents, durations, mpirun lines, clusters and sizes."""

from __future__ import annotations

import io

import pytest
import yaml

from shared.jobs.batchai.cluster import read_cluster
from shared.jobs.batchai.document import kind_of
from shared.jobs.batchai.mpirun import parse_command
from shared.jobs.batchai.wall_clock import WEEK, read_wall_clock
from shared.jobs.vm_size import SIZES
from tests.batchai.documents import RECIPES, gloo, project, retinanet_cluster

pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")


def test_documents_are_told_apart_by_what_they_hold() -> None:
    """The fields identify a Batch AI job, cluster or project; an Azure ML job is none of them, whatever its
    properties."""
    assert {kind_of(document) for document in RECIPES.values()} == {"job"}
    assert [kind_of(retinanet_cluster()), kind_of({"vmPriority": "lowpriority"}), kind_of(project())] == [
        "cluster",
        "cluster",
        "project",
    ]
    azure_ml = {"command": "python x.py", "properties": {"nodeCount": "2"}, "inputs": {}}
    assert [kind_of(azure_ml), kind_of({"inputs": {"epochs": 2}}), kind_of([]), kind_of(None)] == ["", "", "", ""]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7.00:00:00", WEEK),
        ("7 days, 0:00:00", WEEK),
        ("1 day, 2:03:04", 93_784),
        ("P7D", WEEK),
        ("PT1H30M", 5400),
        ("01:30:00", 5400),
        ("1.12:00:00", 129_600),
        ("P", None),
        ("PT", None),
        ("", None),
        ("soon", None),
        ("00:00:00", None),
    ],
)
def test_durations_in_every_form(text: str, seconds: int | None) -> None:
    """.NET's, Python's and ISO 8601's durations are read; any other text is not a duration."""
    assert read_wall_clock(text) == seconds


@pytest.mark.parametrize(
    ("line", "rest", "count", "per_node"),
    [
        ("mpirun -np 8 --hostfile $AZ_BATCHAI_MPI_HOST_FILE python t.py --a 'b c'", "python t.py --a 'b c'", 8, 0),
        ("mpiexec.hydra -n 4 -ppn 2 ./a.out && echo done", "./a.out && echo done", 4, 2),
        ("/usr/bin/mpirun -x NCCL_DEBUG=INFO -x PATH -mca pml ob1 bash run.sh", "NCCL_DEBUG=INFO bash run.sh", 0, 0),
        ("cd x; A=1 mpirun --bind-to none -map-by slot -wdir /w python t.py", "cd x; A=1 cd /w && python t.py", 0, 0),
        ("mpirun -genv A 1 -env B=2 python t.py -np 3", "A=1 B=2 python t.py -np 3", 0, 0),
        ("horovodrun -np 2 -H a:1,b:1 python t.py", "python t.py", 2, 0),
    ],
)
def test_an_mpirun_line_is_taken_apart(line: str, rest: str, count: int, per_node: int) -> None:
    """The launcher and its options are removed, its counts are read, and the started command stays as it was
    written."""
    taken = parse_command(line)

    assert taken is not None
    assert (taken.line, taken.count, taken.per_node, taken.unsure) == (rest, count, per_node, [])


@pytest.mark.parametrize("line", ["python mpirun.py", "echo mpirun", "KERAS_BACKEND=cntk python x.py", "'", "a | b"])
def test_a_line_without_mpirun_is_left_alone(line: str) -> None:
    """Only a command that is a launcher is parsed."""
    assert parse_command(line) is None


def test_what_is_not_understood_of_a_launcher_is_told() -> None:
    """A count in a variable, several programs, or no program at all are reported and not guessed."""
    assert parse_command("mpirun -np $N python t.py").unsure == ["-np $N"]  # type: ignore[union-attr]
    assert parse_command("mpirun -np 1 a : -np 2 b").unsure == ["it starts several programs, separated by a colon"]  # type: ignore[union-attr]
    assert parse_command("mpirun -np 2; ls").unsure == ["it starts no program"]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [name for name, size in SIZES.items() if size.instead])
def test_a_retired_size_never_becomes_a_smaller_one(name: str) -> None:
    """The replacement has at least as many GPUs, as much memory per GPU, and as much main memory."""
    old, new = SIZES[name], SIZES[SIZES[name].instead]

    assert new.instead == ""
    assert new.gpus >= old.gpus
    assert new.gpu_memory >= old.gpu_memory
    assert new.memory >= old.memory


def test_a_size_that_is_not_known_stays_and_is_told() -> None:
    """A GPU size that is not in the table is kept and reported; other unknown sizes are kept silently."""
    for size, told in (("STANDARD_NC999_V9", True), ("Standard_D4_v3", False), ("Standard_NC8as_T4_v3", False)):
        compute, mounts = read_cluster({"vmSize": size, "scaleSettings": {"manual": {"targetNodeCount": 1}}}, "cpu")
        assert compute["size"] == size
        assert any("Trainyard does not know" in finding.meant for finding in mounts.report.findings) is told
    assert read_cluster({"vmSize": "standard_nc6"}, "cpu")[0]["size"] == "Standard_NC8as_T4_v3"


def test_a_cluster_becomes_a_compute_that_azure_ml_takes() -> None:
    """Size, nodes and priority are kept; password, set-up and image are in the report, and no secret is anywhere."""
    from azure.ai.ml import load_compute

    compute, mounts = read_cluster(retinanet_cluster(), "coco")
    text = yaml.safe_dump(compute) + repr(mounts.report)

    loaded = load_compute(io.StringIO(yaml.safe_dump(compute)))
    assert (loaded.name, loaded.size, loaded.min_instances, loaded.max_instances) == (
        "coco",
        "Standard_NC64as_T4_v3",
        0,
        2,
    )
    assert {f.field.rpartition(".")[2] for f in mounts.report.lossy} == {
        "vmSize", "manual", "userAccountSettings", "setupTask",
    }  # fmt: skip
    assert mounts.report.problems == []
    assert "xvpassword" not in text
    assert "storage account key" not in text


@pytest.mark.parametrize(
    ("scale", "nodes"),
    [
        ({"autoScale": {"minimumNodeCount": 1, "maximumNodeCount": 4, "initialNodeCount": 2}}, (1, 4)),
        ({"manual": {"targetNodeCount": 3}}, (0, 3)),
    ],
)
def test_both_ways_to_scale(scale: dict[str, object], nodes: tuple[int, int]) -> None:
    """Autoscale keeps its bounds; a fixed number becomes the maximum, because no cluster here keeps idle nodes."""
    compute, _ = read_cluster({"properties": {"vmSize": "Standard_D2_v3", "scaleSettings": scale}})

    assert (compute["min_instances"], compute["max_instances"]) == nodes


def test_placeholders_are_filled() -> None:
    """<AZURE_BATCHAI_STORAGE_ACCOUNT> becomes the account of the settings."""
    from shared.jobs.batchai.job import Beside, read_job

    job = read_job(gloo(), Beside(account="mine"))
    assert {use.mount.account for use in job.uses} == {"mine"}

"""Batch AI's published recipes become jobs that Azure ML accepts."""

from __future__ import annotations

from typing import Any

import pytest

from shared.adapters.azureml import sdk_job
from shared.jobs.batchai.job import Beside
from tests.batchai.documents import RECIPES, gloo, practitioner, project, retinanet, retinanet_cluster
from tests.batchai.translating import built, spec_of, translated

pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_becomes_a_job_that_azure_ml_takes(name: str) -> None:
    """Every published recipe is read without a fault, fits the builder's rules, and loads in azure-ai-ml."""
    job, read = translated(RECIPES[name])

    sent, problems = built(job)
    assert (read.report.problems, problems, sdk_job.problems(sent)) == ([], [], [])


@pytest.mark.parametrize(
    ("name", "nodes", "per_node", "line"),
    [
        ("Horovod", 2, 1, "python $AZ_BATCHAI_INPUT_SCRIPTS/tensorflow_mnist.py"),
        ("batchai_retinanet_horovod_coco", 2, 4, "python $AZ_BATCHAI_MOUNT_ROOT/afs_batchai/scripts/train.py --steps"),
        ("CNTK-GPU-Python-Distributed-Infiniband", 2, 4, "python $AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/cntk/TrainRes"),
        ("Caffe-GPU", 1, 1, "caffe train --solver=$AZ_BATCHAI_INPUT_SAMPLE/lenet_solver.prototxt"),
        ("Keras-DSVM", 1, 1, "KERAS_BACKEND=cntk python $AZ_BATCHAI_INPUT_SCRIPT/mnist_cnn.py"),
    ],
)
def test_the_total_of_processes_is_spread_over_the_nodes(name: str, nodes: int, per_node: int, line: str) -> None:
    """processCount, or mpirun's count, is the total; each node gets its share and runs the old line."""
    job, _ = translated(RECIPES[name])

    assert job["resources"]["instance_count"] == nodes
    kind = "mpi" if name.startswith(("CNTK", "Caffe-")) else "pytorch"
    assert job["distribution"] == {"type": kind, "process_count_per_instance": per_node}
    assert spec_of(job)["lines"]["all"].startswith(line)


def test_intel_mpi_goes_and_what_it_set_stays() -> None:
    """If mpirun is in the middle of a line, the surrounding shell and the exported variables are kept."""
    line = spec_of(translated(RECIPES["Horovod-Infiniband-Benchmark"])[0])["lines"]["all"]

    assert line.startswith(
        "source /opt/intel/compilers_and_libraries_2017.4.196/linux/mpi/intel64/bin/mpivars.sh; cd $AZ"
    )
    assert "I_MPI_FABRICS=dapl I_MPI_DAPL_PROVIDER=ofa-v2-ib0 I_MPI_DYNAMIC_CONNECTION=0 python scripts/tf_cnn" in line
    assert "mpirun" not in line
    assert "$AZ_BATCH_HOST_LIST" not in line


def test_what_is_read_comes_in_and_what_is_written_stays_with_the_run() -> None:
    """A mount that is read becomes an input; a folder that the line writes to becomes the run's own."""
    job, _ = translated(practitioner(), Beside(project=project(blobContainerName="lake")))
    mounts = {mount["path"]: mount for mount in spec_of(job)["mounts"]}

    assert mounts["datalake"]["writes"] == ["models"]
    assert job["inputs"]["datalake"]["mode"] == "ro_mount"
    assert mounts["logs"]["from"] == "logs"
    assert job["outputs"]["mounts"]["mode"] == "rw_mount"


def test_a_script_is_laid_where_the_line_names_it() -> None:
    """A script may be named by its bare name or through an input directory; the mount that held it is then no
    longer needed."""
    job, _ = translated(RECIPES["TensorFlow-GPU"], Beside(files={"convolutional.py": "x", "other.py": "y"}))

    assert spec_of(job)["mounts"][0]["files"] == {"tensorflow_samples/convolutional.py": "x"}
    assert "inputs" not in job
    assert translated(gloo(), Beside(files={"../x/y.py": ""}))[1].report.problems[0].path == "files.../x/y.py"


def test_a_mount_that_only_takes_logs_is_no_input() -> None:
    """A mount that only receives logs may no longer exist, and nothing reads it."""
    assert list(translated(gloo())[0]["inputs"]) == ["scripts"]


def test_a_cluster_says_what_its_mounts_are() -> None:
    """With the cluster.json, the mounts of a job are known; without it, the report says that the document does not
    define them."""
    _, alone = translated(retinanet())
    _, together = translated(retinanet(), Beside(cluster=retinanet_cluster()))

    assert any("this document does not say which" in finding.meant for finding in alone.report.lossy)
    assert not any("this document does not say which" in finding.meant for finding in together.report.lossy)
    assert {use.mount.name for use in together.uses} == {"batchaicoco", "coco"}


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"secrets": [{"name": "TOKEN", "value": "hunter2"}]}, "properties.secrets[0]", "Not set"),
        ({"schedulingPriority": "high"}, "properties.schedulingPriority", "First come"),
        ({"containerSettings": None}, "properties.containerSettings", "trainers"),
        ({"constraints": {"maxWallClockTime": "2.00:00:00"}}, "properties.constraints.maxWallClockTime", "86400"),
        ({"mountVolumes": {"fileServers": [{"fileServer": {"id": "/x"}, "relativeMountPath": "nfs"}]}},
         "properties.mountVolumes.fileServers[0].fileServer", "Not mounted"),
        ({"mountVolumes": {"unmanagedFileSystems": [{"mountCommand": "mount x", "relativeMountPath": "u"}]}},
         "properties.mountVolumes.unmanagedFileSystems[0].mountCommand", "Not mounted"),
        ({"typo": 1}, "properties.typo", "Ignored"),
    ],
)  # fmt: skip
def test_what_has_no_equivalent_is_in_the_report(change: dict[str, Any], field: str, words: str) -> None:
    """The report names each field that the job can't have, and its replacement."""
    _, job = translated(gloo(**change))

    found = {finding.field: finding.instead for finding in job.report.lossy}
    assert words in found[field]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"pyTorchSettings": {"pythonScriptFilePath": "x.py", "processCount": 3}},
            "must be a multiple of nodeCount, 2",
        ),
        ({"pyTorchSettings": None}, "must have exactly one of pyTorchSettings"),
        ({"chainerSettings": {"pythonScriptFilePath": "x.py"}}, "it has pyTorchSettings, chainerSettings"),
        ({"constraints": {"maxWallClockTime": "soon"}}, "is 'soon'; write it like 1.12:00:00"),
        ({"nodeCount": "[parameters('n')]"}, "an expression of an ARM template"),
        ({"mountVolumes": {"azureFileShares": [{"azureFileUrl": "https://a/b", "relativeMountPath": "../x"}]}}, "'..'"),
    ],
)
def test_what_can_not_be_is_refused_with_its_place(change: dict[str, Any], why: str) -> None:
    """A document that can't become a job is refused with the field and the valid values."""
    _, job = translated(gloo(**change))

    assert any(why in problem.message for problem in job.report.problems), job.report.problems


def test_backends_are_read_in_any_case() -> None:
    """The schema has Gloo and the recipe gloo; backends that PyTorch has dropped become gloo, and are reported."""
    settings = {"pythonScriptFilePath": "x.py"}
    backends = {
        given: spec_of(translated(gloo(pyTorchSettings={**settings, "communicationBackend": given}))[0])["backend"]
        for given in ("Gloo", "gloo", "NCCL", "TCP", "Mpi")
    }

    assert backends == {"Gloo": "gloo", "gloo": "gloo", "NCCL": "nccl", "TCP": "gloo", "Mpi": "gloo"}


def test_a_world_size_that_does_not_fit_is_told() -> None:
    """A literal --world-size other than the number of processes would wait for ever, so the report says so."""
    document = gloo()
    document["properties"]["nodeCount"] = 4

    assert "told that there are 2 processes" in translated(document)[1].report.lossy[0].meant
    for number, told in (("4", False), ("04", False), ("9" * 5000, True), ("0", True)):
        document["properties"]["pyTorchSettings"]["commandLineArgs"] = f"--world-size {number}"
        meant = [finding.meant for finding in translated(document)[1].report.lossy]
        assert any("The script is told" in text for text in meant) is told


@pytest.mark.parametrize(
    ("image", "chosen", "environment"),
    [
        ("pytorch/pytorch:0.4_cuda9_cudnn7", "", "azureml:trainyard@latest"),
        ("pytorch/pytorch:2.1-cuda11.8", "", {"image": "pytorch/pytorch:2.1-cuda11.8"}),
        ("microsoft/cntk:2.1-cuda8.0", "", {"image": "microsoft/cntk:2.1-cuda8.0"}),
        ("x/y:1", "azureml:mine:2", "azureml:mine:2"),
        ("x/y:1", "z:3", {"image": "z:3"}),
    ],
)
def test_the_image_is_kept_unless_todays_gpus_are_too_new_for_it(image: str, chosen: str, environment: object) -> None:
    """A PyTorch with CUDA 9 becomes the trainers' environment; any other image stays, and the report mentions CUDA."""
    settings = {"imageSourceRegistry": {"image": image, "serverUrl": ""}}
    job, read = translated(gloo(containerSettings=settings), Beside(environment=chosen))

    assert job["environment"] == environment
    assert any("CUDA" in finding.meant for finding in read.report.lossy) == ("cuda8" in image or "cuda9" in image)


def test_an_answer_of_the_service_is_a_job_too() -> None:
    """`az batchai job show` prints the fields without `properties`, with nulls and with the service's own fields."""
    shown = {**gloo()["properties"], "caffeSettings": None, "executionState": "running", "name": "distributed_pytorch"}

    job, read = translated(shown)
    assert (read.report.problems, [f.field.rpartition(".")[2] for f in read.report.lossy]) == ([], ["image"])
    assert job["resources"] == {"instance_count": 2}


def test_horovod_by_mpirun_loses_as_much_as_by_its_own_settings() -> None:
    """A line, preparation or script that names Horovod loses its MPI; a script of torch.distributed loses nothing."""
    line = {"commandLine": "mpirun -np 4 python $AZ_BATCHAI_MOUNT_ROOT/x/train.py"}
    document: dict[str, Any] = {"properties": {"nodeCount": 2, "customToolkitSettings": line}}
    beside = [Beside(files={"train.py": "import torch"}), Beside(files={"train.py": "import horovod.torch as hvd"})]
    told = [
        [f.meant for f in translated(document, each)[1].report.lossy if "Horovod" in f.meant] != [] for each in beside
    ]
    assert told == [False, True]


def test_an_experiment_gets_a_name_that_azure_ml_takes() -> None:
    """A space becomes a dash, and the report says so."""
    document = gloo()
    document["properties"]["experimentName"] = "ants and bees"
    job, read = translated(document)
    assert job["experiment_name"] == "ants-and-bees"
    assert "ants-and-bees" in next(f.instead for f in read.report.findings if "ants and bees" in f.meant)


def test_secrets_of_addresses_are_not_told() -> None:
    """Signatures and passwords in URLs appear in no report, input or image."""
    document = gloo()
    share = {"azureFileUrl": "https://a.file.core.windows.net/share?sv=1&sig=SECRET", "relativeMountPath": "s"}
    document["properties"]["mountVolumes"] = {"azureFileShares": [share]}
    document["properties"]["containerSettings"] = {
        "imageSourceRegistry": {"image": "x", "serverUrl": "https://me:SECRET@registry.io"}
    }
    document["properties"]["jobPreparation"] = {"commandLine": "horovod https://a.blob/x?sig=SECRET"}
    job, read = translated(document)
    assert "SECRET" not in str(read.report)
    assert "SECRET" not in str({**job, "environment_variables": {}})
    assert job["environment"]["image"] == "registry.io/x"

"""A command whose torchruns on several nodes do not know each other is refused before anything starts."""

import pytest

from shared.jobs.build import build
from shared.jobs.limits import Limits
from shared.jobs.order import JobOrder, Values
from shared.jobs.readers.azureml import read_layer
from shared.jobs.spec import JobSpec


def problems(command: str, **more: object) -> list[str]:
    """Return the codes of this job's problems on two nodes."""
    job = {"command": command, "environment": "azureml:e:1", "compute": "azureml:cpu", "experiment_name": "e"}
    written = read_layer({**job, "resources": {"instance_count": 2}, **more})
    return [
        problem.code for problem in build(JobOrder("r", "t", JobSpec(), Limits(max_nodes=2), written=written)).problems
    ]


@pytest.mark.parametrize(
    "command",
    [
        "torchrun train.py",
        "pip install -e . && torchrun --nproc-per-node 4 train.py",
        "/opt/bin/torchrun train.py",
        "python -m torch.distributed.run train.py",
        "python -m torch.distributed.launch train.py",
        "accelerate launch --num_machines 2 train.py",
    ],
)
def test_torchrun_needs_to_know_the_other_nodes(command: str) -> None:
    """On several nodes without a distribution, each torchrun would train alone."""
    assert problems(command) == ["no_distribution"]


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("python train.py", {}),
        ("python torchrun_notes.py", {}),
        ("torchrun train.py", {"distribution": {"type": "pytorch"}}),
        ("torchrun train.py", {"resources": {"instance_count": 1}}),
        ("torchrun --rdzv-endpoint $AZ_BATCH_MASTER_NODE train.py", {}),
        ("torchrun --master_addr $HEAD train.py", {}),
        ("accelerate launch --main_process_ip $HEAD train.py", {}),
        ("accelerate config && python train.py", {}),
        ("torchrun train.py", {"environment_variables": {"PET_RDZV_ENDPOINT": "head:1"}}),
    ],
)
def test_a_command_that_meets_itself_is_let_through(command: str, more: dict[str, object]) -> None:
    """A command is accepted with a distribution, on one node, with its own rendezvous, or without torchrun."""
    assert problems(command, **more) == []


@pytest.mark.parametrize(("distribution", "codes"), [({}, ["no_distribution"]), ({"type": "pytorch"}, [])])
def test_a_step_of_a_pipeline_is_a_job_too(distribution: dict[str, str], codes: list[str]) -> None:
    """A step on two nodes whose torchruns would train alone is refused before the pipeline starts."""
    step: dict[str, object] = {"type": "command", "command": "torchrun train.py", "environment": "azureml:e:1"}
    step |= {"resources": {"instance_count": 2}, **({"distribution": distribution} if distribution else {})}
    written = read_layer({"type": "pipeline", "compute": "cpu", "jobs": {"train": step}})
    order = JobOrder("r", "t", JobSpec(), Limits(max_nodes=2), written=written, defaults=Values("e"))
    assert [problem.code for problem in build(order).problems] == codes

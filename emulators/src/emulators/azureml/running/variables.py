"""The environment variables of a job's processes, as Azure ML sets them. No I/O."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emulators.azureml.bodies.job_body import JobSpec
from emulators.azureml.bodies.responses import metadata_address, tracking_path
from emulators.azureml.environments.builder import JobEnvironment
from emulators.azureml.kernel.config import Config
from emulators.azureml.kernel.identity import token
from emulators.azureml.kernel.models import Job

# The machine's variables that a program needs. A job does not get the control plane's own settings.
SYSTEM = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
WINDOWS = ("SYSTEMROOT", "COMSPEC", "PATHEXT", "USERPROFILE", "TEMP", "TMP")
INHERITED = frozenset((*SYSTEM, *WINDOWS, "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"))


@dataclass(frozen=True)
class Gang:
    """The values that one attempt's ranks share. `paths` has the values of the placeholders (`inputs.data` -> a
    path)."""

    node_ids: tuple[str, ...]
    ports: tuple[int, ...]  # free ports, one per process, the master's first
    paths: Mapping[str, str]
    environment: JobEnvironment  # its scripts go first on PATH, so `python` in a command is its interpreter
    service_url: str
    scratch: Path  # for temporary files, like a node's own disk; removed with the attempt


def environment(config: Config, job: Job, spec: JobSpec, gang: Gang, rank: int) -> dict[str, str]:
    """Return the environment variables of one rank. The job's own variables override every other variable."""
    inherited = {key: value for key, value in os.environ.items() if key in INHERITED}
    path = os.pathsep.join((str(gang.environment.scripts), os.environ.get("PATH", os.defpath)))
    node = spec.distribution.node_of(rank)
    return {
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // _together(spec))),
        **inherited,
        **dict.fromkeys(("TMPDIR",) if os.name == "posix" else ("TEMP", "TMP"), str(gang.scratch)),
        "PATH": path,
        "VIRTUAL_ENV": str(gang.environment.folder),
        "PYTHONUNBUFFERED": "1",  # so that a log grows line by line
        **_run(config, job, gang.service_url),
        **_tracking(config, job, gang.service_url),
        **_cluster(spec, gang, node, rank),
        **spec.distribution.variables(rank, gang.ports),
        **_paths(gang.paths),
        **gang.environment.variables,
        **config.node_environment,
        **spec.variables,
    }


def _together(spec: JobSpec) -> int:
    """Return the number of processes on this machine's cores: the job's processes, times the maximum nodes if
    torchrun joins several jobs."""
    most = spec.variables.get("PET_NNODES", "1").rpartition(":")[2]
    return spec.world_size * (int(most) if most.isdecimal() else 1)


def _run(config: Config, job: Job, service_url: str) -> dict[str, str]:
    return {
        "AZUREML_RUN_ID": job.name,
        "AZUREML_ROOT_RUN_ID": job.name,
        "AZUREML_RUN_TOKEN": token(service_url),
        "AZUREML_ARM_SUBSCRIPTION": config.subscription_id,
        "AZUREML_ARM_RESOURCEGROUP": config.resource_group,
        "AZUREML_ARM_WORKSPACE_NAME": config.workspace,
        "AZUREML_ARM_PROJECT_NAME": job.experiment,
        "AZUREML_EXPERIMENT_NAME": job.experiment,
        "AZUREML_EXPERIMENT_ID": config.guid("experiments", job.experiment),
        "AZUREML_WORKSPACE_ID": config.workspace_guid,
        "AZUREML_WORKSPACE_SCOPE": config.workspace_id,
        "AZUREML_SERVICE_ENDPOINT": service_url,
        "AZUREML_DISCOVERY_SERVICE_ENDPOINT": f"{service_url}/discovery",
        "AZUREML_CR_ATTEMPT": str(job.attempt),
    }


def _tracking(config: Config, job: Job, service_url: str) -> dict[str, str]:
    """Return the variables with which MLflow's client logs to the job's own run.

    Azure ML's address has the scheme azureml, which requires azureml-mlflow. This address works with MLflow alone and
    with azureml-mlflow.
    """
    return {
        "MLFLOW_TRACKING_URI": f"{service_url}{tracking_path(config.workspace_id)}",
        "MLFLOW_TRACKING_TOKEN": token(service_url, job.name),
        "MLFLOW_TRACKING_SERVER_CERT_PATH": str(config.bundle),
        "MLFLOW_RUN_ID": job.name,
        "MLFLOW_EXPERIMENT_NAME": job.experiment,
        "MLFLOW_DISABLE_TELEMETRY": "true",  # telemetry would need a network
    }


def _cluster(spec: JobSpec, gang: Gang, node: int, rank: int) -> dict[str, str]:
    return {
        "AZUREML_NODE_COUNT": str(spec.nodes),
        "AZUREML_CR_NODE_RANK": str(node),
        "AZUREML_PROCESS_NAME": f"rank_{rank}",
        "AZ_BATCHAI_CLUSTER_NAME": spec.cluster,
        "AZ_BATCHAI_TASK_INDEX": str(node),
        "AZ_BATCHAI_JOB_MASTER_NODE_IP": "127.0.0.1",
        "AZ_BATCH_NODE_ID": gang.node_ids[node],
        "NODE_METADATA_ENDPOINT": metadata_address(gang.service_url, gang.node_ids[node]),
        "AZ_BATCH_MASTER_NODE": f"127.0.0.1:{gang.ports[0]}",
        "AZ_BATCH_HOST_LIST": ",".join(["127.0.0.1"] * spec.nodes),
        "AZ_BATCH_IS_CURRENT_NODE_MASTER": "true" if node == 0 else "false",
        "NODE_RANK": str(node),
    }


def _paths(paths: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of inputs and outputs as the variables that jobs may use instead of placeholders."""
    named = {}
    for key, value in paths.items():
        group, _, name = key.partition(".")
        named[f"AZURE_ML_{group.upper().removesuffix('S')}_{name}"] = value
        if group == "outputs":
            named[f"AZUREML_DATAREFERENCE_{name}"] = value
    return named

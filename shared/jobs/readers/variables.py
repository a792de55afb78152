"""A job without the values of its environment variables, for proofs: people hand tokens to their jobs in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shared.jobs.spec import JobSpec

VARIABLES = ("environment_variables", "environmentVariables")  # of each step of a pipeline, as Azure ML spells them
NOT_RECORDED = "(not recorded)"
HARMLESS = frozenset(
    {
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
        *("CUBLAS_WORKSPACE_CONFIG", "NCCL_DEBUG", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME"),
        *("GLOO_SOCKET_IFNAME", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONPATH", "TOKENIZERS_PARALLELISM"),
        *("HF_HUB_OFFLINE", "TZ", "LANG", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_RDZV_ID", "TRAINYARD_GPUS"),
    }
)


def without_values(job: JobSpec) -> JobSpec:
    """Return the job with the names of all its environment variables, and the values of the harmless ones alone."""
    return replace(job, variables=_hidden(job.variables), rest=_walked(job.rest))


def _hidden(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if name in HARMLESS else NOT_RECORDED for name, value in variables.items()}


def _walked(document: Any) -> Any:
    if isinstance(document, list):
        return [_walked(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {
        key: _hidden(value) if key in VARIABLES and isinstance(value, dict) else _walked(value)
        for key, value in document.items()
    }

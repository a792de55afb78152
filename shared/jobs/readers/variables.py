"""A job without the values of environment variables, because people hand tokens to jobs in environment variables.

Answers of the API and proofs show the job that these functions return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shared.jobs.spec import JobSpec

# Of a job and of each step of a pipeline, as Azure ML spells them; and Batch AI's, which are lists of name and value.
VARIABLES = ("environment_variables", "environmentVariables", "secrets")
NOT_RECORDED = "(not recorded)"
HARMLESS = frozenset(
    {
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
        *("CUBLAS_WORKSPACE_CONFIG", "NCCL_DEBUG", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME"),
        *("GLOO_SOCKET_IFNAME", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONPATH", "TOKENIZERS_PARALLELISM"),
        *("HF_HUB_OFFLINE", "TZ", "LANG", "TRAINYARD_GPUS", "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL"),
        *("PET_NNODES", "PET_NPROC_PER_NODE", "PET_RDZV_ID", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT"),
        "PET_MAX_RESTARTS",
    }
)


def without_values(job: JobSpec) -> JobSpec:
    """Return the job with the names of every environment variable, but only the harmless values."""
    return replace(job, variables=_hidden(job.variables), rest=document_without_values(job.rest))


def document_without_values(document: Any) -> Any:
    """Do what `without_values` does for a job as a document, for the document's steps, and for a request with a
    document.
    """
    if isinstance(document, list):
        return [document_without_values(each) for each in document]
    if not isinstance(document, Mapping):
        return document
    return {
        key: _hidden(value) if key in VARIABLES else document_without_values(value) for key, value in document.items()
    }


def _hidden(variables: Any) -> Any:
    if isinstance(variables, Mapping):
        return {name: value if name in HARMLESS else NOT_RECORDED for name, value in variables.items()}
    if isinstance(variables, list):
        return [_pair(each) if isinstance(each, Mapping) else NOT_RECORDED for each in variables]
    return NOT_RECORDED


def _pair(variable: Mapping[str, Any]) -> dict[str, Any]:
    """Return a variable of Batch AI, `{"name": ..., "value": ...}`, without the value."""
    is_harmless = variable.get("name") in HARMLESS
    return {key: value if key == "name" or is_harmless else NOT_RECORDED for key, value in variable.items()}

"""Translate Azure ML's messages about failed jobs and allocations into codes. Other modules use only the codes.

Each rule has a message as Azure wrote it and the place where it was published. tests/shared/adapters checks each rule
against its own message and against all others.

Azure ML reports a preemption and a script's own failure with the same error code, UserError, so the message decides. A
rule matches the start of a message, which Azure ML writes; a script's output comes later in the message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from shared.adapters.translation import without_secrets
from shared.clusters.model import AllocationCode, AllocationError
from shared.jobs.model import FailureCode, JobFailure

_BEGIN = r"(?:\w+Error: )?"  # the studio and pipelines prefix the message with the error's code
_COMPUTE = rf"{_BEGIN}AzureMLCompute job failed\.\s+"
_HEADING = re.compile(
    rf"{_BEGIN}AzureMLCompute job failed\.\s*"
)  # may be a line of its own; the next line gives the reason
_OUTPUT = " Error: "  # the end of the process's standard error follows
_LOG = re.compile(r"user_logs/([\w.-]+\.txt)")
_PACKAGE_GONE = re.compile(  # the wording of https://github.com/pypa/pip and https://github.com/astral-sh/uv
    r"(?:No matching distribution found for|there is no version of) ([\w.\[\]=<>!~-]+)"
    r"|([\w.-]+) was not found in the package registry"
)
_MESSAGE_LIMIT = 1000  # characters per allocation error


@dataclass(frozen=True)
class JobRule:
    code: FailureCode
    words: re.Pattern[str]
    example: str
    source: str


JOB_RULES = (
    JobRule(
        FailureCode.LOST_NODES,
        re.compile(rf"{_COMPUTE}PreemptionError: "),
        "AzureMLCompute job failed. PreemptionError: Nodes of this job got pre-empted. Check if the run has failed or "
        "restarted. Reason: Received pre-emption warning signal",
        "https://github.com/Azure/MachineLearningNotebooks/issues/1242",
    ),
    JobRule(
        FailureCode.LOST_NODES,
        re.compile(rf"{_COMPUTE}PreemptionError: "),
        "UserError: AzureMLCompute job failed. PreemptionError: Nodes of this job got pre-empted. Check if the run has "
        "failed or restarted. Reason: Received pre-emption warning signal.",
        "https://github.com/microsoft/MLOpsPython/issues/346",
    ),
    JobRule(
        FailureCode.PROCESS,
        re.compile(rf"{_BEGIN}Execution failed\. User process '[^']*' exited with status code (?P<exit_code>-?\d+)"),
        "Execution failed. User process 'python' exited with status code 2.\nError: usage: run_sweep_trial.py [-h]",
        "a troubleshooting page of a public repository that trains bank-churn models, on its sweep trials",
    ),
    JobRule(
        FailureCode.PROCESS,
        re.compile(rf"{_COMPUTE}JobFailed: Submitted script failed with a non-zero exit code"),
        "AzureMLCompute job failed.\nJobFailed: Submitted script failed with a non-zero exit code; see the driver log "
        "file for details.\n\tReason: Job failed with non-zero exit Code",
        "https://github.com/Azure/azure-cli-extensions/issues/3574",
    ),
    JobRule(
        FailureCode.IMAGE,
        re.compile(rf"{_COMPUTE}\w*UnauthorizedAccessError: Failed to pull Docker image"),
        "AzureMLCompute job failed.\nAggregatedUnauthorizedAccessError: Failed to pull Docker image "
        "registry.azurecr.io/my-pytorch. This error may occur because the compute could not authenticate with the "
        "Docker registry to pull the image.",
        "notes of a public repository on environments in Azure ML registries",
    ),
    JobRule(
        FailureCode.IMAGE,
        re.compile(rf"{_BEGIN}Image build failed\."),
        "Image build failed. Build log: https://acrtaskprodweu013.blob.core.windows.net/container/logs/cb9u/rawtext.log",
        "https://github.com/Azure/azure-sdk-for-python/issues/41536",
    ),
    JobRule(
        FailureCode.CLUSTER,
        re.compile(rf"{_BEGIN}AzureMLCompute cluster \S+ is in failed state"),
        "AzureMLCompute cluster gpu-cluster is in failed state and thus not ready for runs",
        "https://github.com/Azure/MachineLearningNotebooks/issues/642",
    ),
)


def failure_of(message: str) -> JobFailure:
    """Return the failure that this message of Azure ML reports. A message without a rule is OTHER."""
    log, gone = _LOG.search(message), _PACKAGE_GONE.search(message)
    package = gone[1] or gone[2] if gone else ""
    failure = JobFailure(summary=summary(message), log=log[1] if log else "", package=package)
    for rule in JOB_RULES:
        if match := rule.words.match(message.strip()):
            exit_code = int(match.groupdict().get("exit_code") or 0)
            return replace(failure, code=rule.code, exit_code=exit_code)
    return failure


def summary(message: str) -> str:
    """Return the message on one line, without the process's standard error, which the log shows better."""
    first, _, rest = message.strip().partition("\n")
    line = f"{first} {rest.splitlines()[0]}" if rest and _HEADING.fullmatch(first) else first
    return f"{line} ".partition(_OUTPUT)[0].strip()


@dataclass(frozen=True)
class AllocationRule:
    """`words` captures the family of machines, the cores in use and the cores allowed, if the message names them."""

    code: AllocationCode
    words: re.Pattern[str]
    example: str
    source: str


_APPROVED = re.compile(
    r".*?exceeding approved (?P<family>[\w ]+?) Cores quota"
    r"(?:.*?Current Limit: (?P<limit>\d+))?(?:.*?Current Usage: (?P<used>\d+))?",
    re.DOTALL,
)
_OF_A_FAMILY = re.compile(r".*?has a (?:total|(?P<family>[\w ]+?) family) vCPU quota of (?P<limit>\d+)")
ALLOCATION_RULES = (
    AllocationRule(
        AllocationCode.QUOTA,
        _APPROVED,
        "QuotaExceeded: Operation could not be completed as it results in exceeding approved standardFFamily Cores "
        "quota. Additional details - Deployment Model: Resource Manager, Location: eastus2, Current Limit: 250, "
        "Current Usage: 144, Additional Required: 120, (Minimum) New Limit Required: 264.",
        "https://github.com/databricks-industry-solutions/pixels/issues/24",
    ),
    AllocationRule(
        AllocationCode.QUOTA,
        _APPROVED,
        "Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional "
        "details - Deployment Model: Resource Manager, Location: westeurope, Current Limit: 10, Current Usage: 7, "
        "Additional Required: 12, (Minimum) New Limit Required: 19.",
        "https://github.com/Azure/azureml-sdk-for-r/issues/267",
    ),
    AllocationRule(
        AllocationCode.QUOTA,
        re.compile(
            r".*?quota limits of (?:(?P<family>[\w ]+?) )?Cores?\. "
            r"Maximum allowed: (?P<limit>\d+), Current in use: (?P<used>\d+)"
        ),
        "OperationNotAllowed: Operation results in exceeding quota limits of Core. Maximum allowed: 20, Current in use:"
        " 20, Additional requested: 2.",
        "https://github.com/hashicorp/terraform/issues/10056",
    ),
    AllocationRule(
        AllocationCode.QUOTA,
        _OF_A_FAMILY,
        "JobNodeCountExceedsCoreQuota: The specified subscription has a Standard DSv2 family vCPU quota of 2 and is "
        "less than the requested job node count of 2 which maps to 4 vCPUs.",
        "https://github.com/MicrosoftLearning/mslearn-dp100/issues/35",
    ),
    AllocationRule(
        AllocationCode.QUOTA,
        _OF_A_FAMILY,
        "BadRequest: The specified subscription has a total vCPU quota of 0 and cannot accomodate for at least 1 "
        "requested managed compute node which maps to 2 vCPUs.",
        "https://github.com/Azure/mlops-v2/issues/81",
    ),
    AllocationRule(
        AllocationCode.QUOTA,
        re.compile(r"\w*Quota(?:Exceeded|Reached) ?: "),
        "ClusterQuotaReached : Operation results in exceeding quota limits of Microsoft.BatchAI/clusters. Maximum "
        "allowed: 0, Current in use: 0.",
        "https://github.com/MicrosoftDocs/azure-docs/issues/17809",
    ),
    AllocationRule(
        AllocationCode.CAPACITY,
        re.compile(r"AllocationFailed: "),
        "AllocationFailed: Desired number of low priority nodes could not be allocated",
        "https://github.com/Azure/doAzureParallel/issues/349",
    ),
    AllocationRule(
        AllocationCode.CAPACITY,
        re.compile(r".*?Allocation failed\. We do not have sufficient capacity"),
        "Provisioning failed. Allocation failed. We do not have sufficient capacity for the requested VM size in this "
        "region. Read more about improving likelihood of allocation success at http://aka.ms/allocation-guidance.",
        "https://github.com/Azure/AKS/issues/1272",
    ),
)


def allocation_error(code: str, message: str) -> AllocationError:
    """Return the allocation error for Azure's code and message. A message without a rule is OTHER."""
    words = without_secrets(f"{code}: {message}".strip(": "))[:_MESSAGE_LIMIT]
    for rule in ALLOCATION_RULES:
        if match := rule.words.match(words):
            found = match.groupdict()
            used, limit = found.get("used"), found.get("limit")
            family = found.get("family") or ""
            return AllocationError(words, rule.code, family, int(used) if used else None, int(limit) if limit else None)
    return AllocationError(words)


def allocation_errors(errors: Any) -> tuple[AllocationError, ...]:
    """Return the allocation errors in Azure ML's list of error objects."""
    bodies = [error.get("error") or error for error in errors or [] if isinstance(error, dict)]
    return tuple(allocation_error(str(body.get("code") or ""), str(body.get("message") or "")) for body in bodies)

"""Azure ML's limits for a run's records, a run's lifetime, and the files of an image. No I/O.

The numbers are from https://learn.microsoft.com/azure/machine-learning/resource-limits-capacity. The page lacks the
number of parameters, which https://github.com/Azure/azure-sdk-for-python/issues/35685 reports. The messages are from
this issue, from https://github.com/mlflow/mlflow/issues/11462, and from
https://github.com/Azure/MachineLearningNotebooks/issues/1605, which also names a field, RunDto.Properties.Value/Length.
The other field names are formed in the same way, because no published message has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized

from emulators.azureml.kernel.errors import ArmError
from emulators.azureml.kernel.models import Json

MOST_ENTRIES = 50  # tags, and properties, of a run
KEY_LENGTH, VALUE_LENGTH, DESCRIPTION_LENGTH = 100, 1000, 5000  # characters
MOST_METRICS, MOST_PARAMETERS = 50, 200  # names, of a run
CONTEXT_FILES, CONTEXT_BYTES = 100, 1_000_000  # of a Docker build context
# The maximum lifetime of a job, "the duration between when a run starts and finishes":
# https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas
JOB_DAYS, LOW_PRIORITY_JOB_DAYS = 21, 7


class OverLimit(ArmError):
    """A field is too large. Resource Manager's and MLflow's routes use different values of `code`."""

    def __init__(self, field: str, limit: int, size: int, code: str = "ValidationError") -> None:
        super().__init__(
            400,
            code,
            f"A field of the entity is over the size limit. FieldName={field}, Limit={limit}, Size={size}. See "
            "https://aka.ms/azure-machine-learning-limits for service limits documentation.",
        )


def check_run(properties: Json) -> None:
    """Check the tags, properties and description of a run. Raises OverLimit."""
    _check("RunDto.Description/Length", DESCRIPTION_LENGTH, properties.get("description") or "")
    check_entries("RunDto.Tags", properties.get("tags") or {})
    check_entries("RunDto.Properties", properties.get("properties") or {})


def check_entries(field: str, entries: Mapping[str, str | None], code: str = "ValidationError") -> None:
    """Check a map of tags or of properties. Raises OverLimit."""
    _check(f"{field}/Count", MOST_ENTRIES, entries, code)
    for key, value in entries.items():
        _check(f"{field}.Key/Length", KEY_LENGTH, key, code)
        _check(f"{field}.Value/Length", VALUE_LENGTH, value or "", code)


def job_days(low_priority: bool) -> int:
    """Return the number of days after which Azure ML ends a job on nodes of this tier."""
    return LOW_PRIORITY_JOB_DAYS if low_priority else JOB_DAYS


def _check(field: str, limit: int, value: Sized, code: str = "ValidationError") -> None:
    if len(value) > limit:
        raise OverLimit(field, limit, len(value), code)

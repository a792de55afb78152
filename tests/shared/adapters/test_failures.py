"""Azure's own messages, each with its source, are mapped to the failure codes on which Trainyard decides."""

from __future__ import annotations

import pytest

from shared.adapters.azureml.failures import (
    ALLOCATION_RULES,
    JOB_RULES,
    AllocationRule,
    JobRule,
    allocation_error,
    failure_of,
)
from shared.clusters.model import AllocationCode, AllocationError
from shared.jobs.model import FailureCode


@pytest.mark.parametrize("rule", JOB_RULES, ids=lambda rule: rule.source)
def test_each_message_about_a_job_has_its_code(rule: JobRule) -> None:
    """The message quoted in a rule's source gives the rule's code, also behind the prefix that pipelines add."""
    assert failure_of(rule.example).code is rule.code
    assert failure_of(f"UserError: {rule.example.removeprefix('UserError: ')}").code is rule.code


@pytest.mark.parametrize("rule", ALLOCATION_RULES, ids=lambda rule: rule.source)
def test_each_message_about_an_allocation_has_its_code(rule: AllocationRule) -> None:
    """The message quoted in a rule's source gives the rule's code, and its text is kept unchanged."""
    error = allocation_error("", rule.example)
    assert (error.code, error.words) == (rule.code, rule.example)


@pytest.mark.parametrize(
    "message",
    [
        "Execution failed. User process 'python' exited with status code 1. Error: PreemptionError: mine",
        "Execution failed. User process 'python' exited with status code 1. Error: AzureMLCompute job failed. "
        "PreemptionError: Nodes of this job got pre-empted.",
        "AzureMLCompute job failed.\nJobFailed: Submitted script failed with a non-zero exit code; see the driver log "
        "file for details.\n\tReason: PreemptionError: Nodes of this job got pre-empted.",
        '{"code": "PreemptionError"}',
        "",
    ],
)
def test_a_script_can_not_claim_that_its_nodes_were_taken(message: str) -> None:
    """A preemption is recognized only at the beginning of a message, which Azure ML writes; a script's output comes
    later."""
    assert failure_of(message).code is not FailureCode.LOST_NODES


def test_a_process_tells_its_exit_code_and_log() -> None:
    """The exit code and the log's name come from Azure ML's sentence; the summary ends before the process's own
    output."""
    sentence = (
        "Execution failed. User process 'python' exited with status code 2. Please check log file "
        "'user_logs/std_log_process_1.txt' for error details."
    )
    failure = failure_of(f"{sentence} Error: Traceback\nexited with status code 9")
    assert (failure.code, failure.exit_code, failure.log) == (FailureCode.PROCESS, 2, "std_log_process_1.txt")
    assert failure.summary == sentence


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (ALLOCATION_RULES[0].example, ("standardFFamily", 144, 250)),
        (ALLOCATION_RULES[1].example, ("Total Regional", 7, 10)),
        (ALLOCATION_RULES[2].example, ("", 20, 20)),
        (ALLOCATION_RULES[3].example, ("Standard DSv2", None, 2)),
        (ALLOCATION_RULES[4].example, ("", None, 0)),
    ],
)
def test_a_quotas_numbers_are_read(message: str, error: tuple[str, int | None, int | None]) -> None:
    """The family, the cores in use and the allowed cores are read where the message has them."""
    found = allocation_error("", message)
    assert (found.family, found.used, found.limit) == error


def test_the_summary_says_why() -> None:
    """When a message's first line is only a heading, the summary includes the next line too."""
    (rule,) = (rule for rule in JOB_RULES if rule.example.startswith("AzureMLCompute job failed.\nJobFailed"))
    assert failure_of(rule.example).summary == (
        "AzureMLCompute job failed. JobFailed: Submitted script failed with a non-zero exit code; see the driver log "
        "file for details."
    )
    assert failure_of("AzureMLCompute job failed.").summary == "AzureMLCompute job failed."


def test_an_unknown_message_is_other() -> None:
    """An unknown message has the code `other` and stays readable."""
    assert failure_of("Something new.").code is FailureCode.OTHER
    assert failure_of("Something new.").summary == "Something new."
    assert allocation_error("New", "thing").code is AllocationCode.OTHER
    assert str(AllocationError("New: thing")) == "New: thing"

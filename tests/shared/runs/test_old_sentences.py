"""The previous version's rows have sentences where this version has fields; the facts are still read from them."""

from __future__ import annotations

from datetime import UTC, datetime

from shared.api import records
from shared.elastic.decide import judge_members
from shared.elastic.model import Elastic, Member, elastic_of
from shared.jobs.model import JobFailure, JobState, JobStatus
from shared.kernel.parsing import convert
from shared.runs import old_sentences
from shared.runs.codes import CancelCode, Deed
from shared.runs.intake.from_job import run_of
from shared.runs.model import Audited, Moment, RunState
from tests.fakes.parts import changed
from tests.shared.runs.test_kinds_of_runs import JOBS

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)


def test_rows_without_the_new_fields_are_read() -> None:
    """Moments, members and audit entries are arrays in a row; the previous version's arrays are shorter."""
    assert convert(["running", AT.isoformat(), "why"], Moment).failure is None
    assert convert([0, 1, "failed", AT.isoformat(), "why"], Member).failure is None
    assert convert(["evicted member 0 (r-m0-1)", "ann", AT.isoformat()], Audited).deed is Deed.NONE


def test_a_code_of_a_later_version_is_other() -> None:
    """A row of a later version stops no list: its unknown code is read as OTHER."""
    assert convert(["from_tomorrow", "words"], JobFailure).code == "other"
    assert CancelCode("from_tomorrow") is CancelCode.OTHER
    assert Deed("from_tomorrow") is Deed.OTHER


def test_bad_input_of_an_old_member_ends_the_run() -> None:
    """A member that failed for its input under the previous version is not replaced by this version."""
    run = changed(run_of("r", JOBS["elastic"], (1, 5), AT), state=RunState.RUNNING)
    first, second = elastic_of(run).members
    why = "Execution failed. User process 'python' exited with status code 2. Please check log file 'user_logs/x.txt'"
    failed = Member(0, 1, RunState.FAILED, AT, why)
    running = Member(1, 1, RunState.RUNNING, AT)
    run = run.having(Elastic(1, 5, AT.replace(year=2027), (failed, running)))
    plan = judge_members(run, {1: JobStatus(second.state, JobState.RUNNING, "Running")}, AT)
    assert (plan.to_cancel, plan.elastic.members[first.index].attempt) == ((running,), 1)


def test_what_else_the_version_before_said() -> None:
    """Who ended a trial, what was done to a run, and the log in a reason."""
    assert old_sentences.cancel_code("Stopped by its sweep: it is over.") is CancelCode.SWEEP
    assert old_sentences.cancel_code("Canceled as asked.") is CancelCode.NONE
    assert old_sentences.deed("tags: evicted member 1 (x)=1") is Deed.TAGS
    assert old_sentences.log_of("The job failed.\nstd_log.txt:\nValueError: x") == "ValueError: x"
    run = changed(run_of("r", JOBS[""], (0, 0), AT), audit=(Audited("evicted member 0 (r-m0-1)", "ann", AT),))
    assert records.run(run)["audit"][0]["deed"] == "evicted"

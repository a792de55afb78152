"""People's notes and tags on an existing run, each with author and time.

The texts are the users' own and affect nothing, with two exceptions: the tag that names a project, which can't be
changed, and the tag that sets the pattern of printed metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Impossible
from shared.kernel.person import Person
from shared.kernel.versioned import Stored
from shared.runs.codes import Deed
from shared.runs.model import Audited, Note, Run
from shared.runs.ports import RunPorts, Runs
from shared.runs.results import printed_metrics

MOST_NOTES = 20  # of at most 500 characters each, because lists hold copies of a run's row
MOST_TAGS = 15
MOST_AUDITED = 20  # the newest, of at most 300 characters each, for the same reason
LONGEST_AUDITED = 300
PROJECT = "project"  # chooses the budget that pays for the run, when the run is created


def add_note(runs: Runs, clock: Clock, name: str, text: str, by: Person) -> Run:
    """Add a note. A person's repeat of the latest note adds nothing."""

    def noted(run: Run) -> Run:
        last = run.people.notes[-1] if run.people.notes else None
        if last and (last.text, last.by, last.by_id) == (text, *by):
            return run
        if len(run.people.notes) >= MOST_NOTES:
            raise Impossible(f"Run {name} has {MOST_NOTES} notes, which is the maximum.", "too_many")
        notes = (*run.people.notes, Note(text, by.name, clock(), by.id))
        return replace(run, people=replace(run.people, notes=notes))

    return _written(runs, clock, name, noted)


def change_tags(ports: RunPorts, name: str, given: Mapping[str, str], removed: Sequence[str], by: Person) -> Run:
    """Set and remove tags. A repeat changes nothing and adds no audit entry."""
    if PROJECT in given or PROJECT in removed:
        raise Impossible(
            "The tag project decides which budget pays, and can't be changed after the run was created.",
            "bad_parameter",
        )
    printed_metrics.reader(given.get(printed_metrics.TAG, ""))

    def tagged(run: Run) -> Run:
        tags = {key: value for key, value in {**run.people.tags, **given}.items() if key not in removed}
        if len(tags) > MOST_TAGS:
            raise Impossible(
                f"A run has at most {MOST_TAGS} tags; with these {name} would have {len(tags)}.", "too_many"
            )
        if tags == run.people.tags:
            return run
        words = [f"{key}={value}" for key, value in sorted(tags.items()) if run.people.tags.get(key) != value]
        words += [f"without {key}" for key in sorted(run.people.tags.keys() - tags.keys())]
        audited = _audited(ports.clock, run, f"tags: {', '.join(words)}", by, Deed.TAGS)
        return replace(audited, people=replace(audited.people, tags=tags))

    return _written(ports.runs, ports.clock, name, tagged)


def note_deed(ports: RunPorts, name: str, what: str, by: Person, deed: Deed) -> Run:
    """Add a person's action to the run's audit."""
    return _written(ports.runs, ports.clock, name, lambda run: _audited(ports.clock, run, what, by, deed))


def _audited(clock: Clock, run: Run, what: str, by: Person, deed: Deed) -> Run:
    """The run with a person's action in its audit."""
    short = what if len(what) <= LONGEST_AUDITED else f"{what[: LONGEST_AUDITED - 3]}..."
    audit = (*run.people.audit, Audited(short, by.name, clock(), by.id, deed))[-MOST_AUDITED:]
    return replace(run, people=replace(run.people, audit=audit))


def _written(runs: Runs, clock: Clock, name: str, changed: Callable[[Run], Run]) -> Run:
    """Apply the change to the run's newest row, and write it."""

    def write(stored: Stored[Run]) -> Run:
        after = changed(stored.value)
        return after if after is stored.value else runs.update(stored, after).value

    return compare_and_set(clock, f"Run {name}", lambda: runs.get(name), write)

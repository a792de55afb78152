"""Elastic runs: the run consists of single-node jobs, its members, and continues while members come and go.

decide.py is the policy for the members and workload.py carries out the policy. deadlines.py says how the members of a
run with a deadline change their nodes, and limits.py checks the job of a new run. lagging.py finds members that do
nothing. reactions.py closes the rendezvous of a run that did not complete.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from shared.elastic import answers
from shared.elastic.lagging import lagging
from shared.elastic.model import KIND, Elastic
from shared.elastic.reactions import close_rendezvous
from shared.elastic.workload import ElasticJobs
from shared.kernel.parts import FeaturePart, View
from shared.runs import facts as runs
from shared.runs.features import Feature
from shared.runs.model import Run

SHOWN = Annotated[answers.ElasticAnswer | None, Meta(description="Null for a run that is one job.")]


def with_kind(run: Run) -> Run:
    """The run with its kind; older versions wrote no kind."""
    if run.asked.kind or run.feature(Elastic) is None:
        return run
    return replace(run, asked=replace(run.asked, kind=KIND))


FEATURE = Feature(
    parts=(FeaturePart("elastic", Elastic, view=View(SHOWN, answers.shown_members)),),
    workloads=(ElasticJobs(),),
    reactions={runs.RunEnded: (close_rendezvous,), runs.RunArchived: (close_rendezvous,)},
    mend=with_kind,
    ailments=lagging,
)

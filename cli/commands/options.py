"""The arguments and options of runs.py, and the arguments and options that several modules share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..files.job_form import ASSET_FORM, PLACE_SCHEME
from ..setup import tab_completion

Run = Annotated[
    str,
    Argument(
        metavar="RUN",
        help="Name of the run, or a unique prefix; @latest, mnist@latest, mnist@best:accuracy, churn@production.",
        autocompletion=tab_completion.runs,
    ),
]
RunOrModel = Annotated[
    str,
    Argument(
        metavar="RUN",
        help="A run, as for the other commands, or a model's version: churn@production, churn@4.",
        autocompletion=tab_completion.runs,
    ),
]
Runs = Annotated[
    list[str],
    Argument(metavar="RUN", help="Names of two or more runs, or of one sweep.", autocompletion=tab_completion.runs),
]
Where = Annotated[
    str, Option(metavar="CONDITION", help="Only runs that match this condition, such as 'lr<0.1 and accuracy>0.9'.")
]
Sort = Annotated[
    str, Option(metavar="NAME", help="Order by this parameter, metric or field; -NAME lists the greatest first.")
]
OfOwner = Annotated[
    str, Option("--owner", metavar="NAME", help="Only runs of this person: a name, or an object id of Entra ID.")
]
Mine = Annotated[bool, Option("--mine", help="Only yours.")]
Follow = Annotated[bool, Option("--follow", "-f", help="Show the phases and the log until the run is archived.")]
AccountUrl = Annotated[
    str,
    Option(
        "--account-url",
        metavar="URL",
        help="Storage account of a deployment: https://<account>.blob.core.windows.net. Needs the extra `drop`.",
    ),
]
Trainer = Annotated[
    str,
    Argument(
        metavar="WHAT",
        help="A trainer, such as mnist; a job file, such as job.yml; a folder, with --command.",
        autocompletion=tab_completion.trainers,
    ),
]
CodeCommand = Annotated[
    str, Option("--command", metavar="TEXT", help='What to run in the folder: "python train.py --data {data}".')
]
Env = Annotated[
    str,
    Option(
        metavar="PACKAGES",
        help=(
            "Packages that the folder's code needs: pandas,scikit-learn; requirements.txt; pyproject.toml; "
            f"a conda file; {ASSET_FORM}. Default: the file of this kind in the folder."
        ),
    ),
]
Distribution = Annotated[
    str,
    Option(
        metavar="KIND",
        help="How the processes of the folder's command find each other: pytorch, mpi, tensorflow or ray.",
    ),
]
Processes = Annotated[
    int | None,
    Option(
        min=1, metavar="N", help="How many processes of the command each node starts, with --distribution. Default: 1."
    ),
]
Save = Annotated[Path | None, Option(metavar="FILE", help="Also write the job of the folder to this file.")]
Template = Annotated[
    str,
    Option(
        metavar="NAME",
        help="A route whose job template to use, instead of a trainer.",
        autocompletion=tab_completion.routes,
    ),
]
JobFile = Annotated[
    Path | None, Option("--job", metavar="FILE", help="An Azure ML command job, YAML or JSON, instead of a trainer.")
]
Data = Annotated[
    str,
    Option(
        metavar="PATH",
        help=f"drops/<route>/<name> or mnist@latest, <datastore>/<path>, an {PLACE_SCHEME} path, or a folder here.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    Option(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        help="A parameter of the trainer, such as epochs=5. Repeat it for more; `submit TRAINER --help` shows them.",
    ),
]
FromRun = Annotated[
    str,
    Option(
        "--from",
        metavar="RUN",
        help="Start with the model of this completed run, instead of new weights.",
        autocompletion=tab_completion.runs,
    ),
]
Tags = Annotated[
    list[str] | None,
    Option("--tag", metavar="NAME=VALUE", help="A tag to find the run by, such as team=vision. Repeat it for more."),
]
Trials = Annotated[
    int | None,
    Option(
        min=1,
        max=1000,
        help="Run a sweep with this many trials, over parameters that are ranges (lr=0.001..0.1) or lists (bs=32,64).",
    ),
]
SweepMetric = Annotated[
    str, Option("--metric", metavar="NAME", help="For a sweep: the metric that decides which trial is best.")
]
Goal = Annotated[
    str, Option(metavar="GOAL", help="For a sweep: maximize or minimize. Default: as the name of the metric says.")
]
Stop = Annotated[str, Option(metavar="POLICY", help="For a sweep: stop bad trials early, by asha or median_stopping.")]
Budget = Annotated[float | None, Option(metavar="DOLLARS", help="For a sweep: what all trials together may cost.")]
AtOnce = Annotated[
    int | None, Option("--at-once", min=1, help="For a sweep: how many trials run at the same time. Default: 4.")
]
Sampling = Annotated[str, Option(metavar="NAME", help="For a sweep: bayesian (the default), random, sobol or grid.")]
Changes = Annotated[
    list[str] | None,
    Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter to change. Repeat it for more."),
]
Nodes = Annotated[
    str,
    Option(
        metavar="N|MIN:MAX", help="Number of nodes. A range makes an elastic run, which continues with fewer nodes."
    ),
]
Resubmissions = Annotated[
    int | None, Option(min=0, metavar="N", help="Number of jobs that may replace lost ones in an elastic run.")
]
DoneBy = Annotated[
    str,
    Option(
        metavar="WHEN",
        help="Finish by this time at the least cost, on low-priority and dedicated nodes: 18:00, or 2026-01-31T18:00.",
    ),
]
Within = Annotated[str, Option(metavar="TIME", help="Like --done-by, as a time from now: 90m, 6h, 2d.")]
Takes = Annotated[
    str,
    Option(
        metavar="TIME",
        help="How long the work takes on all nodes. Default: as long as the newest runs of the same kind.",
    ),
]
Cluster = Annotated[str, Option(metavar="NAME", help="The cluster to run on.", autocompletion=tab_completion.clusters)]
Experiment = Annotated[str, Option(metavar="NAME", help="Experiment, and first folder of the archive.")]
Timeout = Annotated[str, Option(metavar="TIME", help="Time limit of the job: seconds, or 90m, 2h, 1d.")]
Project = Annotated[
    str, Option(metavar="NAME", help="The project that pays. Default: the project of the route, or of the cluster.")
]
Key = Annotated[
    str,
    Option(
        metavar="TEXT", help="Idempotency key: a repeat with the same key returns the same run. Default: a new key."
    ),
]
DryRun = Annotated[
    bool,
    Option(
        "--dry-run",
        help="Only show what would run, its cost, and what keeps it from starting now. --json: the job.",
    ),
]
OfExperiment = Annotated[str, Option("--experiment", metavar="NAME", help="Only runs of this experiment.")]
OfCluster = Annotated[
    str, Option("--cluster", metavar="NAME", help="Only runs on this cluster.", autocompletion=tab_completion.clusters)
]
OfState = Annotated[
    str,
    Option(
        "--state",
        metavar="STATE",
        help="Only runs in this state: received, submitted, queued, running, completed, failed or canceled.",
    ),
]
Since = Annotated[
    str, Option(metavar="TIME", help="Only since this time: 90m, 2h or 7d ago, or a date such as 2026-01-31T12:00.")
]
Limit = Annotated[int, Option(min=1, metavar="N", help="Maximum number of rows.")]
AsAdvised = Annotated[
    bool,
    Option(
        "--as-advised",
        help="Change what the diagnosis of the failed run advises: parameters, the cluster, the time limit.",
    ),
]
RunOrDrop = Annotated[
    str,
    Argument(metavar="RUN|DROP", help="A run, or a drop as route/name.", autocompletion=tab_completion.runs_or_drops),
]
Metrics = Annotated[
    list[str] | None, Option("--name", "-n", metavar="NAME", help="Only this metric. Repeat it for more.")
]
WithPlots = Annotated[bool, Option("--plot", help="Also plot the curves of the first metrics.")]
KeepWarm = Annotated[
    str,
    Option("--keep-warm", metavar="TIME", help="Keep the nodes up for this long after the end of the run: 30m, 2h."),
]

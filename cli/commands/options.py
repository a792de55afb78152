"""The arguments and options of the commands, with the words of their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..setup import tab_completion

Run = Annotated[
    str,
    Argument(
        metavar="RUN",
        help="Name of the run or its beginning; @latest, mnist@latest, mnist@best:accuracy, churn@production.",
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
Files = Annotated[list[str], Argument(metavar="FILE", help="Images, or texts for bert.")]
PredictPicture = Annotated[
    Path | None, Option("--picture", metavar="FILE", help="Write the images with what was found in them to this .png.")
]
Runs = Annotated[
    list[str],
    Argument(metavar="RUN", help="Names of two or more runs, or of one sweep.", autocompletion=tab_completion.runs),
]
Where = Annotated[
    str, Option(metavar="CONDITION", help="Only runs of which this holds, such as 'lr<0.1 and accuracy>0.9'.")
]
Sort = Annotated[
    str, Option(metavar="NAME", help="Order by this parameter, metric or field; -NAME has the greatest first.")
]
OfOwner = Annotated[
    str, Option("--owner", metavar="NAME", help="Only of this person: a name, or an object id of Entra ID.")
]
Mine = Annotated[bool, Option("--mine", help="Only your own.")]
Follow = Annotated[bool, Option("--follow", "-f", help="Show phases and log until the run is archived.")]
AccountUrl = Annotated[
    str,
    Option(
        "--account-url",
        metavar="URL",
        help="Storage account of a deployment: https://<account>.blob.core.windows.net. Needs the extra `drop`.",
    ),
]

# admin
Queue = Annotated[str, Option(metavar="NAME", help="Only this queue; default: all.")]
SmokeCluster = Annotated[
    str,
    Option(
        "--cluster",
        metavar="NAME",
        help="Where the jobs run; it needs four nodes.",
        autocompletion=tab_completion.clusters,
    ),
]
SmokeRoute = Annotated[
    str,
    Option(
        "--route",
        metavar="NAME",
        help="Where the data are dropped; a route of mnist.",
        autocompletion=tab_completion.routes,
    ),
]
Patience = Annotated[float, Option(min=10, metavar="SECONDS", help="How long to wait for each run.")]
Markdown = Annotated[bool, Option("--markdown", help="Print the table to be pasted into an issue.")]
Count = Annotated[bool, Option("--dry-run", help="Only count.")]

# submit
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
        help="What the folder's code needs: pandas,scikit-learn; requirements.txt; a conda file; azureml:NAME:VERSION.",
    ),
]
Save = Annotated[Path | None, Option(metavar="FILE", help="Also write the folder's job down as this job file.")]
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
        help="drops/<route>/<name> or mnist@latest, <datastore>/<path>, an azureml:// path, or a folder here.",
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
        help="Begin with the model of this completed run, instead of new weights.",
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
        help="Make it a sweep of so many trials, over parameters that are ranges (lr=0.001..0.1) or lists (bs=32,64).",
    ),
]
SweepMetric = Annotated[str, Option("--metric", metavar="NAME", help="Of a sweep: the metric that says what is best.")]
Stop = Annotated[
    str, Option(metavar="POLICY", help="Of a sweep: end trials that do badly, by asha or median_stopping.")
]
Budget = Annotated[float | None, Option(metavar="DOLLARS", help="Of a sweep: what its trials may cost together.")]
AtOnce = Annotated[
    int | None, Option("--at-once", min=1, help="Of a sweep: how many trials run at a time. Default: 4.")
]
Sampling = Annotated[str, Option(metavar="NAME", help="Of a sweep: bayesian (the default), random, sobol or grid.")]
Changes = Annotated[
    list[str] | None,
    Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter that is to be different. Repeat it for more."),
]
Nodes = Annotated[
    str, Option(metavar="N|MIN:MAX", help="How many nodes; a range for an elastic trainer, which goes on with fewer.")
]
DropNodes = Annotated[int, Option("--nodes", min=0, metavar="N", help="How many nodes. Default: the route's.")]
Resubmissions = Annotated[
    int | None, Option(min=0, metavar="N", help="How many jobs may replace lost ones in an elastic run.")
]
DoneBy = Annotated[
    str,
    Option(
        metavar="WHEN",
        help="Done by then at the least cost, on low-priority and dedicated nodes: 18:00, or 2026-01-31T18:00.",
    ),
]
Within = Annotated[str, Option(metavar="TIME", help="The same, so long from now: 90m, 6h, 2d.")]
Takes = Annotated[
    str, Option(metavar="TIME", help="How long it takes on all its nodes; else as the newest runs of its kind took.")
]
Node = Annotated[int | None, Option(min=0, metavar="N", help="Which node, from 0. Default: one that runs, by chance.")]
Every = Annotated[str, Option(metavar="TIME", help="Again and again, with this pause, until the run is over: 60s, 5m.")]
Notice = Annotated[str, Option(metavar="TIME", help="Local cloud: announce it so long before, as Azure does: 30s.")]
Fails = Annotated[
    bool, Option("--fails", help="Local cloud: the job fails as preempted instead of going back to the queue.")
]
Trace = Annotated[
    str, Option(metavar="FILE", help="JSON of available nodes over time: [{time: seconds, nodes: N}, ...].")
]
Speed = Annotated[float, Option(min=0.001, metavar="N", help="So many times faster than the trace's own time.")]
ReplayPng = Annotated[
    Path | None,
    Option("--png", metavar="FILE", help="With a trace: draw nodes and loss over time. Needs the extra `png`."),
]
Cluster = Annotated[str, Option(metavar="NAME", help="The cluster to run on.", autocompletion=tab_completion.clusters)]
Experiment = Annotated[str, Option(metavar="NAME", help="Experiment, and first folder of the archive.")]
Timeout = Annotated[str, Option(metavar="TIME", help="Limit of the job: seconds, or 90m, 2h, 1d.")]
Project = Annotated[
    str, Option(metavar="NAME", help="The project that pays. Default: the route's, else the cluster's.")
]
Key = Annotated[
    str, Option(metavar="TEXT", help="Idempotency key: the same key again is the same run. Default: a new one.")
]
DryRun = Annotated[bool, Option("--dry-run", help="Only show the exact job, and what would keep it from starting now.")]

# import, run
Document = Annotated[Path, Argument(metavar="FILE", help="A job.json, cluster.json or project.json of Batch AI.")]
Translate = Annotated[bool, Option("--dry-run", help="Only print what it becomes, as YAML, and the report.")]
Strict = Annotated[bool, Option("--strict", help="Fail if any field has no full equivalent.")]
ClusterFile = Annotated[
    Path | None, Option("--cluster-file", metavar="FILE", help="The cluster.json of a job, for its mounts.")
]
ProjectFile = Annotated[Path | None, Option("--project-file", metavar="FILE", help="The project.json of a job.")]
Mounted = Annotated[
    list[str] | None,
    Option("--mount", metavar="NAME=PATH", help="Where a mount's files are, as --data is written. Repeat it for more."),
]
Shares = Annotated[
    list[str] | None, Option("--afs-name", metavar="NAME[=PATH]", help="Mount a file share too, at PATH or afs.")
]
Containers = Annotated[
    list[str] | None, Option("--bfs-name", metavar="NAME[=PATH]", help="Mount a blob container too, at PATH or bfs.")
]
AccountName = Annotated[
    str,
    Option(
        "--storage-account-name",
        metavar="NAME",
        help="Fills <AZURE_BATCHAI_STORAGE_ACCOUNT>. Default: the variable AZURE_BATCHAI_STORAGE_ACCOUNT.",
    ),
]
Environment = Annotated[
    str,
    Option(
        metavar="NAME", help="Run in this environment, azureml:<name>:<version> or an image, not in the document's."
    ),
]
ProjectFolder = Annotated[
    Path, Argument(metavar="FOLDER", help="A folder with project.json, job.json and the script. Default: this one.")
]
Warm = Annotated[str, Option("--keep-warm", metavar="TIME", help="With persistCluster, how long the nodes stay up.")]

# runs
OfExperiment = Annotated[str, Option("--experiment", metavar="NAME", help="Only of this experiment.")]
OfCluster = Annotated[
    str, Option("--cluster", metavar="NAME", help="Only on this cluster.", autocompletion=tab_completion.clusters)
]
OfState = Annotated[
    str,
    Option(
        "--state",
        metavar="STATE",
        help="Only in this state: received, submitted, queued, running, completed, failed or canceled.",
    ),
]
Since = Annotated[
    str, Option(metavar="TIME", help="Only since then: 90m, 2h or 7d ago, or a moment such as 2026-01-31T12:00.")
]
Limit = Annotated[int, Option(min=1, metavar="N", help="At most so many.")]
RunOrDrop = Annotated[
    str,
    Argument(metavar="RUN|DROP", help="A run, or a drop as route/name.", autocompletion=tab_completion.runs_or_drops),
]

# logs, metrics
FollowLog = Annotated[bool, Option("--follow", "-f", help="Stay until the run is over and its log is complete.")]
Rank = Annotated[
    int | None,
    Option(min=0, metavar="N", help="The process whose log it is, 0 by default; of an elastic run, the job."),
]
Raw = Annotated[bool, Option("--raw", help="Print the log as it is. What it holds can then speak to your terminal.")]
Offset = Annotated[int, Option(min=0, metavar="BYTES", help="Begin at this byte, such as where another one stopped.")]
Metrics = Annotated[
    list[str] | None, Option("--name", "-n", metavar="NAME", help="Only this metric. Repeat it for more.")
]
Png = Annotated[
    Path | None, Option("--png", metavar="FILE", help="Write the curves to this file. Needs the extra `png`.")
]

# drop, fetch
Source = Annotated[Path, Argument(metavar="FOLDER", help="The folder, or a single .zip, .tar, .tar.gz or .tgz.")]
Target = Annotated[
    str,
    Argument(
        metavar="ROUTE[/NAME]",
        help="Where to; without NAME, the folder's own name. mnist@latest is that run's drop.",
        autocompletion=tab_completion.targets,
    ),
]
Delete = Annotated[bool, Option("--delete", help="Delete what is in the drop and not in the folder.")]
Merge = Annotated[bool, Option("--merge", help="Keep what is in the drop and not in the folder, without asking.")]
New = Annotated[bool, Option("--new", help="Upload to a new drop instead: the name with the next free number.")]
Again = Annotated[bool, Option("--again", help="Train the same content once more.")]
DropDryRun = Annotated[bool, Option("--dry-run", help="Only say what is there and what would change.")]
To = Annotated[Path | None, Option("--to", metavar="FOLDER", help="Where to. Default: a folder of the run's name.")]
Only = Annotated[
    list[str] | None,
    Option("--only", metavar="FOLDER", help="Only models, logs, metrics, outputs, or a file. Repeat it for more."),
]
Wait = Annotated[bool, Option("--wait", help="Wait until the run is archived.")]

# data
DataDrop = Annotated[str, Argument(metavar="DROP", help="A drop, as route/name.", autocompletion=tab_completion.drops)]
DataRef = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="A drop as route/name, route/name@2 for a generation, @now, or a run.",
        autocompletion=tab_completion.runs_or_drops,
    ),
]

# notify
On = Annotated[
    list[str],
    Option(
        "--on",
        metavar="KIND",
        help="completed, failed, canceled, evicted, late, budget, idle, model, schedule or poison. Repeat it for more.",
    ),
]
NoticeTo = Annotated[
    str, Option("--to", metavar="ADDRESS", help="https://... or a mail address; - asks for it unseen.")
]
ChannelName = Annotated[
    str,
    Option("--channel", metavar="NAME", help="webhook, slack, teams or mail. Default: what the address looks like."),
]
OfRoute = Annotated[
    str, Option("--route", metavar="NAME", help="Only of this route's runs.", autocompletion=tab_completion.routes)
]
SubscriptionName = Annotated[
    str,
    Argument(
        metavar="ID", help="A subscription, as `notify list` shows it.", autocompletion=tab_completion.subscriptions
    ),
]

# clusters
ClusterName = Annotated[
    str,
    Argument(
        metavar="CLUSTER", help="Name of the cluster, as `clusters` shows it.", autocompletion=tab_completion.clusters
    ),
]
PausedCluster = Annotated[
    str,
    Argument(
        metavar="CLUSTER",
        help="Name of the cluster. Default: the one of the project.json in this folder.",
        autocompletion=tab_completion.clusters,
    ),
]
Force = Annotated[bool, Option("--force", help="Do not wait for its idle time. Work that runs is left alone.")]


class ClusterVerb(StrEnum):
    list = "list"
    plan = "plan"
    apply = "apply"


ClustersWhat = Annotated[
    ClusterVerb, Argument(metavar="list|plan|apply", help="List them, or plan or apply the clusters file.")
]
ClustersFile = Annotated[Path, Option("--file", metavar="FILE", help="The clusters file.")]
DecisionsOf = Annotated[
    str,
    Option(
        "--history",
        metavar="CLUSTER",
        help="What was decided about this cluster, newest first.",
        autocompletion=tab_completion.clusters,
    ),
]
WorkspaceId = Annotated[
    str, Option("--workspace", metavar="ID", help="Resource id of the workspace. Default: the local cloud's.")
]
For = Annotated[str, Option("--for", metavar="TIME", help="For how long from now: seconds, or 90m, 2h, 1d.")]
LeaseNodes = Annotated[int, Option("--nodes", min=1, max=1000, metavar="N", help="How many nodes.")]
Why = Annotated[str, Option(metavar="TEXT", help="What for: shown to whoever asks why the cluster is up.")]
LeaseId = Annotated[
    str, Argument(metavar="LEASE", help="A lease, as `leases` shows it.", autocompletion=tab_completion.leases)
]
KeepWarm = Annotated[
    str, Option("--keep-warm", metavar="TIME", help="Keep its nodes up for so long after its end: 30m, 2h.")
]

# set-up
Address = Annotated[
    str, Argument(metavar="URL", help="Address of the API, such as https://<app>.azurewebsites.net/api.")
]
NewName = Annotated[str, Option("--name", metavar="NAME", help="Name of the profile. Default: the host's name.")]
OldName = Annotated[str, Argument(metavar="NAME", help="Name of the profile. Default: the current one.")]
FunctionKey = Annotated[
    str, Option("--key", metavar="KEY", help="Function key. Default: TRAINYARD_KEY, else you are asked.")
]
Token = Annotated[str, Option("--token", metavar="TOKEN", help="A bearer token instead of a key.")]
Scope = Annotated[
    str,
    Option(
        "--scope",
        metavar="SCOPE",
        help="Sign in with Entra ID: the API's scope, such as api://<client id>/.default. Needs the extra `drop`.",
    ),
]
OpenWhat = Annotated[
    str,
    Argument(metavar="RUN", help="A run; without one, the status of everything.", autocompletion=tab_completion.runs),
]
PrintOnly = Annotated[bool, Option("--print", help="Print the address, open nothing.")]

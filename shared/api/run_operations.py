"""The operations of runs."""

from __future__ import annotations

from shared.kernel.operation import Group, Operation

CHANGES, VIEWS = "shared.api.runs", "shared.api.run_views"

GROUP = Group(
    "Runs",
    (
        Operation(
            "create_run", "POST", "runs", CHANGES, "Make a run, or say what would be made",
            "See [Make a run](#make-a-run)", problems=(404, 409, 422), code="a whole `job`",
        ),
        Operation(
            "list_runs", "GET", "runs", VIEWS, "A page of runs, newest first",
            "See [Lists](#lists)", problems=(422,),
        ),
        Operation(
            "list_rows", "GET", "rows", VIEWS, "The runs as rows of a table, and what changed",
            "See [Rows](#rows)", problems=(422,),
        ),
        Operation(
            "get_run", "GET", "runs/{run}", VIEWS, "One run with its history",
            "Job, code, environment, metrics, output, reason", problems=(404,),
        ),
        Operation(
            "get_live", "GET", "runs/{run}/live", VIEWS, "The run and what is new since the last look",
            "See [Poll for changes](#poll-for-changes)", problems=(404, 422),
        ),
        Operation(
            "get_logs", "GET", "runs/{run}/logs", VIEWS, "A rank's log from a byte on",
            "See [Follow a log](#follow-a-log)", problems=(404, 416),
        ),
        Operation(
            "get_metrics", "GET", "runs/{run}/metrics", VIEWS, "The run's metrics as series",
            "[Live too](#curves-and-files); `?name=` for some, with commas", problems=(404,),
        ),
        Operation(
            "get_curves", "GET", "curves", VIEWS, "Curves of several runs",
            "Up to 50: `?runs=` and `name` with commas, at most `points` of each series, steps `first` to `last`; "
            "`?records=true` adds the runs", problems=(404, 422),
        ),
        Operation(
            "list_artifacts", "GET", "runs/{run}/artifacts", VIEWS, "The files of the run's archive",
            "See [Curves and files](#curves-and-files)", problems=(404,),
        ),
        Operation(
            "read_artifact", "GET", "runs/{run}/artifacts/{*path}", VIEWS,
            "A redirect to a short-lived address; `link`: the address",
            "A [signed address](security.md#addresses-of-files); `?link=true`: 200 and `{\"url\", \"seconds\"}`",
            problems=(404,),
        ),
        Operation(
            "cancel_run", "POST", "runs/{run}/cancel", CHANGES, "Ask for the run's end; 200 if it has ended",
            problems=(404,),
        ),
        Operation("delete_run", "DELETE", "runs/{run}", CHANGES, "The same as cancel", problems=(404,)),
        Operation(
            "retry_run", "POST", "runs/{run}/retry", CHANGES, "A new run with this one's job",
            "Changed by `{\"parameters\": {...}}`. A repeat gives the same run", problems=(404, 409, 422),
        ),
        Operation(
            "continue_run", "POST", "runs/{run}/continue", CHANGES, "A new run that goes on from this one's checkpoint",
            "See [Go on](#go-on)", problems=(404, 409, 422),
        ),
        Operation(
            "note_run", "POST", "runs/{run}/notes", CHANGES, "Write a note on the run",
            "`{\"text\": \"...\"}`; up to 20", problems=(404, 422),
        ),
        Operation(
            "tag_run", "POST", "runs/{run}/tags", CHANGES, "Change the run's tags",
            "`{\"set\": {\"team\": \"vision\"}, \"remove\": [\"draft\"]}`; `project` can't change", problems=(404, 422),
        ),
        Operation(
            "evict_member", "POST", "runs/{run}/members/{member}/evict", CHANGES,
            "End a member's job, as losing its node does", "For a member of an [elastic run](elastic.md)",
            status=202, problems=(404, 409, 422),
        ),
        Operation(
            "find", "GET", "find", VIEWS, "The run or drop that a name means",
            "`?name=`: a name, its beginning, `@latest`, `mnist@latest`, `mnist@best:accuracy`, `churn@production`. "
            "404 and 409 suggest names", problems=(404, 409, 422),
        ),
        Operation(
            "compare", "GET", "compare", VIEWS, "What is different between runs",
            "`?runs=a,b,c`: what is `different`, and who has the best `metrics`", problems=(404, 409, 422),
        ),
        Operation(
            "import_document", "POST", "imports", CHANGES, "What a Batch AI document becomes; makes nothing",
            "A [Batch AI](batchai.md) document (`{\"document\", \"batchai\", \"cluster\", \"experiment\"}`), and why "
            "it could not start", problems=(422,),
        ),
    ),
)  # fmt: skip

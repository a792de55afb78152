"""The API operations of runs."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

CHANGES, VIEWS, LIVE = "shared.api.runs", "shared.api.run_views", "shared.api.live"

GROUP = OperationGroup(
    "Runs",
    (
        Operation(
            "create_run", "POST", "runs", CHANGES,
            "Submit a run, or show what would be submitted", "See [Make a run](#make-a-run)",
            problems=(404, 409, 422), code="a whole `job`",
        ),
        Operation(
            "list_runs", "GET", "runs", VIEWS,
            "List a page of runs, newest first", "See [Lists](#lists)", problems=(422,),
        ),
        Operation(
            "list_rows", "GET", "rows", VIEWS,
            "List runs as rows of a table, and what changed", "See [Rows](#rows)", problems=(422,),
        ),
        Operation(
            "get_run", "GET", "runs/{run}", VIEWS,
            "Show a run with its history", "The answer has its job, code, environment, metrics, output and reason",
            problems=(404,),
        ),
        Operation(
            "get_live", "GET", "runs/{run}/live", LIVE,
            "The run, and its metrics and log since the last request", "See [Poll for changes](#poll-for-changes)",
            problems=(404, 422),
        ),
        Operation(
            "get_logs", "GET", "runs/{run}/logs", VIEWS,
            "Read the log of one rank, from a byte offset on", "See [Follow a log](#follow-a-log)", problems=(404, 416),
        ),
        Operation(
            "get_metrics", "GET", "runs/{run}/metrics", VIEWS,
            "The run's metrics as series",
            "Also while it trains. `?name=` selects some, separated by commas. See [Curves and "
            "files](#curves-and-files)",
            problems=(404,),
        ),
        Operation(
            "get_curves", "GET", "curves", LIVE,
            "Metrics of several runs as series",
            "Up to 50 runs. `?runs=` and `name` take several, separated by commas; `points` limits each series, "
            "`first` and `last` are steps; `?records=true` adds the runs",
            problems=(404, 422),
        ),
        Operation(
            "list_artifacts", "GET", "runs/{run}/artifacts", VIEWS,
            "The files of the run's archive", "See [Curves and files](#curves-and-files)", problems=(404,),
        ),
        Operation(
            "read_artifact", "GET", "runs/{run}/artifacts/{*path}", VIEWS,
            "Redirect to a short-lived address of the file",
            'The address is [signed](security.md#addresses-of-files). `?link=true` gives 200 and `{"url", "seconds"}`',
            problems=(404,),
        ),
        Operation("cancel_run", "POST", "runs/{run}/cancel", CHANGES, "Cancel a run", problems=(404,)),
        Operation(
            "delete_run", "DELETE", "runs/{run}", CHANGES,
            "Cancel a run", "The record of the run stays", problems=(404,),
        ),
        Operation(
            "retry_run", "POST", "runs/{run}/retry", CHANGES,
            "Submit the job of this run again, as a new run",
            '`{"parameters": {...}}` changes its parameters. A repeated request returns the same run',
            problems=(404, 409, 422),
        ),
        Operation(
            "continue_run", "POST", "runs/{run}/continue", CHANGES,
            "Continue this run from its checkpoint, as a new run", "See [Continue a run](#continue-a-run)",
            problems=(404, 409, 422),
        ),
        Operation(
            "note_run", "POST", "runs/{run}/notes", CHANGES,
            "Write a note on the run", 'Give `{"text": "..."}`. A run keeps 20 notes', problems=(404, 422),
        ),
        Operation(
            "tag_run", "POST", "runs/{run}/tags", CHANGES,
            "Change the run's tags",
            "Give `{\"set\": {\"team\": \"vision\"}, \"remove\": [\"draft\"]}`. The tag `project` can't change",
            problems=(404, 422),
        ),
        Operation(
            "find", "GET", "find", VIEWS,
            "Find the run or drop that a name refers to",
            "`?name=` takes a complete name, a unique prefix, `@latest`, `mnist@latest`, `mnist@best:accuracy`, "
            "`churn@production`. 404 and 409 suggest names",
            problems=(404, 409, 422),
        ),
        Operation(
            "compare", "GET", "compare", VIEWS,
            "Show the differences between runs",
            "`?runs=a,b,c`. The answer says what is `different`, and which run has the best `metrics`",
            problems=(404, 409, 422),
        ),
        Operation(
            "import_document", "POST", "imports", "shared.api.imports",
            "Translate a Batch AI document",
            'Give `{"document", "batchai", "cluster", "experiment"}`. The answer also says why the [job](batchai.md) '
            "could not start. Creates nothing",
            problems=(422,),
        ),
    ),
)  # fmt: skip

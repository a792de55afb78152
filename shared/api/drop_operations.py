"""The API operations of drops and their data."""

from __future__ import annotations

from shared.kernel.operation import CODER, Operation, OperationGroup

ANSWERS, DATA = "shared.api.drops", "shared.api.data"

GROUP = OperationGroup(
    "Drops and data",
    (
        Operation(
            "list_drops", "GET", "drops", ANSWERS,
            "The drops by name",
            "Up to 1,000. `?route=` selects one route; `?after=<route>/<name>` gives the next page; with "
            "`?details=true` each drop has all fields",
        ),
        Operation(
            "get_drop", "GET", "drops/{route}/{name}", ANSWERS,
            "Show a drop, and why it did not start",
            "The answer has its state, generation, run, and why it is in this state",
            problems=(404,),
        ),
        Operation(
            "list_generations", "GET", "drops/{route}/{name}/generations", DATA,
            "The drop's generations, newest first", "Each has its number, run, content, and when and why it closed",
            problems=(404,),
        ),
        Operation(
            "upload_addresses", "POST", "drops/{route}/{name}/uploads", ANSWERS,
            "Create addresses for uploading a drop's files", "See [Upload from a browser](#upload-from-a-browser)",
            problems=(422,), code="a job file, and any file where drops bring code",
        ),
        Operation(
            "train_again", "POST", "drops/{route}/{name}/again", ANSWERS,
            "Train the drop's newest generation once more", "409 while the drop is not closed", problems=(404, 409),
        ),
        Operation(
            "list_files", "GET", "data/files", DATA,
            "The files of a generation or run",
            "`?of=` takes `<route>/<name>`, `<route>/<name>@<generation>`, `<route>/<name>@now` or a run. A page has "
            "1,000 files; `?offset=` gives the next",
            problems=(404, 422),
        ),
        Operation(
            "diff_data", "GET", "data/diff", DATA,
            "How two lists of files differ",
            "`?a=` and `?b=` take the same as `of` above. The answer has the files added, changed and gone",
            problems=(404, 422),
        ),
        Operation(
            "begin_upload", "POST", "uploads", ANSWERS,
            "Begin uploading a folder for a job", "See [Send a folder](#send-a-folder)", needs=CODER, problems=(422,),
        ),
    ),
)  # fmt: skip

"""The HTTP operations of data cards."""

from __future__ import annotations

from shared.kernel.operation import CONTRIBUTOR, Operation, OperationGroup

ANSWERS = "shared.data_checks.cards"

GROUP = OperationGroup(
    "[Data cards](data-checks.md)",
    (
        Operation(
            "get_card", "GET", "data/card", ANSWERS,
            "Show the data card of a generation or run",
            "`?of=` takes `<route>/<name>`, `<route>/<name>@<generation>` or a run. The answer has the verdict of the "
            "check, its reasons, and the card",
            problems=(404, 422),
        ),
        Operation(
            "diff_cards", "GET", "data/card/diff", ANSWERS,
            "Show how two data cards differ", "`?a=` and `?b=` take the same as `of` above", problems=(404, 422),
        ),
        Operation(
            "list_pictures", "GET", "data/pictures", "shared.data_checks.pictures",
            "Show some pictures of a generation",
            "`?of=` takes `<route>/<name>` or `<route>/<name>@<generation>`. The answer has signed addresses of up to "
            "eight pictures, for those who may also upload to the drop",
            problems=(404, 422), needs=CONTRIBUTOR,
        ),
    ),
)  # fmt: skip

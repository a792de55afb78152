"""The operations of models."""

from __future__ import annotations

from shared.kernel.operation import Group, Operation

ANSWERS = "shared.models.api"
VERSION = "models/{model}/versions/{version}"

GROUP = Group(
    "[Models](models.md)",
    (
        Operation("list_models", "GET", "models", ANSWERS, "The models, with their aliases"),
        Operation(
            "get_model", "GET", "models/{model}", ANSWERS, "A model's aliases, versions and history",
            "Up to 100 of each", problems=(404,),
        ),
        Operation(
            "promote_run", "POST", "models/{model}/versions", ANSWERS,
            "Promote a run: make its model the next version",
            "`{\"run\", \"alias\", \"why\", \"allow_code\"}`; a repeat gives the same", status=201,
            problems=(404, 409, 422),
        ),
        Operation(
            "move_alias", "POST", "models/{model}/aliases/{alias}", ANSWERS,
            "Point an alias at a version, or back where it was",
            "`{\"version\", \"why\"}` points it there, `{\"undo\": true}` back", problems=(404, 422),
        ),
        Operation(
            "get_version", "GET", VERSION, ANSWERS, "A version, by its number or an alias",
            "Run, digest, signer, metrics, data", problems=(404,),
        ),
        Operation(
            "read_model_file", "GET", f"{VERSION}/files/{{*path}}", ANSWERS,
            "A redirect to a signed file, or to model.sig; `link`: the address", "`model.sig` names them all",
            problems=(404,),
        ),
        Operation(
            "explain_version", "GET", f"{VERSION}/why", ANSWERS, "Where the version comes from, each link looked at",
            "Each good, bad or unknown", problems=(404,),
        ),
        Operation(
            "reproduce_version", "POST", f"{VERSION}/reproduce", ANSWERS,
            "Train the version again from its recorded parts", "409 if the data changed", problems=(404, 409, 422),
        ),
        Operation(
            "compare_reproduction", "GET", f"{VERSION}/reproductions/{{run}}", ANSWERS, "How a reproduction compares",
            "Whether its weights are equal, and what differs", problems=(404, 409),
        ),
        Operation(
            "let_go_version", "POST", f"{VERSION}/let-go", ANSWERS, "Keep a version no longer",
            "409 while an alias points at it", problems=(404, 409),
        ),
        Operation("get_model_key", "GET", "model-key", ANSWERS, "The public key that models are signed with"),
    ),
    "`{version}` is a number or an alias.",
)  # fmt: skip

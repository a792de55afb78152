"""The API operations of models."""

from __future__ import annotations

from shared.kernel.operation import CODER, Operation, OperationGroup

ANSWERS = "shared.models.api"
VERSION = "models/{model}/versions/{version}"

GROUP = OperationGroup(
    "[Models](models.md)",
    (
        Operation("list_models", "GET", "models", ANSWERS, "List the models with their aliases"),
        Operation(
            "get_model", "GET", "models/{model}", ANSWERS,
            "Show a model's aliases, versions and history", "Up to 100 of each", problems=(404,),
        ),
        Operation(
            "promote_run", "POST", "models/{model}/versions", ANSWERS,
            "Make a run's model the next version",
            'Give `{"run", "alias", "why", "allow_code"}`. A repeated request returns the same version',
            status=201, problems=(404, 409, 422), code="`allow_code` or a protected `alias`",
        ),
        Operation(
            "move_alias", "POST", "models/{model}/aliases/{alias}", ANSWERS,
            "Move an alias to a version, or back to the previous one",
            'Give `{"version", "why"}`, or `{"undo": true}` to move it back',
            problems=(404, 422), no_key="each `undo` moves it one step further back.", code="a protected alias",
        ),
        Operation(
            "get_version", "GET", VERSION, ANSWERS,
            "Show a version, by its number or an alias", "The answer has its run, digest, signer, metrics and data",
            problems=(404,),
        ),
        Operation(
            "read_model_file", "GET", f"{VERSION}/files/{{*path}}", ANSWERS,
            "Redirect to a signed file, or to model.sig",
            "`model.sig` lists the signed files. `?link=true` gives the address",
            problems=(404,),
        ),
        Operation(
            "list_attestations", "GET", f"{VERSION}/attestations", ANSWERS,
            "List the attestations of a version, the newest first",
            "The signature of each was checked now; `problem` says why one does not count", problems=(404,),
        ),
        Operation(
            "attest_version", "POST", f"{VERSION}/attestations", ANSWERS,
            "Add an approval, a test report, a scan or other evidence to a version",
            'Give `{"kind", "passed", "says"}`, which the app signs for you, or `{"kind", "bundle", "public_key"}`',
            status=201, problems=(404, 409, 422),
        ),
        Operation(
            "explain_version", "GET", f"{VERSION}/why", ANSWERS,
            "Show where the version comes from", "Each link of the chain is good, bad or unknown", problems=(404,),
        ),
        Operation(
            "reproduce_version", "POST", f"{VERSION}/reproduce", ANSWERS,
            "Train the version again from its recorded parts",
            'Give `{"repetition": 2}` for a further one. 409 if the data have changed', problems=(404, 409, 422),
        ),
        Operation(
            "compare_reproduction", "GET", f"{VERSION}/reproductions/{{run}}", ANSWERS,
            "Show how a reproduction compares with the version",
            "The answer says whether the weights are equal, what differs, and whether the metric is within the scatter "
            "of three or more repetitions",
            problems=(404, 409),
        ),
        Operation(
            "let_go_version", "POST", f"{VERSION}/let-go", ANSWERS,
            "Release a version", "409 while an alias points at it", problems=(404, 409),
        ),
        Operation(
            "sign_version_again", "POST", f"{VERSION}/sign", ANSWERS,
            "Sign a version again, with the key that signs now", "409 if a file differs from what was signed",
            problems=(404, 409), needs=CODER,
        ),
        Operation(
            "get_model_key", "GET", "model-key", ANSWERS,
            "Show the public key of the models' signatures", "`keys` has the earlier keys, with their times",
        ),
        Operation(
            "withdraw_model_key", "POST", "model-keys/{sha256}/withdraw", ANSWERS,
            "Withdraw a signing key that somebody else may have", "No signature of this key counts any more",
            problems=(404,), needs=CODER,
        ),
    ),
    "`{version}` is a number or an alias.",
)  # fmt: skip

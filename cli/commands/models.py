"""The commands promote, models, verify, attest, why and reproduce."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .. import show
from ..api.model_files import bring
from ..api.model_names import Reference, reference, wanted
from ..api.run_names import run_name
from ..errors import CliError, Unreachable, unreadable
from ..files import signed_model, sigstore_identity
from ..files.model_signature import SIGNATURE
from ..results import Checked, Verification, prints
from ..session import Session, command, user_path
from ..setup import signing_keys
from .follow import follow
from .progress_bar import bar

What = Annotated[
    str, Argument(metavar="RUN|MODEL", help="A run; a version, churn/4 or churn@staging; with --undo a model.")
]
Name = Annotated[str, Argument(metavar="MODEL", help="The model that the run becomes a version of.")]
As = Annotated[str, Option("--as", metavar="ALIAS", help="Move this alias to the version, such as production.")]
Why = Annotated[str, Option("--why", metavar="TEXT", help="The reason, for the history of the model.")]
Undo = Annotated[bool, Option("--undo", help="Move the alias back to its previous version.")]
AllowCode = Annotated[
    bool, Option("--allow-code", help="Accept files that run code when they are loaded, such as pickles.")
]
SomeModel = Annotated[str, Argument(metavar="MODEL", help="Only this model, with its versions and history; churn/3.")]
SignAgain = Annotated[
    bool, Option("--sign-again", help="Check this version's files, and sign them with the key that signs now.")
]
LetGo = Annotated[bool, Option("--let-go", help="Release this version: its run and data may be deleted again.")]
Version = Annotated[str, Argument(metavar="MODEL@ALIAS", help="A version: churn@production, churn@4 or churn/4.")]
Folder = Annotated[
    Path | None,
    Argument(
        metavar="FOLDER", help="The folder that `fetch` wrote. Default: download the version into ./MODEL-NUMBER."
    ),
]
KeyFile = Annotated[
    Path | None,
    Option(
        "--key", metavar="FILE", help="Public key of the signer (PEM). Default: the key of the deployment, as cached."
    ),
]
Identity = Annotated[
    str,
    Option(
        "--identity",
        metavar="WHO",
        help="The identity that must have signed FOLDER.sigstore with Sigstore, such as a mail address.",
    ),
]
Issuer = Annotated[str, Option("--issuer", metavar="URL", help="The issuer of that identity; needed with --identity.")]
Roots = Annotated[
    Path | None, Option("--roots", metavar="FILE", help="Sigstore's roots of trust. Default: from the internet.")
]
Kind = Annotated[
    str, Argument(metavar="KIND", help="Such as approval, test, fairness or scan. Without it, list the attestations.")
]
Failed = Annotated[bool, Option("--failed", help="State that the version did not pass.")]
BundleFile = Annotated[
    Path | None, Option("--bundle", metavar="FILE", help="A statement that a program signed: a Sigstore bundle.")
]
Times = Annotated[
    int,
    Option("--times", metavar="N", min=1, max=20, help="Train it so many times, and compare how the metric scatters."),
]
Wait = Annotated[bool, Option("--wait/--no-wait", help="Wait until the training has ended, and compare.")]


@command
@prints("POST models/{model}/versions", "POST models/{model}/aliases/{alias}")
def promote(
    session: Session,
    what: What,
    model: Name = "",
    alias: As = "",
    why: Why = "",
    undo: Undo = False,
    allow_code: AllowCode = False,
) -> None:
    """Make the model of a run the next version of a model, or move an alias to a version.

    A version is signed together with the proof of its origin. Named versions and their data are never deleted by
    retention. --undo moves the alias back to its previous version.

    Example: trainyard promote churn@best:accuracy churn --as production --why "beats 3 on the June data"

    Example: trainyard promote churn/3 --as production

    Example: trainyard promote churn --as production --undo
    """
    version = reference(what)
    if undo or (version and not model):
        _move(session, what, version, alias, why, undo)
        return
    if not model:
        raise typer.BadParameter("name the model that the run becomes a version of: promote RUN churn --as production.")
    body = {"run": run_name(session.api, what), "alias": alias, "why": why, "allow_code": allow_code}
    made = session.api.post("models", model, "versions", body=body)
    pointed = f", now {model}@{alias}" if alias else ""
    session.print_result(made, f"{made['run']} is {model}/{made['number']}{pointed}.")


def _move(session: Session, what: str, version: Reference | None, alias: str, why: str, undo: bool) -> None:
    if not alias:
        raise typer.BadParameter("name the alias to move: --as production.")
    model = version.model if version else what
    body: dict[str, Any] = {"why": why}
    body |= {"undo": True} if undo or version is None else {"version": version.get(session.api)["number"]}
    moved = session.api.post("models", model, "aliases", alias, body=body)
    at = next((each["version"] for each in moved["aliases"] if each["alias"] == alias), None)
    session.print_result(
        moved, f"{model}@{alias} is {model}/{at} now." if at else f"{model} no longer has the alias {alias}."
    )


@command
@prints(
    "GET models",
    "GET models/{model}",
    "POST models/{model}/versions/{version}/let-go",
    "POST models/{model}/versions/{version}/sign",
)
def models(
    session: Session, name: SomeModel = "", let_go: LetGo = False, sign_again: SignAgain = False, why: Why = ""
) -> None:
    """List the models with their aliases, or the versions, metrics and history of one model.

    Example: trainyard models churn
    """
    if let_go:
        version = wanted(name)
        gone = session.api.post("models", version.model, "versions", version.which, "let-go", body={"why": why})
        session.print_result(gone, f"{gone['model']}/{gone['number']} is no longer kept.")
    elif sign_again:
        version = wanted(name)
        again = session.api.post("models", version.model, "versions", version.which, "sign", body={"why": why})
        session.print_result(again, f"{again['model']}/{again['number']} is signed by key {again['signer'][:16]}.")
    elif name:
        model = session.api.get("models", name)
        session.print_result(model, show.models.one(model))
    else:
        every = session.api.get("models")
        session.print_result(every, show.models.table(every))


@command
@prints(Verification)
def verify(
    session: Session,
    version: Version,
    folder: Folder = None,
    key: KeyFile = None,
    identity: Identity = "",
    issuer: Issuer = "",
    roots: Roots = None,
) -> None:
    """Check a folder against the signature of a version: no file changed, added or missing, the right signer.

    Works offline once the key of the deployment is cached, except to resolve an alias. The exit status is 1 if
    anything differs. `model_signing verify key` of OpenSSF checks the same folder. With --identity, a second
    signature is checked too: one made by `model_signing sign sigstore FOLDER --signature FOLDER.sigstore`.

    Example: trainyard verify churn@production ./churn-4
    """
    named = wanted(version)
    keys = signing_keys.of_file(user_path(key)) if key else signing_keys.trusted(session)
    place = user_path(folder) if folder else _fetched(session, named, keys)
    done = signed_model.verify(place, keys)
    problems = [*done.problems, *_misnamed(session, named, done.signed.name)]
    if not key and (why := signing_keys.why_withdrawn(session, done.signed.signer)):
        problems.append(signed_model.Problem(SIGNATURE, why))
    problems += _not_signed_by(place, identity, issuer, user_path(roots) if roots else None)
    result: Verification = {
        "model": done.signed.name,
        "folder": str(place.resolve()),
        "files": len(done.signed.files),
        "bytes": done.bytes,
        "seconds": round(done.seconds, 3),
        "signer": done.signed.signer,
        "ok": not problems,
        "problems": [Checked(file=each.file, what=each.what) for each in problems],
    }
    session.print_result(result, show.models.verified(result))
    if problems:
        raise typer.Exit(1)


def _not_signed_by(folder: Path, name: str, issuer: str, roots: Path | None) -> list[signed_model.Problem]:
    if bool(name) != bool(issuer):
        raise typer.BadParameter(
            "Give --identity and --issuer together: the signer, and the provider that confirmed the signer's identity."
        )
    why = sigstore_identity.why_not(folder, sigstore_identity.Identity(name, issuer), roots) if name else ""
    return [signed_model.Problem(sigstore_identity.place(folder).name, f"failed: {why}")] if why else []


def _bundle(file: Path) -> Any:
    try:
        return json.loads(_text(file))
    except ValueError as exc:
        raise CliError(f"{file} is not JSON; --bundle names a Sigstore bundle.", "bad_data") from exc


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as exc:
        raise unreadable(file, exc) from exc
    except UnicodeDecodeError as exc:
        raise CliError(f"{file} is not a text in UTF-8.", "bad_data") from exc


def _fetched(session: Session, named: Reference, keys: dict[str, bytes]) -> Path:
    version = named.get(session.api)
    place = user_path(Path(f"{version['model']}-{version['number']}"))
    with bar(session, "fetching", version["bytes"]) as told:
        bring(session.api, version, place, [], keys, told)
    return place


def _misnamed(session: Session, named: Reference, signed: str) -> list[signed_model.Problem]:
    """Return a problem if the signature belongs to another model or version than the named one, otherwise an empty
    list.
    """
    expected = f"{named.model}/{named.which}"
    if not named.which.isdigit():
        try:
            expected = f"{named.model}/{named.get(session.api)['number']}"
        except Unreachable:
            session.remark(f"The API did not answer, so where {named} points was not checked.", "yellow")
            expected = signed if signed.startswith(f"{named.model}/") else expected
    if signed == expected:
        return []
    return [signed_model.Problem(SIGNATURE, f"is of {signed}, not of {expected}")]


@command
@prints("GET models/{model}/versions/{version}/attestations", "POST models/{model}/versions/{version}/attestations")
def attest(
    session: Session,
    version: Version,
    kind: Kind = "",
    failed: Failed = False,
    why: Why = "",
    bundle: BundleFile = None,
    key: KeyFile = None,
) -> None:
    """Add evidence to a version after it was signed, such as an approval or a test report, or list what there is.

    Without --bundle, the deployment signs the statement in your name. With --bundle and --key, a program's own
    signature is added: a Sigstore bundle around an in-toto statement whose subject is the digest of the version.

    Example: trainyard attest churn/4 approval --why "reviewed on the June data"

    Example: trainyard attest churn/4 scan --bundle scan.sigstore.json --key scanner.pem
    """
    named = wanted(version)
    where = ("models", named.model, "versions", named.which, "attestations")
    if not kind:
        rows = session.api.get(*where)
        session.print_result(rows, show.models.attestations(rows))
        return
    body: dict[str, Any] = {"kind": kind, "passed": not failed, "says": why}
    if bundle or key:
        if not bundle or not key:
            raise typer.BadParameter("give --bundle and --key together: the signed statement, and the signer's key.")
        body |= {"bundle": _bundle(user_path(bundle)), "public_key": _text(user_path(key))}
    made = session.api.post(*where, body=body)
    session.print_result(
        made, f"{named}: {made['kind']} {'passed' if made['passed'] else 'failed'}, in {made['file']}."
    )


@command
@prints("GET models/{model}/versions/{version}/why")
def why(session: Session, version: Version) -> None:
    """Show the origin of a version, link by link, from its name to its data. Each link is checked now.

    The exit status is 1 if a link is broken, for example because the data have changed since.

    Example: trainyard why churn@production
    """
    named = wanted(version)
    chain = session.api.get("models", named.model, "versions", named.which, "why")
    session.print_result(chain, show.models.chain(chain))
    if not chain["holds"]:
        raise typer.Exit(1)


@command
@prints("GET models/{model}/versions/{version}/reproductions/{run}", "POST models/{model}/versions/{version}/reproduce")
def reproduce(session: Session, version: Version, wait: Wait = True, times: Times = 1) -> None:
    """Train a version again from its recorded parts, and compare the digests of the weights.

    With Trainyard's trainers, the same data, code, environment and parameters give the same bytes on the same kind
    of processor. Otherwise the command lists the differences, and the exit status is 1. A run on a varying number of
    nodes never gives equal bytes: with --times 3 or more, the metric is compared with the scatter of the repetitions.

    Example: trainyard reproduce churn@production

    Example: trainyard reproduce cats@production --times 5
    """
    named = wanted(version)
    where = ("models", named.model, "versions", str(named.get(session.api)["number"]))
    bodies = [{"repetition": number} if number > 1 else {} for number in range(1, times + 1)]
    answers = [session.api.post(*where, "reproduce", body=body) for body in bodies]
    last = answers[-1]["run"]
    _remark_first(session, last)
    if not wait:
        session.print_result(answers[-1], " ".join(answer["run"] for answer in answers))
        return
    quiet = Session(session.url, session.profile_name, as_json=False, out=session.err, err=session.err)
    for answer in answers:
        follow(quiet, answer["run"])
    compared = session.api.get(*where, "reproductions", last)
    session.print_result(compared, show.models.compared(compared))
    if not (compared["equal"] or compared.get("within")):
        raise typer.Exit(1)


def _remark_first(session: Session, run: str) -> None:
    """Print the new run's own remarks, such as that its weights can't be equal, before the training starts."""
    begun = session.api.get("runs", run).get("history") or [{"why": ""}]
    session.remark(begun[0]["why"], "dim")

"""The command predict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

from rich.table import Table
from typer import Argument, Option

from ..api import fetch as fetching
from ..api.model_files import bring
from ..api.model_names import Reference, of_model
from ..api.run_names import run_name, suggesting
from ..errors import CliError, NotFound
from ..files import signed_model
from ..files.model_signature import SIGNATURE
from ..results import Guess, Prediction, prints
from ..session import Session, command, user_path
from ..setup import signing_keys
from ..setup.profiles import config_folder
from ..terminal_text import Text, one_line
from . import options
from .progress_bar import bar

Files = Annotated[list[str], Argument(metavar="FILE", help="Images, or texts for bert.")]
PredictPicture = Annotated[
    Path | None, Option("--picture", metavar="FILE", help="Write the images with their predictions to this .png.")
]

PROGRAM = Path(__file__).resolve().parents[2] / "trainers" / "predict.py"
PATIENCE_SECONDS = 600
NAMED = 5  # files that differ from the signed ones
REFUSED = 2  # the exit status of trainers/predict.py if it explains what is wrong with a file or model
SKIPPED = "skipped: "  # the prefix with which trainers/predict.py reports an unreadable file of a folder
NOTHING: Guess = {"label": "nothing", "score": None}


@command
@prints(list[Prediction])
def predict(session: Session, name: options.RunOrModel, files: Files, picture: PredictPicture = None) -> None:
    """Show what the model of a run predicts for files or a folder: images, or texts with [MASK] for bert.

    The model is downloaded once and kept. Each time, the model of a run is checked against its manifest, and the
    model of a version against its signature. The prediction runs on this machine, in a clone of Trainyard, with the
    preprocessing of the trainer. --picture draws the images with their class, or with boxes around found objects.

    Example: trainyard predict transfer@best:accuracy bee.jpg ant.jpg --picture seen.png

    Example: trainyard predict churn@production bee.jpg
    """
    paths = list(_paths(files))
    if not PROGRAM.is_file():
        raise CliError("predict runs the trainers' code: use `python3 trainyard.py predict` in a clone of Trainyard.")
    version = of_model(session.api, name)
    models = _of_version(session, version) if version else _of_run(session, name)
    drawing = ["--picture", str(user_path(picture))] if picture else []
    predictions = _predict(session, [*drawing, "--", str(models), *map(str, paths)])
    session.print_result(predictions, _table(predictions))
    if picture:
        session.remark(f"The picture is {one_line(str(picture))}.")


def _of_version(session: Session, named: Reference) -> Path:
    """Return the folder with the version's model, downloaded if needed. Raises CliError if the files do not match
    the signature."""
    version = named.get(session.api)
    signed_name = f"{version['model']}/{version['number']}"
    folder = config_folder(os.environ) / "models" / f"{version['model']}-{version['number']}"
    keys = signing_keys.trusted(session)
    if not (folder / SIGNATURE).is_file() or _problems(folder, keys, signed_name):
        with bar(session, "fetching", version["bytes"]) as progress:
            bring(session.api, version, folder, [], keys, progress)
        if problems := _problems(folder, keys, signed_name):
            what = "; ".join(f"{one_line(each.file)} {each.what}" for each in problems[:NAMED])
            raise CliError(
                f"{signed_name} does not match its signature, so predict does not use it: {what}. The files are in "
                f"{folder}.",
                "bad_data",
            )
    return folder / "models"


def _problems(folder: Path, keys: dict[str, bytes], name: str) -> list[signed_model.Problem]:
    try:
        done = signed_model.verify(folder, keys)
    except CliError as exc:
        return [signed_model.Problem(SIGNATURE, str(exc))]
    other = [signed_model.Problem(SIGNATURE, f"is of {done.signed.name}, not of {name}")]
    return [*done.problems, *(other if done.signed.name != name else [])]


def _of_run(session: Session, name: str) -> Path:
    """Return the folder with the run's model, downloaded if needed and checked against the manifest."""
    run = run_name(session.api, name)
    folder = config_folder(os.environ) / "models" / run
    with suggesting(session.api, name):
        archived = [fetching.File.of(row) for row in session.api.get("runs", run, "artifacts")["files"]]
    if not (models_folder := _models_folder(run, [file.name for file in archived])):
        raise CliError(_no_model(session, run), "no_model")
    models = fetching.chosen(archived, [models_folder])
    if not any(file.name == f"{models_folder}/model.json" for file in models):
        raise CliError(
            f"The model of {run} has no model.json, so no trainer of Trainyard wrote it, and its own code must load "
            f"it: `fetch {run} --only models` brings it.",
            "no_model",
        )
    with bar(session, "fetching", sum(file.size for file in models)) as progress:
        fetching.fetch(session.api, run, models, folder, progress)
    return folder / models_folder


def _models_folder(run: str, names: list[str]) -> str:
    """Return the archive's folder of the model: the output `models`, or the folder of a trainer's model saved by
    MLflow; '' without a model. Raises CliError for a model of another flavor, because loading one runs its maker's
    code.
    """
    if any(name.startswith("models/") for name in names):
        return "models"
    saved = [PurePosixPath(name) for name in sorted(names) if name.startswith("mlflow/")]
    if trained := [path for path in saved if path.name == "model.json"]:
        return str(trained[0].parent)
    if logged := [path.parent for path in saved if path.name == "MLmodel"]:
        raise CliError(
            f"{run} has a model that was saved with MLflow, in {logged[0]}. Loading such a model runs code that "
            "came with it, so predict refuses it: predict only reads the weights of Trainyard's trainers. "
            f"`fetch {run} --only {logged[0]}` downloads the model, and mlflow.pyfunc.load_model(FOLDER) loads it if "
            "you trust it.",
            "no_model",
        )
    return ""


def _no_model(session: Session, run: str) -> str:
    """Return the reason why this run has no model, and the name of the newest completed run, because `@latest` may
    name a canceled run."""
    record = session.api.get("runs", run)
    alike = session.api.get("runs", experiment=record["experiment"], state="completed", limit=1)["runs"]
    if record["state"] == "completed" and record["archived_at"]:
        where = "A job leaves models in its output `models`; with --command, in `{models}`."
        return f"{run} is completed and left no models. {where}"
    other = f" The newest completed run of {record['experiment']} is {alike[0]['run']}." if alike else ""
    return f"{run} is {record['state']} and has no models. Only a completed run that is archived has.{other}"


def _paths(names: list[str]) -> Iterator[Path]:
    """Yield the paths of these files and folders, as the user means them. Raises NotFound for a missing path."""
    for path in (user_path(Path(name)) for name in names):
        if not path.exists():
            raise NotFound(f"There is no file {path}.")
        yield path


def _predict(session: Session, arguments: list[str]) -> list[Prediction]:
    argv = [sys.executable, str(PROGRAM), *arguments]
    try:
        with session.err.status(
            "PyTorch starts, and the model makes its predictions"
        ):  # seconds; shown only on a terminal
            done = subprocess.run(argv, capture_output=True, encoding="utf-8", timeout=PATIENCE_SECONDS, check=False)
    except subprocess.TimeoutExpired as exc:
        raise CliError(f"The model had not finished after {PATIENCE_SECONDS} s. Give fewer files at once.") from exc
    for line in done.stderr.splitlines():
        if line.startswith(SKIPPED):
            session.remark(one_line(line))
    if done.returncode == REFUSED:
        raise CliError(done.stderr.strip().rpartition("\n")[2] or "The model can't be used.", "bad_data")
    if done.returncode:  # the message of PyTorch or Python would advise to trust the file
        raise CliError(
            "The model can't be used here: it is damaged, or was written by another version of its trainer. "
            "`fetch RUN --only models` brings its files.",
            "bad_data",
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _table(rows: list[Prediction]) -> Table:
    table = Table(box=None, pad_edge=True, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("file", "guess", "sure", "where"):
        table.add_column(column, overflow="fold")
    for row in rows:
        for number, guess in enumerate(row["guesses"] or [NOTHING]):
            sure = f"{guess['score']:.1%}" if guess["score"] is not None else ""
            where = ", ".join(f"{x:g}" for x in guess.get("box", []))
            name = one_line(row["file"]) if number == 0 else ""
            table.add_row(Text(name), Text(one_line(guess["label"])), Text(sure), Text(where))
    return table

"""The command drop."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.prompt import Prompt
from typer import Argument, Exit, Option

from .. import show
from ..api.follow import find_drop, wait_for_drop
from ..api.run_names import drop_name
from ..errors import CliError, NotFound
from ..files import arguments, drop_upload
from ..files.drop_upload import Plan
from ..results import DataChecked, Dropped, DropPlan, prints
from ..session import Session, command, user_path
from ..setup import tab_completion
from ..setup.user_name import local_name
from ..show.live import Screen
from ..show.tables import file_count
from ..terminal_text import one_line
from . import options
from .follow import end_with, follow
from .progress_bar import bar

Nodes = Annotated[int, Option("--nodes", min=0, metavar="N", help="Number of nodes. Default: that of the route.")]
Source = Annotated[Path, Argument(metavar="FOLDER", help="The folder, or a single .zip, .tar, .tar.gz or .tgz.")]
Target = Annotated[
    str,
    Argument(
        metavar="ROUTE[/NAME]",
        help="The destination. Default for NAME: the name of the folder. mnist@latest is the drop of that run.",
        autocompletion=tab_completion.targets,
    ),
]
Delete = Annotated[bool, Option("--delete", help="Delete files of the drop that the folder lacks.")]
Merge = Annotated[bool, Option("--merge", help="Keep files of the drop that the folder lacks, without asking.")]
New = Annotated[bool, Option("--new", help="Upload to a new drop instead, named with the next free number.")]
Again = Annotated[bool, Option("--again", help="Train the same content once more.")]
Check = Annotated[bool, Option("--check", help="Only check the folder's data, and upload nothing.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only show what is there and what would change.")]

NAMED = 3  # files in a sentence
RUN_SECONDS = 15.0  # to wait for the run's name without --follow
MERGE, DELETE, NEW, STOP = "merge", "delete", "new", "stop"


@command
@prints("GET runs/{run}", Dropped, DropPlan, DataChecked)
def drop(
    session: Session,
    source: Source,
    target: Target,
    parameter: options.Parameters = None,
    nodes: Nodes = 0,
    account_url: options.AccountUrl = "",
    delete: Delete = False,
    merge: Merge = False,
    new: New = False,
    again: Again = False,
    check: Check = False,
    dry_run: DryRun = False,
    following: options.Follow = False,
) -> None:
    """Upload a folder as a drop, which starts a run.

    The command first shows what will change. It asks before merging into a drop that someone else uploaded; if no
    one can answer, choose with --merge, --delete or --new. After an interruption, the same command resumes the
    upload. Content that was trained before makes no new run: the command names the run that trained it.

    Route, job file, parameters and data are checked before anything is uploaded; --check shows the data card, and
    exits with 1 if the data would be refused. Parameters and --nodes become a job file
    in the drop. If the source is an archive, the job file names the archive as its data. On a route that trains
    nothing, such as data, the drop is data for jobs: submit --data drops/data/NAME.

    Example: trainyard drop ./digits mnist/digits-1 -p epochs=5 --follow
    """
    source = user_path(source)
    choice = _choice(delete, merge, new)
    route, name = _place(session, target)
    values = arguments.parameters(parameter)
    job = arguments.job_file(source, values, nodes)
    answer = arguments.check_route(session.api, route, job and job[1])
    trains = bool(answer.get("trains", True))
    _check_has_run(route, trains, following, again)
    own_job = job if values or nodes else None
    name = drop_upload.target_name(source, name, bool(own_job))
    if check:
        _show_check(session, _checked(source, route, name, answer))
        return
    with (
        drop_upload.opened(session.profile, account_url) as container,
        arguments.written(own_job) as job_file,
    ):
        upload_ = _Upload(session, container, source, route, name, job_file, trains)
        if choice == NEW:
            upload_.name = upload_.free_name()
        with session.err.status("Comparing the folder with the drop"):
            todo = upload_.plan()
        session.remark(_summary(todo, delete))
        with session.err.status("Checking the data"):
            said = _checked(source, route, upload_.name, answer)
        _admit(session, said, only_told=dry_run or bool(todo.gone and not delete))
        if dry_run:
            session.print_result(_plan_as_json(todo), "Nothing was uploaded.")
            return
        todo, choice = upload_.decided(todo, choice)
        upload_.send(todo, choice == DELETE)
    upload_.finish(again, following)


def _check_has_run(route: str, trains: bool, following: bool, again: bool) -> None:
    """Raise CliError if an option needs a run, and the route trains nothing."""
    if not trains and (following or again):
        raise CliError(
            f"Route {route} does not train: {'--follow' if following else '--again'} would have no run to act on."
        )


def _checked(source: Path, route: str, name: str, answer: dict[str, Any]) -> DataChecked:
    """Check the folder's data as the app will check the drop."""
    from ..files.data_check import check_items

    return check_items(drop_upload.items(source, route, name), f"{route}/{name}", answer.get("data") or {})


def _show_check(session: Session, said: DataChecked) -> None:
    session.print_result(said, show.data_cards.check(dict(said), "data"))
    if said["verdict"] == "refused":
        raise Exit(1)


def _admit(session: Session, said: DataChecked, only_told: bool) -> None:
    """Print the warnings. Raises CliError for data that the app would refuse, unless `only_told`: a dry run, or a
    folder of only a part of its drop.
    """
    for sentence in (*(said["refusals"] if only_told or said["verdict"] == "warned" else ()), *said["warnings"]):
        session.remark(one_line(sentence), "yellow")
    if said["verdict"] == "refused" and not only_told:
        raise CliError(f"The data would be refused. {' '.join(map(one_line, said['refusals']))}", "bad_data")


def _choice(delete: bool, merge: bool, new: bool) -> str:
    """Return the chosen way to handle an existing drop, or '' if no option was given. Raises CliError for several
    options.
    """
    chosen = [choice for choice, is_given in ((DELETE, delete), (MERGE, merge), (NEW, new)) if is_given]
    if len(chosen) > 1:
        raise CliError(f"Give one of --delete, --merge and --new, not {' and '.join(f'--{each}' for each in chosen)}.")
    return chosen[0] if chosen else ""


def _place(session: Session, target: str) -> tuple[str, str]:
    """Return the route and the drop's name in the route. The name is '' if the target is only a route."""
    target = drop_name(session.api, target) if "@" in target else target
    place = target.removeprefix("drops/").strip("/")
    if any(part in ("", ".", "..") for part in place.split("/")):
        raise CliError(f"{target!r} is not a drop: write route/name, without empty parts, '.' or '..'.")
    route, _, name = place.partition("/")
    return route, name


@dataclass
class _Upload:
    """An upload from a folder to a drop, with the state of the drop before the upload."""

    session: Session
    container: Any
    source: Path
    route: str
    name: str
    job_file: Path | None
    trains: bool

    @property
    def drop(self) -> str:
        return f"{self.route}/{self.name}"

    def plan(self) -> Plan:
        items = drop_upload.items(self.source, self.route, self.name)
        return drop_upload.plan(
            self.container, self.drop, arguments.with_job_file(items, self.drop, self.job_file), lambda _: None
        )

    def free_name(self) -> str:
        return drop_upload.free_name(self.container, self.route, self.name)

    def decided(self, todo: Plan, choice: str) -> tuple[Plan, str]:
        """Return the plan and the choice, after asking if two people may be uploading different folders.

        A new name may exist already, too, so the answer `new` plans again.
        """
        if choice not in ("", NEW) or not (why := _why_ask(todo, drop_upload.whose(self.source))):
            return todo, choice
        choice = _ask(self.session, why, self.free_name())
        if choice == NEW:
            self.name = self.free_name()
            todo = self.plan()
        return todo, choice

    def send(self, todo: Plan, delete: bool) -> None:
        self.todo = todo
        self.before = find_drop(self.session.api, self.route, self.name)
        size = sum(item.size for item in (*todo.added, *todo.changed))
        with bar(self.session, "uploading", size) as progress:
            self.done = drop_upload.upload(self.container, todo, progress, delete, self._said())

    def _said(self) -> dict[str, str]:
        """Return the uploader's name in this Trainyard, by which `runs --mine` finds the drop's run, and the place of
        the source.
        """
        return {
            drop_upload.OWNER: self.session.api.get("me")["name"] or local_name(),
            drop_upload.BY: drop_upload.whose(self.source),
        }

    def finish(self, again: bool, following: bool) -> None:
        """Print the result of the upload and the run. Follow the run, and train unchanged content again, if the
        options ask for it.
        """
        done, session = self.done, self.session
        drop = self._closed(following)
        run = str(drop.get("run") or "") if drop.get("state") == "sealed" else ""
        unchanged = bool(run) and (not done.marked or self._is_old(drop))
        if again and unchanged:
            key = {"Idempotency-Key": uuid.uuid4().hex}
            run = session.api.post("drops", self.route, self.name, "again", headers=key)["run"]
            unchanged = False
        result: Dropped = {
            **_plan_as_json(self.todo),
            "drop": self.drop,
            "files": done.files,
            "bytes": done.bytes,
            "kept": done.kept,
            "deleted": done.deleted,
            "closed": done.marked,
            "run": run,
            "generation": drop.get("generation", 0),
            "trained_before": unchanged,
        }
        words = _done_words(self.drop, done, run, unchanged, session.program)
        if not self.trains:
            words += f"\nIt is generation {drop['generation']} of its data." if drop.get("state") == "sealed" else ""
        if following and run:
            session.remark(words)
            end_with(follow(session, run))
            return
        session.print_result(result, words)
        if unchanged:
            session.remark(f"See it: {session.program} show {run}", "dim")
            return
        if not self.trains:
            session.remark(f"Train with it: {session.program} submit TRAINER-OR-FOLDER --data drops/{self.drop}", "dim")
            return
        hint = f"logs -f {run}" if run else f"show {self.drop}"
        session.remark(f"Watch it: {session.program} {hint}", "dim")

    def _closed(self, following: bool) -> dict[str, Any]:
        before = self.before if self.done.marked else {}
        if not self.done.marked and self.before.get("state") not in ("sealed", "rejected"):
            return self.before
        if following:
            with Screen(self.session.err, {}).shown() as screen:
                return wait_for_drop(self.session.api, self.drop, before, screen)
        with Screen(self.session.err, {}).shown() as screen:
            return wait_for_drop(self.session.api, self.drop, before, screen, RUN_SECONDS)

    def _is_old(self, drop: dict[str, Any]) -> bool:
        """Return whether a generation from before the upload had the drop's content, and so its run.

        The verdict's code does not tell: a late event of this very upload lets the drop be checked once more, and the
        verdict is then `unchanged`.
        """
        last = int(self.before.get("generation", 0))
        if not last or drop["generation"] <= last:
            return bool(last)
        try:
            rows = self.session.api.get("drops", self.route, self.name, "generations")
        except NotFound:
            return False
        return any(row["run"] == drop["run"] and row["number"] <= last for row in rows)


def _summary(todo: Plan, delete: bool) -> str:
    """Return the current content of the drop and the changes, in one sentence."""
    if todo.is_new:
        return f"drops/{todo.drop} is new: {file_count(len(todo.added))}."
    if not (todo.added or todo.changed or todo.gone):
        return f"drops/{todo.drop} already has this content: {file_count(len(todo.same))}."
    gone = f"{len(todo.gone)} {'to delete' if delete else 'only in the drop'}{_names(todo.gone, todo.drop)}"
    parts = [
        f"{len(todo.added)} added{_names([item.blob for item in todo.added], todo.drop)}",
        f"{len(todo.changed)} changed{_names([item.blob for item in todo.changed], todo.drop)}",
        gone,
        f"{len(todo.same)} the same",
    ]
    return f"drops/{todo.drop}: {'; '.join(part for part in parts if not part.startswith('0 '))}."


def _names(blobs: Any, drop: str) -> str:
    shown = [one_line(name.removeprefix(f"{drop}/")) for name in blobs[:NAMED]]
    more = f" and {len(blobs) - NAMED} more" if len(blobs) > NAMED else ""
    return f" ({', '.join(shown)}{more})" if shown else ""


def _why_ask(todo: Plan, ours: str) -> str:
    """Return the reason why two people may be uploading different folders to this drop, as a sentence; '' if there
    is none.
    """
    if todo.gone:
        names = _names(todo.gone, todo.drop)
        return f"drops/{todo.drop} holds {file_count(len(todo.gone))} that the folder does not have{names}."
    if (todo.changed or todo.added) and todo.by not in ("", ours):
        return f"drops/{todo.drop} was uploaded by {one_line(todo.by)}."
    return ""


def _ask(session: Session, why: str, free: str) -> str:
    """Ask how to handle the existing drop. Raises CliError if nobody can answer, or if the answer is to stop."""
    choices = f"--merge keeps both, --delete makes the drop match the folder, --new uploads to {free} instead"
    if not session.err.is_terminal or session.as_json:
        raise CliError(f"{why} Choose one: {choices}.", "would_merge")
    session.remark(f"{why} {choices.replace('--', '')}.", "yellow")
    answer = Prompt.ask("What to do", console=session.err, choices=[MERGE, DELETE, NEW, STOP], default=STOP)
    if answer == STOP:
        raise CliError("Nothing was uploaded.", "stopped")
    return answer


def _plan_as_json(todo: Plan) -> DropPlan:
    def names(blobs: Any) -> list[str]:
        return [blob.removeprefix(f"{todo.drop}/") for blob in blobs]

    return {
        "drop": todo.drop,
        "added": names(item.blob for item in todo.added),
        "changed": names(item.blob for item in todo.changed),
        "gone": names(todo.gone),
        "same": len(todo.same),
    }


def _done_words(drop: str, done: drop_upload.Uploaded, run: str, unchanged: bool, program: str) -> str:
    kept = f"; {file_count(done.kept)} were there" if done.kept else ""
    deleted = f"; {done.deleted:,} deleted" if done.deleted else ""
    words = f"{file_count(done.files)}, {done.bytes:,} bytes, uploaded to drops/{drop}{kept}{deleted}."
    if not done.files and not done.deleted:
        words = f"Nothing was uploaded to drops/{drop}: it already has every file."
    if unchanged:
        return f"{words}\nThis content was trained before: run {run}. Train it once more: {program} drop ... --again"
    return f"{words}\nrun {run}" if run else words

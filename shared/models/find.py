"""Resolve a name, for example `churn@production`, `churn@4` or `churn/4`, to a version."""

from __future__ import annotations

from shared.kernel.errors import NotFound
from shared.kernel.suggest import did_you_mean, there_are
from shared.models.model import NAME, NUMBER, TAKEN, Change, ChangeKind, Model, Version
from shared.models.ports import Models

REMEMBERED = 1000  # newest lines of the history that are searched for a decision


def version_of(models: Models, name: str, which: str) -> Version:
    """Return the version that an alias or a number names. Raises NotFound with the existing names."""
    model = model_named(models, name)
    if NUMBER.fullmatch(which):
        return version_named(models, name, int(which))
    if alias := model.aliases.get(which):
        return version_named(models, name, alias.number)
    near = did_you_mean(which, model.aliases)
    raise NotFound(f"Model {name} has no alias {which[:80]!r}.{near} It has: {there_are(model.aliases)}.")


def run_of(models: Models, text: str) -> str | None:
    """Return the run of the version that `churn@production`, `churn@4` or `churn/4` means; None for any other name.

    `churn/4` is a drop, too: it means the version if there is one. Raises NotFound for a model without the version that
    `@` names.
    """
    name, at, which = text.strip().partition("@")
    if not at:
        return _run_of_number(models, text.strip())
    if which.partition(":")[0] in TAKEN or not NAME.fullmatch(name) or models.get(name) is None:
        return None
    return version_of(models, name, which).run


def _run_of_number(models: Models, text: str) -> str | None:
    name, slash, number = text.partition("/")
    if not slash or not NAME.fullmatch(name) or not NUMBER.fullmatch(number):
        return None
    version = models.version(name, int(number))
    return version.run if version and version.let_go_at is None else None


def version_named(models: Models, name: str, number: int) -> Version:
    """Return the version. Raises NotFound with the existing numbers."""
    version = models.version(name, number)
    if version is None or version.let_go_at is not None:
        model_named(models, name)
        numbers = ", ".join(str(each.number) for each in models.versions(name, 20)) or "none"
        gone = " any more" if version else ""
        raise NotFound(f"Model {name} has no version {number}{gone}. It has: {numbers}.")
    return version


def model_named(models: Models, name: str) -> Model:
    """Return the model. Raises NotFound with the other models' names."""
    if stored := models.get(name):
        return stored.value
    names = [model.name for model in models.all()]
    raise NotFound(f"There is no model {name[:80]!r}.{did_you_mean(name, names)} There are: {there_are(names)}.")


def version_of_run(models: Models, name: str, run: str) -> Version | None:
    """Return the version of the model that is this run, unless it was released."""
    return next((version for version in models.kept() if (version.model, version.run) == (name, run)), None)


def decision_of(models: Models, name: str, alias: str, run: str) -> Change | None:
    """Return the line of the history with the verdict on the run, or with the run's earlier alias.

    The line names the run, because the run's version may be released by now. Lines of earlier versions of Trainyard
    name only a loser.
    """
    version = version_of_run(models, name, run)
    for line in models.history(name, REMEMBERED):
        if line.alias != alias or line.what not in (ChangeKind.LOST, ChangeKind.ALIAS):
            continue
        number = version.number if version and not line.run else 0
        if line.run == run or (number and line.after == number):
            return line
    return None


def aliases_of(model: Model, number: int) -> list[str]:
    """Return the aliases of this version."""
    return sorted(name for name, alias in model.aliases.items() if alias.number == number)


def chosen_by(model: Model) -> str:
    """Return the metric of the latest comparison of the model's versions; '' without a comparison."""
    return next(iter(model.goals), "")

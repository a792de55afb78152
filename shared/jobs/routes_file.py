"""Read the routes file: which folder of the drops container becomes which training. routes.yaml explains the keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from shared.jobs.card import read_card
from shared.jobs.command import LAUNCHER
from shared.jobs.data_rule import read_rule
from shared.jobs.limits import CODE, DAY, RESTRICTED, UPLOAD_MIB, Limits
from shared.jobs.parameters import Parameters
from shared.jobs.readers.azureml import path_of
from shared.jobs.readers.place_text import read_asset
from shared.jobs.readers.trainer import read_template, trainer_names, trainer_template, yaml_object
from shared.jobs.route import JobFileRule, Retention, Route, Routes, RoutesFile
from shared.jobs.route_model import read_model
from shared.jobs.route_sweep import read_sweep
from shared.jobs.spec import JobSpec
from shared.jobs.vm_size import gpus_of_entry
from shared.kernel.errors import BadSetting
from shared.kernel.names import COMPUTE, COMPUTE_RULE, NAME
from shared.kernel.suggest import did_you_mean

NUMBERS = {  # key: (default, least, most)
    "resubmissions": (10, 0, 1000),
    "move_after": (3, 1, 100),
    "move_within_seconds": (3600, 60, 7 * DAY),
    "max_nodes": (1, 1, 1000),
    "max_processes": (64, 1, 1000),
    "gpus": (-1, 0, 64),  # -1: as many as the VM size has
    "single_files": (0, 0, 1000),
    "timeout_seconds": (DAY, 60, 30 * DAY),
    "within_seconds": (0, 1, 30 * DAY),
    "takes_seconds": (0, 1, 30 * DAY),
    "quiet_seconds": (60, 0.1, 7 * DAY),
    "settle_seconds": (3, 0, 3600),
    "max_wait_seconds": (3600, 1, 30 * DAY),
}
KEYS = {
    "trainer",
    "template",
    "cluster",
    "nodes",
    "experiment",
    "job_file",
    "clusters",
    "move_to",
    "allow",
    "project",
    "retention",
    "vm_size",
    "model",
    "sweep",
    "check",
    "data",
    "card",
    "on_hang",
    *NUMBERS,
}
ON_HANG = ("cancel", "retry", "tell")
LIMITS = {"clusters", "max_nodes", "max_processes", "timeout_seconds", "max_upload_mib", "cluster", "allow"}
RETENTION_KEYS = ("checkpoints", "copies", "drops")
NOTHING = "none"  # the trainer of a route that trains nothing
OF_DATA = {
    "trainer",
    "quiet_seconds",
    "settle_seconds",
    "max_wait_seconds",
    "single_files",
    "retention",
    "check",
    "data",
}


def load(file: Path, trainers: Path, also_allowed: Iterable[str] = ()) -> RoutesFile:
    """Read the routes file and its templates. Raises BadSetting with the file, route, key and choices.

    `also_allowed` are parts of jobs without a route that are allowed beside those under `limits`.
    """
    document = yaml_object(file)
    entries = document.get("routes")
    if not isinstance(entries, dict) or not entries or not set(document) <= {"routes", "limits"}:
        raise BadSetting(
            f"{file}: expected the top-level key routes, with at least one route, and at most limits beside it; "
            f"found {_list(map(str, document))}."
        )
    routes = {str(name): _route(str(name), entry, file, trainers) for name, entry in entries.items()}
    limits = _limits(document.get("limits") or {}, routes, f"{file}: limits")
    also = _allow({"allow": list(also_allowed)}, "TRAINYARD_ALLOW")
    limits = replace(limits, allow=limits.allow | also)
    return RoutesFile({**_own_routes(routes, limits, trainers), **routes}, limits)


def _own_routes(routes: Routes, limits: Limits, trainers: Path) -> dict[str, Route]:
    """A route for each trainer without a route in the file, with the trainer's name and the file's limits."""
    named = {*routes, *(route.trainer for route in routes.values())}
    own = (_own_route(name, limits, trainers) for name in trainer_names(trainers) if name not in named)
    return {route.name: route for route in own if route.cluster}


def _own_route(name: str, limits: Limits, trainers: Path) -> Route:
    template, described = trainer_template(trainers, name)
    nodes = min(template.node_count, limits.max_nodes)
    where = f"{trainers / name}: job.yaml"
    cluster, experiment = template.cluster or limits.cluster, template.experiment or name
    if limits.clusters is not None and cluster and cluster not in limits.clusters:
        raise BadSetting(
            f"{where}: {path_of('cluster')} is {cluster!r}; the routes file allows {_list(limits.clusters)}."
        )
    if not NAME.fullmatch(experiment):
        raise BadSetting(
            f"{where}: {path_of('experiment')} is {experiment!r}; use letters, digits, dashes and underscores."
        )
    return Route(
        name=name,
        template=template,
        parameters=described,
        template_timeout=bool(template.timeout_seconds),
        trainer=name,
        cluster=cluster,
        nodes=nodes,
        min_nodes=1 if template.is_elastic else 0,
        max_nodes=limits.max_nodes,
        max_processes=limits.max_processes,
        clusters=limits.clusters or frozenset(),
        experiment=experiment,
        timeout_seconds=limits.timeout_seconds,
        quiet_seconds=NUMBERS["quiet_seconds"][0],
        settle_seconds=NUMBERS["settle_seconds"][0],
        max_wait_seconds=NUMBERS["max_wait_seconds"][0],
        job_file=JobFileRule(),
    )


def _limits(section: Any, routes: Routes, where: str) -> Limits:
    """The limits of jobs without a route: from the file, else the widest limits of the routes."""
    if not isinstance(section, dict) or not set(section) <= LIMITS:
        raise BadSetting(f"{where} must be a mapping with keys from {_list(LIMITS)}.")
    widest = widest_limits(routes)
    numbers = {
        key: _number(section.get(key, getattr(widest, key)), key, *NUMBERS[key][1:], where)
        for key in ("max_nodes", "max_processes", "timeout_seconds")
    }
    clusters, cluster = section.get("clusters"), str(section.get("cluster", ""))
    allowed = None if clusters == "any" else _names(clusters, "clusters", where) or widest.clusters
    if cluster and (not COMPUTE.fullmatch(cluster) or (allowed is not None and cluster not in allowed)):
        raise BadSetting(f"{where}: cluster is {cluster!r}; choose one of {_list(allowed or ())}.")
    return Limits(
        clusters=allowed,
        cluster=cluster,
        max_nodes=int(numbers["max_nodes"]),
        max_processes=int(numbers["max_processes"]),
        timeout_seconds=numbers["timeout_seconds"],
        allow=_allow(section, where),
        max_upload_mib=int(_number(section.get("max_upload_mib", UPLOAD_MIB), "max_upload_mib", 1, 5000, where)),
    )


def widest_limits(routes: Routes) -> Limits:
    """For each limit, the widest value among the routes. No restricted part of a job is allowed."""
    each = [route.limits for route in routes.values() if route.trains]
    if not each:
        return Limits(clusters=frozenset(), max_nodes=1, max_processes=1, timeout_seconds=NUMBERS["timeout_seconds"][0])
    return Limits(
        clusters=frozenset().union(*(limits.clusters or () for limits in each)),
        max_nodes=max(limits.max_nodes for limits in each),
        max_processes=max(limits.max_processes for limits in each),
        timeout_seconds=max(limits.timeout_seconds for limits in each),
    )


def _form_of(key: str) -> tuple[re.Pattern[str], str]:
    """The form of the names under this key, and the rule in words."""
    if key in ("cluster", "clusters", "move_to"):
        return COMPUTE, COMPUTE_RULE
    return NAME, "use letters, digits, dashes and underscores"


def _names(value: Any, key: str, where: str) -> frozenset[str]:
    form, rule = _form_of(key)
    if not isinstance(value or [], list) or not all(form.fullmatch(str(name)) for name in value or []):
        raise BadSetting(f"{where}: {key} is {value!r}; give a list of names: {rule}.")
    return frozenset(map(str, value or []))


def _allow(entry: dict[str, Any], where: str) -> frozenset[str]:
    allow = _names(entry.get("allow"), "allow", where)
    if unknown := allow - {CODE, *RESTRICTED}:
        raise BadSetting(f"{where}: allow names {_list(unknown)}; choose from {_list([CODE, *RESTRICTED])}.")
    return allow


def _route(name: str, entry: Any, file: Path, trainers: Path) -> Route:
    where = f"{file}: route {name!r}"
    _check_keys(entry, where)
    if entry.get("trainer") == NOTHING:
        return _data_route(name, entry, where)
    _check_names(entry, name, where)
    numbers = _numbers(entry, where)
    fewest, nodes = _nodes_up_to(entry, numbers["max_nodes"], where)
    template, described = _template(entry, where, file, trainers)
    if fewest and not template.is_elastic:
        raise BadSetting(f"{where}: nodes is a range, but its job does not start {LAUNCHER}; give one number.")
    return Route(
        name=name,
        template=template,
        parameters=described,
        template_timeout="timeout_seconds" not in entry and bool(template.timeout_seconds),
        trainer=str(entry.get("trainer", "")),
        cluster=str(entry["cluster"]),
        nodes=nodes,
        min_nodes=fewest,
        max_nodes=max(nodes, int(numbers.pop("max_nodes"))),
        resubmissions=int(numbers.pop("resubmissions")),
        move_to=str(entry.get("move_to", "")),
        move_after=int(numbers.pop("move_after")),
        max_processes=int(numbers.pop("max_processes")),
        vm_size=str(entry.get("vm_size", "")),
        gpus=gpus_of_entry(entry, int(numbers.pop("gpus")), where),
        single_files=int(numbers.pop("single_files")),
        clusters=_names(entry.get("clusters"), "clusters", where),
        allow=_allow(entry, where),
        experiment=str(entry.get("experiment", name)),
        project=str(entry.get("project", "")),
        job_file=_job_file_rule(entry.get("job_file", "allowed"), where),
        model=read_model(entry.get("model"), where, described),
        sweep=read_sweep(entry.get("sweep"), described, where),
        retention=_retention(entry.get("retention") or {}, where),
        data=read_rule(entry.get("check"), entry.get("data"), where),
        card=read_card(trainers / entry["trainer"] if entry.get("trainer") else None, entry.get("card"), where),
        on_hang=_on_hang(entry, where),
        **numbers,
    )


def _nodes_up_to(entry: dict[str, Any], most: float, where: str) -> tuple[int, int]:
    fewest, nodes = _nodes(entry.get("nodes", 1), where)
    if "max_nodes" in entry and nodes > most:
        raise BadSetting(f"{where}: nodes is {nodes}, but max_nodes is {most:g}; raise max_nodes, or lower nodes.")
    return fewest, nodes


def _on_hang(entry: dict[str, Any], where: str) -> str:
    said = entry.get("on_hang", "")
    if "on_hang" in entry and said not in ON_HANG:
        raise BadSetting(f"{where}: on_hang is {said!r}; choose from {_list(ON_HANG)}.")
    return str(said)


def _check_keys(entry: Any, where: str) -> None:
    if not isinstance(entry, dict):
        raise BadSetting(f"{where} must be a mapping with the keys {_list(KEYS)}.")
    if unknown := set(entry) - KEYS:
        raise BadSetting(f"{where} has unknown keys {_list(unknown)}; choose from {_list(KEYS)}.")


def _check_names(entry: dict[str, Any], route: str, where: str) -> None:
    if not entry.get("cluster"):
        raise BadSetting(f"{where} does not name a cluster.")
    values = {"experiment": route, **entry}
    for key in ("cluster", "experiment", "move_to", "project"):
        form, rule = _form_of(key)
        if key in values and not form.fullmatch(str(values[key])):
            raise BadSetting(f"{where}: {key} is {values[key]!r}; {rule}.")


def _data_route(name: str, entry: dict[str, Any], where: str) -> Route:
    """A route without training: the drops are stored, numbered and found like other drops."""
    if unfit := set(entry) - OF_DATA:
        raise BadSetting(f"{where} does not train, so it can't have {_list(unfit)}; choose from {_list(OF_DATA)}.")
    numbers = _numbers(entry, where)
    return Route(
        name=name,
        template=JobSpec(),
        trainer="",
        cluster="",
        nodes=1,
        max_nodes=1,
        experiment=name,
        timeout_seconds=numbers["timeout_seconds"],
        quiet_seconds=numbers["quiet_seconds"],
        settle_seconds=numbers["settle_seconds"],
        max_wait_seconds=numbers["max_wait_seconds"],
        job_file=JobFileRule(allowed=False),
        single_files=int(numbers["single_files"]),
        retention=_retention(entry.get("retention") or {}, where),
        data=read_rule(entry.get("check"), entry.get("data"), where),
        trains=False,
    )


def _numbers(entry: dict[str, Any], where: str) -> dict[str, Any]:
    return {
        key: _number(entry[key], key, low, high, where) if key in entry else default
        for key, (default, low, high) in NUMBERS.items()
    }


def _retention(section: Any, where: str) -> Retention:
    """Days for which checkpoints, copies and drops are kept; 0: forever."""
    if not isinstance(section, dict) or not set(section) <= set(RETENTION_KEYS):
        raise BadSetting(f"{where}: retention must be a mapping with keys from {_list(RETENTION_KEYS)}.")
    return Retention(**{key: _number(days, f"retention.{key}", 0, 36500, where) for key, days in section.items()})


def _nodes(value: Any, where: str) -> tuple[int, int]:
    """The minimum number of nodes (0 for a plain number) and the maximum."""
    if not isinstance(value, dict):
        return 0, int(_number(value, "nodes", 1, 1000, where))
    if set(value) != {"min", "max"}:
        raise BadSetting(f"{where}: nodes is {value!r}; give a number, or {{min: ..., max: ...}}.")
    most = _number(value["max"], "nodes.max", 1, 100, where)
    return int(_number(value["min"], "nodes.min", 1, most, where)), int(most)


def _template(entry: dict[str, Any], where: str, file: Path, trainers: Path) -> tuple[JobSpec, Parameters]:
    if ("trainer" in entry) == ("template" in entry):
        raise BadSetting(f"{where} must name one of trainer and template.")
    if "template" in entry:
        job = file.parent / str(entry["template"])
        return read_template(job, job.with_suffix(".parameters.json"))
    choices = trainer_names(trainers)
    if entry["trainer"] not in choices:
        near = did_you_mean(str(entry["trainer"]), choices)
        raise BadSetting(f"{where} names trainer {entry['trainer']!r}; there are {_list(choices)}.{near}")
    return trainer_template(trainers, entry["trainer"])


def _job_file_rule(value: Any, where: str) -> JobFileRule:
    if value in ("allowed", "forbidden"):
        return JobFileRule(allowed=value == "allowed")
    if isinstance(value, dict) and set(value) == {"environments"} and isinstance(value["environments"], list):
        return JobFileRule(environments=tuple(read_asset(str(each)) for each in value["environments"]))
    raise BadSetting(f"{where}: job_file is {value!r}; choose allowed, forbidden or {{environments: [...]}}.")


def _number(value: Any, key: str, low: float, high: float, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadSetting(f"{where}: {key} is {value!r}; it must be a number from {low:g} to {high:g}.")
    return value


def _list(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"

"""A query of Azure Monitor's metrics: the parameters, read by the service's rules, and the answer. No I/O.

Contract: https://github.com/Azure/azure-rest-api-specs,
specification/monitor/resource-manager/Microsoft.Insights/stable/2024-02-01/metrics_API.json.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import Json, seconds
from emulators.azureml.metrics.definitions import DEFINITIONS, Definition

MOST_NAMES = 20  # "At most 20 metric names can be specified."
TOP = 10  # "Defaults to 10."
AGGREGATIONS = ("average", "count", "maximum", "minimum", "total")
GRAINS = ("PT1M", "PT5M", "PT15M", "PT30M", "PT1H", "PT6H", "PT12H", "P1D")
CONDITION = re.compile(r"\s*([\w./ -]+?)\s+eq\s+'((?:[^']|'')*)'\s*", re.IGNORECASE)
JOINED = re.compile(r"(and|or)\s+", re.IGNORECASE)
MINUTE = 60


@dataclass(frozen=True)
class Sample:
    """The measurement of a metric in one minute. `minute` is its start, in Unix seconds."""

    minute: int
    dimensions: Mapping[str, str]
    count: int
    total: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class Query:
    """A checked request. `wanted` maps dimensions, in lower case, to the allowed values. `*` allows all."""

    metrics: tuple[Definition, ...]
    since: dt.datetime
    until: dt.datetime
    interval: str
    aggregations: tuple[str, ...]
    wanted: Mapping[str, frozenset[str]]
    top: int


def parse(given: Mapping[str, str], now: dt.datetime) -> Query:
    """Read the parameters of a request. Raises BadRequest in the service's words."""
    query = {key.lower(): value for key, value in given.items()}
    since, until = _timespan(query.get("timespan", ""), now)
    wanted = _filter(query.get("$filter", ""))
    metrics = _metrics(query.get("metricnames", ""))
    if query.get("validatedimensions", "true").lower() != "false":
        for metric in metrics:
            _check_dimensions(metric, wanted)
    interval = query.get("interval", "PT1M")
    if interval.upper() not in (*GRAINS, "FULL"):
        raise BadRequest(f"Invalid time grain duration: {interval}, supported ones are: {','.join(GRAINS)}")
    asked = tuple(name.strip().lower() for name in query.get("aggregation", "average").split(","))
    if unknown := [name for name in asked if name not in AGGREGATIONS]:
        raise BadRequest(f"Invalid aggregation type: {unknown[0]}, supported ones are: {','.join(AGGREGATIONS)}")
    if not (top := query.get("top", str(TOP))).isdecimal() or not int(top[:9]):
        raise BadRequest(f"The 'top' parameter is {top!r:.40}; it must be a positive number.")
    return Query(metrics, since, until, interval.upper(), asked, wanted, int(top[:9]))


def _metrics(text: str) -> tuple[Definition, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()] or ["CpuUtilizationPercentage"]
    if len(names) > MOST_NAMES:
        raise BadRequest(f"The number of metric names is {len(names)}; at most {MOST_NAMES} can be specified.")
    if unknown := [name for name in names if name.lower() not in DEFINITIONS]:
        valid = ",".join(each.name for each in DEFINITIONS.values())
        # The words of https://github.com/Azure/azure-sdk-for-net/issues/25779
        raise BadRequest(
            "Failed to find metric configuration for provider: Microsoft.MachineLearningServices, resource Type: "
            f"workspaces, metric: {unknown[0]}, Valid metrics: {valid}"
        )
    return tuple(DEFINITIONS[name.lower()] for name in names)


def _timespan(text: str, now: dt.datetime) -> tuple[dt.datetime, dt.datetime]:
    """Return begin and end. A duration, for example PT30M, ends now, because azure-monitor-query 1.4 sends
    durations."""
    if not text:
        return now - dt.timedelta(hours=1), now
    if text.startswith("P"):
        try:
            return now - dt.timedelta(seconds=seconds(text)), now
        except ValueError:
            raise BadRequest(f"Invalid timespan: {text:.100}. Give an ISO 8601 duration such as PT30M.") from None
    try:
        begin, end = (dt.datetime.fromisoformat(part) for part in text.split("/"))
        since, until = (each if each.tzinfo else each.replace(tzinfo=dt.UTC) for each in (begin, end))
    except ValueError:
        raise BadRequest(f"Invalid timespan: {text:.100}. Give startDateTime_ISO/endDateTime_ISO.") from None
    if since >= until:
        raise BadRequest(f"Start time {begin} must be before end time {end}.")
    return since, until


def _filter(text: str) -> dict[str, frozenset[str]]:
    """Read `A eq 'a1' or A eq 'a2' and B eq '*'`: "the logical or operator cannot separate two different metadata
    names"."""
    found: dict[str, frozenset[str]] = {}
    rest, joined, last = text, "and", ""
    while rest:
        if not (condition := CONDITION.match(rest)):
            raise BadRequest(f"Invalid filter: {text:.200}")
        name, value = condition[1].lower(), condition[2].replace("''", "'")
        if joined == "or" and name != last:
            raise BadRequest(f"Invalid filter: {text:.200}. 'or' can't separate two different metadata names.")
        found[name] = found.get(name, frozenset()) | {value}
        rest, last = rest[condition.end() :], name
        if rest and (word := JOINED.match(rest)):
            joined, rest = word[1].lower(), rest[word.end() :]
        elif rest:
            raise BadRequest(f"Invalid filter: {text:.200}")
    return found


def _check_dimensions(metric: Definition, wanted: Iterable[str]) -> None:
    if all(metric.spelled(name) for name in wanted):
        return
    # The words of https://learn.microsoft.com/azure/azure-monitor/metrics/migrate-to-batch-api
    raise BadRequest(
        f"Metric: {metric.name} does not support requested dimension combination: {','.join(wanted)}, supported ones "
        f"are: {','.join(metric.dimensions)}, TraceId: {{{uuid.uuid4()}}}"
    )


def answer(query: Query, samples: Mapping[str, list[Sample]], resource: str, region: str) -> Json:
    """Return the response's body. `samples` has the samples of each metric within the query's time."""
    return {
        "cost": round((query.until - query.since).total_seconds() / MINUTE) * len(query.metrics),
        "timespan": f"{_text(query.since)}/{_text(query.until)}",
        "interval": query.interval,
        "value": [_metric(query, metric, samples.get(metric.name, []), resource) for metric in query.metrics],
        "namespace": "Microsoft.MachineLearningServices/workspaces",
        "resourceregion": region,
    }


def _metric(query: Query, metric: Definition, samples: list[Sample], resource: str) -> Json:
    wanted = {spelled: values for name, values in query.wanted.items() if (spelled := metric.spelled(name))}
    by_series: dict[tuple[str, ...], list[Sample]] = {}
    for sample in samples:
        if all("*" in values or sample.dimensions.get(name) in values for name, values in wanted.items()):
            by_series.setdefault(tuple(sample.dimensions.get(name, "") for name in wanted), []).append(sample)
    most = query.top if query.wanted else 1  # "Valid only if $filter is specified."
    return {
        "id": f"{resource}/providers/Microsoft.Insights/metrics/{metric.name}",
        "type": "Microsoft.Insights/metrics",
        "name": {"value": metric.name, "localizedValue": metric.name},
        "displayDescription": metric.words,
        "unit": "Count",
        "timeseries": [
            {"metadatavalues": _metadata(wanted, key), "data": _data(query, its)}
            for key, its in list(by_series.items())[:most]
        ],
        "errorCode": "Success",
    }


def _metadata(names: Iterable[str], values: Iterable[str]) -> list[Json]:
    """Return the dimensions of a series. Their names are in lower case, as in the specification's examples."""
    return [
        {"name": {"value": name.lower(), "localizedValue": name.lower()}, "value": value}
        for name, value in zip(names, values, strict=True)
    ]


def _data(query: Query, samples: list[Sample]) -> list[Json]:
    """Return one point for each interval. An interval without a measurement has a time and no value."""
    begin = int(query.since.timestamp()) // MINUTE * MINUTE
    end = query.until.timestamp()
    step = int(end - begin) + 1 if query.interval == "FULL" else int(seconds(query.interval))
    by_time: dict[int, list[Sample]] = {}
    for sample in samples:
        by_time.setdefault((sample.minute - begin) // step, []).append(sample)
    return [
        {"timeStamp": _text(dt.datetime.fromtimestamp(begin + number * step, dt.UTC)), **_values(query, its)}
        for number in range(math.ceil((end - begin) / step))
        for its in [by_time.get(number, [])]
    ]


def _values(query: Query, samples: list[Sample]) -> Json:
    if not samples:
        return {}
    count, total = sum(each.count for each in samples), sum(each.total for each in samples)
    found = {
        "average": total / count,
        "count": float(count),
        "maximum": max(each.maximum for each in samples),
        "minimum": min(each.minimum for each in samples),
        "total": total,
    }
    return {name: found[name] for name in query.aggregations}


def _text(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

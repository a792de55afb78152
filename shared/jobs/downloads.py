"""Parameter values for which the nodes download a file, such as pretrained weights: is the file within reach?

A description of a parameter lists such values under DOWNLOADS:

    "weights": {"default": "imagenet", ..., "x-downloads": {"imagenet": {
        "from": "https://download.pytorch.org/models/", "cached": "hub/checkpoints/{backbone}-*.pth",
        "instead": "Choose -p weights=none ..."}}}

`from` is an address of the server, `cached` the pattern of a file in PyTorch's cache folder with which nothing is
downloaded, and `instead` the advice for nodes that can't reach the server. {name} is the value of a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from shared.jobs.parameters import DOWNLOADS, Parameters
from shared.jobs.ports import Jobs
from shared.jobs.problem import Problem
from shared.jobs.spec import JobSpec
from shared.kernel.errors import Unavailable

NOT_AVAILABLE = "not_available"  # the code of such a problem
_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_]+)\}")


def out_of_reach(jobs: Jobs, schemas: Parameters, job: JobSpec) -> Iterator[Problem]:
    """Problems of values whose file the nodes can't download. A workspace that can't answer now causes no problem."""
    for name, schema in schemas.items():
        value = job.values.get(name)
        download = schema.get(DOWNLOADS, {}).get(value) if isinstance(value, str) else None
        if download and (why := _unreachable(jobs, download, job.values)):
            words = f"is {value!r}, which the nodes download from {download['from']}. {why} {download['instead']}"
            yield Problem(f"parameters.{name}", words, NOT_AVAILABLE)


def _filled_in(values: Mapping[str, Any], placeholder: re.Match[str]) -> str:
    return str(values.get(placeholder[1], ""))


def _unreachable(jobs: Jobs, download: Mapping[str, str], values: Mapping[str, Any]) -> str:
    try:
        return jobs.unreachable(download["from"], _PLACEHOLDER.sub(partial(_filled_in, values), download["cached"]))
    except Unavailable:
        return ""

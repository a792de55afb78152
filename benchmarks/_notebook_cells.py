"""Run the code cells of one notebook, in a Python that has azure-ai-ml and what the notebook imports.

    python benchmarks/_notebook_cells.py NOTEBOOK RESULT SECONDS

The working directory is the notebook's folder. The environment has the variables of a local cloud
(`Cloud.azureml_env`). MLClient gets that cloud's workspace and address, whatever the notebook says; everything else
runs as written. After each cell, the program waits at most SECONDS for the jobs that the cell created, as a person who
reads the notebook does. RESULT becomes a JSON file: `{"cells", "cell", "error", "jobs": {name: [status, reason]}}`,
where `cell` is the number of the cell that failed, or null.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

PREVIEW = "AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED"  # the SDK reads it once, at its import
CLUSTERS = ("cpu-cluster", "gpu-cluster")  # the names in Azure's examples
ENDED, LOOK_SECONDS = ("Completed", "Failed", "Canceled"), 1.0
WRITE_FILE = re.compile(r"%%writefile\s+(?:-a\s+)?(\S+)\n?")


def code_cells(notebook: str) -> list[str]:
    """Return the source of each code cell that has one."""
    cells = json.loads(notebook)["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [source for source in sources if source.strip()]


def run_cell(source: str, names: dict[str, Any]) -> None:
    """Run the cell. `%%writefile` writes its file; the cell does without other magics and shell commands."""
    if found := WRITE_FILE.match(source):
        Path(found[1].format(**names)).write_text(source[found.end() :])
        return
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()]
    exec(compile("\n".join(lines), "<cell>", "exec", dont_inherit=True), names)


def use_local_cloud(created: list[str]) -> None:
    """Make each MLClient one of the local cloud, and add the names of jobs that it creates to `created`."""
    from azure.ai.ml import MLClient
    from azure.ai.ml.operations import JobOperations

    scope = [os.environ[f"AML_{name}"] for name in ("SUBSCRIPTION_ID", "RESOURCE_GROUP", "WORKSPACE")]
    address = json.loads(os.environ["AML_CLIENT_KWARGS"])
    begin, create = MLClient.__init__, JobOperations.create_or_update

    def here(self: Any, credential: Any, *_: Any, registry_name: str | None = None, **__: Any) -> None:
        begin(self, credential, *([] if registry_name else scope), registry_name=registry_name, **address)

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        job = create(self, *args, **kwargs)
        created.append(job.name)
        return job

    MLClient.__init__, JobOperations.create_or_update = here, noted
    MLClient.from_config = classmethod(lambda cls, credential, **_: cls(credential))


def make_clusters(client: Any) -> None:
    """Create the clusters that the workspace lacks."""
    from azure.ai.ml.entities import AmlCompute

    for name in sorted({*CLUSTERS} - {each.name for each in client.compute.list()}):
        made = AmlCompute(name=name, size="Standard_D2s_v5", max_instances=4, idle_time_before_scale_down=30)
        client.compute.begin_create_or_update(made).result()


def ended(client: Any, name: str, until: float) -> list[str]:
    """Return the job's status and the reason of a failure, once the job has ended or the time `until` has come."""
    while (status := client.jobs.get(name).status) not in ENDED:
        if time.monotonic() > until:
            client.jobs.begin_cancel(name)
            return ["unfinished", "It had not ended in time."]
        time.sleep(LOOK_SECONDS)
    if status != "Failed":
        return [status, ""]
    try:
        client.jobs.stream(name)
    except Exception as error:  # noqa: BLE001 - the SDK raises the error of the job
        return [status, str(error)]
    return [status, ""]


def run(notebook: str, patience: float) -> dict[str, Any]:
    """Run the cells until one fails. Return what RESULT has."""
    if PREVIEW in notebook:
        os.environ[PREVIEW] = "True"
    from azure.ai.ml import MLClient
    from azure.identity import DefaultAzureCredential

    created: list[str] = []
    use_local_cloud(created)
    client, names = MLClient(DefaultAzureCredential()), {"__name__": "__main__"}
    jobs: dict[str, list[str]] = {}
    make_clusters(client)
    cells = code_cells(notebook)
    for number, source in enumerate(cells, 1):
        try:
            run_cell(source, names)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the cell raises is the outcome
            failed = {"cell": number, "error": f"{type(error).__name__}: {error}"}
            return {"cells": len(cells), **failed, "jobs": jobs | {name: ["", ""] for name in created}}
        until = time.monotonic() + patience
        jobs |= {name: ended(client, name, until) for name in created if name not in jobs}
    return {"cells": len(cells), "cell": None, "error": "", "jobs": jobs}


def main(argv: list[str]) -> int:
    notebook, result, seconds = argv
    sys.path.insert(0, str(Path.cwd()))
    with contextlib.redirect_stdout(sys.stderr):
        found = run(Path(notebook).read_text("utf-8"), float(seconds))
    Path(result).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A sweep's study, opened by a job on the local cloud."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from azure.data.tables import TableServiceClient

from local.cloud import Cloud, Options
from shared.adapters.sweeps.studies import JournalStudies
from shared.adapters.sweeps.study_table import TableJournal
from shared.jobs.search import Sweep
from shared.sweeps.model import TrialState
from tests.e2e.desk import ROOT, Desk

ASKS = """import os, sys
from functools import partial
from azure.data.tables import TableServiceClient
from optuna import load_study
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from shared.adapters.sweeps.study_table import TableJournal
connect = partial(TableServiceClient.from_connection_string, os.environ["STUDIES"])
study = load_study(study_name=sys.argv[1], storage=JournalStorage(TableJournal(connect, sys.argv[1])))
study.tell(study.ask({"lr": FloatDistribution(0.001, 0.1, log=True)}), 0.75)
"""


def test_a_job_asks_and_tells_in_a_study(tmp_path: Path) -> None:
    """A job uses the study with Optuna, as in docs/sweeps.md; the sweep then sees the trial and its value, but not
    as its own."""
    with Cloud.start(tmp_path / "cloud", Options(node_start_seconds=0.5)) as cloud:
        desk = Desk(cloud, tmp_path)
        tables = TableServiceClient.from_connection_string(desk.cloud.connection_string)
        studies, sweep = JournalStudies(lambda name: TableJournal(lambda: tables, name)), Sweep(metric="accuracy")
        studies.open("run-asked", sweep).commit()
        (desk.folder / "asks").mkdir()
        (desk.folder / "asks" / "ask.py").write_text(ASKS)
        pinned = [f"{name}=={version(name)}" for name in ("azure-data-tables", "azure-identity", "msgspec", "optuna")]
        job = {
            "command": "python ask.py run-asked",
            "code": "./asks",
            "environment": {"image": "python:3.11", "conda_file": {"dependencies": ["python", "pip", {"pip": pinned}]}},
            "compute": "azureml:cpu-cluster",
            "environment_variables": {"PYTHONPATH": str(ROOT), "STUDIES": desk.cloud.connection_string},
        }
        (desk.folder / "asks.json").write_text(json.dumps(job))
        assert desk.ask("submit", "asks.json", "--follow")["state"] == "completed"
        (trial,) = studies.trials("run-asked", sweep)
        assert (trial.own, trial.state, trial.told) == (False, TrialState.COMPLETED, [0.75])

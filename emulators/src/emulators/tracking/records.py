"""Jobs as MLflow's runs, and the workspace's models as versions in its registry.

MLflow names runs and numbers versions itself, and its API accepts no other names. So runs and versions are written as
rows, with MLflow's own models of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mlflow.entities import RunTag
from mlflow.store.model_registry.dbmodels.models import SqlModelVersion, SqlRegisteredModel
from mlflow.store.tracking.dbmodels.models import SqlRun, SqlTag
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NAME, MLFLOW_USER
from sqlalchemy import Engine, update
from sqlalchemy.orm import Session

Json = Mapping[str, Any]
OWNER = "workspace"


class Runs(SqlAlchemyStore):
    """MLflow's store, whose runs keep their files in the folders of the workspace's jobs."""

    def __init__(self, uri: str, artifact_root: str, run_files: str) -> None:
        super().__init__(uri, artifact_root)
        self._run_files = run_files

    def create_run(
        self, experiment_id: str, user_id: str, start_time: int, tags: list[RunTag], run_name: str | None
    ) -> Any:
        run = super().create_run(experiment_id, user_id, start_time, tags, run_name)
        with Session(self.engine) as session, session.begin():
            files = {"artifact_uri": self._files(run.info.run_id)}
            session.execute(update(SqlRun).where(SqlRun.run_uuid == run.info.run_id).values(files))
        return self.get_run(run.info.run_id)

    def put_jobs(self, jobs: Iterable[Json]) -> None:
        """Create a run for each job, under the job's name. An existing run only gets the job's status and times."""
        given = list(jobs)
        experiments = {name: self._experiment(name) for name in {job["experiment"] for job in given}}
        with Session(self.engine) as session, session.begin():
            for job in given:
                row = session.get(SqlRun, job["name"])
                if row is None:
                    row = SqlRun(
                        run_uuid=job["name"],
                        name=job["display_name"],
                        experiment_id=experiments[job["experiment"]],
                        artifact_uri=self._files(job["name"]),
                        source_type="JOB",
                        user_id=OWNER,
                        lifecycle_stage="active",
                    )
                    tags = {MLFLOW_RUN_NAME: job["display_name"], MLFLOW_USER: OWNER, **job["tags"]}
                    row.tags = [SqlTag(key=key, value=value) for key, value in tags.items()]
                    session.add(row)
                row.status, row.start_time, row.end_time = job["status"], job["start"], job["end"]

    def _experiment(self, name: str) -> int:
        found = self.get_experiment_by_name(name)
        return int(found.experiment_id if found else self.create_experiment(name))

    def _files(self, run: str) -> str:
        return self._run_files.format(run=run)


def put_models(engine: Engine, models: Iterable[Json]) -> None:
    """Create each model version that MLflow lacks. Existing versions are not changed."""
    with Session(engine) as session, session.begin():
        for model in models:
            name, workspace = model["name"], SqlRegisteredModel.__table__.c.workspace.default.arg
            if session.get(SqlRegisteredModel, (workspace, name)) is None:
                session.add(SqlRegisteredModel(name=name, description=model["description"]))
                session.flush()
            if session.get(SqlModelVersion, (workspace, name, model["version"])) is None:
                session.add(
                    SqlModelVersion(
                        name=name,
                        version=model["version"],
                        source=model["source"],
                        description=model["description"],
                        run_id=model["job"],
                        user_id=OWNER,
                    )
                )

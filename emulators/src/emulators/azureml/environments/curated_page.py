"""Writes docs/curated-environments.md: how this machine builds each of Microsoft's curated environments.

python -m emulators.azureml.environments.curated_page
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from emulators.azureml.environments.curated import FRAMEWORKS, LOCKED_FOR, LOCKS, matched, versions

PAGE = Path(__file__).parents[4] / "docs" / "curated-environments.md"
# Names in azureml-assets (assets/training/general/environments), and older ones that published job files use.
NAMES = (
    "acpt-pytorch-1.11-cuda11.3", "acpt-pytorch-1.12-cuda11.6", "acpt-pytorch-1.12-py39-cuda11.6",
    "acpt-pytorch-1.13-cuda11.7", "acpt-pytorch-2.0-cuda11.7", "acpt-pytorch-2.1-cuda12.1",
    "acpt-pytorch-2.2-cuda12.1", "acpt-pytorch-2.3-cuda12.1", "acpt-pytorch-2.4-cuda12.4",
    "acpt-pytorch-2.5-cuda12.4", "acpt-pytorch-2.7-cuda12.6", "acpt-pytorch-2.8-cuda12.6",
    "AzureML-pytorch-1.9-ubuntu18.04-py37-cuda11-gpu", "AzureML-pytorch-1.10-ubuntu18.04-py38-cuda11-gpu",
    "lightgbm-3.3", "AzureML-lightgbm-3.2-ubuntu18.04-py37-cpu",
    "sklearn-1.0", "sklearn-1.1", "sklearn-1.5",
    "AzureML-sklearn-0.24-ubuntu18.04-py37-cpu", "AzureML-sklearn-1.0-ubuntu20.04-py38-cpu",
    "tensorflow-2.16-cuda12", "AzureML-tensorflow-2.4-ubuntu18.04-py37-cuda11-gpu",
    "AzureML-tensorflow-2.12-cuda11", "AzureML-tensorflow-1.15-ubuntu18.04-py37-cpu",
    "acft-hf-nlp-gpu", "minimal-py311-inference", "AzureML-minimal-ubuntu18.04-py37-cpu-inference",
    "AzureML-responsibleai-0.20-ubuntu20.04-py38-cpu", "mldesigner", "mldesigner-minimal",
)  # fmt: skip
TEXT = """\
# Curated environments

Generated from the [locks](../src/emulators/azureml/environments/curated) by `python -m
emulators.azureml.environments.curated_page`. Do not edit.

A curated environment is a container image of Microsoft's. Here it is a virtual environment with the Python packages
that the published definition of the image asks for, locked for Python {pythons}.

- **same**: the lock of this name. System packages and CUDA are not part of it.
- **near**: the lock of the same framework. The job's log says what differs. For an exact version, give the job an
  environment with a conda file.
- **refused**: the job is refused before it is accepted.

A name that is not in the table is near if it contains {words}, and
otherwise refused.

| name | here | what differs |
|---|---|---|
{rows}

They have MLflow {mlflow}. An image in Azure has the version that was the newest when the image was built, up to
3.15.0 (azureml-mlflow 1.62 allows no later one). From 3.14 on, `mlflow.sklearn` writes skops files by default, and the
published definitions don't install skops; `mlflow.pytorch` needs an `input_example`. So a job that uses these defaults
runs here, and may fail in Azure: pass `serialization_format="cloudpickle"` (`"pickle"` for PyTorch).

From 2.17 on, MLflow's autolog and `log_model` ask for logged models, which Azure ML does not have (404): autolog then
writes a warning, and does not log the metrics. The images of earlier years have an earlier MLflow.
"""


def page() -> str:
    frameworks = [f"`{each.word}`" for each in FRAMEWORKS]
    return TEXT.format(
        pythons=" and ".join(LOCKED_FOR),
        words=f"{', '.join(frameworks[:-1])} or {frameworks[-1]}",
        rows="\n".join(_row(name) for name in NAMES),
        mlflow=_mlflow(),
    )


def _mlflow() -> str:
    """Return the version of most locks, and then each other version with its locks."""
    locks: dict[str, list[str]] = {}
    for lock in LOCKS:
        locks.setdefault(versions(lock)["mlflow-skinny"], []).append(lock)
    usual, *others = sorted(locks, key=lambda version: -len(locks[version]))
    return "; ".join([usual, *(f"{version} in {' and '.join(locks[version])}" for version in others)])


def _row(name: str) -> str:
    made = matched(name)
    if made.refused:
        return f"| {name} | refused | |"
    differs = "; ".join(_words(name))
    return f"| {name} | {'near' if differs else 'same'} | {differs} |"


def _words(name: str) -> Iterator[str]:
    made = matched(name)
    if made.lock and made.differences:
        yield f"the packages of {made.lock}"
    yield from made.differences


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

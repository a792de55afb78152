"""How this machine builds Microsoft's curated environments, and the page that lists them."""

from __future__ import annotations

import pytest

from emulators.azureml.environments import curated_page
from emulators.azureml.environments.curated import FRAMEWORKS, LOCKS, Framework, curated, matched, versions
from emulators.azureml.environments.model import NotHere


@pytest.mark.parametrize("lock", LOCKS)
def test_a_locked_name_is_the_same(lock: str) -> None:
    """A lock has one version of each package for its Python, and an MLflow that works with its defaults."""
    made = curated(f"AzureML-{lock}")
    assert (made.requirements, made.notes, matched(lock).differences) == (LOCKS[lock], (), ())
    assert (made.python, made.or_python) == ("3.10", ("3.11",))
    major, minor, _ = versions(lock)["mlflow-skinny"].split(".")
    assert (int(major), int(minor)) < (3, 14), "see MLFLOW"


@pytest.mark.parametrize("framework", [each for each in FRAMEWORKS if each.locks])
def test_a_lock_has_its_framework(framework: Framework) -> None:
    assert all(versions(lock)[framework.package] for lock in framework.locks)


@pytest.mark.parametrize(
    ("name", "lock"),
    [
        ("AzureML-sklearn-0.24-ubuntu18.04-py37-cpu", "sklearn-1.1"),
        ("sklearn-1.0", "sklearn-1.1"),
        ("sklearn-1.1", "sklearn-1.1"),
        ("sklearn-1.2", "sklearn-1.5"),
        ("sklearn-1.7", "sklearn-1.5"),
        ("AzureML-sklearn", "sklearn-1.5"),
        ("AzureML-lightgbm-3.2-ubuntu18.04-py37-cpu", "lightgbm-2021"),
        ("lightgbm-3.3", "lightgbm-3.3"),
    ],
)
def test_the_next_later_lock_is_used(name: str, lock: str) -> None:
    """Code that was written for an older version runs longest with the oldest later one."""
    assert matched(name).lock == lock


def test_a_number_that_is_not_locked_is_told() -> None:
    """For a version without a lock the nearest lock is used, and the head of the job's log describes the
    difference."""
    made = matched("AzureML-sklearn-1.0-ubuntu20.04-py38-cpu")
    assert made.recipe.requirements == LOCKS["sklearn-1.1"]
    assert made.differences == (
        "scikit-learn 1.1.3 instead of 1.0",
        "Python 3.10 or 3.11 instead of 3.8",
        "other versions of the other packages",
    )
    assert "scikit-learn 1.1.3 instead of 1.0" in made.recipe.notes[0]


def test_the_number_of_pytorch_is_the_version_of_torch() -> None:
    assert versions("acpt-pytorch-2.8-cuda12.6")["torch"] == "2.8.0"
    assert matched("acpt-pytorch-2.8-cuda12.6").differences == ()
    assert matched("acpt-pytorch-1.13-cuda11.7").differences[0] == "torch 2.8.0 instead of 1.13"


def test_lightgbm_can_draw() -> None:
    """lightgbm-3.2 contains matplotlib, because published jobs plot with it."""
    assert curated("AzureML-lightgbm-3.2-ubuntu18.04-py37-cpu").names(("matplotlib",))


def test_minimal_environments_have_the_python_of_their_name() -> None:
    """A minimal environment has the Python in its name, or a later one if this machine lacks that version."""
    made = curated("AzureML-minimal-ubuntu18.04-py37-cpu-inference")
    assert (made.requirements, made.python, made.or_python[0]) == ((), "3.7", "3.8")
    assert curated("AzureML-minimal-py311").notes == ()


def test_components_from_functions_have_their_package() -> None:
    """The environments of mldesigner's decorator: the command of such a component is `mldesigner execute`."""
    assert curated("mldesigner-minimal").requirements == ("mldesigner",)
    assert {"mldesigner", "azure-ai-ml", "azureml-mlflow"} < {*curated("mldesigner").requirements}


@pytest.mark.parametrize("name", ["AzureML-responsibleai-0.20", "AzureML-tensorflow-1.15-py37-cpu"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(NotHere, match="this machine can make those of sklearn, lightgbm"):
        curated(name)


def test_the_page_is_what_the_locks_say() -> None:
    """The page is the output of `python -m emulators.azureml.environments.curated_page`."""
    assert curated_page.PAGE.read_text("utf-8") == curated_page.page()

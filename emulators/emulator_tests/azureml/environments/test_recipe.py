"""How a machine without containers reads an environment of Azure ML."""

from __future__ import annotations

from typing import Any

import pytest

from emulators.azureml.environments.dockerfile import from_dockerfile
from emulators.azureml.environments.model import NotHere, Recipe
from emulators.azureml.environments.recipe import from_conda, from_image, registered

BASE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04:latest"


def test_a_conda_file_is_what_pip_would_install() -> None:
    """conda's names, versions, channels and builds become PyPI requirements. Packages that wheels contain are left
    out."""
    conda = """
        channels: [pytorch, conda-forge]
        dependencies:
          - python=3.10.4
          - pip=22
          - pytorch::pytorch=2.1
          - conda-forge::numpy==1.26.4=py310_0
          - scikit-learn>=1.2,<2
          - pandas 2.0
          - scipy=1.11.*
          - cudatoolkit=11.8
          - pip:
              - mlflow-skinny==3.15.0
              - transformers[torch]>=4  # the newest
        variables: {GREETING: hello}
    """
    made = from_conda(conda, "Environment 'x'")
    assert made.requirements == (
        *("torch==2.1.*", "numpy==1.26.4", "scikit-learn>=1.2,<2", "pandas==2.0", "scipy==1.11.*"),
        *("mlflow-skinny==3.15.0", "transformers[torch]>=4"),
    )
    assert (made.python, made.variables) == ("3.10", {"GREETING": "hello"})


@pytest.mark.parametrize(
    ("entry", "pythons"),
    [
        ("python>=3.8,<3.11", ("3.10", "3.9", "3.8")),
        ("conda-forge::python >3.12,<=3.14", ("3.14", "3.13", "3.12")),
        ("python<3.7", ("3.6", "3.5")),
        ("python", ()),
        ("numpy>=1", ()),
    ],
)
def test_a_range_of_pythons_is_kept(entry: str, pythons: tuple[str, ...]) -> None:
    """The newest version comes first, as conda would choose it."""
    made = from_conda({"dependencies": [entry]}, "x")
    assert (made.python, made.or_python) == ("", pythons)


@pytest.mark.parametrize(("entry", "why"), [("python>=4", "no version from Python"), ("python>=a", "can't be read")])
def test_an_impossible_range_of_pythons_is_refused(entry: str, why: str) -> None:
    with pytest.raises(NotHere, match=why):
        from_conda({"dependencies": [entry]}, "x")


def test_conda_brings_setuptools_along() -> None:
    """As with conda, pip comes along with setuptools and wheel below Python 3.13, also in a Dockerfile. A file that
    names a version of setuptools gets that version."""
    plain = from_conda({"dependencies": ["python=3.10", "numpy"]}, "x")
    assert [text.partition(";")[0] for text in plain.brought] == ["setuptools<82", "wheel"]
    assert all(text.endswith("python_version < '3.13'") for text in plain.brought)
    assert registered("x", {"image": BASE, "condaFile": "dependencies: [numpy]"}).brought == plain.brought
    assert from_dockerfile(f"FROM {BASE}\nRUN conda install numpy", lambda path: "").brought == plain.brought
    pinned = from_conda({"dependencies": ["numpy", "setuptools=65"]}, "x")
    assert (pinned.requirements, pinned.brought) == (("numpy", "setuptools==65.*"), ())
    assert plain.digest("3.10") != Recipe(plain.requirements, plain.python).digest("3.10")


@pytest.mark.parametrize(
    ("image", "packages", "python"),
    [
        (BASE, (), ""),
        ("docker.io/python:3.11-slim", (), "3.11"),
        ("python", (), ""),
        ("pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime", ("torch", "torchvision"), ""),
        ("mcr.microsoft.com/azureml/curated/minimal-py311-inference:34", (), "3.11"),
    ],
)
def test_an_image_stands_for_the_packages_that_it_is_known_for(
    image: str, packages: tuple[str, ...], python: str
) -> None:
    """A base image has no packages, a framework's image has the framework, and the tag of `python` is the Python
    version."""
    assert (from_image(image).requirements, from_image(image).python) == (packages, python)


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"image": "rocker/tidyverse:4.0"}, "R can't be installed"),
        ({"image": "docker.io/julia:1.9"}, "Julia can't be installed"),
        ({"image": "ghcr.io/somebody/something:1"}, "no containers run on this machine"),
        ({"image": BASE, "condaFile": "dependencies: [r-base=4.0]"}, "'r-base' is R"),
        ({"image": BASE, "condaFile": "dependencies: [openjdk]"}, "'openjdk' is no Python package"),
        ({"image": BASE, "condaFile": "dependencies: [{pip: ['-r requirements.txt']}]"}, "names a file"),
        ({"image": BASE, "condaFile": "dependencies: 3"}, "no list of dependencies"),
        ({"image": BASE, "condaFile": "a: [b"}, "is not valid YAML"),
        ({"image": BASE, "condaFile": "name: 2024-13-45"}, "is not valid YAML: month must be"),
        ({"image": BASE, "condaFile": f"dependencies: {'[' * 2000}"}, "is not valid YAML: maximum recursion"),
        ({}, "neither a conda file, an image nor a build context"),
    ],
)
def test_what_can_not_be_made_here_is_named(properties: dict[str, Any], why: str) -> None:
    """Other languages, unknown images, packages that are not Python's, and files elsewhere are refused by name."""
    with pytest.raises(NotHere, match=why):
        registered("x", properties)


def test_an_unknown_image_under_a_conda_file_is_said() -> None:
    """The conda file defines the environment, and the head of the log says that the image's packages are missing."""
    made = registered("x", {"image": "me.azurecr.io/own:1", "condaFile": "dependencies: [numpy]"})
    assert made.requirements == ("numpy",)
    assert "me.azurecr.io/own:1" in made.notes[0]


DOCKERFILE = """
# a comment
FROM python:3.10
ENV A=1 B=two
WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt && \\
    pip install "pandas>=2" --extra-index-url https://example.com
RUN ["pip", "install", "requests"]
""".replace("\\\\", "\\")


def test_a_dockerfile_is_its_pip_installs() -> None:
    """A Dockerfile is read as its FROM, its ENV and the packages that RUN installs from PyPI, with the files of the
    build context."""
    made = from_dockerfile(DOCKERFILE, {"requirements.txt": "numpy==2.1.0\n# no\nscipy\n"}.__getitem__)
    assert made.requirements == ("numpy==2.1.0", "scipy", "pandas>=2", "requests")
    assert (made.python, made.variables) == ("3.10", {"A": "1", "B": "two"})


def test_a_dockerfile_may_install_with_conda_and_say_how_it_starts() -> None:
    """Packages of `conda install` become PyPI requirements. A platform, a stage's name and CMD have no effect."""
    made = from_dockerfile(
        "FROM --platform=linux/amd64 python:3.11 AS base\nRUN conda install -y -c conda-forge python=3.10 numpy=1.26 "
        "'pytorch>=2' && conda clean -a\nCMD [\"python\"]",
        lambda path: "",
    )
    assert (made.requirements, made.python) == (("numpy==1.26.*", "torch>=2"), "3.10")


def test_a_run_is_read_as_docker_reads_it() -> None:
    """A JSON list is one command. Any other RUN line is split as a shell splits it, and never within quotes."""
    line = "RUN pip install 'scipy; python_version>\"3\"' && echo x; pip install pandas"
    made = from_dockerfile(f'FROM {BASE}\nRUN ["pip", "install", "numpy"]\n{line}', lambda path: "")
    assert made.requirements == ("numpy", 'scipy; python_version>"3"', "pandas")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("RUN [ -d /x ] && pip install numpy", r"RUN '\[ -d /x \]': that can't be had"),
        ('RUN ["echo", 1]', "RUN '.*echo.*': that can't be had"),
        ("RUN pip install 'a", "a closing quotation mark is missing"),
        ("RUN conda install 'a", "a closing quotation mark is missing"),
        ("ENV A=it's", "a closing quotation mark is missing"),
        ("RUN conda install r-base", "'r-base' is R"),
        ("RUN apt-get update", "apt-get update': system packages can't be had"),
        ("RUN make install", "make install': that can't be had"),
        ("ENTRYPOINT serve", "ENTRYPOINT 'serve' has no meaning"),
        ("RUN pip install .", "names a file"),
    ],
)
def test_a_dockerfile_that_does_more_is_refused(line: str, why: str) -> None:
    """The refusal quotes the unsupported instruction."""
    with pytest.raises(NotHere, match=why):
        from_dockerfile(f"FROM {BASE}\n{line}", lambda path: "")


def test_the_same_content_is_the_same_environment() -> None:
    """Environments that differ only in notes or in the order of requirements are the same; another version is
    another environment."""
    one, same = Recipe(("a", "b"), notes=("x",)), Recipe(("b", "a"))
    assert one.digest("3.11") == same.digest("3.11") != Recipe(("a", "b==1")).digest("3.11")
    assert one.digest("3.11") != one.digest("3.12")

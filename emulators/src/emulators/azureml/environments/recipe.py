"""The content of an environment that this machine can build: a Python, packages from PyPI, variables. No I/O.

In Azure an environment is a container image, with a conda environment in it if it has a conda file. Here it is a
virtual environment. A conda package becomes the PyPI package with the same content, and an image stands for its known
Python packages. Anything that is not a Python package is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import yaml
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from emulators.azureml.environments.curated import curated
from emulators.azureml.environments.model import NotHere, Recipe

# Images by a pattern for their names without the tag. An unlisted image is refused unless a conda file defines its
# content.
IMAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"mcr\.microsoft\.com/azureml/(openmpi|intelmpi|base|minimal|o16n|inference-base)[\w.-]*(/[\w.-]+)*", ()),
    (r"(docker\.io/)?(library/)?(python|ubuntu|debian)", ()),
    (r"mcr\.microsoft\.com/(devcontainers|mirror/docker/library|vscode/devcontainers)/(python|ubuntu|debian)", ()),
    (r"(docker\.io/)?(continuumio/miniconda3|mambaorg/micromamba|condaforge/\w+)", ()),
    (r"(docker\.io/)?pytorch/pytorch|nvcr\.io/nvidia/pytorch", ("torch", "torchvision")),
    (r"(docker\.io/)?tensorflow/tensorflow|nvcr\.io/nvidia/tensorflow", ("tensorflow",)),
    (r"(docker\.io/)?rayproject/ray[\w-]*", ("ray[default]",)),
)
CURATED_IMAGE = re.compile(r"mcr\.microsoft\.com/azureml/curated/([\w.-]+)")
LANGUAGES = {"R": re.compile(r"r-base|rocker/.*|r-.*|.*/r-ver"), "Julia": re.compile(r"(.*/)?julia(-.*)?")}

# conda's names of packages that have another name on PyPI.
PYPI = {"pytorch": "torch", "tensorflow-gpu": "tensorflow", "py-xgboost": "xgboost", "matplotlib-base": "matplotlib",
        "opencv": "opencv-python-headless", "pytables": "tables", "msgpack-python": "msgpack", "faiss-cpu": "faiss-cpu",
        "dask-core": "dask", "ray-default": "ray", "ray-core": "ray", "py-lightgbm": "lightgbm", "pillow": "pillow",
        "huggingface_hub": "huggingface-hub", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}  # fmt: skip
# Packages whose PyPI wheels contain their needs, or which are the installers themselves.
NEEDLESS = re.compile(
    r"pip|wheel|conda|mamba|cuda[\w-]*|cudatoolkit|cudnn|nccl|pytorch-cuda|pytorch-mutex|cpuonly|mkl[\w-]*|"
    r"intel-openmp|blas|openblas|lib(gcc|stdcxx)[\w-]*|ca-certificates|openssl|certifi"
)
NO_PYTHON = re.compile(
    r"openjdk|nodejs|git|curl|wget|(gcc|gxx)(_linux-64)?|cmake|make|openmpi|mpich|gdal|ffmpeg|graphviz|libgl|libsndfile|"
    r"postgresql|spark|hadoop|perl|ruby|go|rust|bazel|openssh"
)
# conda adds pip to each Python, and below Python 3.13 pip depends on setuptools and wheel (conda-forge/pip-feedstock,
# recipe.yaml). setuptools 82 removed pkg_resources; conda's channels have it, and cap it for each package that imports
# pkg_resources (conda-forge-repodata-patches-feedstock 1204, AnacondaRecipes/repodata-hotfixes 310). PyPI has no such
# caps, so the cap is here.
BROUGHT_BY_CONDA = ("setuptools<82; python_version < '3.13'", "wheel; python_version < '3.13'")
PYTHON_MINORS = range(5, 16)  # of Python 3
_CONDA = re.compile(r"(?:[\w.-]+(?:/[\w-]+)?::)?([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(.*)")
_LOCAL = re.compile(r"-r\b|--requirement\b|-c\b|--constraint\b|-e\b|--editable\b|\.|/|file:")


def registered(name: str, properties: dict[str, Any]) -> Recipe:
    """Return the recipe of an environment version, from its conda file or otherwise from its image. `dockerfile`
    handles build contexts."""
    what = "The job's environment" if properties.get("isAnonymous") else f"Environment {name!r}"
    conda, image = properties.get("condaFile"), str(properties.get("image") or "")
    if conda:
        language_problem(image)
        recipe = from_conda(conda, what)
        unknown = bool(image) and not _is_known(image)
        note = f"What else image {image} has, such as system packages, is not on this machine."
        notes = (*recipe.notes, *([note] if unknown else []))
        return replace(recipe, variables={}, notes=notes)
    if image:
        return from_image(image)
    raise NotHere(f"{what} has neither a conda file, an image nor a build context.")


def from_image(image: str) -> Recipe:
    """Return the recipe with the known packages of an image."""
    language_problem(image)
    bare = image.removeprefix("docker://").partition("@")[0]
    path, _, tag = bare.rpartition(":") if ":" in bare.rpartition("/")[2] else (bare, "", "")
    if found := CURATED_IMAGE.fullmatch(path):
        return curated(found[1])
    for pattern, packages in IMAGES:
        if re.fullmatch(pattern, path):
            version = re.match(r"(?:python-?)?(3\.\d+)", tag) if re.search(r"(^|/)python$", path) else None
            return Recipe(packages, version[1] if version else "")
    raise NotHere(
        f"Image {image!r}: no containers run on this machine, and what is in this one is not known. Give the "
        "environment a conda_file, or use an image of mcr.microsoft.com/azureml, python, pytorch or tensorflow."
    )


def language_problem(image: str) -> None:
    """Raise NotHere for an image of another language."""
    path = image.partition("@")[0].partition(":")[0]
    for language, pattern in LANGUAGES.items():
        if pattern.fullmatch(path) or pattern.fullmatch(path.rpartition("/")[2]):
            raise NotHere(f"Image {image!r}: {language} can't be installed on this machine, only Python packages.")


def from_conda(conda: Any, what: str) -> Recipe:
    """Return the recipe of a conda file, given as text or as the mapping in it."""
    try:
        document = yaml.safe_load(conda) if isinstance(conda, str) else conda
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # an invalid date, and endless nesting
        raise NotHere(f"{what}: its conda file is not valid YAML: {str(error).splitlines()[0]}.") from None
    entries = document.get("dependencies") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise NotHere(f"{what}: its conda file has no list of dependencies.")
    variables = document.get("variables") or {}
    python = next(filter(None, map(_python, entries)), "")
    allowed = () if python else next(filter(None, (_range(entry, what) for entry in entries)), ())
    texts = {str(key): str(value) for key, value in variables.items()} if isinstance(variables, dict) else {}
    made = Recipe(tuple(_requirements(entries, what)), python, texts, or_python=allowed)
    return made if made.names(("setuptools",)) else replace(made, brought=BROUGHT_BY_CONDA)


def pip_lines(lines: Iterable[Any], what: str) -> Iterator[str]:
    """Yield the requirements in pip's format. Raises NotHere for a requirement that names a file."""
    for line in lines:
        text = str(line).partition(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        if _LOCAL.match(text) or "\n" in text:
            raise NotHere(f"{what}: the requirement {text[:80]!r} names a file, and only the list itself is here.")
        yield text


def _requirements(entries: list[Any], what: str) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, dict):
            yield from pip_lines(entry.get("pip") or (), what)
        elif isinstance(entry, str):
            yield from _from_conda_package(entry, what)
        else:
            raise NotHere(f"{what}: the dependency {entry!r:.80} is neither a package nor a list for pip.")


def _from_conda_package(entry: str, what: str) -> Iterator[str]:
    name, wanted = _split(entry, what)
    if name == "python" or NEEDLESS.fullmatch(name):
        return
    for language, pattern in LANGUAGES.items():
        if name in ("r", "julia") or pattern.fullmatch(name):
            raise NotHere(f"{what}: {name!r} is {language}, which can't be installed on this machine.")
    if NO_PYTHON.fullmatch(name):
        raise NotHere(f"{what}: {name!r} is no Python package, so it can't be installed on this machine.")
    yield PYPI.get(name, name) + wanted


def _python(entry: Any) -> str:
    """Return the Python version that a dependency pins, for example 3.11, or '' for another dependency or a range
    of versions."""
    found = re.fullmatch(r"(?:[\w-]+::)?python\s*={1,2}\s*(3\.\d+)(?:\.[\d*]+)?(?:=.*)?", str(entry).strip())
    return found[1] if found else ""


def _range(entry: Any, what: str) -> tuple[str, ...]:
    """Return the Python versions, newest first, in the range that a dependency allows, for example `python>=3.8,<3.11`;
    () for another dependency. Raises NotHere for an empty range."""
    name, wanted = _split(entry, what) if isinstance(entry, str) else ("", "")
    if name != "python" or not wanted:
        return ()
    try:
        specifier = SpecifierSet(wanted)
    except InvalidSpecifier:
        raise NotHere(f"{what}: the versions of Python in {entry[:80]!r} can't be read.") from None
    minors = [f"3.{minor}" for minor in reversed(PYTHON_MINORS)]
    found = [each for each in minors if any(specifier.contains(f"{each}.{patch}") for patch in (0, 99))]
    if not found:
        raise NotHere(f"{what}: no version from Python {minors[-1]} to {minors[0]} is in {entry[:80]!r}.")
    return tuple(found)


def _split(entry: str, what: str) -> tuple[str, str]:
    """Split conda's spelling of a package into its name and its versions in pip's spelling."""
    found = _CONDA.fullmatch(entry.strip())
    if found is None:
        raise NotHere(f"{what}: the dependency {entry[:80]!r} can't be read.")
    name, versions = found[1].lower(), found[2].replace(" ", "")
    if not versions or versions == "*":
        return name, ""
    if versions[0] in "<>!~":
        return name, versions
    exact = versions.startswith("==")
    version = versions.lstrip("=").partition("=")[0]  # the build follows another =
    if exact or version.endswith("*") or not versions.startswith("="):
        return name, f"=={version}"
    return name, f"=={version}.*"


def _is_known(image: str) -> bool:
    try:
        from_image(image)
    except NotHere:
        return False
    return True

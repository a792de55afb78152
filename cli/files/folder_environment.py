"""The environment that a folder of code asks for: its conda file, requirements.txt or project file, or --env.

Files may name other files (`-r base.txt`), which are read too. A requirement that installs the folder itself is
refused, with what to write instead. A setup.py is read, not run: what it computes is refused.
"""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import CliError, unreadable
from .job_form import is_remote
from .python_version import python_version

IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
CONDA = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")
# the first existing file counts; of the files of projects, the first that declares one
FILES = (*CONDA, "requirements.txt", "pyproject.toml", "setup.cfg", "setup.py")
_NAME_THEM = "Name the packages with --env, for example --env torch,numpy."
DEEPEST = 5  # files of requirements that name further files
_OTHER = re.compile(r"(?:-r|--requirement)[ =]?\s*(\S+)")
# options that name files of the machine that wrote the list
_SKIPPED = re.compile(r"(?:-c|--constraint|-f|--find-links)\b")
_OF_POETRY = re.compile(r"\^|~(?![=>])")


def environment(env: str, folder: Path, user_path: Path) -> tuple[Any, str]:
    """Return the environment of a folder's job, and the name of the file in the folder that describes it, '' if --env
    does.

    `env` is --env: packages and files of packages (`requirements.txt,torch`), a conda file of the folder, or the name
    of a registered environment. A file of packages is relative to the folder, or otherwise to `user_path`. Raises
    CliError for a file that can't be read.
    """
    if not env:
        found = next((name for name in FILES if (folder / name).is_file() and _declares(folder / name)), "")
        return (_described(folder / found, found, folder), found) if found else (packages([], folder), "")
    if is_remote(env) or env.lower().startswith("azureml"):
        return env, ""
    if env.endswith((".yml", ".yaml")):
        return {"image": IMAGE, "conda_file": env}, ""
    parts = [part.strip() for part in env.split(",") if part.strip()]
    return packages([name for part in parts for name in _named(part, folder, user_path)], folder), ""


def _named(part: str, folder: Path, user_path: Path) -> list[str]:
    """Return the packages of a part of --env, which is a package or a file of packages."""
    if not part.endswith((".txt", ".toml", ".cfg", ".py")):
        return [part]
    file = next((place / part for place in (folder, user_path) if (place / part).is_file()), user_path / part)
    return requirements(_described(file, f"--env {part}", folder))


def requirements(made: Any) -> list[str]:
    """Return the packages for pip of an environment that this module made; [] for any other."""
    conda = made.get("conda_file") if isinstance(made, dict) else None
    last = conda["dependencies"][-1] if isinstance(conda, dict) else None
    return list(last["pip"]) if isinstance(last, dict) else []


def environment_line(found: str, folder: Path) -> tuple[str, str]:
    """Return the line about the environment of a folder without --env, and its style. `found` is the file that
    describes the environment, '' if the folder has none."""
    if found in CONDA:
        return f"environment: {found} in the folder", "dim"
    version, name = python_version(folder)
    if found:
        return f"environment: {found} in the folder, Python {version}{f' ({name})' if name else ''}", "dim"
    return "environment: no packages, because no file in the folder names any. Name them with --env.", "yellow"


def packages(names: list[str], folder: Path) -> dict[str, Any]:
    """Return an environment with these packages, as pip names them, and the Python that the folder asks for."""
    dependencies: list[Any] = [f"python={python_version(folder)[0]}", "pip"]
    return {"image": IMAGE, "conda_file": {"dependencies": [*dependencies, *([{"pip": names}] if names else [])]}}


def _described(file: Path, what: str, folder: Path) -> dict[str, Any]:
    if file.suffix in (".yml", ".yaml"):
        return {"image": IMAGE, "conda_file": file.name}
    if file.suffix == ".txt":
        return packages(list(_of_list(file, what, 0)), folder)
    readers = {".toml": _of_project, ".cfg": _of_setup_cfg, ".py": _of_setup_py}
    return packages(list(readers[file.suffix](file, what)), folder)


def _declares(file: Path) -> bool:
    """Return whether the file may ask for packages. A pyproject.toml or setup.cfg may have only the settings of tools,
    beside a file that does."""
    if file.name == "setup.cfg":
        return "install_requires" in _read(file, file.name)
    if file.name == "pyproject.toml":
        return bool(re.search(r"^\[(project|tool\.poetry)\b", _read(file, file.name), re.MULTILINE))
    return True


def _of_list(file: Path, what: str, depth: int) -> Iterator[str]:
    """Yield the requirements of a requirements.txt, with those of the files that it names."""
    if depth > DEEPEST:
        raise CliError(f"{what}: its files of requirements name each other more than {DEEPEST} times.")
    for line in _read(file, what).replace("\\\n", " ").splitlines():
        text = " ".join(re.sub(r"(^|\s)#.*", "", line).split())
        if other := _OTHER.match(text):
            yield from _of_list(file.parent / other[1], what, depth + 1)
        elif text and not _SKIPPED.match(text):
            yield _checked(re.sub(r"\s--hash=\S+", "", text), what)


def _checked(requirement: str, what: str) -> str:
    if re.match(r"-e\b|--editable\b|\.{1,2}(?:/|$|\[)|/|file:", requirement):
        raise CliError(
            f"{what}: {requirement!r} installs a folder, and the job has the folder's files only. Leave this line out; "
            "the command runs in the folder, so Python finds its modules there."
        )
    return requirement


def _of_project(file: Path, what: str) -> Iterator[str]:
    """Yield the dependencies of a pyproject.toml: of its [project], or else of Poetry."""
    try:
        document = tomllib.loads(_read(file, what))
    except tomllib.TOMLDecodeError as exc:
        raise CliError(f"{what}: {file.name} is not valid TOML: {exc}") from exc
    project = document.get("project") or {}
    if "dependencies" in project or "poetry" not in document.get("tool", {}):
        if "dependencies" in (project.get("dynamic") or []):
            yield from _of_setuptools(file, document, what)
        yield from (_checked(str(each), what) for each in project.get("dependencies") or [])
        return
    for name, wanted in (document["tool"]["poetry"].get("dependencies") or {}).items():
        version = wanted.get("version", "*") if isinstance(wanted, dict) else wanted
        if name != "python" and not (isinstance(wanted, dict) and wanted.get("optional")):
            yield name + _of_poetry(str(version))


def _of_setuptools(file: Path, document: dict[str, Any], what: str) -> Iterator[str]:
    """Yield the requirements of the files that setuptools reads when it builds the project."""
    named = document.get("tool", {}).get("setuptools", {}).get("dynamic", {}).get("dependencies", {}).get("file")
    if not named:
        raise CliError(f"{what}: the dependencies are computed when the project is built. {_NAME_THEM}")
    for name in [named] if isinstance(named, str) else named:
        yield from _of_list(file.parent / str(name), what, 1)


def _of_setup_cfg(file: Path, what: str) -> Iterator[str]:
    """Yield the install_requires of a setup.cfg."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(_read(file, what))
    except configparser.Error as exc:
        raise CliError(f"{what}: setup.cfg can't be read: {' '.join(str(exc).split())}") from exc
    lines = parser.get("options", "install_requires", fallback="").splitlines()
    yield from (_checked(line.strip(), what) for line in lines if line.strip() and not line.strip().startswith("#"))


def _of_setup_py(file: Path, what: str) -> Iterator[str]:
    """Yield the install_requires of a setup.py: a list as written, or a name with such a list."""
    try:
        tree = ast.parse(_read(file, what))
    except SyntaxError as exc:
        raise CliError(f"{what}: setup.py is not valid Python: {exc.msg} in line {exc.lineno}.") from exc
    nodes = list(ast.walk(tree))
    values = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    keywords = [each for node in nodes if isinstance(node, ast.Call) for each in node.keywords]
    for wanted in (each.value for each in keywords if each.arg == "install_requires"):
        try:
            listed = ast.literal_eval(values.get(wanted.id, wanted) if isinstance(wanted, ast.Name) else wanted)
        except ValueError as exc:
            raise CliError(f"{what}: setup.py computes its install_requires. {_NAME_THEM}") from exc
        yield from (_checked(str(each), what) for each in ([listed] if isinstance(listed, str) else listed))


def _of_poetry(version: str) -> str:
    """Return the version in pip's form: ^1.2 is at least 1.2 and below 2, ~1.2 below 1.3, 1.2 is exact."""
    if version in ("*", ""):
        return ""
    if not _OF_POETRY.match(version):
        return version if version[0] in "<>=!~" else f"=={version}"
    numbers = [int(part) for part in re.findall(r"\d+", version)]
    same = 0 if version[0] == "~" and len(numbers) == 1 else 1 if version[0] == "~" else _first_number(numbers)
    below = ".".join(map(str, [*numbers[:same], numbers[same] + 1]))
    return f">={version[1:].strip()},<{below}"


def _first_number(numbers: list[int]) -> int:
    """Return the position of the first number that is not 0: a caret allows changes after that number."""
    return next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)


def _read(file: Path, what: str) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as exc:
        raise unreadable(what, exc) from exc
    except ValueError as exc:
        raise CliError(f"{what}: {file.name} is not UTF-8 text.") from exc

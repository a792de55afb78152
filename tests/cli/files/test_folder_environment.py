"""The environment of a folder of code, from --env or from a file in the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.errors import CliError
from cli.files.folder_environment import environment, environment_line


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def pip_list(made: Any) -> list[str]:
    """The packages for pip; [] without any."""
    last = made["conda_file"]["dependencies"][-1]
    return last["pip"] if isinstance(last, dict) else []


@pytest.mark.parametrize(
    ("env", "packages"), [("pandas, numpy", ["pandas", "numpy"]), ("needs/list.txt", ["torch==2.8"]), ("", [])]
)
def test_env_names_packages_or_a_file(tmp_path: Path, env: str, packages: list[str]) -> None:
    """A file name is relative to the current folder."""
    write(tmp_path, {"needs/list.txt": "# a comment\ntorch==2.8  # the newest\n", "code/train.py": ""})
    made, found = environment(env, tmp_path / "code", tmp_path)
    assert (pip_list(made), found) == (packages, "")


def test_env_may_be_registered(tmp_path: Path) -> None:
    assert environment("azureml:e:1", tmp_path, tmp_path) == ("azureml:e:1", "")


REQUIREMENTS = {
    "requirements.txt": "-r base.txt\n-c constraints.txt\n--requirement=more/extra.txt\nlightning>=2.0 \\\n  ,<3\n",
    "base.txt": "torch\n\n# nothing\n",
    "more/extra.txt": "rich --hash=sha256:00\n-r deep.txt\n",
    "more/deep.txt": "hydra-core\n",
}
PROJECT = """
[project]
name = "p"
dependencies = ["torch>=2", "numpy"]
"""
POETRY = """
[tool.poetry.dependencies]
python = "^3.9"
torch = "^2.1"
small = "^0.3.1"
close = "~1.4"
any = "*"
exact = "1.2"
range = ">=1,<2"
table = {version = "^1", extras = ["x"]}
maybe = {version = "1", optional = true}
"""

SETUP = (
    "from setuptools import setup\n\nsetup(\n    name='minGPT',\n    install_requires=['torch', 'transformers'],\n)\n"
)
CFG = "[metadata]\nname = p\n[options]\ninstall_requires =\n    torch>=2\n    # for the bar\n    tqdm\n"
DYNAMIC = """
[project]
name = "p"
dynamic = ["dependencies"]
[tool.setuptools.dynamic]
dependencies = {file = ["needs.txt"]}
"""


@pytest.mark.parametrize(
    ("files", "packages"),
    [
        (REQUIREMENTS, ["torch", "rich", "hydra-core", "lightning>=2.0 ,<3"]),
        ({"pyproject.toml": PROJECT}, ["torch>=2", "numpy"]),
        (
            {"pyproject.toml": POETRY},
            [
                "torch>=2.1,<3",
                "small>=0.3.1,<0.4",
                "close>=1.4,<1.5",
                "any",
                "exact==1.2",
                "range>=1,<2",
                "table>=1,<2",
            ],
        ),
        ({"requirements.txt": "torch", "pyproject.toml": PROJECT}, ["torch"]),
        ({"setup.py": SETUP, "pyproject.toml": "[tool.ruff]\nline-length = 120"}, ["torch", "transformers"]),
        ({"setup.py": "NEEDS = ['torch']\nsetup(install_requires=NEEDS)"}, ["torch"]),
        ({"setup.cfg": CFG, "setup.py": "from setuptools import setup\nsetup()"}, ["torch>=2", "tqdm"]),
        ({"pyproject.toml": DYNAMIC, "needs.txt": "torch\n"}, ["torch"]),
    ],
)
def test_a_folder_gets_what_its_file_asks_for(tmp_path: Path, files: dict[str, str], packages: list[str]) -> None:
    """Without --env the folder's file decides, and its name is printed."""
    write(tmp_path, files)
    made, found = environment("", tmp_path, tmp_path)
    assert (pip_list(made), found) == (packages, next(iter(files)))


def test_settings_of_tools_ask_for_nothing(tmp_path: Path) -> None:
    """The user learns that the job has no packages before it starts."""
    write(tmp_path, {"pyproject.toml": "[tool.ruff]\nline-length = 120", "setup.cfg": "[flake8]"})
    made, found = environment("", tmp_path, tmp_path)
    assert (pip_list(made), found) == ([], "")
    assert "Name them with --env" in environment_line(found, tmp_path)[0]


def test_a_conda_file_comes_first(tmp_path: Path) -> None:
    write(tmp_path, {"environment.yml": "dependencies: [python=3.10]", "requirements.txt": "torch"})
    made, found = environment("", tmp_path, tmp_path)
    assert (made["conda_file"], found) == ("environment.yml", "environment.yml")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"requirements.txt": "-e ."}, "'-e .' installs a folder"),
        ({"requirements.txt": "./lib"}, "'./lib' installs a folder"),
        ({"requirements.txt": "-r no.txt"}, "requirements.txt can't be read"),
        ({"requirements.txt": "-r requirements.txt"}, "name each other more than 5 times"),
        ({"pyproject.toml": "[project"}, "is not valid TOML"),
        ({"pyproject.toml": '[project]\ndynamic = ["dependencies"]'}, "Name the packages with --env"),
        ({"setup.py": "setup(install_requires=open('needs.txt').readlines())"}, "computes its install_requires"),
        ({"setup.py": "setup("}, "not valid Python"),
        ({"setup.cfg": "install_requires"}, "setup.cfg can't be read"),
    ],
)
def test_what_cannot_be_installed_is_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    write(tmp_path, files)
    with pytest.raises(CliError) as caught:
        environment("", tmp_path, tmp_path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("files", "python"),
    [
        ({"requirements.txt": "torch"}, "3.11"),
        ({".python-version": "3.9.18\n", "requirements.txt": "torch"}, "3.9"),
        ({".python-version": "cpython-3.12", "pyproject.toml": '[project]\nrequires-python = "<3.12"'}, "3.12"),
        ({".python-version": "my-environment\n", "requirements.txt": "torch"}, "3.11"),
        ({"requirements.txt": "torch", "pyproject.toml": '[project]\nrequires-python = ">=3.8,<3.11"'}, "3.10"),
        ({"pyproject.toml": "[project]\ndependencies = []\nrequires-python = '>=3.12'  # new"}, "3.12"),
        ({"pyproject.toml": '[project]\nrequires-python = "==3.9.*"'}, "3.9"),
        ({"pyproject.toml": '[project]\nrequires-python = "~=3.8.1"'}, "3.8"),
        ({"pyproject.toml": '[project]\nrequires-python = "~=3.8"'}, "3.11"),
        ({"pyproject.toml": '[project]\nrequires-python = ">=3.8,!=3.11.*"'}, "3.12"),
        ({"pyproject.toml": '[tool.poetry.dependencies]\npython = "~3.9 || ^3.12"\ntorch = "*"'}, "3.12"),
        ({"pyproject.toml": '[project]\nrequires-python = ">=3, <4"'}, "3.11"),
        ({"setup.cfg": f"{CFG}python_requires = >=3.6, <3.10\n"}, "3.9"),
        ({"setup.py": "setup(\n    python_requires='<=3.10',\n    install_requires=[])"}, "3.10"),
        ({"setup.py": "setup(\n    python_requires=NEEDED,\n    install_requires=[])"}, "3.11"),
    ],
)
def test_a_folder_gets_the_python_it_asks_for(tmp_path: Path, files: dict[str, str], python: str) -> None:
    """In a range, it is the version closest to 3.11. --env changes the packages only."""
    write(tmp_path, files)
    for env in ("", "torch"):
        made, found = environment(env, tmp_path, tmp_path)
        assert made["conda_file"]["dependencies"][0] == f"python={python}"
    assert (f"Python {python}" in environment_line(found, tmp_path)[0]) is bool(found)


def test_a_python_that_no_job_can_have_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {".python-version": "2.7.18", "requirements.txt": "torch"})
    with pytest.raises(CliError) as caught:
        environment("", tmp_path, tmp_path)
    assert ".python-version asks for Python ==2.7; a job can have Python 3.8 to 3.14." in str(caught.value)


def test_env_may_add_packages_to_a_file_of_the_folder(tmp_path: Path) -> None:
    """A file of the folder counts before one of the current folder."""
    write(
        tmp_path, {"requirements.txt": "scipy", "code/requirements.txt": "torch\n-r more.txt", "code/more.txt": "tqdm"}
    )
    made, found = environment("requirements.txt, numpy", tmp_path / "code", tmp_path)
    assert (pip_list(made), found) == (["torch", "tqdm", "numpy"], "")

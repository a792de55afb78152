"""The packages that the script of a folder's command imports. Nothing is run."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import CliError

_SCRIPT = re.compile(r"(?:^|\s)(?:-m\s+([\w.]+)|(\S+\.py))(?=\s|$)")
# modules whose package has another name on PyPI
PACKAGES = {
    **{"sklearn": "scikit-learn", "skimage": "scikit-image", "cv2": "opencv-python-headless", "PIL": "pillow"},
    **{"yaml": "pyyaml", "hydra": "hydra-core", "pytorch_lightning": "pytorch-lightning", "dotenv": "python-dotenv"},
    **{"attr": "attrs", "dateutil": "python-dateutil", "bs4": "beautifulsoup4", "tensorboardX": "tensorboardx"},
}
# namespaces that many packages share, and what the job's image or interpreter has
_UNCLEAR = frozenset({"azure", "azureml", "google", "pip", "pkg_resources", "setuptools", "__main__"})


def imported(command: str, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return the command's script in the folder, and the packages that the script imports whenever it runs; ('', ())
    if the command starts no script of the folder. An import in a function, a condition or a `try` does not count."""
    script = next(filter(None, (_script(folder, *found) for found in _SCRIPT.findall(command))), None)
    if script is None:
        return "", ()
    try:
        tree = ast.parse(script.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return "", ()
    own = {path.stem for path in folder.rglob("*.py")} | {path.parent.name for path in folder.rglob("__init__.py")}
    own |= {path.name for path in folder.iterdir() if path.is_dir()}  # namespace packages
    named = dict.fromkeys(name for name in _modules(tree) if name not in own | _UNCLEAR | sys.stdlib_module_names)
    return script.relative_to(folder).as_posix(), tuple(PACKAGES.get(name, name) for name in named)


def unnamed(packages: Iterable[str], requirements: Iterable[str]) -> list[str]:
    """Return the packages that no requirement names."""
    named = {_plain(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in requirements}
    return [package for package in packages if _plain(package) not in named]


def import_line(command: str, folder: Path, requirements: Iterable[str], named_by: str) -> str:
    """Return a line about imported packages that `named_by`, a file or --env, does not name; '' for none. Raises
    CliError if nothing names a package: the job would end at the script's first import."""
    script, packages = imported(command, folder)
    lacking = unnamed(packages, requirements)
    if not lacking:
        return ""
    names, said = ",".join(lacking), " and ".join(lacking)
    if not named_by:
        raise CliError(f"{script} imports {said}, and no file in the folder names a package. Name them: --env {names}")
    them = "it" if len(lacking) == 1 else "them"
    return (
        f"{script} imports {said}, and {named_by} does not ask for {them}. Unless other packages bring {them} along: "
        f"--env {named_by.removeprefix('--env ')},{names}"
    )


def _script(folder: Path, module: str, script: str) -> Path | None:
    places = (
        [folder / script]
        if script
        else [folder / f"{module.replace('.', '/')}{end}" for end in (".py", "/__main__.py")]
    )
    return next((each for each in places if each.is_file() and each.resolve().is_relative_to(folder.resolve())), None)


def _modules(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

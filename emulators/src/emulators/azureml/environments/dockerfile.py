"""Reads a Dockerfile that installs Python packages as a recipe. No I/O."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator

from emulators.azureml.environments.model import NotHere, Recipe
from emulators.azureml.environments.recipe import from_conda, from_image, pip_lines

SILENT = frozenset({"COPY", "ADD", "WORKDIR", "LABEL", "EXPOSE", "SHELL", "USER", "ARG", "MAINTAINER", "STOPSIGNAL",
                    "CMD", "VOLUME", "HEALTHCHECK"})  # fmt: skip
PIP = re.compile(r"(?:python3? -m )?(?:pip3?|uv pip) install (.*)")
CONDA = re.compile(r"(?:conda|mamba) env (?:create|update)\b.*?(?:-f|--file)[ =](\S+).*")
CONDA_INSTALL = re.compile(r"(?:conda|mamba|micromamba) install (.*)")
HARMLESS = re.compile(r"(mkdir|echo|true|rm|ln|cd|set|export|chmod|chown|useradd|groupadd|conda clean)\b.*")
CONDA_WITH_VALUE = ("-c", "--channel", "-n", "--name", "-p", "--prefix")
WITH_VALUE = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host", "--timeout")
# The commands of a line. `;` and `&&` within quotes do not separate commands.
STEPS = re.compile(r"""(?:[^;&|'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|(?<!&)&(?!&)|(?<!\|)\|(?!\|)|['"\\])+""")
Read = Callable[[str], str]  # a file of the build context, as text


def from_dockerfile(text: str, read: Read) -> Recipe:
    """Return the recipe of a Dockerfile. Raises NotHere, with the instruction, for an unsupported instruction."""
    base: Recipe | None = None
    wanted: list[str] = []
    brought: tuple[str, ...] = ()
    python, variables = "", dict[str, str]()
    for word, rest in _instructions(text):
        if word == "FROM":
            base = from_image(next((word for word in rest.split() if not word.startswith("--")), ""))
        elif word == "ENV":
            variables |= _assignments(rest)
        elif word == "RUN":
            for step in _steps(rest):
                made = _installs(step, read)
                wanted += made.requirements
                python, brought = made.python or python, made.brought or brought
        elif word not in SILENT:
            raise NotHere(f"Dockerfile: {word} {rest[:80]!r} has no meaning on this machine, which runs no containers.")
    if base is None:
        raise NotHere("Dockerfile: it has no FROM.")
    return Recipe((*base.requirements, *wanted), python or base.python, variables, brought=brought)


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\s*\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield word.upper(), rest.strip()


def _steps(rest: str) -> Iterator[str]:
    """Yield the commands of a RUN."""
    plain = re.sub(r"^(--\S+\s+)+", "", rest)
    for step in STEPS.findall(_of_list(plain) or plain):
        if step.strip():
            yield " ".join(step.split())


def _of_list(text: str) -> str:
    """Return the command line for a JSON list of words, or '' for shell syntax."""
    try:
        words = json.loads(text) if text.startswith("[") else []
    except (ValueError, RecursionError):
        return ""
    return " ".join(words) if all(isinstance(word, str) for word in words) else ""


def _installs(step: str, read: Read) -> Recipe:
    if found := PIP.fullmatch(step):
        return Recipe(tuple(_pip(_words(found[1]), read)))
    if found := CONDA.fullmatch(step):
        return from_conda(read(found[1]), found[1])
    if found := CONDA_INSTALL.fullmatch(step):
        return from_conda({"dependencies": list(_conda_packages(_words(found[1])))}, "Dockerfile")
    if HARMLESS.fullmatch(step):
        return Recipe()
    what = "system packages" if re.match(r"(sudo )?(apt|apt-get|yum|apk|dnf)\b", step) else "that"
    raise NotHere(f"Dockerfile: RUN {step[:120]!r}: {what} can't be had on this machine, only Python packages can.")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise NotHere(f"Dockerfile: in {text[:120]!r} a closing quotation mark is missing.") from None


def _conda_packages(words: list[str]) -> Iterator[str]:
    flag = ""
    for word in words:
        if not word.startswith("-") and flag not in CONDA_WITH_VALUE:
            yield word
        flag = word


def _pip(words: list[str], read: Read) -> Iterator[str]:
    skip = False
    for index, word in enumerate(words):
        if skip:
            skip = False
        elif word in ("-r", "--requirement"):
            skip = True
            file = words[index + 1] if index + 1 < len(words) else ""
            yield from pip_lines(read(file).splitlines(), file)
        elif word in WITH_VALUE:
            skip = True
        elif not word.startswith("-") and word not in ("pip", "setuptools", "wheel"):
            yield from pip_lines([word], "Dockerfile")


def _assignments(rest: str) -> dict[str, str]:
    words = _words(rest)
    if words and "=" not in words[0]:
        return {words[0]: " ".join(words[1:])}
    return dict(word.split("=", 1) for word in words if "=" in word)

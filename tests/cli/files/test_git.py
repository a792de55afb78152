"""The recorded facts of a folder's Git repository, and the limits of a stranger's repository meanwhile."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.files import git


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def run(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)


def test_a_folder_is_at_a_commit(tmp_path: Path) -> None:
    """The facts are the commit, its branch and whether the folder's files have changed since; no password of the
    repository."""
    assert git.properties(tmp_path) == {}
    write(tmp_path, {"src/a.py": "", "other.txt": ""})
    run(tmp_path, "init", "-q", "-b", "trunk")
    run(tmp_path, "remote", "add", "origin", "https://me:secret@example.com/x.git")
    run(tmp_path, "add", ".")
    run(tmp_path, "commit", "-q", "-m", "first")
    write(tmp_path, {"other.txt": "changed, but no code"})
    clean = git.properties(tmp_path / "src")
    assert (clean["azureml.git.dirty"], clean["azureml.git.branch"]) == ("False", "trunk")
    assert clean["azureml.git.repository_uri"] == "https://example.com/x.git"
    write(tmp_path, {"src/a.py": "changed"})
    assert git.properties(tmp_path / "src")["azureml.git.dirty"] == "True"


def trap(folder: Path) -> tuple[str, Path]:
    """A command that leaves a file behind if it runs, and the path of that file."""
    (folder / "traps").mkdir(exist_ok=True)
    program, sprung = folder / "traps" / "spring", folder / "traps" / "sprung"
    program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(sprung))}\ncat\n")
    program.chmod(0o755)
    return str(program), sprung


def by_monitor(repository: Path, program: str) -> None:
    run(repository, "config", "core.fsmonitor", program)


def by_hook(repository: Path, program: str) -> None:
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.symlink_to(program)
    os.utime(repository / "a.py", (1, 1))  # so that the index has something to write


def by_hooks_path(repository: Path, program: str) -> None:
    (repository / "hooks").mkdir()
    (repository / "hooks" / "post-index-change").symlink_to(program)
    run(repository, "config", "core.hooksPath", str(repository / "hooks"))
    os.utime(repository / "a.py", (1, 1))


def by_filter(repository: Path, program: str) -> None:
    run(repository, "config", "filter.mine.x.clean", program)
    write(repository, {".gitattributes": "*.py filter=mine.x\n"})
    os.utime(repository / "a.py", (1, 1))  # so that its content is compared


def by_process(repository: Path, program: str) -> None:
    run(repository, "config", "filter.mine.process", program)
    write(repository, {".git/info/attributes": "*.py filter=mine\n"})
    os.utime(repository / "a.py", (1, 1))


def by_submodule(repository: Path, program: str) -> None:
    inner = repository.parent / "inner"
    write(inner, {"b.py": ""})
    run(inner, "init", "-q")
    run(inner, "add", "b.py")
    run(inner, "commit", "-q", "-m", "inner")
    run(repository, "submodule", "add", "-q", str(inner), "inner")
    run(repository / "inner", "config", "core.fsmonitor", program)


@pytest.mark.parametrize("lay", [by_monitor, by_hook, by_hooks_path, by_filter, by_process, by_submodule])
def test_a_strangers_repository_runs_nothing(tmp_path: Path, lay: Callable[[Path, str], None]) -> None:
    """Commands in a repository's own configuration never run, although a plain `git status` would run them."""
    repository = tmp_path / "repository"
    write(repository, {"a.py": "1"})
    run(repository, "init", "-q", "-b", "trunk")
    run(repository, "add", "a.py")
    run(repository, "commit", "-q", "-m", "first")
    program, sprung = trap(tmp_path)
    lay(repository, program)
    assert git.properties(repository)["azureml.git.branch"] == "trunk"
    assert not sprung.exists()
    subprocess.run(["git", "status"], cwd=repository, capture_output=True, timeout=60)
    assert sprung.exists()


def test_a_bare_repository_in_a_folder_is_not_looked_at(tmp_path: Path) -> None:
    """A folder that looks like a bare repository is not treated as one, because its configuration could come from
    an archive."""
    program, sprung = trap(tmp_path)
    run(tmp_path, "init", "-q", "--bare", "code")
    run(tmp_path / "code", "config", "core.bare", "false")
    run(tmp_path / "code", "config", "core.worktree", str(tmp_path / "code"))
    run(tmp_path / "code", "config", "core.fsmonitor", program)
    assert git.properties(tmp_path / "code") == {}
    assert not sprung.exists()


def test_what_is_missing_is_fetched_from_nowhere(tmp_path: Path) -> None:
    """A missing object is not fetched from the address in the repository's configuration."""
    repository = tmp_path / "repository"
    write(repository, {"a.py": "1"})
    run(repository, "init", "-q", "-b", "trunk")
    run(repository, "add", "a.py")
    run(repository, "commit", "-q", "-m", "first")
    sprung = tmp_path / "sprung"
    for name, value in {
        "remote.origin.url": f"ext::touch {sprung}",
        "remote.origin.promisor": "true",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "protocol.ext.allow": "always",
    }.items():
        run(repository, "config", name, value)
    tree = subprocess.run(["git", "rev-parse", "HEAD^{tree}"], cwd=repository, capture_output=True, text=True).stdout
    (repository / ".git" / "objects" / tree[:2] / tree[2:].strip()).unlink()
    git.properties(repository)
    assert not sprung.exists()
    subprocess.run(["git", "status"], cwd=repository, capture_output=True, timeout=60)
    assert sprung.exists()


def test_names_that_are_no_utf_8_are_taken(tmp_path: Path) -> None:
    """A branch and a filter may have any bytes as names, including bytes that are not UTF-8."""
    write(tmp_path, {"a.py": ""})
    run(tmp_path, "init", "-q", "-b", "trunk")
    run(tmp_path, "add", ".")
    run(tmp_path, "commit", "-q", "-m", "first")
    for words in (("symbolic-ref", "HEAD"), ()):
        branch = b"refs/heads/caf\xe9"
        if words:
            commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, check=True).stdout
            (tmp_path / ".git" / "HEAD").write_bytes(b"ref: " + branch + b"\n")
            (Path(os.fsdecode(bytes(tmp_path / ".git") + b"/" + branch))).write_bytes(commit)
        else:
            with (tmp_path / ".git" / "config").open("ab") as config:
                config.write(b'[filter "caf\xe9"]\n\tclean = touch ran\n')
    (tmp_path / ".gitattributes").write_bytes(b"*.py filter=caf\xe9\n")
    write(tmp_path, {"a.py": "changed"})
    found = git.properties(tmp_path)
    assert (found["azureml.git.branch"], found["azureml.git.dirty"]) == ("caf\ufffd", "True")
    assert not (tmp_path / "ran").exists()

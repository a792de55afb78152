"""The gate itself, and conventions in files that no other test reads."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.features import FEATURES
from tests.gate.scripts import ROOT, load

check, proven = load("check"), load("proven")

RAN, SKIPPED = "", "<skipped message='no'/>"


def report(folder: Path, *results: str) -> Path:
    """A JUnit report with one conformance test for each result, and a skipped test of another file."""
    name = "emulator_tests.host.test_conformance"
    cases = [f"<testcase classname='{name}' name='t{i}'>{inner}</testcase>" for i, inner in enumerate(results)]
    other = f"<testcase classname='tests.other' name='t'>{SKIPPED}</testcase>"
    file = folder / "report.xml"
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}{other}</testsuite></testsuites>")
    return file


@pytest.mark.parametrize(
    ("results", "python", "strict", "fails", "words"),
    [
        ([RAN, RAN], "python3.13", True, False, "ok"),
        ([RAN, SKIPPED], "python3.13", True, True, "1 of 2 tests skipped, although python3.13 is here"),
        ([RAN, SKIPPED], "python3.13", False, False, "1 of 2 tests skipped, although python3.13 is here"),
        ([], "python3.13", True, True, "NOT CHECKED AGAINST MICROSOFT'S RUNTIME"),
        ([SKIPPED], None, True, False, "install Python 3.13"),
    ],
)
def test_a_skipped_conformance_test_is_told(
    tmp_path: Path, results: list[str], python: str | None, strict: bool, fails: bool, words: str
) -> None:
    """The gate reports skipped tests against Microsoft's runtime; in CI, where there is a Python 3.13, they fail
    the gate."""
    verdict = check.conformance(report(tmp_path, *results), python, strict)
    assert words in verdict
    assert verdict.startswith(check.OK) is not fails


def test_a_shell_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The gate names each shell in which completion was not tested."""
    file = report(tmp_path)
    assert check.said_when_skipped(file, check.SHELLS) == check.OK
    text = file.read_text().replace("tests.other", f"tests.cli.{check.SHELLS}")
    file.write_text(text.replace("message='no'", "message='NOT TESTED IN ZSH'"))
    assert check.said_when_skipped(file, check.SHELLS) == f"{check.OK}, but NOT TESTED IN ZSH"


def test_the_guard_watches_a_test_that_exists() -> None:
    """The tests that the gate looks for by name exist, and so do those that `--quick` leaves out."""
    assert all(
        [*(ROOT / "tests").rglob(f"{name}.py"), *(ROOT / "emulators").rglob(f"{name}.py")]  # not the environments
        for name in (check.CONFORMANCE, check.SHELLS, check.WORKER)
    )
    files = {pattern.partition("::")[0] for pattern in (*check.SLOW, *check.LONG)}
    assert [pattern for pattern in files if not list(ROOT.glob(pattern))] == []
    tests = [each.partition("[")[0].split("::") for each in check.LONG if "::" in each]
    assert [name for file, name in tests if f"def {name}(" not in (ROOT / file).read_text("utf-8")] == []


def test_hooks_look_at_files_that_are_there() -> None:
    """Each alternative of a hook's file pattern matches a file of the repository."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    files = [str(path.relative_to(ROOT)) for name in ("*.md", "shared/**/*", "cli/*") for path in ROOT.glob(name)]
    patterns = [one for repo in config["repos"] for hook in repo["hooks"] for one in hook.get("files", "").split("|")]
    assert [one for one in patterns if not any(re.search(one, file) for file in files)] == []


def test_hooks_use_the_versions_of_the_gate() -> None:
    """pre-commit installs each tool in the version that requirements-dev.txt pins."""
    pinned = (ROOT / "requirements-dev.txt").read_text("utf-8").splitlines()
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    asked = {need for hook in hooks for need in hook.get("additional_dependencies", [])}
    assert asked
    assert asked <= set(pinned)


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with emulators and their requirements, whose branch has no commit beyond origin/main."""
    (tmp_path / "emulators").mkdir()
    (tmp_path / "emulators" / "a.py").write_text("a = 1\n")
    (tmp_path / "requirements-dev.txt").write_text("pytest\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    return tmp_path


@pytest.mark.parametrize("file", ["emulators/a.py", "emulators/new.py", "requirements-dev.txt"])
def test_changed_emulators_are_tested(checkout: Path, file: str) -> None:
    """With a changed or new file of the emulators, or another requirement, the gate runs the emulators' tests."""
    mark = checkout / "mark"
    assert "origin/main" in proven.since(checkout, mark)
    (checkout / file).write_text("b = 2\n")
    assert proven.since(checkout, mark) == ""
    proven.keep(checkout, mark)
    assert proven.since(checkout, mark) == "they passed here"


def test_committed_changes_are_tested_too(checkout: Path) -> None:
    """A change outside the emulators keeps the proof; a commit of the emulators that origin/main lacks ends it."""
    (checkout / "other.py").write_text("")
    assert proven.since(checkout, checkout / "mark")
    (checkout / "emulators" / "a.py").unlink()
    git(checkout, "commit", "--quiet", "--all", "--message", "second")
    assert proven.since(checkout, checkout / "mark") == ""


def test_without_git_nothing_is_proven(tmp_path: Path) -> None:
    """Outside of a checkout the emulators' tests run."""
    assert proven.since(tmp_path, tmp_path / "mark") == ""


def test_ci_always_tests_the_emulators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate skips only the emulators' tests, and only if they are proven; `.ci/run` never skips them."""
    options = check.parse([])
    assert "tests" not in check.command("tests", options, tmp_path)
    options.proven = "they passed here"
    assert "tests" in check.command("tests", options, tmp_path)
    assert "check --emulators" in (ROOT / ".ci" / "run").read_text("utf-8")
    monkeypatch.setattr(check.proven, "since", lambda *_: "they passed here")
    monkeypatch.delenv("CI", raising=False)
    assert check.proven_since(check.parse([])) == "they passed here"
    assert check.proven_since(check.parse(["--emulators"])) == ""
    monkeypatch.setenv("CI", "true")
    assert check.proven_since(check.parse([])) == ""


def workflow(name: str = "ci") -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))
    return told


def test_the_hosted_workflow_runs_the_gate() -> None:
    """GitHub runs .ci/run read-only, with the oldest supported Python and with that of Microsoft's runtime."""
    job = workflow()["jobs"]["check"]
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert oldest
    assert job["strategy"]["matrix"]["python"] == [oldest[1], "3.13"]
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    assert workflow()["permissions"] == {"contents": "read"}


def test_each_night_everything_runs() -> None:
    """Tests that the gate leaves out run each night, with the whole history, which a test of two versions needs."""
    night = workflow("nightly")
    steps = night["jobs"]["check"]["steps"]
    assert ".ci/run --all" in [step.get("run") for step in steps]
    assert steps[0]["with"]["fetch-depth"] == 0
    assert 'cron: "0 2 * * *"' in (ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8")
    assert check.command("tests", check.parse(["--all"]), Path("r")) == [
        *check.STEPS["tests"], "--junitxml=r", *check.AT_A_TIME
    ]  # fmt: skip


def test_each_night_each_feature_is_deleted_in_a_job_of_its_own() -> None:
    """The test that even `--all` skips runs each night, once for each feature."""
    job = workflow("nightly")["jobs"]["without"]
    assert job["strategy"]["matrix"]["feature"] == [feature.removeprefix("shared.") for feature in FEATURES]
    assert not job["strategy"]["fail-fast"]
    name = "test_without_a_feature_every_other_test_passes"
    assert f"def {name}(" in (ROOT / "tests" / "shared" / "test_features.py").read_text("utf-8")
    command = f"python3 trainyard.py test tests/shared/test_features.py::{name}"
    assert [step["env"] for step in job["steps"] if step.get("run") == command] == [
        {"TRAINYARD_WITHOUT": "${{ matrix.feature }}"}
    ]


def test_actions_are_pinned_to_a_major_version() -> None:
    """Each action names its major version, never a branch."""
    uses = [step["uses"] for job in workflow()["jobs"].values() for step in job["steps"] if "uses" in step]
    assert uses
    assert [name for name in uses if not re.fullmatch(r"actions/[\w-]+@v\d+", name)] == []


def test_the_last_line_says_what_was_not_checked(tmp_path: Path) -> None:
    """The last line has each reason of skipped tests once and what the options leave out, and nothing if all tests
    ran."""
    file = report(tmp_path, RAN, SKIPPED)
    assert check.not_checked(file, check.parse([])) == "Not checked: no; the walks of the night (--all)."
    ran = file.read_text().replace(SKIPPED, RAN)
    file.write_text(ran)
    assert check.not_checked(file, check.parse(["--all"])) == "Everything was checked."
    options = check.parse(["--only", "types"])
    assert check.not_checked(tmp_path / "none.xml", options).startswith("Not checked: every step but types; ")

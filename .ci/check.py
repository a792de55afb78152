"""The whole gate, as CI runs it: format, lint, types, tests. Every step runs, even after a failed one.

Called by `python3 trainyard.py check`, in an environment that has requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "emulators" / "src"), str(ROOT / ".ci")]

import proven  # noqa: E402  # found by the line above

from emulators.testing import python313  # noqa: E402

OK = "ok"
# Two more at a time than there are cores, since many tests wait for a timer or a retry; not above 5, for their memory.
# Files stay whole, because the tests of one share a cloud, and in their order: by default those with few tests, which
# are the long ones, would come last.
AT_A_TIME = ["-n", str(min(os.cpu_count() or 1, 3) + 2), "--dist", "loadfile", "--no-loadscope-reorder"]
STEPS = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
    "types": ["mypy"],
    "tests": ["pytest", "--durations=25"],
}
# What `--quick` leaves out beside the emulators' tests, as globs: the trainers, contracts, and what starts a cloud,
# trains, or waits for timers and retries.
SLOW = (
    "tests/cloud",
    "tests/contract",
    "tests/e2e",
    "tests/elastic",
    "tests/fuzz",
    "tests/simulation",
    "tests/trainers",
    "tests/batchai/test_any_document.py",
    "tests/batchai/test_recipes.py",
    "tests/benchmarks/test_benchmark_scale.py",
    "tests/benchmarks/test_benchmarks*.py",
    "tests/cli/files/test_signed_model.py",
    "tests/cli/setup/test_shell_completion.py",
    "tests/infra/test_hooks.py",
    "tests/gate/test_site.py",
    "tests/infra/test_package_runtime.py",
    "tests/infra/test_package_size.py",
    "tests/infra/test_package_worker.py",
    "tests/infra/test_preflight.py",
    "tests/infra/test_published_situations.py",
    "tests/infra/test_roles.py",
    "tests/page/test_page*.py",
    "tests/shared/clusters/test_idle_time.py",
    "tests/shared/deadlines/test_promise.py",
    "tests/shared/money/test_money_month.py",
    "tests/shared/deadlines/test_runs_with_a_date.py",
    "tests/shared/elastic/test_elastic_runs.py",
    "tests/shared/money/test_ledger.py",
    "tests/shared/sweeps/test_sweep*.py",
    "tests/shared/test_features.py",
)
# What the gate leaves to `--all`, which runs each night: long walks through what its other tests prove piece by piece.
# Files as globs, or the beginning of a test's name behind its file and "::".
LONG = (
    "tests/benchmarks/test_benchmark_scale.py",
    "tests/benchmarks/test_benchmarks_quick.py",
    "tests/cli/setup/test_shell_completion.py",
    "tests/e2e/test_agents.py",
    "tests/e2e/test_api.py::test_a_deployment_is_registered_and_smoked",
    "tests/e2e/test_api.py::test_a_workspace_that_hangs_holds_up_nothing_else",
    "tests/e2e/test_auditor.py",
    "tests/e2e/test_batchai.py::test_the_horovod_job_trains_with_torch_on_eight_processes",
    "tests/e2e/test_chaos.py",
    "tests/e2e/test_cli.py::test_the_notebook_runs",
    "tests/e2e/test_corpus.py",
    "tests/e2e/test_daily.py::test_a_demo_beside_others_waits_for_none",
    "tests/e2e/test_daily.py::test_a_model_is_used",
    "tests/e2e/test_daily.py::test_a_model_is_promoted_proved_and_trained_again",
    "tests/e2e/test_daily.py::test_a_run_begins_with_a_model",
    "tests/e2e/test_daily.py::test_a_run_goes_on_with_more_epochs",
    "tests/e2e/test_daily.py::test_runs_are_compared",
    "tests/e2e/test_data.py::test_a_removed_run_frees_its_space",
    "tests/e2e/test_deadline.py",
    "tests/e2e/test_docs_pages.py",
    "tests/e2e/test_elastic.py",
    "tests/e2e/test_many_blobs.py",
    "tests/e2e/test_paths.py::test_lost_events_cost_one_period",
    "tests/e2e/test_runtime.py",
    "tests/e2e/test_schemathesis.py",
    "tests/e2e/test_study.py",
    "tests/e2e/test_telemetry.py",
    "tests/e2e/test_trainers.py",
    "tests/e2e/test_trainers_page.py",
    "tests/e2e/test_two_versions.py",
    "tests/elastic/simulation/test_simulation.py::test_a_team_is_whole_five_seconds_after_its_links_have_healed[more",
    "tests/elastic/simulation/test_simulation.py::test_after_a_cut_the_largest_part_is_at_work[more",
    "tests/elastic/simulation/test_simulation.py::test_no_story_breaks_a_rule[1",
    "tests/elastic/test_agents.py",
    "tests/elastic/test_in_place.py",
    "tests/elastic/test_partition.py",
    "tests/elastic/test_pytorch_agents.py",
    "tests/elastic/test_two_versions.py",
    "emulators/emulator_tests/azureml/bodies/test_odd_bodies.py",
    "emulators/emulator_tests/azureml/tracking/test_database.py::test_a_kill_leaves_nothing_half[1]",
    "emulators/emulator_tests/azureml/tracking/test_database.py::test_a_kill_leaves_nothing_half[40]",
    "emulators/emulator_tests/azureml/tracking/test_database.py::test_a_kill_leaves_nothing_half[200]",
    "emulators/emulator_tests/azureml/tracking/test_out_of_reach.py",
    "tests/fuzz",
    "emulators/emulator_tests/microsoft/test_blobs.py",
    "emulators/emulator_tests/microsoft/test_tables.py",
    "tests/infra/test_published_situations.py::test_a_gpu_that_is_not_seen_ends_the_training_before_it_begins[bert",
    "tests/page/test_page_content.py",
    "tests/shared/clusters/test_idle_time.py::test_philly",
    "tests/shared/money/test_money_month.py::test_the_months_that_were_wrong_once_add_up",
    "tests/shared/deadlines/test_runs_with_a_date.py::test_it_is_done_in_time[bursts 2",
    "tests/shared/deadlines/test_runs_with_a_date.py::test_it_is_done_in_time[bursts 3",
    "tests/shared/schedules/test_schedules.py::test_a_new_drop_is_trained_once_whatever_dies[2",
    "tests/shared/schedules/test_schedules.py::test_a_new_drop_is_trained_once_whatever_dies[3",
    "tests/shared/sweeps/test_sweep_schedules.py::test_looks_at_once_promote_no_trial_twice[many",
    "tests/simulation/test_schedules_with_challenges.py::test_a_run_is_judged_once_by_the_champion_of_that_moment[many",
    "tests/trainers/test_bert_training.py",
    "tests/trainers/test_cifar_training.py",
    "tests/trainers/test_checkpoint_processes.py",
    "tests/trainers/test_detection_training.py",
    "tests/trainers/test_readme_commands.py::test_a_script_takes_the_words_of_its_readme[bert",
    "tests/trainers/test_transfer_training.py",
)
PASSED = ROOT / ".trainyard" / "emulators-passed"
COVERAGE = {
    "combine": ["combine", "--quiet"],
    "report": ["report", "--show-missing", "--skip-covered", "--sort=cover"],
}
CONFORMANCE = "test_conformance"
MICROSOFT = "emulator_tests.microsoft"
SHELLS = "test_shell_completion"
WORKER = "test_package_worker"


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    options.proven = proven_since(options)
    # Nobody looks at the pictures of the gate, some 80 of whole pages.
    os.environ.setdefault("TRAINYARD_PICTURES", "1" if options.all else "0")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "tests.xml")
        rows = [(options.only, *run(options.only, command(options.only, options, report)))] if options.only else []
        rows += [] if options.only else every_step(options, report)
        if options.coverage:
            rows += [(f"coverage {verb}", *run(verb, ["coverage", *arguments])) for verb, arguments in COVERAGE.items()]
        if report.exists() and not options.quick:
            rows.append(("emulators", 0.0, emulators(options, {name: verdict for name, _, verdict in rows})))
            rows.append(("page", 0.0, browser(report)))
            rows.append(("completion", 0.0, said_when_skipped(report, SHELLS)))
            rows.append(("worker", 0.0, said_when_skipped(report, WORKER)))
            if not options.proven:
                rows.append(("microsoft", 0.0, said_when_skipped(report, MICROSOFT)))
                rows.append(("conformance", 0.0, conformance(report, python313.find(), "CI" in os.environ)))
        left_out = not_checked(report, options)
    sys.stdout.write("\n" + "".join(f"{name:16} {seconds:6.1f} s  {verdict}\n" for name, seconds, verdict in rows))
    sys.stdout.write(f"{left_out}\n")
    return 0 if all(verdict.startswith(OK) for *_, verdict in rows) else 1


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 trainyard.py check", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="only the fast tests: under 2 minutes on 2 cores")
    which.add_argument("--all", action="store_true", help="the long walks too, which else run each night alone")
    parser.add_argument("--only", choices=STEPS, help="one step alone")
    parser.add_argument(
        "--emulators", action="store_true", help="run the emulators' tests even if nothing in emulators/ changed"
    )
    parser.add_argument(
        "--coverage",
        action="store_true",
        help="also list the lines and branches of shared, functions, cli and emulators that no test reaches",
    )
    parser.set_defaults(proven="")
    return parser.parse_args(argv)


def proven_since(options: argparse.Namespace) -> str:
    """Return since when the emulators are unchanged after passing their tests; "" where the tests always run, as in
    CI."""
    always = options.emulators or options.all or options.coverage or "CI" in os.environ
    return "" if always else proven.since(ROOT, PASSED)


def command(name: str, options: argparse.Namespace, report: Path) -> list[str]:
    """Return the arguments of this step after `python -m`."""
    if name != "tests":
        return STEPS[name]
    argv = [*STEPS["tests"], f"--junitxml={report}"]
    left_out = () if options.all else (*LONG, *SLOW) if options.quick else LONG
    argv += [f"--{'deselect' if '::' in each else 'ignore-glob'}={each}" for each in left_out]
    argv += ["tests"] if options.quick or options.proven else []  # not the emulators' own, which pytest also knows
    if not options.coverage:
        return [*argv, *AT_A_TIME]
    # One at a time: on a busy machine a worker may be ended before it has written down what it reached.
    return ["coverage", "run", "-m", *argv]


def every_step(options: argparse.Namespace, report: Path) -> list[tuple[str, float, str]]:
    """Run all steps. Types are checked beside the tests, which leave a core idle while they start."""
    with tempfile.TemporaryFile() as said, ThreadPoolExecutor(1) as beside:
        types = beside.submit(run, "types", STEPS["types"], said)
        if not options.quick:
            compile_once()
        rows = [(name, *run(name, command(name, options, report))) for name in STEPS if name != "types"]
        rows.append(("types", *types.result()))
        said.seek(0)
        sys.stdout.write(said.read().decode(errors="replace"))
    return rows


def compile_once() -> None:
    """Let one process compile the modules that all workers import to collect the tests. Otherwise each worker would
    compile them."""
    ignored = [f"--ignore-glob={each}" for each in LONG if "::" not in each]
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-qq", *ignored]
    subprocess.run(argv, cwd=ROOT, stdout=subprocess.DEVNULL)  # what it can't collect fails again in the tests


def run(name: str, argv: list[str], out: IO[bytes] | None = None) -> tuple[float, str]:
    """Run one step in the repository; return its seconds, and "ok" or what to do. `out`: where its output goes."""
    sys.stdout.write(f"== {name}: {' '.join(argv)}\n")
    sys.stdout.flush()
    began = time.monotonic()
    status = subprocess.run([sys.executable, "-m", *argv], cwd=ROOT, stdout=out).returncode
    return time.monotonic() - began, OK if status == 0 else f"FAILED (exit {status})"


def emulators(options: argparse.Namespace, verdicts: dict[str, str]) -> str:
    """Return the result of the emulators' own tests. After passing, they run again only after a change."""
    if options.proven:
        return f"{OK}, but their tests did not run: nothing changed since {options.proven} (--emulators runs them)"
    if verdicts.get("tests") == OK:
        proven.keep(ROOT, PASSED)
    return verdicts.get("tests", OK)


def not_checked(report: Path, options: argparse.Namespace) -> str:
    """Return one sentence, the gate's last line, on what was not checked, by the reasons of skipped tests and by
    the options."""
    found = [] if options.only in (None, "tests") else ["every step but " + options.only]
    if report.exists():
        skipped = [case.find("skipped") for case in ET.parse(report).iter("testcase")]  # noqa: S314
        found += sorted({case.get("message", "").rstrip(".") for case in skipped if case is not None})
    found += [f"the emulators, unchanged since {options.proven} (--emulators)"] if options.proven else []
    if not options.all:
        found.append("the slow tests and the walks of the night" if options.quick else "the walks of the night (--all)")
    return f"Not checked: {'; '.join(found)}." if found else "Everything was checked."


def browser(report: Path) -> str:
    """Return the result of the page's tests, which need Chromium. A missing Chromium is reported, and is no
    failure."""
    cases = [case for case in ET.parse(report).iter("testcase") if "test_page" in case.get("classname", "")]  # noqa: S314
    skipped = [case for case in cases if case.find("skipped") is not None]
    return f"{OK}, but THE PAGE WAS NOT TESTED IN A BROWSER: install chromium" if skipped else OK


def said_when_skipped(report: Path, module: str) -> str:
    """Return the result of tests that need a shell or worker that few machines have. A missing one is reported
    only."""
    cases = [case for case in ET.parse(report).iter("testcase") if module in case.get("classname", "")]  # noqa: S314
    skipped = [case.find("skipped") for case in cases]
    words = sorted({case.get("message", "") for case in skipped if case is not None})
    return f"{OK}, but {'; '.join(words)}" if words else OK


def conformance(report: Path, python: str | None, strict: bool) -> str:
    """Return the result of the tests against Microsoft's own runtime, which run only with Python 3.13.

    A missing Python 3.13 is reported, and is no failure. Tests that did not run although it exists are a failure if
    `strict`.
    """
    cases = [case for case in ET.parse(report).iter("testcase") if CONFORMANCE in case.get("classname", "")]  # noqa: S314
    ran = [case for case in cases if case.find("skipped") is None]
    if cases and len(ran) == len(cases):
        return OK
    what = f"NOT CHECKED AGAINST MICROSOFT'S RUNTIME: {len(cases) - len(ran)} of {len(cases)} tests skipped"
    if python is None:
        return f"{OK}, but {what}; install Python 3.13 (python3.13 on PATH, or pyenv)"
    return f"{what if strict else f'{OK}, but {what}'}, although {python} is here"


if __name__ == "__main__":
    sys.exit(main())

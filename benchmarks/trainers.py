"""Our trainers compared with the well-known script for the same job: ratios of speed, and of time to a goal.

    python3 trainyard.py bench trainers [--quick] [--pairs N] [--json] [--where] [NAME ...]

Target: at least 1.0 everywhere. The peers are in benchmarks/peers/. Both sides get the same data, model, batch size,
optimiser, rates, seed and number of processes, with one thread each and without loader workers. A pair is our run and
then the peer's; a ratio is the median over the pairs, and above 1 where ours is faster.

Speed is measured between rows of metrics.jsonl in one epoch, without the first fifth; time to the goal is measured from
the start of the command. Both are measured by wall time and by the CPU time of the processes (on Linux). The CPU time
equals the wall time of an otherwise idle machine. --where instead shows how ten steps of each side spend their time.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks._options import options

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
TEXT = """
import shutil, sys; from pathlib import Path; from bert import pythondocs, text
folder = Path(sys.argv[1]); pythondocs.write(folder); shutil.rmtree(folder / "library")
tokenizer = text.train_tokenizer(text.text_files(folder), text.Held(20), 4096)
tokenizer.save(str(folder / text.TOKENIZER))
"""


@dataclass(frozen=True)
class Case:
    """One comparison. `goal` is a metric and the value to reach, or None for the end, with all its tests.

    `both` holds the options of both programs, `ours` those of the trainer, and `peer` those of its peer.
    """

    trainer: str
    data: str
    both: str
    goal: tuple[str, float] | None
    per_step: int  # images or tokens of all processes
    unit: str = "images"
    ours: str = "--data DATA"
    peer: str = "--data DATA"
    processes: int = 1

    @property
    def name(self) -> str:
        return f"{self.trainer}-{self.processes}" if self.processes > 1 else self.trainer


MNIST = Case(
    trainer="mnist",
    data="mnist",
    both="--epochs 1 --batch-size 64 --lr 0.05",
    goal=("test_accuracy", 0.98),
    per_step=64,
)
CASES = (
    MNIST,
    replace(MNIST, processes=2),
    Case(
        trainer="cifar_elastic",
        data="cifar-10-small-python.tar.gz",
        both="--epochs 1 --batch-size 32 --lr 0.05 --width 16",
        goal=("test_accuracy", 0.2),
        per_step=32,
    ),
    Case(
        trainer="transfer",
        data="hymenoptera_data",
        both="--epochs 3 --batch-size 32 --lr 0.02 --backbone resnet18 --image-size 96 --log-interval 2",
        goal=None,  # from new weights, a model learns little from 245 images in three epochs
        per_step=32,
        ours="--weights none --no-export --input-dir DATA",
    ),
    Case(
        trainer="detection",
        data="coco-tiny",
        both="--epochs 3 --batch-size 4 --backbone resnet18 --min-size 128 --max-size 160 --log-interval 2",
        goal=None,  # nor from 32 images
        per_step=4,
        ours="--optimizer adamw --lr 6e-4 --clip-norm 0 --test-every 9 --no-script --data DATA",  # --lr for 16 images
        peer="--lr 3e-4 --data DATA",
    ),
    Case(
        trainer="bert",
        data="",  # texts inside Python
        both="--epochs 2 --batch-size 64 --lr 2e-3 --log-interval 5",
        goal=("val_loss", 6.8),
        per_step=64 * 128,
        unit="tokens",
    ),
)


QUICK = ["detection"]  # the shortest


def prepare(case: Case, home: Path) -> Path:
    """Return the data that both sides read. MNIST is unpacked for the peer, in torchvision's layout."""
    folder = home / case.trainer
    if case.trainer == "mnist" and not folder.exists():
        raw = folder / "MNIST" / "raw"
        raw.mkdir(parents=True)
        for path in (DATA / "mnist").glob("*.gz"):
            (raw / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    if case.trainer == "cifar_elastic":
        with tarfile.open(DATA / case.data) as archive:
            archive.extractall(folder, filter="data")
        return folder / "cifar-10-batches-py"
    if case.trainer == "bert" and not folder.exists():
        subprocess.run([sys.executable, "-c", TEXT, str(folder)], env=environment(), check=True)
    return folder if folder.exists() else DATA / case.data


def environment() -> dict[str, str]:
    """Return an environment with one thread per process, in which processes find each other without the machine's
    name."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "trainers")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def command(case: Case, ours: bool, data: Path, folder: Path, seed: int) -> list[str]:
    """Return the module and the arguments of one side."""
    module = f"{case.trainer}.train" if ours else f"benchmarks.peers.{case.trainer}"
    words = f"{case.both} {case.ours if ours else case.peer}".split()
    filled = [str(data) if word == "DATA" else word for word in words]
    return [module, *filled, "--metrics-dir", str(folder), "--seed", str(seed)]


def run(case: Case, ours: bool, data: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Train once and measure. The figure of a goal that was not reached is None."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(case.processes)]
    argv = [sys.executable, *(launch if case.processes > 1 else []), "-m", *command(case, ours, data, folder, seed)]
    rows: list[dict[str, float]] = []
    log, began = folder.with_suffix(".log"), time.time()
    with log.open("w") as out, subprocess.Popen(argv, cwd=ROOT, env=environment(), stdout=out, stderr=out) as process:
        while process.poll() is None:
            rows += new_rows(folder / "metrics.jsonl", len(rows), process.pid)
            time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{' '.join(argv)} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    trained, goal = [row for row in rows if "train_loss" in row], goal_row(case, rows)
    return {
        "per_second": speed(case, trained, "time"),
        "per_cpu_second": speed(case, trained, "cpu"),
        "seconds_to_goal": round(goal["time"] - began, 2) if goal else None,
        "cpu_seconds_to_goal": goal["cpu"] if goal else None,
        "at_end": rows[-1],
        "data_wait_share": round(statistics.median(row["data_wait_share"] for row in trained), 3),
    }


def new_rows(path: Path, known: int, pid: int) -> list[dict[str, float]]:
    """Return the rows written since the last call, with the CPU seconds that the processes have used so far."""
    lines = path.read_text().splitlines(keepends=True)[known:] if path.exists() else []
    return [{**json.loads(line), "cpu": cpu_seconds(pid)} for line in lines if line.endswith("\n")]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its children, including ended children. Linux only; 0 elsewhere."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        return 0.0
    stats = (Path(f"/proc/{each}/stat").read_text() for each in (pid, *children.read_text().split()))
    # man 5 proc: utime, stime, cutime and cstime (the last two: of ended children)
    ticks = sum(sum(map(int, stat.rpartition(")")[2].split()[11:15])) for stat in stats)
    return round(ticks / os.sysconf("SC_CLK_TCK"), 2)


def speed(case: Case, trained: list[dict[str, float]], clock: str) -> float | None:
    """Return images or tokens a second by this clock, measured between consecutive training rows of one epoch."""
    pairs = [(a, b) for a, b in itertools.pairwise(trained) if a["epoch"] == b["epoch"]]
    pairs = pairs[len(pairs) // 5 :]
    seconds = sum(b[clock] - a[clock] for a, b in pairs)
    return round(case.per_step * sum(b["step"] - a["step"] for a, b in pairs) / seconds, 1) if seconds else None


def goal_row(case: Case, rows: list[dict[str, float]]) -> dict[str, float] | None:
    """Return the first row that reaches the goal: a loss falls to the goal, any other metric rises to it."""
    if not case.goal:
        return rows[-1]
    metric, limit = case.goal
    sign = -1 if "loss" in metric else 1
    return next((row for row in rows if metric in row and sign * row[metric] >= sign * limit), None)


def compare(case: Case, home: Path, pairs: int) -> dict[str, Any]:
    """Run our trainer and the peer in turn; the seed of the n-th pair is n."""
    data, sides = prepare(case, home), ("ours", "peer")
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for seed in range(1, pairs + 1):
        for side in sides:
            folder = home / f"{case.name}-{side}-{seed}"
            runs[side].append(run(case, side == "ours", data, folder, seed))
            print(f"  {case.name} {seed} {side}: {runs[side][-1]}", file=sys.stderr, flush=True)
    return {
        "unit": case.unit,
        "goal": f"{case.goal[0]} {case.goal[1]:g}" if case.goal else "the end",
        "speed": ratio(runs["ours"], runs["peer"], "per_second"),
        "speed_by_cpu": ratio(runs["ours"], runs["peer"], "per_cpu_second"),
        "time_to_goal": ratio(runs["peer"], runs["ours"], "seconds_to_goal"),
        "time_to_goal_by_cpu": ratio(runs["peer"], runs["ours"], "cpu_seconds_to_goal"),
        **runs,
    }


def ratio(above: list[dict[str, Any]], below: list[dict[str, Any]], name: str) -> float | None:
    """Return the median of the pairs' ratios, or None if a pair lacks a number."""
    pairs = [(a[name], b[name]) for a, b in zip(above, below, strict=True)]
    return round(statistics.median(a / b for a, b in pairs), 2) if all(a and b for a, b in pairs) else None


def where(case: Case, home: Path) -> dict[str, Any]:
    """Return how the steps of both sides spend their time."""
    if case.processes > 1:
        return {"skipped": "profiles are of one process"}
    data, shares = prepare(case, home), {}
    for side in ("ours", "peer"):
        argv = [sys.executable, "-m", "benchmarks.peers.profiled"]
        argv += command(case, side == "ours", data, home / f"{case.name}-{side}", 1)
        done = subprocess.run(argv, cwd=ROOT, env=environment(), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
        shares[side] = json.loads(done.stdout.splitlines()[-1])
    return shares


def table(results: dict[str, Any]) -> str:
    """Return a line per trainer: ratios by wall time and by CPU time, and the medians of the latter."""
    lines = [f"{'ours : peer':15}{'speed':>6}{'by CPU':>8}{'goal':>7}{'by CPU':>8}  medians by CPU time"]
    for name, result in results.items():
        if "ours" not in result:
            lines.append(f"{name:15}{next(iter(result))}: {next(iter(result.values()))}")
            continue
        ratios = [result[key] or "-" for key in ("speed", "speed_by_cpu", "time_to_goal", "time_to_goal_by_cpu")]
        speeds, times = (middle(result, key) for key in ("per_cpu_second", "cpu_seconds_to_goal"))
        medians = f"{speeds} {result['unit']}/s, {times} s to {result['goal']}"
        lines.append("{:15}{:>6}{:>8}{:>7}{:>8}  {}".format(name, *ratios, medians))
    return "\n".join(lines)


def middle(result: dict[str, Any], key: str) -> str:
    """Return the medians of our runs and of the peer's runs."""
    numbers = [[run[key] for run in result[side] if run[key]] for side in ("ours", "peer")]
    return " : ".join(f"{statistics.median(values):,.0f}" if values else "-" for values in numbers)


def main(argv: list[str]) -> int:
    parser = options(__doc__, f"one pair of {', '.join(QUICK)}, unless names are given")
    names = [case.name for case in CASES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each side (default: 3)")
    parser.add_argument("--where", action="store_true", help="a profile of each side instead")
    args = parser.parse_args(argv)
    if args.quick:
        args.pairs, args.names = 1, args.names or QUICK
    if unknown := set(args.names) - set(names):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; choose from {', '.join(names)}")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as home:
        for case in (case for case in CASES if not args.names or case.name in args.names):
            try:
                results[case.name] = measure(case, Path(home), 0 if args.where else args.pairs)
            except RuntimeError as error:
                results[case.name] = {"failed": str(error)}
    if args.json or args.where:
        print(json.dumps(results, indent=None if args.json else 1))
    else:
        print(table(results))
    return int(any("failed" in result for result in results.values()))


def measure(case: Case, home: Path, pairs: int) -> dict[str, Any]:
    """Compare this many pairs; 0 makes a profile instead. Returns the reason if the data is missing."""
    if not (DATA / case.data).exists():
        return {"skipped": f"{DATA / case.data} is not there"}
    return compare(case, home, pairs) if pairs else where(case, home)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

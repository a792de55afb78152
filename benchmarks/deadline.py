"""The cost of meeting a deadline: our policy on traces of spot nodes, compared with the policies of others.

python3 trainyard.py bench deadline [--quick] [--traces FILE ...] [--every N] [--png FILE] [--json]

One job needs 48 hours on one node. Its deadline is 52 or 70 hours away, a change of nodes takes 3 or 12 minutes, and
the app reserves two changes and one check. Costs are multiples of the least possible cost, which assumes full knowledge
of the future and free changes of nodes: the mean over all windows, and the 95th percentile. Our policy knows the pool's
history before the window, read again every fourth day. In the column "one at a time", our policy never holds two nodes
at once, like the others, and knows nothing of the pool. "Foreseen" knows the future, and pays for changes.

Then one job may use several pools: all of a file, and all but the one that is up most. Only the later half of the
windows is used; the rule was chosen on the earlier half. At the end: the memory and CPU seconds of a plan of 72 hours.
"""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from benchmarks._options import options
from benchmarks._spot import Outcome, Policy, Window, bound, play, read_windows, spells
from benchmarks._spot_picture import draw
from benchmarks._spot_policies import dedicated_only, uniform_progress, until_the_last_moment
from benchmarks._spot_pools import PLAYERS, foreseen, over_the_least, shares_of_time
from benchmarks._spot_team import NODES, restart_over_stay
from shared.deadlines.decide import choose
from shared.deadlines.outlook import terms_of
from shared.deadlines.plan import HOUR, Plan, Terms
from shared.deadlines.pool import Pool, learn

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "data" / "traces" / "spot-us-west-2a.json.gz"
WORK = 48 * HOUR
LOW, DEDICATED = 0.97, 3.06  # dollars an hour
READ_ANEW = 96 * HOUR  # how often the knowledge of a pool is updated
TARGETS = {"52/0.05": 1.08, "52/0.2": 1.22, "70/0.05": 1.10, "70/0.2": 1.22}
POLICIES = ("dedicated only", "last moment", "UP (NSDI 24)", "UP, plain", "one at a time", "ours", "foreseen")
OURS, FORESEEN = POLICIES[-2:]


@dataclass(frozen=True)
class Setting:
    """Hours until the deadline, and hours for a change of nodes."""

    left: float
    change: float

    @property
    def name(self) -> str:
        return f"{self.left:g}/{self.change:g}"

    def terms(self, step: float) -> Terms:
        return Terms(LOW, DEDICATED, self.change * HOUR, step, reserve=2 * self.change * HOUR + step)


SETTINGS = tuple(Setting(left, change) for left in (52, 70) for change in (0.05, 0.2))


@dataclass(frozen=True)
class Result:
    """The costs of one policy divided by the bound, and the number of windows that missed the deadline."""

    ratios: list[float]
    late: int

    @property
    def mean(self) -> float:
        return fmean(self.ratios)

    @property
    def high(self) -> float:
        """The 95th percentile of the ratios."""
        return quantiles(self.ratios, n=20)[-1] if len(self.ratios) > 1 else self.ratios[0]


def our_policy(pool: Pool, terms: Terms, setting: Setting) -> Policy:
    left = setting.left * HOUR
    return partial(choose, Plan(terms, pool, left, left - WORK))


def known(window: Window, step: float) -> int:
    """Return how many steps of the pool's trace a decision in this window knows."""
    return int(len(window.before) * step // READ_ANEW * READ_ANEW / step)


def costs_of_pool(windows: list[Window], step: float, setting: Setting) -> dict[str, list[tuple[Outcome, float]]]:
    """Return, for each policy, its outcome and the bound in each window."""
    terms, left = setting.terms(step), setting.left * HOUR
    alone = replace(terms, overlaps=False)
    others = {
        POLICIES[0]: dedicated_only,
        POLICIES[1]: until_the_last_moment(terms),
        POLICIES[2]: uniform_progress(terms, left, WORK),
        POLICIES[3]: uniform_progress(terms, left, WORK, hysteresis=False),
    }
    costs: dict[str, list[tuple[Outcome, float]]] = {name: [] for name in POLICIES}
    unknown = our_policy(Pool(), alone, setting)
    for steps in sorted({known(window, step) for window in windows}):
        same = [window for window in windows if known(window, step) == steps]
        pool = learn(spells(same[0].before[:steps], step))
        ours = {POLICIES[4]: unknown, OURS: our_policy(pool, terms, setting)}
        for window in same:
            least = bound(window, terms, left, WORK)
            costs[FORESEEN].append((Outcome(foreseen((window,), terms, left, WORK), 0.0), least))
            for name, policy in (others | ours).items():
                costs[name].append((play(policy, window, terms, left, WORK), least))
    return costs


def measure(
    traces: list[tuple[float, list[Window]]], map_all: Callable[..., Iterator[dict[str, list[tuple[Outcome, float]]]]]
) -> tuple[dict[str, dict[str, Result]], list[str]]:
    """Return the results by setting and policy, and a line about each pool for each setting with long changes."""
    results: dict[str, dict[str, Result]] = {}
    lines = []
    names = [windows[0].pool for _, windows in traces]
    tasks = [(windows, step, setting) for setting in SETTINGS for step, windows in traces]
    played = map_all(costs_of_pool, *zip(*tasks, strict=True))
    for setting in SETTINGS:
        costs = list(islice(played, len(traces)))
        results[setting.name] = {name: result([cost for pool in costs for cost in pool[name]]) for name in POLICIES}
        if setting.change > 0.1:
            lines.append(of_each_pool(costs, names, setting.name))
    return results, lines


def result(costs: list[tuple[Outcome, float]]) -> Result:
    ratios = [outcome.dollars / least for outcome, least in costs]
    return Result(ratios, sum(outcome.spare < 0 for outcome, _ in costs))


def table(results: dict[str, dict[str, Result]]) -> str:
    lines = [f"{'date/change, h':<15}" + "".join(f"{name:>16}" for name in POLICIES) + f"{'target':>8}"]
    for setting, row in results.items():
        cells = "".join(f"{f'{each.mean:.3f} ({each.high:.2f})':>16}" for each in row.values())
        lines.append(f"{setting:<15}{cells}{TARGETS[setting]:>8.2f}")
    late = {name: sum(row[name].late for row in results.values()) for name in POLICIES}
    return "\n".join([*lines, "late: " + ", ".join(f"{count} {name}" for name, count in late.items())])


def elasticity(step: float, pools: list[list[Window]], setting: Setting) -> str:
    """Return the mean cost of a restarting team of four, divided by the cost of staying members."""
    ratios = restart_over_stay(pools, setting.terms(step), setting.left * HOUR, WORK)
    return f"{setting.name}: {fmean(ratios):.2f}"


def of_each_pool(results: list[dict[str, list[tuple[Outcome, float]]]], names: list[str], setting: str) -> str:
    """Return the mean cost of our policy in each pool, and in brackets that of a player who knows the future."""
    means = ({name: result(costs).mean for name, costs in pool.items()} for pool in results)
    return f"{setting}: " + ", ".join(
        f"{name} {mean[OURS]:.3f} ({mean[FORESEEN]:.3f})" for name, mean in zip(names, means, strict=True)
    )


def several(step: float, task: tuple[Setting, list[list[Window]]]) -> dict[str, Result]:
    """Return the costs of one job that may use all these pools, by player."""
    setting, pools = task
    ratios = over_the_least(pools, setting.terms(step), setting.left * HOUR, WORK)
    return {name: Result(each, 0) for name, each in ratios.items()}


def pools_table(name: str, step: float, pools: list[list[Window]], every: int, map_all: Callable[..., Any]) -> str:
    """Return the table of jobs that may use several pools."""
    best_first = sorted(pools, key=shares_of_time, reverse=True)
    sets = {"all": best_first, "without the best": best_first[1:]}
    lines = [f"{name}: one job, several pools" + "".join(f"{player:>16}" for player in PLAYERS)]
    tasks = [(setting, later_half(used, every)) for used in sets.values() for setting in SETTINGS]
    rows = map_all(partial(several, step), tasks)
    for (which, setting), row in zip(((which, setting) for which in sets for setting in SETTINGS), rows, strict=True):
        cells = "".join(f"{f'{row[player].mean:.3f} ({row[player].high:.2f})':>16}" for player in PLAYERS)
        lines.append(f"{f'{which}, {setting.name}':<{len(lines[0]) - 16 * len(PLAYERS)}}{cells}")
    return "\n".join(lines)


def later_half(pools: list[list[Window]], every: int) -> list[list[Window]]:
    in_time = [sorted(windows, key=lambda window: window.start) for windows in pools]
    return [windows[len(windows) // 2 :: every] for windows in in_time]


def picture(files: list[tuple[float, dict[str, list[Window]]]], path: Path) -> None:
    """Draw 52 hours of a window in which the pool has nodes for about half of the time."""
    step, pools = files[0]
    setting = SETTINGS[1]
    steps = int(setting.left * HOUR / step)
    window = min(
        (window for windows in pools.values() for window in windows),
        key=lambda window: abs(sum(window.steps[:steps]) / steps - 0.55),
    )
    terms, left = setting.terms(step), setting.left * HOUR
    pool = learn(spells(window.before[: known(window, step)], step))
    draw(our_policy(pool, terms, setting), window, terms, left, WORK, path)


def cost_of_a_plan(hours: int = 72) -> tuple[float, float]:
    """Return the MiB and the CPU seconds of a plan of `hours` in the app's own terms, where a third of the time is
    slack."""
    left = hours * HOUR
    terms = terms_of(LOW, DEDICATED, 300.0, left, overlaps=True)
    began = time.process_time()
    Plan(terms, Pool(), left, left / 3)
    seconds = time.process_time() - began
    tracemalloc.start()
    plan = Plan(terms, Pool(), left, left / 3)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del plan
    return used / 2**20, seconds


def main(argv: list[str] | None = None) -> None:
    parser = options(__doc__, "each 400th window, and no teams")
    parser.add_argument("--traces", type=Path, nargs="+", default=[TRACES], help="files of windows")
    parser.add_argument("--every", type=int, default=1, help="only each N-th window of a pool")
    parser.add_argument("--png", type=Path, help="draw the job of one window here, and measure nothing")
    asked = parser.parse_args(argv)
    if asked.quick:
        asked.every = 400
    for path in asked.traces:
        if not path.is_file():
            code = 0 if path == TRACES else 2  # a clone may lack the traces
            parser.exit(code, f"There is no {path}. Give files of windows with --traces.\n")
    files = [read_windows(path) for path in asked.traces]
    if asked.png:
        picture(files, asked.png)
        return
    traces = [(step, windows[:: asked.every]) for step, pools in files for windows in pools.values()]
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 8)) as processes:
        results, of_pools = measure(traces, processes.map)
        print(f"{sum(len(windows) for _, windows in traces)} windows of {len(traces)} pools")
        print("\n".join([table(results), "ours (foreseen) in each pool:", *of_pools]), flush=True)
        for path, (step, pools) in zip(asked.traces, files, strict=True):
            teams = [windows[:: asked.every] for windows in list(pools.values())[:NODES]]
            if len(teams) == NODES and not asked.quick:
                ratios = processes.map(partial(elasticity, step, teams), SETTINGS)
                print(f"{path.name}: four nodes that restart together / members that stay: {', '.join(ratios)}")
            if len(teams) == NODES:
                print(pools_table(path.name, step, list(pools.values()), asked.every, processes.map))
    mebibytes, seconds = cost_of_a_plan()
    print(f"a plan of 72 hours: {mebibytes:.1f} MiB (before: 238.4), {seconds:.1f} CPU s (before: 2.5)")
    if asked.json:
        cost = {setting: round(row[OURS].mean, 4) for setting, row in results.items()}
        late = sum(row[OURS].late for row in results.values())
        print(json.dumps({"cost": cost, "late": late, "plan_mib": mebibytes, "plan_cpu_seconds": seconds}))


if __name__ == "__main__":
    main()

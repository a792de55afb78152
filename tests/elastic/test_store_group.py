"""Processes that share only a table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from emulators.testing import azurite
from trainers.elastic.client import Table
from trainers.elastic.store import AzureTableStore

ROOT = Path(__file__).resolve().parents[2]
# Nothing keeps the store but the process group.
WORKER = """
import sys
import torch
import torch.distributed as dist
from trainers.elastic.client import connect
from trainers.elastic.store import AzureTableStore

url, run, rank = sys.argv[1:]
table = connect(url, {}, "store")

def meet(store):
    dist.init_process_group("gloo", store=store, rank=int(rank), world_size=2)
    del store
    total = torch.tensor([float(rank) + 1])
    dist.all_reduce(total)
    dist.new_group([0, 1])
    dist.barrier()
    assert total.item() == 3
    dist.destroy_process_group()

meet(AzureTableStore(table, run))
meet(dist.PrefixStore("round 1", AzureTableStore(table, run)))
store = AzureTableStore(table, run)
for _ in range(10):
    store.add("sum", 1)
"""


def test_two_processes(account: azurite.Azurite, table: Table, run: str) -> None:
    """Two Gloo processes meet through a table, with and without a PrefixStore, sum a tensor, and add to one number."""
    argv = [sys.executable, "-c", WORKER, account.table_url, run]
    environ = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen([*argv, str(rank)], cwd=ROOT, env=environ) for rank in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    assert AzureTableStore(table, run).get("sum") == b"20"

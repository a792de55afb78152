"""Starts a Ray cluster on this machine and, once its nodes are up, runs a command, as Azure ML's launcher for Ray does.

    python ray_cluster.py --nodes 2 --command "python train.py"

This script runs in the job's own environment, which has Ray, and imports nothing else of ours. Azure ML starts the head
on the first machine, a worker on every other machine, and the command on the head. Here `ray.cluster_utils`, with which
Ray tests itself, starts the nodes, because nodes of `ray start` would listen on all of the machine's addresses. These
nodes listen only on 127.0.0.1. Ray's processes end with this process.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

STORE_BYTES = 100_000_000  # for a node's objects in memory; Ray's default is a third of the machine
DEEPEST = 24  # length of the temporary folder's path: Ray's sockets add 80 characters, and 107 are allowed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--command", required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    deep = os.name == "posix" and len(tempfile.gettempdir()) > DEEPEST
    scratch = tempfile.mkdtemp(prefix="ray-", dir="/tmp" if deep else None)  # noqa: S108 (a folder of its own is made there)
    try:
        return run(arguments.nodes, arguments.command, Path(scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def run(nodes: int, command: str, scratch: Path) -> int:
    """Start the cluster, and return the command's exit code."""
    (scratch / "ray").mkdir()
    os.environ.update(
        {
            "RAY_TMPDIR": str(scratch),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # otherwise 127.0.0.1 is replaced by another address
        }
    )
    started = importlib.import_module("ray.cluster_utils").Cluster()
    node = {
        "node_ip_address": "127.0.0.1",
        "num_cpus": max(1, (os.cpu_count() or 1) // nodes),
        "object_store_memory": STORE_BYTES,
        "dashboard_agent_listen_port": 0,
        "include_log_monitor": False,
    }
    for number in range(nodes):
        started.add_node(**node, **({"include_dashboard": False} if number == 0 else {}))
    started.wait_for_nodes()
    shell = ["/bin/sh", "-c", command] if os.name == "posix" else [os.environ["COMSPEC"], "/c", command]
    return subprocess.run(shell, env={**os.environ, "RAY_ADDRESS": started.address}, check=False).returncode


if __name__ == "__main__":
    os._exit(main())  # Ray's own exit stops each node, which takes seconds

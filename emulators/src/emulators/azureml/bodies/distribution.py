"""The distribution of a job's processes over nodes, and the variables of each process: the launchers of PyTorch,
TensorFlow, MPI and Ray. No I/O.

https://learn.microsoft.com/azure/machine-learning/how-to-train-distributed-gpu describes what Azure ML's own launchers
set.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from emulators.azureml.kernel import checks
from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import Json

PARALLEL = "Parallel"  # of the job of a parallel step
# Gloo resolves the machine's name, which may fail on a laptop without a network.
LOOPBACK = {"linux": {"GLOO_SOCKET_IFNAME": "lo"}, "darwin": {"GLOO_SOCKET_IFNAME": "lo0"}}


@dataclass(frozen=True)
class Distribution:
    """`kind` is none, PyTorch, Mpi, TensorFlow, Ray or Parallel. `processes` is the number per node, except for
    TensorFlow, where workers and servers are counted for the whole job. For Ray and Parallel the command is one
    process, which starts the others."""

    kind: str
    nodes: int
    processes: int = 1
    workers: int = 0
    servers: int = 0

    @property
    def world_size(self) -> int:
        if self.kind in ("Ray", PARALLEL):
            return 1
        return self.workers + self.servers if self.kind == "TensorFlow" else self.nodes * self.processes

    def node_of(self, rank: int) -> int:
        """Return the index of a process's node. Workers are assigned to the nodes in turn, and so are parameter
        servers."""
        if self.kind == "TensorFlow":
            return (rank if rank < self.workers else rank - self.workers) % self.nodes
        return rank // self.processes

    def serves(self, rank: int) -> bool:
        """Return whether the process is a parameter server, which runs until it is ended after the last worker."""
        return self.kind == "TensorFlow" and rank >= self.workers

    def variables(self, rank: int, ports: tuple[int, ...]) -> dict[str, str]:
        """Return the launcher's variables for this rank. `ports` has one port per process, the master's first."""
        if self.kind == "PyTorch":
            return self._pytorch(rank, ports[0])
        if self.kind == "Mpi":
            return self._mpi(rank, ports[0])
        return {"TF_CONFIG": self._tf_config(rank, ports)} if self.kind == "TensorFlow" else {}

    def _pytorch(self, rank: int, port: int) -> dict[str, str]:
        return {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(self.world_size),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % self.processes),
            "LOCAL_WORLD_SIZE": str(self.processes),
            **LOOPBACK.get(sys.platform, {}),
        }

    def _mpi(self, rank: int, port: int) -> dict[str, str]:
        """Return the variables of Open MPI's mpirun, and Azure ML's variables for torch.distributed's master."""
        return {
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": str(self.world_size),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank % self.processes),
            "OMPI_COMM_WORLD_LOCAL_SIZE": str(self.processes),
            "OMPI_COMM_WORLD_NODE_RANK": str(rank % self.processes),
            "OMPI_UNIVERSE_SIZE": str(self.world_size),
            "AZ_BATCHAI_MPI_MASTER_NODE": "127.0.0.1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            **LOOPBACK.get(sys.platform, {}),
        }

    def _tf_config(self, rank: int, ports: tuple[int, ...]) -> str:
        places = [f"127.0.0.1:{port}" for port in ports]
        cluster = {"worker": places[: self.workers]}
        if self.servers:
            cluster["ps"] = places[self.workers :]
        kind, index = ("ps", rank - self.workers) if self.serves(rank) else ("worker", rank)
        return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}, "environment": "cloud"})


def read(body: Json, nodes: int) -> Distribution:
    """Return the `distribution` of a job's body, which may be absent or null. Raises BadRequest."""
    kind = body.get("distributionType") if body else None
    if kind is None:
        return Distribution("none", nodes)
    if kind in ("PyTorch", "Mpi"):
        return Distribution(kind, nodes, processes=checks.int32(body, "processCountPerInstance", 1, 1))
    if kind == "TensorFlow":
        workers = checks.int32(body, "workerCount", nodes, 1)
        return Distribution(kind, nodes, workers=workers, servers=checks.int32(body, "parameterServerCount", 0, 0))
    if kind == "Ray":
        return Distribution(kind, nodes)
    known = "PyTorch, Mpi, TensorFlow, Ray, or none"
    raise BadRequest(f"distributionType {kind!r} is not supported here; supported: {known}.")

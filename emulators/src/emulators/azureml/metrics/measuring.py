"""Measures what the processes of running jobs use on this machine: processors, memory, disk, network.

Linux counts no network traffic per process. While a process of a node is connected to another machine, the node shows
the traffic of the whole machine by interface, and otherwise none. Traffic of the machine with itself does not count.
A node has a GPU if the variable EMULATORS_GPU defines one (see `fake_gpus`), and another memory and disk than this
machine if EMULATORS_NODE defines them (see `fake_sizes`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from emulators.azureml.running.context import Work

MEGABYTE = 1e6
GPU, NODE = "EMULATORS_GPU", "EMULATORS_NODE"

TCP_TABLES, ESTABLISHED = (Path("/proc/net/tcp"), Path("/proc/net/tcp6")), "01"
LOOPBACK = {"lo", "lo0"}  # the interface on Linux and on macOS
LOOPBACK_ADDRESS = re.compile(r"(?:0{16}FFFF0{4})?.{6}7F|0{24}01000000")  # 127.x.x.x, also in IPv6, and ::1

Measured = tuple[str, Mapping[str, str], float]  # metric, dimensions, value


@dataclass(frozen=True)
class FakeGpus:
    """The simulated GPUs of a node. `utilization` is in percent; None follows the node's processors."""

    count: int = 1
    utilization: float | None = None
    memory: float = 0.0  # megabytes
    capacity: float = 16_384.0
    watts: float = 70.0  # of a GPU at 100 percent


def fake_gpus(text: str) -> FakeGpus | None:
    """Read `count=2 utilization=90 memory=3000 capacity=16384 watts=70`. Each part has a default.
    `utilization=cpu`, the default, follows the node's processors. Returns None for '' and for any other text."""
    parts = dict(part.partition("=")[::2] for part in text.split())
    known = {"count", "utilization", "memory", "capacity", "watts"}
    if not parts or parts.keys() - known:
        return None
    if parts.get("utilization") == "cpu":
        del parts["utilization"]
    try:
        numbers = {key: float(value) for key, value in parts.items()}
    except ValueError:
        return None
    return FakeGpus(int(numbers.pop("count", 1)), **numbers)


@dataclass(frozen=True)
class FakeSizes:
    """The simulated memory and disk of a node, in megabytes; None: those of this machine.

    The usage is real: the memory of the job's processes, and the files in `folder`, which the job writes.
    """

    memory: float | None = None
    disk: float | None = None
    folder: Path | None = None

    def disk_of(self, work: Work) -> tuple[float, float]:
        """Return the free and the used megabytes of the disk."""
        if self.disk is None or self.folder is None:
            real = psutil.disk_usage(str(work.disk))
            return real.free / MEGABYTE, real.used / MEGABYTE
        used = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file()) / MEGABYTE
        return max(0.0, self.disk - used), used


def fake_sizes(text: str) -> FakeSizes:
    """Read `memory=2000 disk=500 folder=/tmp/scratch`. Returns the sizes of this machine for any other text."""
    parts = dict(part.partition("=")[::2] for part in text.split())
    folder = parts.pop("folder", "")
    try:
        sizes = {key: float(value) for key, value in parts.items()}
        return FakeSizes(**sizes, folder=Path(folder) if folder else None)
    except (TypeError, ValueError):
        return FakeSizes()


@dataclass
class _Counted:
    """Counters of one process: seconds of processor time, bytes read and written."""

    cpu: float = 0.0
    read: int = 0
    written: int = 0


@dataclass
class _Sum:
    """What the processes of a node used since the last measurement. Memory is in bytes."""

    cpu: float = 0.0
    read: int = 0
    written: int = 0
    own_memory: int = 0
    shared_memory: int = 0  # of the process that maps most, because others map the same libraries

    def add(self, now: _Counted, before: _Counted) -> None:
        self.cpu += max(0.0, now.cpu - before.cpu)
        self.read += max(0, now.read - before.read)
        self.written += max(0, now.written - before.written)


@dataclass
class Measurer:
    """Stores the counters of the last measurement, because metrics are differences."""

    _counters: dict[tuple[int, float], _Counted] = field(default_factory=dict)
    _network: dict[str, tuple[int, int]] = field(default_factory=dict)

    def measure(self, works: Iterable[Work], elapsed: float) -> list[Measured]:
        """Return each node's use in the last `elapsed` seconds."""
        family, seen = Family(), dict[tuple[int, float], _Counted]()
        network, remote, found = self.traffic(), remote_sockets(), list[Measured]()
        for work in works:
            processes = family.of(work.processes)
            used = self._sum(processes, seen)
            own = network if talks(processes, remote) else dict.fromkeys(network, (0, 0))
            found += _of_node(work, used, elapsed, own)
        self._counters = seen
        return found

    def _sum(self, processes: Iterable[psutil.Process], seen: dict[tuple[int, float], _Counted]) -> _Sum:
        total = _Sum()
        for process in processes:
            with contextlib.suppress(psutil.Error, OSError), process.oneshot():
                cpu, memory = process.cpu_times(), process.memory_info()
                counted = _Counted(cpu.user + cpu.system)
                with contextlib.suppress(psutil.Error, OSError, AttributeError):
                    io = process.io_counters()
                    counted.read, counted.written = io.read_bytes, io.write_bytes
                key = (process.pid, process.create_time())
                total.add(counted, self._counters.get(key, _Counted()))
                shared = min(memory.rss, getattr(memory, "shared", 0))
                total.own_memory += memory.rss - shared
                total.shared_memory = max(total.shared_memory, shared)
                seen[key] = counted
        return total

    def traffic(self) -> dict[str, tuple[int, int]]:
        """Return the bytes received and sent by each interface to other machines since the last measurement."""
        now = {name: (io.bytes_recv, io.bytes_sent) for name, io in psutil.net_io_counters(pernic=True).items()}
        before, self._network = self._network, now
        return {
            name: (max(0, received - before[name][0]), max(0, sent - before[name][1]))
            for name, (received, sent) in now.items()
            if name in before and name not in LOOPBACK
        }


def remote_sockets(tables: Iterable[Path] = TCP_TABLES) -> set[str] | None:
    """Return the inodes of the established TCP connections to other machines; None without Linux's tables.

    A line has `number: local:port remote:port state ... uid timeout inode`, with addresses as hexadecimal numbers
    (https://docs.kernel.org/networking/proc_net_tcp.html).
    """
    found = set[str]()
    for table in tables:
        try:
            rows = [line.split() for line in table.read_text().splitlines()[1:]]
        except OSError:
            return None
        for row in rows:
            local, remote = (address.partition(":")[0] for address in row[1:3])
            if row[3] == ESTABLISHED and remote != local and not LOOPBACK_ADDRESS.fullmatch(remote):
                found.add(row[9])
    return found


def talks(processes: Iterable[psutil.Process], remote: set[str] | None) -> bool:
    """Return whether one of these processes has one of the sockets; True if the sockets are not known."""
    if not remote:
        return remote is None
    names = {f"socket:[{inode}]" for inode in remote}
    return any(not names.isdisjoint(_open_files(process.pid)) for process in processes)


def _open_files(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for descriptor in list(Path(f"/proc/{pid}/fd").iterdir()):
            with contextlib.suppress(OSError):
                yield str(descriptor.readlink())


class Family:
    """The machine's current processes, by parents and sessions."""

    def __init__(self) -> None:
        self._by_parent: dict[int, list[psutil.Process]] = {}
        self._by_session: dict[int, list[psutil.Process]] = {}
        self._by_pid: dict[int, psutil.Process] = {}
        for process in psutil.process_iter(["ppid"]):
            self._by_pid[process.pid] = process
            self._by_parent.setdefault(process.info["ppid"] or 0, []).append(process)
            with contextlib.suppress(OSError, AttributeError):
                self._by_session.setdefault(os.getsid(process.pid), []).append(process)

    def of(self, roots: Iterable[int]) -> list[psutil.Process]:
        """Return the root processes and their descendants, including descendants of ended parents. A descendant
        that left the session and lost its parent is not found."""
        found: dict[int, psutil.Process] = {}
        waiting = [self._by_pid[root] for root in roots if root in self._by_pid]
        while waiting:
            process = waiting.pop()
            if process.pid not in found:
                found[process.pid] = process
                waiting += [*self._by_parent.get(process.pid, ()), *self._by_session.get(process.pid, ())]
        return list(found.values())


def _of_node(work: Work, used: _Sum, elapsed: float, network: Mapping[str, tuple[int, int]]) -> Iterator[Measured]:
    about = {"RunId": work.job, "InstanceId": work.node, "ComputeName": work.cluster}
    cores, memory = os.cpu_count() or 1, float(psutil.virtual_memory().total)
    busy, in_use = min(used.cpu / elapsed, cores), used.own_memory + used.shared_memory
    sizes = fake_sizes(work.variables.get(NODE, ""))
    memory = memory if sizes.memory is None else sizes.memory * MEGABYTE
    free, filled = sizes.disk_of(work)
    values = {
        "CpuUtilizationPercentage": 100 * busy / cores,
        "CpuUtilizationMillicores": 1000 * busy,
        "CpuCapacityMillicores": 1000.0 * cores,
        "CpuMemoryUtilizationPercentage": 100 * in_use / memory,
        "CpuMemoryUtilizationMegabytes": in_use / MEGABYTE,
        "CpuMemoryCapacityMegabytes": memory / MEGABYTE,
        "DiskAvailMegabytes": free,
        "DiskUsedMegabytes": filled,
        "DiskReadMegabytes": used.read / MEGABYTE,
        "DiskWriteMegabytes": used.written / MEGABYTE,
    }
    yield from ((metric, about, value) for metric, value in values.items())
    for interface, (received, sent) in network.items():
        of_device = {**about, "DeviceId": interface}
        yield "NetworkInputMegabytes", of_device, received / MEGABYTE
        yield "NetworkOutputMegabytes", of_device, sent / MEGABYTE
    if gpus := fake_gpus(work.variables.get(GPU, "")):
        yield from _of_gpus(gpus, about, values["CpuUtilizationPercentage"], elapsed)


def _of_gpus(gpus: FakeGpus, about: Mapping[str, str], busy: float, elapsed: float) -> Iterator[Measured]:
    percent = busy if gpus.utilization is None else gpus.utilization
    energy = {"Scenario": "Training", "runId": about["RunId"], "rootRunId": about["RunId"]}
    for number in range(gpus.count):
        device = {**about, "DeviceId": str(number)}
        yield "GpuUtilizationPercentage", device, percent
        yield "GpuUtilizationMilliGPUs", device, 10 * percent
        yield "GpuMemoryUtilizationPercentage", device, 100 * gpus.memory / gpus.capacity
        yield "GpuMemoryUtilizationMegabytes", device, gpus.memory
        yield "GpuMemoryCapacityMegabytes", device, gpus.capacity
        of_energy = {**energy, **{key: device[key] for key in ("InstanceId", "DeviceId", "ComputeName")}}
        yield "GpuEnergyJoules", of_energy, gpus.watts * percent / 100 * elapsed

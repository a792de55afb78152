"""The metrics of this emulator, with names, descriptions and dimensions from Microsoft's documentation. No I/O.

https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning-reference
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OF_A_NODE = ("RunId", "InstanceId", "ComputeName")
OF_A_DEVICE = (*OF_A_NODE, "DeviceId")
OF_A_CLUSTER = ("Scenario", "ClusterName")


@dataclass(frozen=True)
class Definition:
    """A metric of the workspace. Every metric has the unit Count and is aggregated in intervals of one minute."""

    name: str
    words: str
    dimensions: tuple[str, ...]

    def spelled(self, dimension: str) -> str | None:
        """Return a dimension in the metric's spelling, or None for an unknown dimension. Names are
        case-insensitive."""
        return next((name for name in self.dimensions if name.lower() == dimension.lower()), None)


def _definitions() -> tuple[Definition, ...]:
    minute, gpu = " are aggregated in one minute intervals.", "Utilization is aggregated in one minute intervals."
    nodes = {
        "CpuUtilizationPercentage": f"Utilization percentage of a CPU node. {gpu}",
        "CpuUtilizationMillicores": f"Utilization of a CPU node in millicores. {gpu}",
        "CpuCapacityMillicores": "Maximum capacity of a CPU node in millicores. Capacity is aggregated in one minute "
        "intervals.",
        "CpuMemoryUtilizationPercentage": f"Memory utilization percentage of a CPU node. {gpu}",
        "CpuMemoryUtilizationMegabytes": f"Memory utilization of a CPU node in megabytes. {gpu}",
        "CpuMemoryCapacityMegabytes": f"Maximum memory utilization of a CPU node in megabytes. {gpu}",
        "DiskAvailMegabytes": f"Available disk space in megabytes. Metrics{minute}",
        "DiskUsedMegabytes": f"Used disk space in megabytes. Metrics{minute}",
        "DiskReadMegabytes": f"Data read from disk in megabytes. Metrics{minute}",
        "DiskWriteMegabytes": f"Data written into disk in megabytes. Metrics{minute}",
        "StorageAPISuccessCount": "Azure Blob Storage API requests success count.",
        "StorageAPIFailureCount": "Azure Blob Storage API requests failure count.",
    }
    devices = {
        "NetworkInputMegabytes": f"Network data received in megabytes. Metrics{minute}",
        "NetworkOutputMegabytes": f"Network data sent in megabytes. Metrics{minute}",
        "IBReceiveMegabytes": f"Network data received over InfiniBand in megabytes. Metrics{minute}",
        "IBTransmitMegabytes": f"Network data sent over InfiniBand in megabytes. Metrics{minute}",
        "GpuUtilizationPercentage": f"Utilization percentage of a GPU device. {gpu}",
        "GpuUtilizationMilliGPUs": f"Utilization of a GPU device in milli-GPUs. {gpu}",
        "GpuMemoryUtilizationPercentage": f"Memory utilization percentage of a GPU device. {gpu}",
        "GpuMemoryUtilizationMegabytes": f"Memory utilization of a GPU device in megabytes. {gpu}",
        "GpuMemoryCapacityMegabytes": "Maximum memory capacity of a GPU device in megabytes. Capacity aggregated in "
        "one minute intervals.",
    }
    clusters = {
        f"{state} Nodes": f"Number of {words} nodes."
        for state, words in {
            "Active": "Acitve",  # as documented
            "Idle": "idle",
            "Leaving": "leaving",
            "Preempted": "preempted",
            "Unusable": "unusable",
            "Total": "total",
        }.items()
    }
    energy = "Interval energy in Joules on a GPU node. Energy is reported at one minute intervals."
    return (
        *(Definition(name, words, OF_A_NODE) for name, words in nodes.items()),
        *(Definition(name, words, OF_A_DEVICE) for name, words in devices.items()),
        Definition("GpuEnergyJoules", energy, ("Scenario", "runId", "rootRunId", *OF_A_DEVICE[1:])),
        *(Definition(name, words, OF_A_CLUSTER) for name, words in clusters.items()),
    )


DEFINITIONS: Mapping[str, Definition] = {each.name.lower(): each for each in _definitions()}

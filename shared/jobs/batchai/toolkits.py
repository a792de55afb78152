"""The processes that each Batch AI toolkit starts: their command lines and their number. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shared.jobs.batchai.document import TOOLKITS
from shared.jobs.batchai.fields import Fields
from shared.jobs.batchai.mpirun import parse_command
from shared.jobs.batchai.report import TranslationReport

COMMAND = "the command line of each process"
_WORLD = re.compile(r"--world[-_]size[= ]+0*([0-9]{1,20})")


@dataclass
class Start:
    """The processes to start. `lines` are the command lines by role: all, or for TensorFlow master, worker and server.

    `index` is what AZ_BATCHAI_TASK_INDEX counts. `texts` are the fields from which the lines were made.
    """

    lines: dict[str, str] = field(default_factory=dict)
    processes: int = 1
    per_node: int = 1
    index: str = "process"
    only_master: bool = False
    mpi: bool = False  # whether the processes communicate through MPI
    backend: str = ""
    workers: int = 0
    servers: int = 0
    texts: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class _Block:
    """The settings of one toolkit, and the number of nodes."""

    fields: Fields
    nodes: int
    report: TranslationReport

    def text(self, key: str, start: Start, needed: bool = False) -> str:
        value = self.fields.text(key, COMMAND, needed)
        start.texts.append((self.fields.at(key), value))
        return value

    def python(self, start: Start, arguments: str = "commandLineArgs") -> str:
        script = self.text("pythonScriptFilePath", start, needed=True)
        parts = (self.text("pythonInterpreterPath", start) or "python", script, self.text(arguments, start))
        return " ".join(part for part in parts if part)

    def spread(self, start: Start, key: str = "processCount", otherwise: int = 0) -> None:
        """Read the total number of processes, which must divide evenly among the nodes."""
        total = self.fields.whole(key, "distribution.process_count_per_instance", otherwise or self.nodes)
        start.processes, start.per_node = total, max(1, total // self.nodes)
        if total % self.nodes:
            self.report.refuse(
                self.fields.at(key),
                f"is {total}, the number of all processes; it must be a multiple of nodeCount, {self.nodes}.",
            )


def read_toolkit(properties: Fields, nodes: int, report: TranslationReport, scripts: Iterable[str] = ()) -> Start:
    """The processes of the job's single toolkit block. Problems are reported. `scripts` are texts it may run."""
    given = [name for name in TOOLKITS if name in properties]
    if len(given) != 1:
        report.refuse(
            "properties", f"must have exactly one of {', '.join(TOOLKITS)}; it has {', '.join(given) or 'none'}."
        )
        for name in given:
            properties.raw(name)
        return Start()
    fields = properties.mapping(given[0])
    if fields is None:
        return Start()
    start = _READERS[given[0]](_Block(fields, nodes, report))
    if given[0].startswith("custom") and not start.mpi and _speaks_horovod(properties, start, scripts):
        _without_mpi(_Block(fields, nodes, report), start)
    fields.finish()
    _check_world(start, report)
    return start


def _speaks_horovod(properties: Fields, start: Start, scripts: Iterable[str]) -> bool:
    """Whether the processes use Horovod: the command line, the preparation or a script mentions it."""
    preparation = properties.peek("jobPreparation")
    return any("horovod" in text.lower() for text in (json.dumps(preparation), *(t for _, t in start.texts), *scripts))


def _pytorch(block: _Block) -> Start:
    start = Start()
    start.lines["all"] = block.python(start)
    block.spread(start)
    given = block.fields.text("communicationBackend", "AZ_BATCHAI_PYTORCH_BACKEND").lower()
    start.backend = given
    if given in ("tcp", "mpi"):
        start.backend = "gloo"
        block.report.lost(
            block.fields.at("communicationBackend"), f"PyTorch's backend {given!r}.",
            f"AZ_BATCHAI_PYTORCH_BACKEND says gloo: PyTorch no longer has {given!r}, or not in its usual builds.",
            "A script that names the backend itself must be changed.",
        )  # fmt: skip
    elif given not in ("", "gloo", "nccl"):
        block.report.refuse(
            block.fields.at("communicationBackend"), f"is {given[:40]!r}; choose gloo, nccl, tcp or mpi."
        )
    return start


def _tensorflow(block: _Block) -> Start:
    fields, start = block.fields, Start(index="role")
    script = block.text("pythonScriptFilePath", start, needed=True)
    python = f"{block.text('pythonInterpreterPath', start) or 'python'} {script}"
    keys = {
        "master": "masterCommandLineArgs",
        "worker": "workerCommandLineArgs",
        "server": "parameterServerCommandLineArgs",
    }
    start.lines = {role: f"{python} {block.text(key, start)}".strip() for role, key in keys.items()}
    distributed = block.nodes > 1 or "workerCount" in fields or keys["server"] in fields
    start.workers = fields.whole("workerCount", "distribution.process_count_per_instance", block.nodes)
    start.servers = fields.whole("parameterServerCount", "the launcher's parameter servers", int(distributed), least=0)
    if start.servers > block.nodes:
        block.report.refuse(fields.at("parameterServerCount"), f"is {start.servers}; each node has at most one.")
    start.per_node = -(-start.workers // block.nodes)
    start.processes = start.per_node * block.nodes
    return start


def _horovod(block: _Block) -> Start:
    start = Start()
    start.lines["all"] = block.python(start)
    block.spread(start)
    _without_mpi(block, start)
    return start


def _chainer(block: _Block) -> Start:
    start = Start()
    start.lines["all"] = block.python(start)
    block.spread(start)
    _with_mpi(block, start)
    return start


def _cntk(block: _Block) -> Start:
    fields, start = block.fields, Start()
    language = fields.text("languageType", "which program is started").lower()
    if language not in ("", "python", "brainscript"):
        block.report.refuse(fields.at("languageType"), f"is {language[:40]!r}; choose BrainScript or Python.")
    if "pythonScriptFilePath" in fields and language != "brainscript":
        start.lines["all"] = block.python(start)
    else:
        config = block.text("configFilePath", start, needed=True)
        start.lines["all"] = f"cntk configFile={config} {block.text('commandLineArgs', start)}".strip()
    block.spread(start)
    _with_mpi(block, start)
    return start


def _caffe(block: _Block) -> Start:
    fields, start = block.fields, Start()
    if "pythonScriptFilePath" in fields:
        if "configFilePath" in fields:
            block.report.refuse(fields.at("configFilePath"), "can't be there together with pythonScriptFilePath.")
            fields.raw("configFilePath")
        start.lines["all"] = block.python(start)
    else:
        config = block.text("configFilePath", start, needed=True)
        start.lines["all"] = f"caffe train --solver={config} {block.text('commandLineArgs', start)}".strip()
    block.spread(start)
    _with_mpi(block, start)
    return start


def _caffe2(block: _Block) -> Start:
    start = Start(index="node", processes=block.nodes)
    start.lines["all"] = block.python(start)
    return start


def _custom_mpi(block: _Block) -> Start:
    start = Start()
    line = block.text("commandLine", start, needed=True)
    start.lines["all"] = line
    if parse_command(line):
        _from_mpirun(block, start, line)
    else:
        block.spread(start)
        _with_mpi(block, start)
    return start


def _custom(block: _Block) -> Start:
    start = Start()
    line = block.text("commandLine", start, needed=True)
    start.lines["all"] = line
    if parse_command(line):
        _from_mpirun(block, start, line)
        return start
    start.only_master, start.processes = True, block.nodes
    fields = block.fields
    fields.lost(
        "processCount", "No field of a custom toolkit; Batch AI ignored it.", "Ignored: the line does not start mpirun."
    )
    if block.nodes > 1:
        block.report.lost(
            fields.at("commandLine"), "The line ran on the master node; it may have started work on the others.",
            "It runs on the first node. The others are prepared and then idle: no node can log in to another.",
            "If the line starts no work elsewhere, ask for one node; otherwise start the processes with mpirun.",
        )  # fmt: skip
    return start


def _from_mpirun(block: _Block, start: Start, line: str) -> None:
    taken = parse_command(line)
    assert taken is not None
    fields, where = block.fields, block.fields.at("commandLine")
    start.lines["all"] = taken.line or line
    count = taken.count or taken.per_node * block.nodes
    if count:
        given = fields.whole("processCount", "distribution.process_count_per_instance", count)
        start.processes = count
        if given != count:
            block.report.lost(
                fields.at("processCount"), f"{given} processes.", f"The number in the line is used: {count} processes."
            )
        if count % block.nodes:
            block.report.refuse(
                where, f"starts {count} processes, which can't be divided evenly over {block.nodes} nodes."
            )
        start.per_node = max(1, count // block.nodes)
    else:
        block.spread(start)
    options = f" Dropped: {', '.join(taken.dropped)}." if taken.dropped else ""
    block.report.changed(
        where, "mpirun started the processes.",
        f"{_started(start)}, with the variables of torch.distributed.{options}",
        "A script that calls MPI or Horovod must move to torch.distributed.",
    )  # fmt: skip
    if taken.unsure:
        block.report.lost(
            where, f"Not understood in the mpirun line: {'; '.join(taken.unsure)}.",
            f"The line runs as: {start.lines['all']}", "Check the line and the number of processes.",
        )  # fmt: skip


def _with_mpi(block: _Block, start: Start) -> None:
    start.mpi = True
    if start.processes > 1:
        block.report.changed(
            block.fields.path, "MPI started the processes.",
            f"{_started(start)}, by Open MPI's mpirun.",
            "The environment must have Open MPI; images with only Intel's MPI do not.",
        )  # fmt: skip


def _without_mpi(block: _Block, start: Start) -> None:
    if start.processes > 1:
        block.report.lost(
            block.fields.path, "MPI started the processes, and Horovod used it.",
            f"{_started(start)}, with the variables of torch.distributed and MPI's ranks, without MPI.",
            "Move the script to torch.distributed; one that imports horovod says so itself.",
        )  # fmt: skip


def _started(start: Start) -> str:
    return f"Azure ML starts {start.processes}, {start.per_node} on each node"


def _check_world(start: Start, report: TranslationReport) -> None:
    for name, text in start.texts:
        for match in _WORLD.finditer(text):
            if match[1] != str(start.processes):
                report.lost(
                    name, f"The script is told that there are {match[1]} processes.",
                    f"{start.processes} are started, and the script would wait for the others.",
                    "Make --world-size and the number of processes the same.",
                )  # fmt: skip


_READERS: dict[str, Callable[[_Block], Start]] = {
    "pyTorchSettings": _pytorch,
    "tensorFlowSettings": _tensorflow,
    "horovodSettings": _horovod,
    "chainerSettings": _chainer,
    "cntkSettings": _cntk,
    "caffeSettings": _caffe,
    "caffe2Settings": _caffe2,
    "customMpiSettings": _custom_mpi,
    "customToolkitSettings": _custom,
}

"""Start one process of a Batch AI job on a node of Azure ML, with every variable that Batch AI set.

    python batchai_launch.py scripts=PATH mounts=PATH ...       # where the job's inputs and outputs are

Azure ML starts this script once for each process. The instructions are JSON in TRAINYARD_BATCHAI, written by
shared/jobs/batchai/translate.py. The first process of a node lays out the mount roots and runs the job preparation,
once; then each process runs its original command line in a shell. The images of 2018 have Python 2.7, 3.5 or 3.6 as
`python`. This file runs on all of these, so its types are comments, and it uses no newer feature.

The script is a single file because a job's command names this file alone. A user who submits the printed job with
`az ml job create` only has to put this one file beside the code.
"""

from __future__ import print_function

import contextlib
import glob
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

try:
    from typing import Any, Dict, Iterator, List, Optional
except ImportError:  # Python 2.7, where only comments use these names
    pass

SPEC = "TRAINYARD_BATCHAI"
ROOT = ".batchai"  # in the working directory, which belongs to the node
MEETING_SECONDS = 3600.0  # the other nodes may still run their preparation
POLL_SECONDS = 0.1
SHOWN_DELETED = 10  # names of files
PORT = 6105  # of the first node if Azure ML names no port: the port that Azure ML uses for PyTorch
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
NO_HOROVOD = """\
import importlib, os, sys
_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
sys.modules.pop("horovod", None)
try:
    importlib.import_module("horovod")
except ImportError:
    raise ImportError(
        "This script imports horovod, which this job's environment does not have. The job's mpirun line was replaced: "
        "Azure ML starts the processes, with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Use "
        "torch.distributed (init_process_group, DistributedDataParallel), or an environment that has Horovod "
        "built with Gloo."
    )
"""

# PyTorch's threads do not always survive the interpreter's shutdown (torch 2.13, gloo): a script that has done its work
# then dies of SIGABRT. So a Python that ends without an exception writes a file named after its process id.
AT_THE_END = """\
import atexit, os, sys
_here, _pid = os.path.dirname(os.path.abspath(__file__)), os.getpid()
if sys.version_info[0] > 2:
    import importlib.machinery, importlib.util
    _others = [p for p in sys.path if os.path.abspath(p) != _here]
    _spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
    if _spec:
        _spec.loader.exec_module(importlib.util.module_from_spec(_spec))
def _over():
    if os.getpid() == _pid and not hasattr(sys, "last_type"):
        open(os.path.join(os.path.dirname(_here), "over-{}".format(_pid)), "w").close()
atexit.register(_over)
"""
# On the local cloud all nodes are this one machine, which belongs to its user: installers are shown, not run.
LOCAL = "TRAINYARD_LOCAL_NODES"
INSTALLERS = ("apt", "apt-get", "yum", "conda", "pip", "pip2", "pip3", "easy_install")
SHOWN = """#!/bin/sh
echo "not run on a local node, which shares the machine's packages: {name} $*"
"""
UNELEVATED = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""


class Process(object):
    """A process's identity: the rank among all, the node, and the rank on the node."""

    def __init__(self, environ, per_node):
        # type: (Dict[str, str], int) -> None
        self.rank = int(environ.get("RANK") or environ.get("OMPI_COMM_WORLD_RANK") or 0)
        self.world = int(environ.get("WORLD_SIZE") or environ.get("OMPI_COMM_WORLD_SIZE") or 1)
        self.node, self.local = divmod(self.rank, per_node)
        self.per_node = per_node
        self.nodes = max(1, self.world // per_node)
        master = environ.get("AZ_BATCHAI_MPI_MASTER_NODE") or environ.get("AZ_BATCH_MASTER_NODE", "127.0.0.1")
        self.master = environ.get("MASTER_ADDR") or master.partition(":")[0]
        self.port = int(environ.get("MASTER_PORT") or PORT)


def main(arguments):
    # type: (List[str]) -> int
    spec = native(json.loads(os.environ[SPEC]))
    paths = dict(argument.split("=", 1) for argument in arguments)
    process = Process(dict(os.environ), spec["per_node"])
    root = os.path.abspath(os.path.join(ROOT, os.environ.get("AZUREML_CR_ATTEMPT", "1")))
    variables = fixed_variables(spec, paths, root, process)
    prepared(spec, paths, root, process, variables)
    meeting = Meeting(process)
    variables.update(host_variables(spec, process, meeting.everyone))
    write_host_file(variables["AZ_BATCHAI_MPI_HOST_FILE"], process, meeting.everyone)
    status = run_role(spec, process, meeting, variables)
    note(root, "ended-{}".format(process.local))
    if status or len(glob.glob(os.path.join(root, "ended-*"))) == process.per_node:
        keep_strays(spec, paths, root)
    return status


def native(value):
    # type: (Any) -> Any
    """Return the value with its texts in this Python's own type, because Python 2.7 reads JSON texts as another
    type."""
    if isinstance(value, dict):
        return {native(name): native(each) for name, each in value.items()}
    if isinstance(value, list):
        return [native(each) for each in value]
    return (
        value.encode("utf-8")
        if sys.version_info[0] == 2 and not isinstance(value, (bytes, int, bool, type(None)))
        else value
    )


def make(folder):
    # type: (str) -> None
    """Make a missing folder."""
    try:
        os.makedirs(folder)
    except OSError:
        if not os.path.isdir(folder):
            raise


# --- the variables ---------------------------------------------------------------------------------------------------


def fixed_variables(spec, paths, root, process):
    # type: (Dict[str, Any], Dict[str, str], str, Process) -> Dict[str, str]
    """Return the variables that do not depend on the other nodes."""
    temp = os.path.join(root, "temp")
    gpus = str(len(glob.glob("/dev/nvidia[0-9]*")))
    found = {
        "AZ_BATCHAI_MOUNT_ROOT": os.path.join(root, "mounts"),
        "AZ_BATCHAI_JOB_MOUNT_ROOT": os.path.join(root, "job-mounts"),
        "AZ_BATCHAI_JOB_TEMP": temp,
        "AZ_BATCHAI_JOB_TEMP_DIR": root,
        "AZ_BATCHAI_SHARED_JOB_TEMP": paths.get("checkpoints") or os.path.join(temp, "shared"),
        "AZ_BATCHAI_STDOUTERR_DIR": os.path.abspath(os.path.join("outputs", "stdouterr")),
        "AZ_BATCHAI_MPI_HOST_FILE": os.path.join(root, "hostfile-{}".format(process.local)),
        "AZ_BATCHAI_NUM_GPUS": gpus,
        "AZ_BATCHAI_NUM_GPUS_PER_NODE": gpus,
        "AZ_BATCHAI_TASK_INDEX": str(process.node if spec["index"] == "node" else process.rank),
        "AZ_BATCHAI_PYTORCH_INIT_METHOD": "tcp://{}:{}".format(process.master, process.port),
        "AZ_BATCHAI_PYTORCH_BACKEND": spec.get("backend", ""),
    }
    again = os.environ.get("AZUREML_CR_ATTEMPT", "1") != "1"
    for name, (output, suffix) in spec["outputs"].items():
        folder = os.path.join(paths[output], *suffix.split("/")) if suffix else paths[output]
        found["AZ_BATCHAI_OUTPUT_" + name] = folder
        found["AZ_BATCHAI_PREV_OUTPUT_" + name] = folder if again else ""
    for name, path in spec["inputs"].items():
        found["AZ_BATCHAI_INPUT_" + name] = expanded(path, found)
    for name in spec["expand"]:
        found[name] = expanded(os.environ.get(name, ""), found)
    return found


def expanded(text, known):
    # type: (str, Dict[str, str]) -> str
    """Return the text with known variables filled in; any other $ is left to the shell."""
    return VARIABLE.sub(lambda match: known.get(match.group(1) or match.group(2), match.group(0)), text)


def host_variables(spec, process, everyone):
    # type: (Dict[str, Any], Process, List[Dict[str, Any]]) -> Dict[str, str]
    """Return the variables about every node: hosts, a TensorFlow cluster, and the ranks under the names that torch
    and MPI programs use."""
    hosts = [everyone[node * process.per_node]["host"] for node in range(process.nodes)]
    ranks = {
        ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"): process.rank,
        ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"): process.world,
        ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"): process.local,
        ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"): process.per_node,
        ("MASTER_ADDR",): process.master,
        ("MASTER_PORT",): process.port,
    }
    found = {name: str(value) for names, value in ranks.items() for name in names if name not in os.environ}
    found["AZ_BATCH_HOST_LIST"] = ",".join(hosts)
    if "workers" in spec:
        workers = [everyone[worker_rank(number, process)] for number in range(spec["workers"])]
        servers = [everyone[node * process.per_node] for node in range(spec["servers"])]
        found["AZ_BATCHAI_WORKER_HOSTS"] = ",".join("{host}:{port}".format(**one) for one in workers)
        found["AZ_BATCHAI_PS_HOSTS"] = ",".join("{host}:{server_port}".format(**one) for one in servers)
    return found


def worker_rank(number, process):
    # type: (int, Process) -> int
    """Return a worker's rank. Ranks go round the nodes: no node has two workers before each node has one."""
    return number % process.nodes * process.per_node + number // process.nodes


def tensorflow(variables, role, index):
    # type: (Dict[str, str], str, int) -> Dict[str, str]
    """Return TF_CONFIG in Batch AI's form, in which worker 0 is the master."""
    cluster = {"worker": variables["AZ_BATCHAI_WORKER_HOSTS"].split(",")}
    if variables["AZ_BATCHAI_PS_HOSTS"]:
        cluster["ps"] = variables["AZ_BATCHAI_PS_HOSTS"].split(",")
    config = {"cluster": cluster, "task": {"type": role, "index": index}, "environment": "cloud"}
    return {"TF_CONFIG": json.dumps(config), "AZ_BATCHAI_TASK_INDEX": str(index)}


def write_host_file(path, process, everyone):
    # type: (str, Process, List[Dict[str, Any]]) -> None
    hosts = [everyone[node * process.per_node]["host"] for node in range(process.nodes)]
    with open(path, "w") as file:
        file.writelines("{} slots={}\n".format(host, process.per_node) for host in hosts)


# --- once for each node ----------------------------------------------------------------------------------------------


def prepared(spec, paths, root, process, variables):
    # type: (Dict[str, Any], Dict[str, str], str, Process, Dict[str, str]) -> None
    """Lay out the node and run the job preparation in the node's first process; the other processes wait."""
    if process.local:
        wait_for_note(root)
        return
    for folder in (root, variables["AZ_BATCHAI_JOB_TEMP"], os.path.join(root, "shims", "horovod")):
        make(folder)
    kept = [path for name, path in variables.items() if re.match("AZ_BATCHAI_(OUTPUT_|SHARED_|STDOUTERR)", name)]
    for folder in kept:
        make(folder)
    with open(os.path.join(root, "shims", "horovod", "__init__.py"), "w") as file:
        file.write(NO_HOROVOD)
    with open(os.path.join(root, "shims", "sitecustomize.py"), "w") as file:
        file.write(AT_THE_END)
    for mount in spec["mounts"]:
        lay_out(mount, paths, variables)
    with open(os.path.join(root, "links"), "w") as file:
        json.dump({mount["into"]: links_in(mount_folder(mount, variables)) for mount in spec["mounts"]}, file)
    if spec.get("preparation"):
        around = dict(variables, **local_path(root)) if LOCAL in os.environ else variables
        status = shell(spec["preparation"], around, variables["AZ_BATCHAI_JOB_TEMP"]).wait()
        if status:
            note(root, "failed")
            raise SystemExit("The job preparation failed with status {}: {}".format(status, spec["preparation"]))
    note(root, "ready")


def local_path(root):
    # type: (str) -> Dict[str, str]
    """Return a PATH that begins with stand-ins for installers."""
    folder = os.path.join(root, "installers")
    make(folder)
    programs = dict({name: SHOWN.replace("{name}", name) for name in INSTALLERS}, sudo=UNELEVATED)
    for name, text in programs.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
        os.chmod(os.path.join(folder, name), 0o700)
    return {"PATH": os.pathsep.join((folder, os.environ.get("PATH", os.defpath)))}


def lay_out(mount, paths, variables):
    # type: (Dict[str, Any], Dict[str, str], Dict[str, str]) -> None
    """Make the folder of a mount: links to existing files, and links to the run's own folder for new files."""
    top = mount_folder(mount, variables)
    make(top)
    own = [path.split("/") for path in list(mount["writes"]) + list(mount["files"])]
    if mount["from"]:
        link(paths[mount["from"]], top, own)
    for path in mount["writes"]:
        place = os.path.join(paths["mounts"], mount["into"], path)
        if path in mount.get("models", ()):
            place = paths["models"]
        make(place)
        make(os.path.dirname(os.path.join(top, path)))
        os.symlink(place, os.path.join(top, path))
    for path, text in mount["files"].items():
        make(os.path.dirname(os.path.join(top, path)))
        with io.open(os.path.join(top, path), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode("utf-8"))


def link(source, folder, own):
    # type: (str, str, List[List[str]]) -> None
    """Show the content of `source` in the folder, except for the run's own paths. Folders are created, so that the
    job's new files are found and kept; files are links."""
    make(folder)
    for entry in os.listdir(source):
        below = [path[1:] for path in own if path[0] == entry]
        if [] in below:
            continue
        there, here = os.path.join(source, entry), os.path.join(folder, entry)
        if os.path.isdir(there) and not os.path.islink(there):
            link(there, here, below)
        else:
            os.symlink(there, here)


def links_in(top):
    # type: (str) -> List[str]
    """Return the links below a folder: the files that a mount held when the job began."""
    paths = (os.path.join(folder, name) for folder, folders, names in os.walk(top) for name in folders + names)
    return sorted(os.path.relpath(path, top) for path in paths if os.path.islink(path))


def mount_folder(mount, variables):
    # type: (Dict[str, Any], Dict[str, str]) -> str
    return os.path.join(variables[mount["root"]], *mount["path"].split("/"))


def keep_strays(spec, paths, root):
    # type: (Dict[str, Any], Dict[str, str], str) -> None
    """Copy files that were written into a mount outside of the known output folders."""
    roots = {"AZ_BATCHAI_MOUNT_ROOT": os.path.join(root, "mounts")}
    roots["AZ_BATCHAI_JOB_MOUNT_ROOT"] = os.path.join(root, "job-mounts")
    with open(os.path.join(root, "links")) as listed:
        held = json.load(listed)
    for mount in spec["mounts"]:
        top = mount_folder(mount, roots)
        report_deleted(mount, [path for path in held[mount["into"]] if not os.path.lexists(os.path.join(top, path))])
        for folder, _, names in os.walk(top):
            for name in names:
                file = os.path.join(folder, name)
                below = os.path.relpath(file, top)
                if os.path.isfile(file) and not os.path.islink(file) and below not in mount["files"]:
                    target = os.path.join(paths["mounts"], mount["into"], below)
                    make(os.path.dirname(target))
                    shutil.copyfile(file, target)


def report_deleted(mount, deleted):
    # type: (Dict[str, Any], List[str]) -> None
    """Report files deleted by the job from a mount: the files still exist, because the mounts of Azure ML are
    read-only.
    """
    if deleted:
        more = " and {} more".format(len(deleted) - SHOWN_DELETED) if len(deleted) > SHOWN_DELETED else ""
        names = ", ".join(deleted[:SHOWN_DELETED])
        print("Mount {}: deleted for this job only, because mounts are read-only: {}{}. Delete these files where they "
              "are stored.".format(mount["path"], names, more))  # fmt: skip


def note(root, name):
    # type: (str, str) -> None
    with open(os.path.join(root, name), "w"):
        pass


def wait_for_note(root):
    # type: (str) -> None
    while not os.path.exists(os.path.join(root, "ready")):
        if os.path.exists(os.path.join(root, "failed")):
            raise SystemExit("The job preparation failed in the first process of this node; see its log.")
        time.sleep(POLL_SECONDS)


# --- all processes meet ----------------------------------------------------------------------------------------------


class Meeting(object):
    """Exchanges the processes' addresses: every process sends its address to the first process, at
    MASTER_ADDR:MASTER_PORT, before the training uses that address.

    `everyone` holds the addresses by rank. `wait_for_all` returns when every process has ended or is gone.
    """

    def __init__(self, process):
        # type: (Process) -> None
        self._process = process
        self._end = socket.socket()
        self._end.bind(("", 0))
        self._end.listen(process.world)
        mine = {"rank": process.rank, "port": free_port(), "server_port": free_port()}  # type: Dict[str, Any]
        mine["end"] = self._end.getsockname()[1]
        if process.world == 1:
            self.everyone = [dict(mine, host=process.master)]
        elif process.rank == 0:
            self.everyone = self._receive(dict(mine, host=process.master))
        else:
            self.everyone = self._send(mine)

    def _receive(self, mine):
        # type: (Dict[str, Any]) -> List[Dict[str, Any]]
        found, connections = {0: mine}, []
        with contextlib.closing(socket.socket()) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("", self._process.port))
            server.listen(self._process.world)
            server.settimeout(MEETING_SECONDS)
            while len(found) < self._process.world:
                connection, (host, _) = server.accept()
                other = json.loads(connection.makefile("r").readline())
                found[other["rank"]] = dict(other, host=host)
                connections.append(connection)
        everyone = [found[rank] for rank in range(self._process.world)]
        for connection in connections:
            connection.sendall((json.dumps(everyone) + "\n").encode())
        for connection in connections:  # the other side closes first, so the port is free at once
            connection.makefile("r").read()
            connection.close()
        return everyone

    def _send(self, mine):
        # type: (Dict[str, Any]) -> List[Dict[str, Any]]
        deadline = time.time() + MEETING_SECONDS
        while True:
            try:
                with contextlib.closing(
                    socket.create_connection((self._process.master, self._process.port), 10)
                ) as one:
                    one.settimeout(MEETING_SECONDS)
                    one.sendall((json.dumps(mine) + "\n").encode())
                    return list(json.loads(one.makefile("r").readline()))
            except (EnvironmentError, ValueError):
                if time.time() > deadline:
                    raise
                time.sleep(POLL_SECONDS)

    def wait_for_all(self):
        # type: () -> None
        if self._process.rank == 0:
            connections = [self._end.accept()[0] for _ in range(self._process.world - 1)]
            for connection in connections:
                connection.makefile("r").readline()
            for connection in connections:
                connection.close()
        else:
            first = self.everyone[0]
            try:
                with contextlib.closing(socket.create_connection((str(first["host"]), int(first["end"])))) as one:
                    one.sendall(b"done\n")
                    one.makefile("r").read()
            except EnvironmentError:
                pass


def free_port():
    # type: () -> int
    with contextlib.closing(socket.socket()) as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


# --- the command lines -----------------------------------------------------------------------------------------------


def run_role(spec, process, meeting, variables):
    # type: (Dict[str, Any], Process, Meeting, Dict[str, str]) -> int
    """Run this process's role, and return the status."""
    lines, root = spec["lines"], os.path.dirname(variables["AZ_BATCHAI_MOUNT_ROOT"])
    if "workers" not in spec:
        if spec["only_master"] and process.rank:
            print("The command line runs on the master node only; this node has nothing to do.")
            return 0
        return watched(shell(lines["all"], variables), root)
    number = process.local * process.nodes + process.node
    server = None
    if process.local == 0 and process.node < spec["servers"]:
        server = shell(lines["server"], dict(variables, **tensorflow(variables, "ps", process.node)))
    status = 0
    if number < spec["workers"]:
        role = "worker" if number else "master"
        status = watched(shell(lines[role], dict(variables, **tensorflow(variables, role, number))), root)
    if spec["servers"] and not status:
        meeting.wait_for_all()
    if server:  # a server runs forever
        server.terminate()
        server.wait()
    return status


def shell(line, variables, folder=None):
    # type: (str, Dict[str, str], Optional[str]) -> subprocess.Popen[bytes]
    """Start the line in bash, for which the old command lines were written, or in sh without bash."""
    root = os.path.dirname(variables["AZ_BATCHAI_MOUNT_ROOT"])
    places = [os.path.join(root, "shims"), os.environ.get("PYTHONPATH", "")]
    environ = dict(os.environ, **variables)
    environ["PYTHONPATH"] = os.pathsep.join(place for place in places if place)
    return subprocess.Popen([bash(), "-c", line], env=environ, cwd=folder)


def bash():
    # type: () -> str
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return next((path for path in (os.path.join(place, "bash") for place in places) if os.access(path, os.X_OK)), "sh")


def watched(child, root):
    # type: (subprocess.Popen[bytes], str) -> int
    """Wait until the child ends; a signal for this process ends the child."""
    with passing_on(child):
        status = child.wait()
    if status == -signal.SIGABRT and os.path.exists(os.path.join(root, "over-{}".format(child.pid))):
        print("The script had finished. A crash of its interpreter while it shut down does not count.")
        return 0
    return status if status >= 0 else 128 - status


@contextlib.contextmanager
def passing_on(child):
    # type: (subprocess.Popen[bytes]) -> Iterator[None]
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda got, _: child.send_signal(got)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

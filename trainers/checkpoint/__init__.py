"""Checkpoints that outlive any process, node and number of processes.

Why torch.distributed.checkpoint (DCP), and what is added to it:

DCP writes what each process holds, in parallel, and reads it back for any other number of processes, FSDP2's shards
included. A file of safetensors from rank 0 would be simpler, but needs the whole state in one memory, and resharding
by hand. DCP alone isn't enough on a mounted blob container: nothing there is renamed atomically, so a crash may leave
half of it, and nothing notices a byte that changed. Here each checkpoint has a folder of its own, and `complete.json`,
which names the files with their sizes and checksums, is written last, after the files were read back. A folder whose
marker is missing, broken, or not true of its files is passed over, and the log says why. `newest.json` beside the
folders names the newest that was complete: where it is there, a training never starts over in silence.

A thread copies the state, and then writes it, while the training goes on; staging.py says why that is safe. It has a
gloo group of its own, since two threads must not exchange over one. Nothing is on the disk of a node: the next
processes may run on other machines, and be more or fewer. A save that fails (disk full, read-only mount) is told and
the training goes on: what it would cost to lose is less than what it would cost to stop.

While a process lives that has the state of a step in its memory, nobody reads a checkpoint: it sends its state to those
that are new or a step behind.

DCP's files are pickles. They are safe as long as nobody but the run itself can write into the folder.

    saving.py     Checkpoints: when one is made, which one is taken, and what is said about it
    folder.py     what lies on the disk: names, markers, checksums, and why one is passed over
    staging.py    the copy that a thread makes while the training goes on
    writer.py     DCP's files, and why the system refused one
    state.py      a training's state as a tree of tensors, and back
    position.py   how far a training is, and what follows from that alone
"""

from .folder import MARKER, NEWEST, Damaged, verified
from .position import OwnLength, Position, add_arguments, dice
from .saving import CheckpointError, Checkpoints

__all__ = [
    "MARKER",
    "NEWEST",
    "CheckpointError",
    "Checkpoints",
    "Damaged",
    "OwnLength",
    "Position",
    "add_arguments",
    "dice",
    "verified",
]

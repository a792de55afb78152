"""Checkpoints that survive the loss of any process and node, loadable by any number of processes.

Why torch.distributed.checkpoint (DCP), and what Trainyard adds to it:

With DCP, every process writes its own part of the state in parallel, and any other number of processes can read it,
FSDP2's shards included. A safetensors file from rank 0 would be simpler, but needs the whole state in one memory and
resharding by hand. DCP alone is not enough on a mounted blob container: nothing there is renamed atomically, so a crash
may leave half a checkpoint, and DCP does not notice a changed byte. Here each checkpoint has its own folder. After the
files have been written and read back, `complete.json` is written last; it names the files with their sizes and
checksums. A folder is skipped, with the reason in the log, if its marker is missing, broken or does not match its
files. `newest.json` beside the folders names the newest checkpoint that was ever complete, so a training never starts
over without an error if checkpoints exist.

A thread copies the state and writes it while the training continues; staging.py explains why this is safe. The thread
has its own gloo group, because two threads must not use one group. Nothing is stored on a node's disk: the next
processes may run on other machines, in another number. If a save fails (disk full, read-only mount), the error is
logged and the training continues: a lost checkpoint costs less than a stopped training.

As long as one process still has the state of the current step in memory, no checkpoint is read: this process sends its
state to the new processes and to those that are one step behind.

DCP's files are pickles. They are safe as long as only the run itself can write into the folder.

    saving.py     Checkpoints: when they are made, which one is loaded, and what is logged
    folder.py     the files on disk: names, markers, checksums, and why a checkpoint is skipped
    staging.py    the copy that a thread makes while the training continues
    writer.py     DCP's file writer, which reports the system's error
    state.py      a training's state as a tree of tensors, and back
    position.py   the position of a training, and what depends on it alone
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

"""The words of many frameworks, launchers and platforms show their cause, wherever a log ends with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.diagnosis import diagnose_log
from shared.diagnosis.causes import Cause

STEPS = "epoch 1 step 100 loss 0.9\nepoch 1 step 200 loss 0.8\n"
HUB = "http://hub/resnet18.pth"


def messages() -> Iterator[tuple[Cause, str]]:
    """Yield the lines of messages.txt, each with the cause in brackets above it."""
    cause = Cause.NOT_KNOWN
    for line in Path(__file__).with_name("messages.txt").read_text("utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            cause = Cause(line[1:-1])
        elif not line.startswith("#"):
            yield cause, line


def test_the_last_line_of_a_log_names_its_cause() -> None:
    """All messages are examined at once, so the failure lists each message that lost its cause."""
    found = {line: (diagnose_log(f"{STEPS}{line}\n", 1).cause, cause) for cause, line in messages()}
    assert len(found) > 100
    assert {line: pair for line, pair in found.items() if pair[0] is not pair[1]} == {}


TEXTS = {
    "a title quotes the message of a traceback that is cut": (
        "mat1 and mat2 shapes cannot be multiplied (7x4 and 9x3)\n\nWe train on data of our own:\n"
        'Traceback (most recent call last):\n  File "/code/train.py", line 4, in main\n    fit(model)\n',
        Cause.SHAPE_MISMATCH,
    ),
    "a person's line separates a message from steps before it": (
        f"Assertion `cur_target >= 0 && cur_target < n_classes' failed. at nn/L.c:62\n\nIt comes after this:\n{STEPS}",
        Cause.LABEL_OUT_OF_RANGE,
    ),
    "a failure of another run is mentioned": (
        "I use amp because otherwise it says CUDA out of memory. Now there is:\n"
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 131072.0\n",
        Cause.NOT_KNOWN,
    ),
    "a queue lost its other end after the training": (
        f"{STEPS}Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.8/multiprocessing/queues.py", line 245, in _feed\n    send_bytes(obj)\n'
        "BrokenPipeError: [Errno 32] Broken pipe\n",
        Cause.NOT_KNOWN,
    ),
    "a traceback is cut in a library of requests": (
        f'Downloading: {HUB}\nTraceback (most recent call last):\n  File "/x/urllib/request.py", line 9, in do_open\n'
        '    h.request(req)\n  File "/x/http/client.py", line 5, in request\n    self._send(\n',
        Cause.NETWORK,
    ),
    "the training crashed and the loop said that it finished": (
        f"{STEPS}Training crashed at epoch 12\nTraceback (most recent call last):\n"
        '  File "/code/train.py", line 4, in main\n    fit(model)\n'
        "RuntimeError: DataLoader worker (pid 28) is killed by signal: Segmentation fault.\nFinished training!\n",
        Cause.DATALOADER_WORKER,
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_person_and_a_log_share_a_text_without_fences(name: str) -> None:
    """A text without Markdown has a title, a person's lines and parts of logs, too."""
    text, cause = TEXTS[name]
    found = diagnose_log(text).cause
    assert found is cause or (cause is Cause.NOT_KNOWN and found is Cause.HEALTHY)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("GPU usage drops to 0% every few seconds.", Cause.INPUT_BOUND),
        ("Most time is spent in preprocessing the data on the CPU, so the GPU waits.", Cause.INPUT_BOUND),
        ("Each iteration takes 4 s, and 3.7 s of it are spent waiting in `next(iter(loader))`.", Cause.INPUT_BOUND),
        ("Reading from S3 makes an epoch 10 times slower than from the local SSD.", Cause.INPUT_BOUND),
        ("Node 2 takes 1.8 s per step and the other nodes 0.9 s.", Cause.STRAGGLER),
        ("Worker 3 is at step 1200 when the rest are at 5000.", Cause.STRAGGLER),
        ("After the shards are loaded nothing happened for hours.", Cause.DEADLOCK),
        ("After resuming, perplexity went from 20 to 5000.", Cause.DIVERGING),
        ("训练过程中loss突然变大，从0.5跳到几十", Cause.DIVERGING),
        ("From epoch 6 on we get nan.", Cause.NAN_LOSS),
        ("GPU memory grows with each iteration until it is full.", Cause.CUDA_OOM),
        ("The job has a walltime of 24 h and gets killed before the first checkpoint.", Cause.TIME_LIMIT),
        ("Is that right, or does it hang?", Cause.NOT_KNOWN),
        ("A single slow GPU slows down the whole job.", Cause.STRAGGLER),
        ("Rank 3 is always 2 seconds behind the other ranks.", Cause.STRAGGLER),
        ("The bars do not move any more.", Cause.DEADLOCK),
        ("Loss suddenly jumps from 2 to 200 and never recovers.", Cause.DIVERGING),
        ("RAM usage increases every epoch until the machine crashes.", Cause.HOST_OOM),
        ("The annotation file does not exist.", Cause.DATA_NOT_FOUND),
        ("The zip file seems to be damaged.", Cause.CORRUPT_FILE),
        ("The checkpoint does not match the model.", Cause.CHECKPOINT_MISMATCH),
        ("The job hasn't printed anything since yesterday evening.", Cause.DEADLOCK),
        ("With num_workers > 0 the script blocks on the first batch.", Cause.DEADLOCK),
        ("Training is unstable and blows up at around 20k steps.", Cause.DIVERGING),
        ("All ranks wait for rank 5, which is always late.", Cause.STRAGGLER),
        ("The model is too big for my GPU.", Cause.CUDA_OOM),
        ('The training ends with just the word "Killed".', Cause.HOST_OOM),
        ("We ran out of disk space during preprocessing.", Cause.DISK_FULL),
        ("AWS reclaimed the machine.", Cause.PREEMPTION),
        ("Kaggle stopped the notebook after 12 hours.", Cause.TIME_LIMIT),
        ("My quota for A100 is 0.", Cause.QUOTA_OR_CAPACITY),
        ("The import of apex fails.", Cause.MISSING_MODULE),
        ("PyTorch doesn't see my GPU.", Cause.GPU_DRIVER_OR_ARCH),
        ("The connection to huggingface.co times out.", Cause.NETWORK),
        ("Access to the storage account is denied.", Cause.PERMISSION),
        ("It does not find the images.", Cause.DATA_NOT_FOUND),
        ("Some of the jpegs cannot be read.", Cause.CORRUPT_FILE),
        ("The pretrained weights do not fit my model.", Cause.CHECKPOINT_MISMATCH),
        ("The dimensions of the two tensors don't agree.", Cause.SHAPE_MISMATCH),
        ("One label is larger than the number of classes.", Cause.LABEL_OUT_OF_RANGE),
        ("NCCL times out at the first collective.", Cause.NCCL_TIMEOUT),
        ("Rank 1 never joins the process group.", Cause.RENDEZVOUS_OR_RESET),
        ("A worker of the DataLoader died.", Cause.DATALOADER_WORKER),
        ("The option --lr is unknown.", Cause.ARGUMENT_ERROR),
        ("The loss does not explode any more.", Cause.NOT_KNOWN),
        ("The node was not preempted.", Cause.NOT_KNOWN),
        ("What would happen if a node is preempted?", Cause.NOT_KNOWN),
        ("With the older version it hung, with the new one all is well.", Cause.NOT_KNOWN),
        ("All is well. Could the labels be out of range later?", Cause.NOT_KNOWN),
        ("It works well although it says that a file is missing.", Cause.NOT_KNOWN),
    ],
)
def test_a_sentence_that_tells_of_trouble_names_a_cause_where_nothing_else_does(said: str, cause: Cause) -> None:
    """The vocabulary of exceptions reads sentences, too, unless somebody says that the training works."""
    found = diagnose_log(f"# Question\n\nbob · description · 2026-11-28\n{said}\n")
    assert found.cause in (cause, *[Cause.HEALTHY] * (cause is Cause.NOT_KNOWN))
    assert found.certainty.value != "certain"

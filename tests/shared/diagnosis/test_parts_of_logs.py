"""Partial logs, as people paste them: the beginning, the last line or the summary is missing."""

from __future__ import annotations

import pytest

from shared.diagnosis import diagnose_log
from shared.diagnosis.causes import Cause

DEEPSPEED = "[2026-11-28 10:00:00,885] [ERROR] [launch.py:434:sigkill_handler] ['python', '-u', 'main.py'] exits with "
FRAME = (
    '  File "/x/site-packages/torch/distributed/rendezvous.py", line 174, in _create_c10d_store\n    return TCPStore(\n'
)
LOADS = (
    'Traceback (most recent call last):\n  File "/code/train.py", line 4, in main\n    resume(model)\n'
    '  File "/x/site-packages/torch/nn/modules/module.py", line 9, in load_state_dict\n    raise x\n'
)
SPAWNED = (
    'Traceback (most recent call last):\n  File "/x/site-packages/torch/multiprocessing/spawn.py", line 119, in join\n'
    "    raise Exception(msg)\nException:\n\n-- Process 1 terminated with the following error:\n"
    'Traceback (most recent call last):\n  File "/code/train.py", line 4, in work\n    x = y[3]\n'
    "OSError: [Errno 28] No space left on device\n"
)
WATCHDOG = "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n[PG 0 Rank 1] "
KEYWORD = 'Traceback (most recent call last):\n  File "/code/train.py", line 4, in main\n    Config(**args)\n'
NO_GPU = (
    'Traceback (most recent call last):\n  File "/x/site-packages/parser.py", line 9, in _sanitize\n    raise E\n'
    "lightning.MisconfigurationException: \n      You requested GPUs: [0]\n      But your machine only has: []\n"
)
PIPES = "[ INFO : 10:00:09 ] - |     TRAIN|        14|       {}00|   {}|0.00072|\n"
HEAD = "InvalidArgumentError                      Traceback (most recent call last)\n<ipython-input-3> in <module>\n"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{DEEPSPEED}return code = -9\n", Cause.HOST_OOM),
        (f"{DEEPSPEED}return code = -7\n", Cause.SHM_BUS_ERROR),
        (f"{DEEPSPEED}return code = 1\n".replace("'-u'", "'--local_rank=4'"), Cause.RANK_FIRST_FAILED),
        ("RayTaskError(ActorDiedError): ray::TaskRunner.run() (pid=7)\n", Cause.RANK_FIRST_FAILED),
        (f"{WATCHDOG}Heartbeat monitor timed out! Process will be terminated after dumping.\n", Cause.NCCL_TIMEOUT),
        (f"{KEYWORD}TypeError: __new__() got an unexpected keyword argument 'eval_batch_size'\n", Cause.USER_EXCEPTION),
        ("".join(f"(pid=7) {line}\n" for line in NO_GPU.splitlines()), Cause.GPU_DRIVER_OR_ARCH),
        (f"{PIPES.format(4, -6.2)}{PIPES.format(5, 'nan')}{PIPES.format(6, 'nan')}", Cause.NAN_LOSS),
        ("The GPU utilization stays at 0% for a long time, because it loads data very slowly.\n", Cause.INPUT_BOUND),
        (f"The log ends here:\n{FRAME}", Cause.RENDEZVOUS_OR_RESET),
        (f"{LOADS}RuntimeError: The size of tensor a (5) must match tensor b (4)", Cause.CHECKPOINT_MISMATCH),
        (SPAWNED, Cause.DISK_FULL),
        (f"# indices[3] = 450 is not in [0, 450)\n\n{HEAD}      7   steps_per_epoch=1)\n", Cause.LABEL_OUT_OF_RANGE),
        ("**Killed**\n", Cause.HOST_OOM),
        ("# RESOURCE_EXHAUSTED: Out of memory while trying to allocate * bytes.\n", Cause.CUDA_OOM),
        ("# loss.py: classification IndexError\n", Cause.USER_EXCEPTION),
        ("mkdir: cannot create directory '/mnt/output': Permission denied\n", Cause.PERMISSION),
        (" 20%|##  | 11/56 [00:02<00:08, 5.02it/s]Segmentation fault (core dumped)\n", Cause.USER_EXCEPTION),
        ("ResourceExhaustedError (see above for traceback): OOM when allocating tensor", Cause.CUDA_OOM),
        ("errors_impl.NotFoundError: NewRandomAccessFile failed to Create/Open: a.pbtxt", Cause.DATA_NOT_FOUND),
        ("INFO:tensorflow:Error reported to Coordinator: <class 'x.NotFoundError'>, a; No file", Cause.DATA_NOT_FOUND),
        ("ConnectionError: Couldn't reach https://x (ProtocolError('Connection reset by peer'))", Cause.NETWORK),
        ("# It ends\n\nbob · comment · 2026-11-28\nMaybe the port is the problem, have you looked?\n", Cause.NOT_KNOWN),
        ("JobNodeCountExceedsCoreQuota, a vCPU quota of 2 and is less than 4", Cause.QUOTA_OR_CAPACITY),
    ],
)  # fmt: skip
def test_what_is_left_of_a_log_names_its_cause(text: str, cause: Cause) -> None:
    """The place, the launcher's exit code or the title replaces the missing line."""
    assert diagnose_log(text, 1).cause is cause


def test_gradients_that_are_no_numbers_up_to_the_last_report_are_a_loss_that_is_not_a_number() -> None:
    """The loss of such a step is not printed, or is zero. A single such step is normal for a loss scaler."""
    line = "{{'loss': 0.0, 'grad_norm': {}, 'epoch': 0.{}}}\n"
    bad = "".join(line.format("nan", number) for number in range(4))
    assert diagnose_log(bad).cause is Cause.NAN_LOSS
    assert diagnose_log(line.format("nan", 0) + line.format(0.4, 1) + line.format(0.3, 2)).cause is Cause.HEALTHY


@pytest.mark.parametrize(
    "text",
    [
        "# catch ConnectionError when checking dataset\n",
        "# feat: handle CUDA out of memory\n",
        "# Use a checkpoint after a spot interruption\n\nThe hook handles a spot interruption by saving.\n",
        "# Requeue jobs on a preempted partition\n",
        "The request returned status code 429\nepoch 1/9 loss 1.0\nepoch 2/9 loss 0.9\n",
    ],
)
def test_the_title_of_a_change_or_a_wish_names_no_cause(text: str) -> None:
    """Such a title says what to do, not that something failed."""
    assert diagnose_log(text).cause in (Cause.HEALTHY, Cause.NOT_KNOWN)

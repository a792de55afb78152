"""Logs of successful trainings that contain alarming words have no cause."""

from __future__ import annotations

import pytest

from shared.diagnosis import diagnose_log
from shared.diagnosis.causes import Cause

STEPS = "epoch 1 step 100 loss 0.9\nepoch 1 step 200 loss 0.8\nepoch 2 step 300 loss 0.7\n"
FRAMES = (
    'Traceback (most recent call last):\n  File "train.py", line 10, in step\n    loss.backward()\n'
    '  File "/usr/lib/python3.11/site-packages/torch/_tensor.py", line 488, in backward\n    torch.autograd.backward(\n'
)
GOOD = {
    "a batch that ran out of memory was skipped": FRAMES + "torch.cuda.OutOfMemoryError: CUDA out of memory.\n" + STEPS,
    "a rank failed and the worker group started again": (
        FRAMES + "RuntimeError: lost\nE1128 10:00:00.000 4 torch/x.py:8] failed (exitcode: 1) local_rank: 1 (pid: 9)\n"
        "I1128 10:00:01.000 4 torch/agent.py:8] 3/3 attempts left; will restart worker group\n" + STEPS
    ),
    "a download was tried again": (
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded\n"
        "Retrying in 1s [Retry 1/5].\n" + STEPS
    ),
    "the tracker lost its connection for a while": (
        "wandb: Network error, entering retry loop.\n" + STEPS
        + "wandb: Network error resolved after 0:00:21, resuming normal operation.\n"
    ),
    "a metric is named error": "epoch 1 top1 error: 0.9 failed_samples 0\nepoch 2 top1 error: 0.7 failed_samples 0\n",
    "darknet has no object of a size in a batch": (
        "Region 106 Avg IOU: -nan, Class: -nan, Obj: -nan, No Obj: 0.461, .5R: -nan, .75R: -nan,  count: 0\n"
        " 2: 1478.905273, 1480.089600 avg loss, 0.000000 rate, 5.112250 seconds, 128 images\n"
    ),
    "a program announces what it builds": "Building extension module utils...\n" + STEPS,
    "a line of a program reads like a sentence": (
        "vLLM loading the model with actual GPU utilization = 9.4%\nWe will change the batch size of 1 to 6\n" + STEPS
    ),
    "TensorFlow informs": (
        "2026-11-28 21:15:02.1: I tensorflow/cuda_gpu_executor.cc:966] could not open file to read NUMA node: /sys/x\n"
    ),
    "a kernel can't be built, and a slower one is used": (
        "UserWarning: Failed to build CUDA kernels. Falling back to slow reference implementation. Details:\n\n"
        "No module named 'upfirdn2d_plugin'\ntick 1 kimg 4.0 time 9m 18s sec/tick 402.2\n"
        "tick 2 kimg 8.0 time 16m 01s sec/tick 401.1\n"
    ),
    "a report of the environment": STEPS + "CUDA available: True\nCUDA_HOME: /usr/local/cuda-11.1\n",
    "NaN in names": "Using --nan-policy=raise, detect_nan=True\nDropped 12 rows with NaN in column age\n" + STEPS,
    "one loss of the first epoch": "epoch 1 loss nan\n" + STEPS,
    "a running mean of gradients": "step 1 loss 2.1 grad_norm 0.4 (nan)\nstep 2 loss 1.9 grad_norm 0.3 (nan)\n",
    "the loss scale adapts": "Gradient overflow. Skipping step, reducing loss scale to 16384.0.\n" + STEPS,
    "two networks work against each other": "".join(
        f"[{n}/6] D_loss: {d} G_loss: {g}\n" for n, (d, g) in enumerate([(0.01, 1), (0.02, 4), (0.5, 3), (0.6, 9)] * 2)
    ),
    "TensorFlow without a GPU": (
        "2026-11-28 10:00:00.0: W tensorflow/x.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: "
        "libcudart.so.11.0: cannot open shared object file: No such file or directory\n"
        "2026-11-28 10:00:00.0: I tensorflow/y.cc:29] Ignore above cudart dlerror if you do not have a GPU\n" + STEPS
    ),
    "a destructor fails at the end": (
        STEPS + "Exception ignored in: <function Iter.__del__ at 0x7f>\n" + FRAMES
        + "AssertionError: can only test a child process\n"
    ),
    "a clean-up at exit fails": (
        STEPS + 'Traceback (most recent call last):\n  File "/usr/lib/python3.11/multiprocessing/util.py", line 300, '
        "in _run_finalizers\n    finalizer()\nOSError: [Errno 39] Directory not empty: '/tmp/pymp-x'\n"
    ),
    "tokenizers warn of a fork": (
        "huggingface/tokenizers: The current process just got forked. Disabling parallelism to avoid deadlocks...\n"
        "This can lead to the program hanging in rare cases.\n" + STEPS
    ),
    "images are left out": (
        "train: WARNING /data/1.jpg: ignoring corrupt image/label: image file is truncated (3 bytes)\n" + STEPS
    ),
    "weights are new": (
        "Some weights were not initialized from the model checkpoint and are newly initialized because the shapes did "
        "not match:\n- classifier.weight: found shape torch.Size([2, 768]) in the checkpoint\n" + STEPS
    ),
    "NCCL informs": (
        "node1:10:20 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so)\n"
        "node1:10:20 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]\n" + STEPS
    ),
    "TensorFlow ends its queues": (
        STEPS + "INFO:tensorflow:Error reported to Coordinator: <class 'tensorflow.python.framework.errors_impl."
        "CancelledError'>, Enqueue operation was cancelled\n"
    ),
    "a destructor's exception has no traceback": (
        STEPS + "Exception ignored in: <function Dict.remove at 0x7f>\nTypeError: 'NoneType' object is not callable\n"
    ),
    "Python ends while a thread writes": (
        STEPS + "Fatal Python error: could not acquire lock for <_io.BufferedWriter name='<stdout>'> at exit\n"
    ),
    "a job's limits are printed": "activeDeadlineSeconds: 3600, maximum execution time: 3600 s, quota: 24\n" + STEPS,
    "a node was found later": (
        "WARNING -- The actor cannot be scheduled right now. You can ignore this if this cluster scales.\n" + STEPS
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("exit_code", [None, 0])
def test_a_good_log_has_no_cause(name: str, exit_code: int | None) -> None:
    """Steps follow the line, or the line itself says that it is harmless."""
    assert diagnose_log(GOOD[name], exit_code).cause in (Cause.HEALTHY, Cause.NOT_KNOWN)


def test_an_exception_at_the_end_is_no_cause_for_a_process_that_ended_well() -> None:
    """With exit code 0, the training must have caught its exception."""
    text = STEPS + FRAMES + "ValueError: no figure to draw\n"
    assert diagnose_log(text, 0).cause is Cause.HEALTHY
    assert diagnose_log(text, 1).cause is Cause.USER_EXCEPTION


def test_a_log_that_ends_within_a_traceback_is_not_healthy() -> None:
    """The exception's own line is missing: the place is known, but the cause is not certain."""
    found = diagnose_log(STEPS + FRAMES)
    assert (found.cause, found.where) == (Cause.USER_EXCEPTION, "train.py:10 in step")
    assert found.certainty.value == "likely"


def test_steps_of_other_ranks_do_not_undo_the_failure_of_one() -> None:
    """Rank 1 reported steps before the failure, and none after."""
    text = "".join(f"[rank{rank}]: step {n} loss 0.5\n" for n in range(3) for rank in (0, 1))
    failed = "".join(f"[rank1]: {line}\n" for line in (FRAMES + "KeyError: 'label'").splitlines())
    after = "".join(f"[rank0]: step {n} loss 0.5\n" for n in range(3, 6))
    found = diagnose_log(text + failed + after, 1)
    assert (found.cause, found.rank) == (Cause.USER_EXCEPTION, 1)


@pytest.mark.parametrize(
    "step",
    [
        "[{}]\ttrain-rmse:0.51234\teval-rmse:0.52",
        "{}:\tlearn: 0.6512345\ttest: 0.66\ttotal: 10ms\tremaining: 10s",
        "{}: 700.123, 700.123 avg, 0.000000 rate, 3.2 seconds, 64 images",
        "|    iterations      | {}        |",
        "  0     {}        100.12   2000.12   60.12    0.60",
        "Epoch {} done in 20 s",
    ],
)
def test_steps_of_other_libraries_count_too(step: str) -> None:
    """XGBoost, CatBoost, darknet, stable-baselines and spaCy report steps in their own forms."""
    steps = "".join(f"{step.format(number)}\n" for number in range(100, 104))
    assert diagnose_log(f"start\nOSError: image file is truncated\n{steps}").cause is Cause.HEALTHY
    assert diagnose_log(f"start\nLoss is nan, skipping batch\n{steps}").cause is Cause.HEALTHY

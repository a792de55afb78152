"""Logs that trainings leave, one for each rule: the log's structure decides, not its first alarming word."""

from __future__ import annotations

from textwrap import dedent

import pytest

from shared.diagnosis import diagnose_log
from shared.diagnosis.advice import advice
from shared.diagnosis.causes import Cause, Certainty

FRAMES = (
    'Traceback (most recent call last):\n  File "/code/train.py", line 41, in main\n    loss = step(batch)\n'
    '  File "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl\n'
    "    return forward_call(*args, **kwargs)\n"
)


def raised(line: str) -> str:
    return f"epoch 1/9 step 10/90 loss 1.2\n{FRAMES}{line}\n"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", Cause.CUDA_OOM),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 80 bytes", Cause.HOST_OOM),
        ("OSError: [Errno 28] No space left on device: '/mnt/outputs/model.pt'", Cause.DISK_FULL),
        ("RuntimeError: unable to write to file </torch_141_2>: No space left on device (28)", Cause.SHM_BUS_ERROR),
        ("RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed.", Cause.DATALOADER_WORKER),
        ("ModuleNotFoundError: No module named 'einops'", Cause.MISSING_MODULE),
        ("ImportError: libcudart.so.11: cannot open shared object file: No such file", Cause.MISSING_MODULE),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", Cause.GPU_DRIVER_OR_ARCH),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/train'", Cause.DATA_NOT_FOUND),
        ("OSError: image file is truncated (12 bytes not processed)", Cause.CORRUPT_FILE),
        ("IndexError: Target 10 is out of bounds.", Cause.LABEL_OUT_OF_RANGE),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)", Cause.SHAPE_MISMATCH),
        ("RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc", Cause.CHECKPOINT_MISMATCH),
        ("PermissionError: [Errno 13] Permission denied: '/data/train'", Cause.PERMISSION),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded with url: /x", Cause.NETWORK),
        ("RuntimeError: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", Cause.NCCL_TIMEOUT),
        ("torch.distributed.DistNetworkError: The client socket has timed out after 60s", Cause.RENDEZVOUS_OR_RESET),
        ("FloatingPointError: Loss became infinite or NaN at iteration=17!", Cause.NAN_LOSS),
        ("AttributeError: 'Net' object has no attribute 'head'", Cause.USER_EXCEPTION),
    ],
)  # fmt: skip
def test_an_exception_has_its_cause_and_the_place_in_the_users_code(line: str, cause: Cause) -> None:
    """The type and message of the last line decide; the place skips library frames."""
    found = diagnose_log(raised(line), exit_code=1)
    assert (found.cause, found.certainty, found.where) == (cause, Certainty.CERTAIN, "/code/train.py:41 in main")
    assert found.evidence[0].number == 7
    assert found.advice


def test_the_first_exception_of_a_chain_is_the_cause() -> None:
    """An exception that was raised while another was handled is a consequence."""
    text = raised("OSError: [Errno 28] No space left on device") + (
        "\nDuring handling of the above exception, another exception occurred:\n\n"
        + FRAMES
        + "RuntimeError: [enforce fail at inline_container.cc:337] . unexpected pos 704 vs 598\n"
    )
    assert diagnose_log(text).cause is Cause.DISK_FULL


def test_the_rank_that_failed_first_is_named_and_its_echoes_are_not() -> None:
    """Rank 2 raised; the other ranks lost their connection; torchrun's summary and SIGTERM lines come last."""
    failed = "".join(f"[rank2]: {line}\n" for line in (FRAMES + "KeyError: 'label'").splitlines())
    text = (
        f"epoch 1/9\n{failed}"
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/code/train.py", line 50, in main\n[rank0]:     dist.all_reduce(t)\n'
        "[rank0]: RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:2014\n"
        "E1128 10:00:00.000 41 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) "
        "local_rank: 2\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    )
    found = diagnose_log(text, exit_code=1)
    assert (found.cause, found.rank) == (Cause.USER_EXCEPTION, 2)
    assert "KeyError" in found.evidence[0].text


def test_only_a_launchers_summary_names_the_rank_and_no_cause() -> None:
    """Nothing of the rank's own output is left."""
    found = diagnose_log("Starting\nE1128 10:00:00.000 4 torch/x.py:8] failed (exitcode: 1) local_rank: 5 (pid: 9)\n")
    assert (found.cause, found.rank, found.certainty) == (Cause.RANK_FIRST_FAILED, 5, Certainty.LIKELY)


def test_cudas_assertion_beats_the_traceback_before_it() -> None:
    """The traceback of an asynchronous error points to an innocent line (pytorch#25537)."""
    text = raised("RuntimeError: CUDA error: unspecified launch failure") + (
        "../aten/src/ATen/native/cuda/Loss.cu:242: nll_loss_forward: block: [0,0,0], thread: [6,0,0] "
        "Assertion `t >= 0 && t < n_classes` failed.\n"
    )
    assert diagnose_log(text).cause is Cause.LABEL_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("text", "code", "cause"),
    [
        ("epoch 1/9 loss 0.5\nepoch 2/9 loss 0.4\n", 137, Cause.HOST_OOM),
        ("epoch 1/9\nslurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***", 143, Cause.TIME_LIMIT),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0\nKilled", 1, Cause.HOST_OOM),
        ("AzureMLCompute job failed.\nPreemptionError: The node has been preempted.", None, Cause.PREEMPTION),
        ("usage: t.py\nt.py: error: the following arguments are required: --data\n", 2, Cause.ARGUMENT_ERROR),
        ("Step 5/9 : RUN pip install\nERROR: No matching distribution found for torch==9\n", 1, Cause.ENV_BUILD),
        ("OperationNotAllowed: 0 cores are left: QuotaExceeded\n", None, Cause.QUOTA_OR_CAPACITY),
    ],
)  # fmt: skip
def test_platforms_launchers_and_exit_codes(text: str, code: int | None, cause: Cause) -> None:
    """The platform's message decides; the exit code decides only where the log has no evidence."""
    assert diagnose_log(text, code).cause is cause


def test_losses_that_are_no_numbers_and_losses_that_leap() -> None:
    """The metrics show a failure that no log line mentions."""
    nan = "".join(f"epoch 1/9 step {n}/90 loss {'nan' if n > 4 else 0.5}\n" for n in range(9))
    leap = "".join(f"epoch {n}/9 loss {0.1 if n < 5 else 40.0}\n" for n in range(9))
    data = "".join(f"iter {n} time: 1.000 data_time: 0.900 loss: 0.5\n" for n in range(5))
    assert [diagnose_log(text).cause for text in (nan, leap, data)] == [
        Cause.NAN_LOSS,
        Cause.DIVERGING,
        Cause.INPUT_BOUND,
    ]


def test_a_loss_scale_that_falls_without_end_is_a_loss_that_is_not_a_number() -> None:
    """A few overflows are normal."""
    line = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}\n"
    falls = "".join(line.format(2.0**-n) for n in range(12))
    few = "".join(line.format(2.0**n) + f"step {n}/9 loss 1.0\n" for n in range(15, 9, -1))
    assert [diagnose_log(text).cause for text in (falls, few)] == [Cause.NAN_LOSS, Cause.HEALTHY]


@pytest.mark.parametrize(
    "noise",
    [
        "huggingface/tokenizers: The current process just got forked. Disabling parallelism to avoid deadlocks...",
        "W tensorflow/stream_executor/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; "
        "Ignore above cudart dlerror if you do not have a GPU set up on your machine.",
        "NCCL INFO NET/Plugin: No plugin found (libnccl-net.so), using internal implementation",
        "Exception ignored in: <function _Iter.__del__>\n" + FRAMES + "AssertionError: can only test a child process",
        "wandb: Network error (ConnectionError), entering retry loop.",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "Some weights of Bert were not initialized from the model checkpoint and are newly initialized",
        "/x/site-packages/torch/optim/lr_scheduler.py:131: UserWarning: Detected call of `lr_scheduler.step()`",
    ],
)
def test_noise_before_further_steps_is_no_cause(noise: str) -> None:
    """Steps after the line prove that the line did not end the training."""
    steps = "".join(f"epoch {n}/9 loss {1 / n:.3f}\n" for n in range(1, 9))
    assert diagnose_log(f"epoch 0/9 loss 2.0\n{noise}\n{steps}Training complete.\n", 0).cause is Cause.HEALTHY


def test_a_log_without_evidence_is_not_guessed_at() -> None:
    """Instead of a cause, the answer gives the lines that a person would read first."""
    found = diagnose_log(dedent("""\
        Starting
        Loading data
        Process exited with a non-zero exit code.
        """), 1)  # fmt: skip
    assert (found.cause, found.certainty) == (Cause.NOT_KNOWN, Certainty.NONE)
    assert found.evidence[-1].text == "Process exited with a non-zero exit code."


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("The loss value is NAN at some iteration, could you help me?", Cause.NAN_LOSS),
        ("训练时 loss 变为 nan", Cause.NAN_LOSS),
        ("All my jobs are killed because of a slurm out-of-memory error.", Cause.HOST_OOM),
        ("One GPU will prompt that it is out of memory.", Cause.CUDA_OOM),
        ("We don’t have the appropriate gpu quota for the job.", Cause.QUOTA_OR_CAPACITY),
        ("INFO: no quota is set for this project", Cause.NOT_KNOWN),
        ("The data loading time becomes longer with each step.", Cause.INPUT_BOUND),
    ],
)
def test_a_persons_words_name_a_cause_where_no_log_does(text: str, cause: Cause) -> None:
    """A request for help does not weaken a stated cause; a doubt does."""
    assert diagnose_log(f"# Question\n\n{text}\n").cause in (cause, *[Cause.HEALTHY] * (cause is Cause.NOT_KNOWN))


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("cuda runtime error (38) : no CUDA-\ncapable device is detected", Cause.GPU_DRIVER_OR_ARCH),
        ("[W228 18:45:15.7 socket.cpp:487] [c10d] waitForInput: timed out after 900000ms", Cause.RENDEZVOUS_OR_RESET),
        ("api-1 | Error: [Errno 13] Permission denied: '/models'", Cause.PERMISSION),
        ('"message": "Quota failure for project x. The request exceeds the allowed maximum."', Cause.QUOTA_OR_CAPACITY),
        ("ERROR: No enough unused GPU cards on host a, expected 1, only 0", Cause.QUOTA_OR_CAPACITY),
        ("RuntimeError: write(): fd 29 failed with Input/output error", Cause.DISK_FULL),
        ("ValueError: File data/train.json not found.", Cause.DATA_NOT_FOUND),
    ],
)
def test_a_line_counts_unless_steps_follow(line: str, cause: Cause) -> None:
    """The same line is no cause when steps follow it."""
    steps = "".join(f"epoch 1 step {n} loss 0.{n}\n" for n in range(3))
    assert diagnose_log(f"{steps}{line}\n", 1).cause is cause
    if cause is not Cause.QUOTA_OR_CAPACITY:
        assert diagnose_log(f"{line}\n{steps}").cause is Cause.HEALTHY


@pytest.mark.parametrize(
    ("line", "cause", "step"),
    [
        ("_pickle.UnpicklingError: Weights only load failed.", Cause.CHECKPOINT_MISMATCH, "weights_only=False"),
        ("ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", Cause.GPU_DRIVER_OR_ARCH, "gloo"),
        ("wandb.errors.errors.UsageError: No API key configured. Use `wandb login`", Cause.USER_EXCEPTION, "offline"),
        ("socket.gaierror: [Errno -2] Name or service not known", Cause.NETWORK, "--data drops/ROUTE/NAME"),
    ],
)
def test_the_advice_fits_the_case_that_the_quoted_line_shows(line: str, cause: Cause, step: str) -> None:
    """The general advice of the cause does not help in this case, and is left out."""
    found = diagnose_log(raised(line))
    assert found.cause is cause
    assert step in " ".join(found.advice)
    assert not set(advice(cause)) & set(found.advice)

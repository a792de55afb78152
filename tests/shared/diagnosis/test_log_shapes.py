"""The shapes of logs: launchers' prefixes, terminals, encodings, issues with prose, and very long files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shared.diagnosis import diagnose_log
from shared.diagnosis.causes import Cause
from shared.diagnosis.log_file import decoded, log_text

FAILED = (
    "epoch 1 step 10 loss 1.2",
    "Traceback (most recent call last):",
    '  File "/code/train.py", line 41, in main',
    "    images = load(path)",
    "OSError: image file is truncated (12 bytes not processed)",
)


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[rank0]: ",
        "0: [rank0]:",
        "[1,0]<stderr>:",
        "2026-11-28T10:00:00.1234567Z ",
        "train\tRun python train.py\t2026-11-28T10:00:00.1234567Z ",
        "[2026-11-28T10:00:00.123456Z] fa88a9df || ",
        "2026-11-28T10:00:00.123Z stderr F ",
        "(TrainWorker pid=71, ip=10.0.0.4) ",
        "stderr: ",
        "> ",
        "\x1b[36m[rank0]:\x1b[0m ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_prefixes_of_launchers_and_platforms_are_no_part_of_the_line(prefix: str, end: str) -> None:
    """torchrun, srun, mpirun, GitHub Actions, Determined, Kubernetes, Ray, accelerate, quotations, and colors."""
    found = diagnose_log("".join(f"{prefix}{line}{end}" for line in FAILED), exit_code=1)
    assert (found.cause, found.where) == (Cause.CORRUPT_FILE, "/code/train.py:41 in main")
    assert found.evidence[0].number == 5


def test_the_last_state_of_a_progress_bar_counts_and_an_error_after_it_on_the_same_line() -> None:
    """A bar has no line end, so the traceback begins on the bar's line."""
    bar = "\r".join(f"{n}%|###   | {n}/100 [00:01<00:09, 1.0it/s]" for n in range(40))
    assert diagnose_log(bar + "\n".join(FAILED[1:])).cause is Cause.CORRUPT_FILE


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_is_read_whatever_its_encoding(encoding: str, tmp_path: Path) -> None:
    """PowerShell writes UTF-16 with `>`, with and without a byte order mark."""
    (tmp_path / "log").write_bytes("\n".join(FAILED).encode(encoding))
    assert diagnose_log(log_text(tmp_path / "log")).cause is Cause.CORRUPT_FILE


def test_bytes_that_are_no_text_are_replaced() -> None:
    """A log may contain a part of a binary file."""
    assert decoded(b"loss \xff\xfe 1\n").startswith("loss ")


def test_of_a_long_file_the_beginning_and_the_end_are_read_and_line_numbers_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the line ends of the middle are kept."""
    monkeypatch.setattr("shared.diagnosis.log_file.HEAD", 1_000)
    monkeypatch.setattr("shared.diagnosis.log_file.TAIL", 2_000)
    steps = [f"epoch 1 step {n} loss 1.2" for n in range(5_000)]
    (tmp_path / "log").write_text("\n".join([*steps, *FAILED]))
    found = diagnose_log(log_text(tmp_path / "log"))
    assert (found.cause, found.evidence[0].number) == (Cause.CORRUPT_FILE, 5_005)


def test_a_log_of_50_mb_is_judged_by_its_beginning_and_its_end() -> None:
    """The time is bounded: fewer than MOST_LINES lines are examined, and line numbers stay right."""
    step = "2026-11-28T10:00:00Z [rank0]: epoch 1 step 17/90000 loss 0.51 lr 1e-4 time 0.12 data_time 0.01 mem 12\n"
    many = 50_000_000 // len(step)
    begin = time.process_time()
    found = diagnose_log(step * many + "\n".join(FAILED))
    assert (found.cause, found.evidence[0].number) == (Cause.CORRUPT_FILE, many + 5)
    assert time.process_time() - begin < 60  # about 5 s on one core; only catches time that grows with the file


def test_a_traceback_of_a_notebook_and_one_of_rich_have_their_place() -> None:
    """IPython writes `File path:line, in name`, rich draws a box."""
    notebook = (
        "------------------------------\nKeyError                     Traceback (most recent call last)\n"
        "File /code/train.py:41, in main(batch)\n     40 x = 1\n---> 41 loss = step(batch)\n\nKeyError: 'label'\n"
    )
    rich = (
        "╭────────── Traceback (most recent call last) ───────────╮\n│ /code/train.py:41 in main   │\n"
        "│ ❱ 41 │   loss = step(batch)    │\n╰──────────────────────╯\nKeyError: 'label'\n"
    )
    for text in (notebook, rich):
        found = diagnose_log(text)
        assert (found.cause, found.where) == (Cause.USER_EXCEPTION, "/code/train.py:41 in main")


ISSUE = """# OSError: image file is truncated

somebody · description · 2026-11-01
My training stops after a while. I use 2 gpus and train for 100 epochs with this script:

```python
import torch
from torchvision import transforms
raise RuntimeError('CUDA out of memory')
```

The log:

```
epoch 1 step 10 loss 1.2
epoch 1 step 20 loss 1.1
epoch 1 step 30 loss 1.0
```

somebody_else · comment · 2026-11-02
With 4 workers it works:
```
epoch 1 step 10 loss 1.2
epoch 1 step 20 loss 1.1
```
"""


def test_what_a_person_tells_beside_a_log_is_not_undone_by_steps_after_it() -> None:
    """An issue's title comes before its log, but the exception came after the steps. Source code is no log."""
    assert diagnose_log(ISSUE).cause is Cause.CORRUPT_FILE


def test_the_log_counts_more_than_what_a_person_tells() -> None:
    """Titles are often guesses."""
    log = ISSUE.replace("epoch 1 step 30 loss 1.0", "ModuleNotFoundError: No module named 'einops'")
    assert diagnose_log(log).cause is Cause.MISSING_MODULE


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("# WeightsUnpickler error: Unsupported operand 10", Cause.CHECKPOINT_MISMATCH),
        ("!!! Exception during processing !!! Weights only load failed.", Cause.CHECKPOINT_MISMATCH),
        ("zipfile.BadZipFile: File is not a zip file", Cause.CORRUPT_FILE),
        ("cv2.error: OpenCV(4.5.5) error: (-215:Assertion failed) !ssize.empty() in function", Cause.DATA_NOT_FOUND),
        ("requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='x', port=443): Read timed out.", Cause.NETWORK),
        ("torch.distributed.elastic.rendezvous.api.RendezvousClosedError", Cause.RENDEZVOUS_OR_RESET),
        ("OSError: [Errno 122] Disk quota exceeded: '/home/u/model.pt'", Cause.DISK_FULL),
        ("include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device", Cause.SHM_BUS_ERROR),
        ("Docker container `x-execution-wrapper` failed with status code `1`", Cause.USER_EXCEPTION),
        ("torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL",
         Cause.HOST_OOM),
        ("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with exit code 1",
         Cause.RANK_FIRST_FAILED),
        ("[rank: 1] Child process with PID 9 terminated with code 1. Forcefully terminating all others",
         Cause.RANK_FIRST_FAILED),
        ("ray.exceptions.ActorDiedError: It died. There are some potential root causes. (1) The process is killed by "
         "SIGKILL by OOM killer due to high memory usage.", Cause.RANK_FIRST_FAILED),
        ("my.package.Loader: 12 files", Cause.NOT_KNOWN),
        ("Traceback (most recent call last):", Cause.USER_EXCEPTION),
    ],
)  # fmt: skip
def test_a_line_without_its_traceback_still_has_its_cause(line: str, cause: Cause) -> None:
    """People paste a single line or a title. The name of a logger is no exception."""
    assert diagnose_log(line + "\n", exit_code=1).cause is cause


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("The training hangs after the first epoch when num_workers is 4.", Cause.DEADLOCK),
        ("GPU utilization is very low, most of the time 0%.", Cause.INPUT_BOUND),
        ("Why is the loss always nan from the second iteration on?", Cause.NAN_LOSS),
        ("Disabling the fork can avoid deadlocks, which could make a program hang.", Cause.NOT_KNOWN),
    ],
)
def test_words_of_people_without_any_log(text: str, cause: Cause) -> None:
    """Prose decides only without a log, and never with certainty; a mentioned possibility is no statement."""
    found = diagnose_log(text)
    assert found.cause is cause
    assert found.certainty.value != "certain"


@pytest.mark.parametrize(
    ("file", "name", "raised", "cause"),
    [
        ("requests/models.py", "json", "KeyError: 'content-length'", Cause.NETWORK),
        ("gdown/download.py", "download", "AttributeError: 'NoneType' object has no attribute 'groups'", Cause.NETWORK),
        ("omegaconf/base.py", "_format_and_raise", "omegaconf.errors.ValidationError: Value 'x'", Cause.ARGUMENT_ERROR),
        ("apex/__init__.py", "<module>", "AttributeError: partially initialized", Cause.MISSING_MODULE),
        ("torch/nn/modules/module.py", "forward", "KeyError: 'content-length'", Cause.USER_EXCEPTION),
    ],
)
def test_the_library_that_raised_an_exception_tells_its_cause(file: str, name: str, raised: str, cause: Cause) -> None:
    """The words of such an exception have no known cause, but the library does only one thing."""
    text = (
        'Traceback (most recent call last):\n  File "train.py", line 9, in main\n    load()\n'
        f'  File "/usr/lib/python3.11/site-packages/{file}", line 5, in {name}\n    work()\n{raised}\n'
    )
    assert diagnose_log(text, 1).cause is cause


def test_a_table_whose_last_rows_lack_numbers_shows_a_loss_that_is_no_number() -> None:
    """YOLO prints a row of numbers each epoch."""
    rows = [
        "0/149  13.6G  0.0491  0.0068  0.0141  19  640",
        *[f"{n}/149  13.5G  nan  nan  nan  4  640" for n in (6, 7)],
    ]
    assert diagnose_log("\n".join(rows) + "\n").cause is Cause.NAN_LOSS


def test_an_exception_of_a_thread_stays_ignored_in_its_chain() -> None:
    """A thread that feeds the training is cancelled when the training has ended."""
    frames = 'Traceback (most recent call last):\n  File "session.py", line 9, in call\n    return fn()\n'
    raised = "tensorflow.python.framework.errors_impl.CancelledError: Enqueue operation was cancelled\n"
    chain = "\nDuring handling of the above exception, another exception occurred:\n\n"
    text = f"iteration: 200000 loss: 0.0016\nException in thread Thread-7:\n{frames}{raised}{chain}{frames}{raised}"
    assert diagnose_log(text).cause is Cause.HEALTHY


def test_a_launchers_line_after_an_exception_does_not_hide_the_exception() -> None:
    """srun reports the exit code in the line after the traceback."""
    text = (
        'Traceback (most recent call last):\n  File "train.py", line 9, in main\n    run()\n'
        "ValueError: loss is nan\nsrun: error: node1: task 0: Exited with exit code 1\n"
    )
    assert diagnose_log(text, 1).cause is Cause.NAN_LOSS


def test_a_complaint_without_a_failure_is_not_known() -> None:
    """A person says that the training ends, and the log shows no reason."""
    text = "It does not work for me, and it ends without any message:\n\nval: 100%|####| 450/450 [00:00<?, ?it/s]\n"
    assert diagnose_log(text).cause is Cause.NOT_KNOWN


def test_a_loss_with_a_second_word_in_its_name_counts() -> None:
    """A sum of losses explodes."""
    text = "".join(
        f"Iter[{n}00]/[9000] loss sum: {loss} lr=0.1\n" for n, loss in enumerate([2, 3, 2, 3, 10, 39, 146, 543])
    )
    assert diagnose_log(text).cause is Cause.DIVERGING


def test_a_hang_that_a_person_tells_of_did_not_end_the_process() -> None:
    """A launcher's exception ended it, and its cause is not shown."""
    text = (
        "I start two processes and nothing else is shown.\n\nTraceback (most recent call last):\n"
        '  File "/usr/lib/python3.7/site-packages/torch/distributed/launch.py", line 259, in main\n    cmd=cmd)\n'
        "subprocess.CalledProcessError: Command '['python', 'main.py']' returned non-zero exit status 1.\n"
    )
    assert diagnose_log(text, 1).cause is Cause.NOT_KNOWN


METRICS = {
    "the wait for data grows": (
        "".join(
            f"Epoch [1][{n}00/999] loss: 2.1, time: {n}.1, data_time: {max(0.02, n - 3.0):.2f}\n" for n in range(1, 11)
        ),
        Cause.INPUT_BOUND,
    ),
    "perplexity is no number at the end": (
        "".join(f"Step {n}00/5000; acc: 48.1; ppl: {'nan' if n > 5 else 8.5}; lr: 0.1\n" for n in range(1, 9)),
        Cause.NAN_LOSS,
    ),
    "each step overflows": (
        "".join(f"OVERFLOW! Skipping step. Attempted loss scale: {2.0**n}\n" for n in range(32, 0, -1)),
        Cause.NAN_LOSS,
    ),
}


@pytest.mark.parametrize("name", METRICS)
def test_the_metrics_of_steps_show_a_cause(name: str) -> None:
    """No line says that something is wrong."""
    text, cause = METRICS[name]
    assert diagnose_log(text).cause is cause

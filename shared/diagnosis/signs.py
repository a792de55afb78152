"""The signs of a cause in a log: exceptions, and lines of launchers, schedulers, platforms and frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache

from shared.diagnosis.causes import Cause
from shared.diagnosis.exceptions import SHARED_MEMORY, cause_of
from shared.diagnosis.lines import Line
from shared.diagnosis.tracebacks import Raised


class Weight(IntEnum):
    """What a sign counts. A heavier sign decides, whatever its place; among signs of one weight, the earliest decides.

    - `PLATFORM`: the platform or the scheduler states why it ended the job
    - `ASSERTION`: CUDA's own assertion, which may stand before or after the exceptions that it causes
    - `CAUSE`: an exception, a guard or a kill with a cause of its own
    - `CONSEQUENCE`: what other ranks say when one rank is gone, and exceptions of the user's own code
    - `SUMMARY`: a launcher's summary without the exception itself
    - `WORDS`: a person's words
    """

    WORDS = 10
    SUMMARY = 20
    CONSEQUENCE = 30
    CAUSE = 40
    ASSERTION = 50
    PLATFORM = 60


@dataclass(frozen=True)
class Sign:
    """One sign: its cause, its weight, its line, the last line of it, and the exception if it is one."""

    cause: Cause
    weight: Weight
    line: Line
    last: int
    certain: bool = True
    raised: Raised | None = None

    @property
    def rank(self) -> int | None:
        """The rank that shows the sign, if the log names it."""
        return self.raised.rank if self.raised else self.line.rank


CONSEQUENCES = (Cause.NCCL_TIMEOUT, Cause.RENDEZVOUS_OR_RESET, Cause.USER_EXCEPTION)

ROWS: tuple[tuple[Cause, Weight, tuple[str, ...]], ...] = (
    (
        Cause.PREEMPTION,
        Weight.PLATFORM,
        (
            r"PreemptionError|DUE TO PREEMPTION|(?:[Jj]ob|[Nn]ode|[Ii]nstance|[Pp]od|VM|task|run)s? (?:has been|have been|was|were|been|got|is) (?:pre-?empted|evicted)",
            r"[Ss]pot (?:instance )?(?:interruption|termination|eviction)|[Pp]reempted (?:by|due|for|because)|low[- ]priority .{0,60}(?:pre-?empted|evicted)",
            r"(?:received|got|detected|handling) .{0,30}pre-?emption|pre-?emption (?:signal|notice|request)|Shutting down .{0,40}preempt|Preempted\b.{0,40}(?:by scheduler|node)",
        ),
    ),
    (
        Cause.TIME_LIMIT,
        Weight.PLATFORM,
        (
            r"DUE TO TIME LIMIT|exceeded the (?:maximum|max)(?:imum)? (?:execution |run)?time|MaxRuntimeExceeded|JobTimeout|walltime .{0,40}exceeded|exceeded .{0,20}wall ?(?:time|clock)",
            r"(?:[Jj]ob|[Rr]un|[Tt]raining|[Tt]ask) .{0,40}(?:exceeded|reached|hit) .{0,30}(?:time ?(?:limit|out)|max(?:imum)? (?:run ?time|duration))|TERM_RUNLIMIT|activeDeadlineSeconds|DeadlineExceeded.{0,40}[Jj]ob",
            r"job running on .{0,60} exceeded the maximum (?:time|execution)|ran longer than the maximum time|timed out after \d+ (?:minutes|hours)|[Tt]ime limit (?:of .{0,20})?(?:reached|exceeded|hit)|killed by timeout",
        ),
    ),
    (
        Cause.HOST_OOM,
        Weight.PLATFORM,
        (
            r"oom[-_]kill|Exceeded (?:job|step) memory limit|OOMKilled|Out of memory: Kill(?:ed)? process|Memory cgroup out of memory|OUT_OF_ME\+?|TERM_MEMLIMIT|exceeded memory limit",
            r"Some of your processes may have been killed by the cgroup|invoked oom-killer|memory usage .{0,40}exceed|due to memory pressure|node was low on resource: memory",
        ),
    ),
    (
        Cause.QUOTA_OR_CAPACITY,
        Weight.PLATFORM,
        (
            r"Quota\w*Exceeded|[Qq]uota (?:limit )?(?:is |was |has been )?(?:exceeded|reached)|exceed\w* .{0,60}\b[Qq]uota\b|InsufficientInstanceCapacity|ZONE_RESOURCE_POOL_EXHAUSTED|SkuNotAvailable|AllocationFailed|OverconstrainedAllocation",
            r"does not have enough (?:resources|capacity)|do not have sufficient capacity|(?:[Ii]nsufficient|not enough|lack of) (?:nvidia\.com/gpu|capacity|cores|instances|available nodes)|FailedScheduling|No cluster node with|OutOfCapacity|out of capacity|no capacity",
            r"(?:cannot|can't|can not) be (?:scheduled|fulfilled|satisfied) .{0,80}(?:resource|node|gpu|GPU)|(?:requested|requests?) .{0,60}(?:not be )?available .{0,40}(?:resource|node|instance)|ResourceLimitExceeded|Insufficient quota|exceeding approved .{0,40}[Qq]uota|instance type .{0,40}not (?:available|supported) in",
            r"[Tt]he following resource request cannot be scheduled|Unable to (?:allocate|provision|launch|create) .{0,60}(?:instance|node|GPU|gpu|VM)",
        ),
    ),
    (
        Cause.ENV_BUILD,
        Weight.PLATFORM,
        (
            r"[Ii]mage build (?:has )?failed|ImageBuildFail|[Ff]ailed to build (?:the )?(?:image|environment|docker)|[Uu]nable to (?:build|create|pull) .{0,40}(?:image|environment)|[Ee]nvironment (?:build|creation|image) .{0,40}fail|CondaEnvException|Pip (?:subprocess )?(?:error|failed)",
            r"ResolvePackageNotFound|PackagesNotFoundError|UnsatisfiableError|Solving environment: failed|ERROR: (?:No matching distribution|Could not find a version|ResolutionImpossible|Failed building wheel|Could not build wheels)|subprocess-exited-with-error|metadata-generation-failed",
            r"returned a non-zero code: \d+|failed to solve(?: with|:)|process .{0,200} did not complete successfully: exit code|[Dd]ocker ?file.{0,60}(?:not found|does not exist|relative|invalid|cannot)|(?:docker|conda|image) .{0,20}build .{0,60}(?:failed|error|exit)|ImagePullBackOff|ErrImagePull|manifest unknown",
        ),
    ),
    (
        Cause.PERMISSION,
        Weight.PLATFORM,
        (
            r"DataAccessError\(PermissionDenied|AuthorizationPermissionMismatch|\(?AuthorizationFailed\)?|does not have authorization to perform|[Mm]ount(?:ing)? .{0,80}(?:failed|denied|error\(13\))|mount error|failed to mount|identity .{0,60}(?:no|not|lacks?) .{0,40}(?:permission|access|role)",
        ),
    ),
    (
        Cause.DATA_NOT_FOUND,
        Weight.PLATFORM,
        (r"StreamError\(NotFound|DataAccessError\(NotFound|(?:data|input|path|blob).{0,60}ScriptExecution\.StreamAccess\.NotFound|The specified (?:blob|container|path) does not exist|[Nn]o (?:blob|file|data)s? .{0,30}(?:at|under|in) .{0,20}(?:path|given)",),
    ),
    (
        Cause.LABEL_OUT_OF_RANGE,
        Weight.ASSERTION,
        (
            r"Assertion .{0,80}(?:n_classes|t < |cur_target|srcIndex < srcSelectDimSize|index.{0,20}out of bounds|target|idx_dim|label|ind(?:ex)? ?(?:>=|<)).{0,60}failed",
        ),
    ),
    (
        Cause.DATALOADER_WORKER,
        Weight.CAUSE,
        (r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:exited unexpectedly|is killed by signal: (?!Bus))",),
    ),
    (
        Cause.SHM_BUS_ERROR,
        Weight.CAUSE,
        (
            r"[Bb]us error|\bSIGBUS\b|is killed by signal: Bus|insufficient shared memory|nccl-shm|NCCL WARN .{0,80}(?:shm|shared memory)|Memory file system",
        ),
    ),
    (
        Cause.NAN_LOSS,
        Weight.CAUSE,
        (
            r"(?i)\bloss (?:is|became|was) (?:nan|inf|infinite)|nan loss|loss is nan|stopping training.{0,20}nan|minimum loss scale|nan (?:detected|encountered) in|found nan|found inf or nan|model diverged with loss = nan|loss became infinite|nanlossduringtraining|terminateonnan|invalid loss, terminating",
        ),
    ),
    (Cause.DIVERGING, Weight.CAUSE, (r"(?i)loss exploded|training (?:has )?diverged|loss scale (?:is |at |reached )?0(?:\.0+)?\b",)),
    (
        Cause.GPU_DRIVER_OR_ARCH,
        Weight.CAUSE,
        (
            r"NVIDIA driver on your system is too old|CUDA driver version is insufficient|no kernel image is available|is not compatible with the current PyTorch installation|NVIDIA-SMI has failed|nvidia-container-cli: .{0,60}(?:error|not found)|could not select device driver",
            r"Found no NVIDIA driver|No CUDA GPUs are available|Torch not compiled with CUDA|Cannot dlopen some GPU libraries|CUDA initialization: ",
        ),
    ),
    (
        Cause.CUDA_OOM,
        Weight.CAUSE,
        (r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|failed to alloc(?:ate)? .{0,60}(?:on|from) device|OOM when allocating tensor .{0,200}GPU|cuda runtime error \(2\)",),
    ),
    (Cause.DISK_FULL, Weight.CAUSE, (r"No space left on device|Disk quota exceeded|disk is full|not enough space on the disk",)),
    (
        Cause.HOST_OOM,
        Weight.CAUSE,
        (r"^(?:.{0,80}: line \d+: +\d+ )?Killed(?: .*)?$|terminate called after throwing an instance of 'std::bad_alloc'|Cannot allocate memory|[Oo]ut of (?:system |host |CPU )?(?:RAM|memory)\b(?!.*(?:CUDA|GPU))|DefaultCPUAllocator",),
    ),
    (
        Cause.ARGUMENT_ERROR,
        Weight.CAUSE,
        (r"error: (?:unrecognized arguments|the following arguments are required|argument .{1,60}: (?:invalid|expected|not allowed)|ambiguous option|too few arguments|one of the arguments)|FATAL Flags parsing error|Error: (?:No such option|Missing (?:option|argument)|Got unexpected extra argument|Invalid value for)",),
    ),
    (
        Cause.MISSING_MODULE,
        Weight.CAUSE,
        (r"error while loading shared libraries|: command not found$|No module named |symbol lookup error|ERR_MODULE_NOT_FOUND",),
    ),
    (
        Cause.NCCL_TIMEOUT,
        Weight.CONSEQUENCE,
        (r"Watchdog caught collective operation timeout|ran for \d+ milliseconds before timing out|NCCL operations have failed or timed out|collective operation timeout|NCCL watchdog.{0,40}(?:timeout|hang)|[Hh]eartbeat monitor timed out",),
    ),
    (
        Cause.RENDEZVOUS_OR_RESET,
        Weight.CONSEQUENCE,
        (r"client socket has (?:timed out|failed to connect)|server socket has failed to listen|Connection (?:reset|closed) by peer|RendezvousConnectionError|Address already in use|NCCL WARN .{0,60}(?:Connect|Net).{0,60}failed|Horovod has been shut down|Timed out waiting \d+ms|rendezvous .{0,60}(?:timed out|timeout|failed)|Stalled ranks",),
    ),
    (
        Cause.NETWORK,
        Weight.CONSEQUENCE,
        (r"Temporary failure in name resolution|Could not resolve host|wandb: Network error|Max retries exceeded with url|curl: \(\d+\)|fatal: unable to access|Failed to connect to .{0,60} port|Network is unreachable",),
    ),
)
FIRST_FAILED = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+)|exitcode +: (?P<code2>-?\d+)|exited with (?:exit )?code (?P<code3>\d+)|Process (?P<rank4>\d+) terminated with|The first process to do so was.{0,20}|terminated with signal (?P<signal>SIG\w+)")
ROOT_RANK = re.compile(r"rank +: (?P<rank>\d+) \(local_rank: \d+\)")
WARNING = re.compile(r"[Ww]arning\b|\bWARN(?:ING)?\b|\bINFO\b|^W[ :]|: [WI] tensorflow|huggingface/tokenizers|DEPRECAT|Ignore above|\bDEBUG\b")
FATAL_WARNING = re.compile(r"CUDA initialization|too old|not compatible with the current PyTorch|NCCL WARN|Cannot dlopen some GPU|[Ll]oss is nan|Minimum loss scale|NaN|nan")
WORDS: tuple[tuple[Cause, str], ...] = (
    (Cause.DEADLOCK, r"(?i)\b(?:hangs?|hanging|hung|stuck|frozen|freezes|deadlock(?:s|ed)?|does(?:n't| not) (?:progress|proceed|move)|no (?:progress|output)|never (?:starts|continues|finishes|moves))\b"),
    (Cause.INPUT_BOUND, r"(?i)gpu[- ]?util\w*.{0,60}(?:low|very|0 ?%|drops|fluctuat)|data[- ]?load\w* (?:is |are |becomes )?(?:too |very |so )?(?:slow|bottleneck)|(?:volatile|gpu) .{0,20}util.{0,30}\b\d ?%|bottleneck .{0,40}(?:data|cpu|io|disk)|cpu .{0,30}(?:bottleneck|100 ?%)|data_time .{0,40}(?:large|long|high|too)"),
    (Cause.DIVERGING, r"(?i)loss (?:suddenly |keeps? |is |starts? (?:to )?)?(?:increas|explod|goes up|jump|diverg|very (?:high|large))|(?:does not|doesn't|not) (?:converge|learn)"),
)


@cache
def _compiled() -> tuple[tuple[Cause, Weight, re.Pattern[str]], ...]:
    return tuple((cause, weight, re.compile("|".join(words))) for cause, weight, words in ROWS)


@cache
def _words() -> tuple[tuple[Cause, re.Pattern[str]], ...]:
    return tuple((cause, re.compile(pattern)) for cause, pattern in WORDS)


def of_exceptions(raised: Sequence[Raised]) -> Iterator[Sign]:
    """One sign for each chain of exceptions: the first exception of the chain with a cause of its own.

    Exceptions that Python ignored, and those of launchers, are no signs.
    """
    chains: dict[int, list[Raised]] = {}
    for one in raised:
        if not one.ignored and not one.by_launcher:
            chains.setdefault(one.chain if one.full else -one.line.number, []).append(one)
    for chain in chains.values():
        known = [(one, cause) for one in chain if (cause := cause_of(one)) is not Cause.USER_EXCEPTION]
        one, cause = known[0] if known else (chain[0], Cause.USER_EXCEPTION)
        if one.short_type == "KeyboardInterrupt":
            yield from _interrupted(one)
        else:
            weight = Weight.CONSEQUENCE if cause in CONSEQUENCES else Weight.CAUSE
            yield Sign(cause, weight, one.line, chain[-1].last, raised=one)


def _interrupted(one: Raised) -> Iterator[Sign]:
    """A person ended the run. Where it stood shows a deadlock if it waited for another thread or process."""
    if one.frames and re.search(r"wait|acquire|poll|select|recv|join|barrier|all_?reduce|synchronize|get\b|read", one.frames[-1].name):
        yield Sign(Cause.DEADLOCK, Weight.SUMMARY, one.line, one.last, certain=False, raised=one)


def of_lines(lines: Sequence[Line], covered: frozenset[int]) -> Iterator[Sign]:
    """Signs in lines that belong to no exception. `covered`: the numbers of the lines of exceptions."""
    for line in lines:
        if line.blank:
            continue
        plain = WARNING.search(line.text) is None or FATAL_WARNING.search(line.text) is not None
        for cause, weight, pattern in _compiled():
            if line.number in covered and weight < Weight.ASSERTION:
                continue
            if (plain or weight >= Weight.ASSERTION) and pattern.search(line.text):
                cause = Cause.SHM_BUS_ERROR if cause is Cause.DISK_FULL and SHARED_MEMORY.search(line.text) else cause
                yield Sign(cause, weight, line, line.number)
                break


def of_launchers(lines: Sequence[Line]) -> Iterator[Sign]:
    """Summaries of torchrun, torch.multiprocessing and mpirun: which rank failed first, and with which exit code."""
    root: int | None = None
    for line in lines:
        if named := ROOT_RANK.search(line.text):
            root = int(named["rank"])
        if found := FIRST_FAILED.search(line.text):
            code = found["code"] or found["code2"] or found["code3"]
            rank = found["rank"] or found["rank4"]
            at = replace(line, rank=int(rank) if rank else root)
            yield from _of_code(at, _signal(found["signal"]) if found["signal"] else int(code) if code else 1)


def _signal(name: str) -> int:
    return {"SIGKILL": -9, "SIGBUS": -7, "SIGSEGV": -11, "SIGABRT": -6, "SIGTERM": -15}.get(name, 1)


def _of_code(line: Line, code: int) -> Iterator[Sign]:
    if code in (-9, 137):
        yield Sign(Cause.HOST_OOM, Weight.SUMMARY, line, line.number, certain=False)
    elif code in (-7, 135):
        yield Sign(Cause.SHM_BUS_ERROR, Weight.SUMMARY, line, line.number, certain=False)
    elif code not in (0, -15, 143):
        yield Sign(Cause.RANK_FIRST_FAILED, Weight.SUMMARY, line, line.number, certain=False)


def of_words(lines: Sequence[Line], covered: frozenset[int]) -> Iterator[Sign]:
    """What a person wrote beside the log."""
    for line in lines:
        if line.number not in covered and WARNING.search(line.text) is None:
            for cause, pattern in _words():
                if pattern.search(line.text):
                    yield Sign(cause, Weight.WORDS, line, line.number, certain=False)

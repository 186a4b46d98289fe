"""A fault injected into a real run, and what came of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.chaos import clock, processes
from tests.chaos.faults import Fault, Kind
from tests.chaos.programs import Program, broken, is_json, program, rows_in
from tests.conftest import ENVIRONMENT, own_temporary_folder
from tests.hosts import network
from tests.hosts.jobs import OPEN_MPI
from tests.hosts.virtual_hosts import Host, Hosts, virtual_hosts

SLACK = 25.0
"""Seconds that a run may take to end after its own limit: the launcher ends ranks that do not
answer, and what is left of a sweep is measured."""

GONE_AFTER = 15.0
"""Seconds after a run within which its processes, and what it made for a time, are gone."""

FIRST_ROW = 60.0
NEXT_START = 90.0
PAUSE = 0.01
ROOM = "16m"
"""The size of a disk that has room again."""

LAUNCHERS_SAY = re.compile(
    r"EXIT STRING: .*|BAD TERMINATION.*|mpiexec@.*|prterun noticed .*|prterun detected .*|"
    r"prterun was unable .*|.*lost connection .*|PRTE has lost .*|.*daemon .*|"
    r".*[Ss]ending Ctrl-C.*|.*prterun .*|The PMIx server's .*",
)
"""What launchers say when ranks, or what they started on other hosts, are gone."""

SWEEPS_SAY = re.compile(
    r"\[\d+/\d+\] .* (failed|timed out), .*: .+|stopped because .*|.* missing: .*"
)
OURS = re.compile(r"omb-py: (?!note: ).*")


class CannotInjectError(Exception):
    """This machine does not let this user cause such a fault; one sentence says why."""


@dataclass(frozen=True)
class Outcome:
    """What came of a fault.

    ``late`` is whether it came when the run was over. It took ``seconds`` from the fault to the
    end, with exit code ``code``, and ``says`` what ``who`` said. ``rows`` are those before the
    fault, after it, and after the next start, which ended with ``next_code``. ``losses`` are
    sentences on what should not be.
    """

    fault: Fault
    late: bool
    seconds: float
    code: int | None
    who: str
    says: str
    rows: tuple[int, int, int]
    next_code: int | None
    losses: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Where a program runs: its environment, and how to undo what the fault does."""

    program: Program
    environment: dict[str, str]
    mark: str
    hosts: Hosts | None
    clock: clock.Clock | None
    outputs: Path


def inject(fault: Fault) -> Outcome:
    """Run, cause the fault, wait for the end, start again.

    Raises `CannotInjectError` where this machine cannot have such a fault.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(temporary_folder()))
        own = stack.enter_context(own_temporary_folder())
        hosts = stack.enter_context(virtual_hosts(2)) if fault.kind is Kind.NETWORK_LOST else None
        one = program(fault.program, folder, hosts)
        environment = own | ENVIRONMENT | {processes.MARK: folder.name}
        if hosts is not None:
            environment |= hosts.environment
        if fault.kind in (Kind.DISK_FILLED, Kind.DISK_SMALL):
            stack.enter_context(disk(one.results, fault.nbytes))
            if fault.temporary:
                environment["TMPDIR"] = str(one.results)
        own_clock = clock.make(folder) if fault.kind is Kind.CLOCK_SET else None
        if own_clock is not None:
            environment |= own_clock.environment
        elif fault.kind is Kind.CLOCK_SET:
            raise CannotInjectError("a clock of its own needs a C compiler")
        place = Place(one, environment, folder.name, hosts, own_clock, folder)
        try:
            return observe(fault, place)
        finally:
            processes.end(processes.of_run(folder.name))


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder for a run; its name is short, since sockets of MPI libraries may lie in it."""
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as name:
        yield name


@contextmanager
def disk(folder: Path, nbytes: int) -> Iterator[None]:
    """A file system of so many bytes on a folder."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={nbytes}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        raise CannotInjectError("a small disk needs root, and a mount of tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def observe(fault: Fault, place: Place) -> Outcome:
    """What comes of a fault."""
    one = place.program
    heal: Callable[[], None] = nothing
    with started(place, "first") as process:
        if fault.from_the_start:
            late = False
            heal = partial(enlarge, one.results)
        else:
            wait_for_rows(fault, one, process)
            late = process.poll() is not None
        before = one.records()
        rows = one.rows()
        if not fault.from_the_start and not late:
            found = strike(fault, place, process)
            late, heal = found is None, found or heal
        began = time.monotonic()
        limit = patience(fault, one)
        with suppress(subprocess.TimeoutExpired):
            process.wait(limit)
        seconds = time.monotonic() - began
        code = process.poll()
        if code is None:
            process.kill()
            process.wait()
    losses = [] if code is not None else [f"it did not end within {limit:.0f} s"]
    who, says = sentence(place.outputs, "first", code)
    losses += judge(one, code, bool(who) or is_silent(fault, one), place)
    losses += kept(one, before)
    # nobody reaches the other host, so only what is on the launcher's can be gone
    losses += remains(place, place.hosts.hosts[1] if place.hosts else None)
    after = one.rows()
    heal()
    # TCP tries again at intervals that double: once more within the time that it was cut off
    losses += remains(place, seconds=GONE_AFTER + seconds) if place.hosts else []
    with started(place, "next") as process:
        try:
            next_code = process.wait(NEXT_START)
        except subprocess.TimeoutExpired:
            next_code = None
            process.kill()
    if next_code != 0:
        reason = sentence(place.outputs, "next", next_code)[1]
        losses.append(f"the next start ended with {next_code}: {reason}")
    losses += kept(one, before)
    losses += complete(one, after)
    losses += remains(place)
    return Outcome(
        fault, late, seconds, code, who, says, (rows, after, one.rows()), next_code, tuple(losses)
    )


def patience(fault: Fault, one: Program) -> float:
    """Seconds within which a run ends after a fault, by what it says of its limits."""
    if fault.kind is Kind.NETWORK_LOST and one.sweeps:
        return 4 * one.limit + SLACK  # of two points, in one launch and each by itself
    endless = one.limit == float("inf")
    return (0 if endless else one.limit) + SLACK


@contextmanager
def started(place: Place, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program started, with its output in files; what is left of it in the end is killed."""
    with (
        (place.outputs / f"{name}.out").open("wb") as out,
        (place.outputs / f"{name}.err").open("wb") as err,
    ):
        process = subprocess.Popen(
            place.program.command,
            env=place.environment,
            cwd=place.program.folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def wait_for_rows(fault: Fault, one: Program, process: subprocess.Popen[bytes]) -> None:
    """Wait for the moment of a fault, or for the end of the run."""
    deadline = time.monotonic() + FIRST_ROW
    while one.rows() < fault.rows and process.poll() is None and time.monotonic() < deadline:
        time.sleep(PAUSE)
    with suppress(subprocess.TimeoutExpired):
        process.wait(fault.delay)


def strike(
    fault: Fault, place: Place, process: subprocess.Popen[bytes]
) -> Callable[[], None] | None:
    """Cause the fault; what undoes it, or None where the run was over before."""
    if fault.kind is Kind.CLOCK_SET:
        assert place.clock is not None
        place.clock.set(fault.step)
    elif fault.kind is Kind.DISK_FILLED:
        return fill(place.program.results)
    elif fault.kind is Kind.NETWORK_LOST:
        assert place.hosts is not None
        host = place.hosts.hosts[fault.number % 2].process
        network.in_network(host, f"ip link set {network.CARD} down")
        return partial(network.in_network, host, f"ip link set {network.CARD} up")
    else:
        assert fault.signal is not None
        victim = choose(fault, place, process)
        if victim is None:
            return None
        with suppress(ProcessLookupError):
            os.kill(victim, fault.signal)
    return nothing


def nothing() -> None:
    """What undoes a fault after which there is nothing to undo."""


def choose(fault: Fault, place: Place, process: subprocess.Popen[bytes]) -> int | None:
    """The process that a signal is for, once it is there; None where the run ends before."""
    if fault.kind in (Kind.SWEEP_KILLED, Kind.STOPPED):
        return process.pid if process.poll() is None else None
    among = {
        Kind.RANK_KILLED: processes.ranks,
        Kind.RANK_FROZEN: processes.ranks,
        Kind.CHILD_KILLED: processes.children_of_ranks,
        Kind.LAUNCHER_KILLED: processes.launchers,
        Kind.LAUNCHER_FROZEN: processes.launchers,
    }[fault.kind]
    while process.poll() is None:
        if found := among(processes.of_run(place.mark)):
            return found[fault.number % len(found)].pid
        time.sleep(PAUSE)
    return None


def fill(folder: Path) -> Callable[[], None]:
    """Fill the disk that a folder is on; what makes room again."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return filler.unlink


def enlarge(folder: Path) -> None:
    """Make a disk large enough."""
    subprocess.run(["mount", "-o", f"remount,size={ROOM}", str(folder)], check=True)


SHELLS_SIGNALS = 128
"""What shells and launchers add to the number of a signal for an exit code."""


def sentence(folder: Path, name: str, code: int | None) -> tuple[str, str]:
    """Who said what of a run's end: omb-py, its sweep, the launcher, or the shell of a signal."""
    text = "".join(
        (folder / f"{name}.{stream}").read_text(errors="replace") for stream in ("err", "out")
    )
    for who, pattern in (("omb-py", OURS), ("sweep", SWEEPS_SAY), ("launcher", LAUNCHERS_SAY)):
        for line in text.splitlines():
            if found := pattern.search(line):
                return who, found[0]
    if code is not None and code < 0:
        return "shell", signal.strsignal(-code) or f"signal {-code}"
    if code is not None and OPEN_MPI and code - SHELLS_SIGNALS in signal.valid_signals():
        # now and then its launcher says nothing of a rank that a signal killed while MPI starts
        return "exit code", signal.strsignal(code - SHELLS_SIGNALS) or ""
    return "", ""


def is_silent(fault: Fault, one: Program) -> bool:
    """Whether nobody can say why a run ended: who signals Open MPI's launcher has to know.

    It ends the ranks, passes on nothing of what they print from then on, and says nothing itself.
    """
    return OPEN_MPI and fault.kind is Kind.STOPPED and not one.sweeps


def judge(one: Program, code: int | None, says: bool, place: Place) -> list[str]:
    """What is wrong with how a run ended; ``says`` is whether there is a sentence, if needed."""
    found = []
    done = one.rows() == one.planned
    if code == 0 and not done:
        found.append(f"exit code 0 with {one.rows()} of {one.planned} rows")
    if code != 0 and not says:
        found.append(f"exit code {code} without a sentence")
    printed = [*place.outputs.glob("*.out"), *place.outputs.glob("*.err")]
    logs = [*printed, *one.results.glob("logs/*")]
    for path in logs:
        text = path.read_text(errors="replace")
        if "Traceback" in text or re.search(r"^\w*Error: ", text, re.MULTILINE):
            found.append(f"a traceback in {path.name}")
        if "--debug for the traceback" in text:
            found.append(f"an error that nobody foresaw in {path.name}")
    lines = [line for path in printed for line in path.read_text(errors="replace").splitlines()]
    if len(said := list(filter(OURS.match, lines))) > 1:
        found.append(f"{len(said)} sentences: {' / '.join(said)}")
    return found


def kept(one: Program, before: Counter[str]) -> list[str]:
    """Lines that were there before and are not any more, and rows that are not whole."""
    lost = before - one.records()
    found = [f"{lost.total()} lines are gone, such as {next(iter(lost))}"] if lost else []
    damaged = [line for path in one.tables for line in broken(path)]
    return found + [f"no whole row: {line}" for line in damaged]


def complete(one: Program, after: int) -> list[str]:
    """What is missing after the next start."""
    expected = one.planned if one.sweeps else after + one.planned
    found = [] if one.rows() == expected else [f"{one.rows()} rows in the end, not {expected}"]
    for path in one.tables:
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            found.append(f"{path.name} has a torn line in the end")
        if path.suffix == ".json" and not all(map(is_json, content.decode().splitlines())):
            found.append(f"{path.name} is no JSON in the end")
    keys = Counter((path.name, row.get("bytes")) for path in one.tables for row in rows_in(path))
    if one.sweeps and any(times > 1 for times in keys.values()):
        found.append("a row was measured twice")
    return found


def remains(
    place: Place, unreachable: Host | None = None, seconds: float = GONE_AFTER
) -> list[str]:
    """What of a run is still there a while after its end, but for a host's; it is ended."""
    host = (
        ""
        if unreachable is None
        else os.readlink(f"/proc/{unreachable.process}/ns/pid_for_children")
    )
    left = processes.left(place.mark, seconds, host)
    found = [f"left behind: {one.name} {one.pid}" for one in left]
    processes.end(left)
    return found

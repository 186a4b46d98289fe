"""A fault injected into a real run, and what came of it."""

from __future__ import annotations

import os
import re
import shutil
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
DISK = "16m"

LAUNCHERS_SAY = re.compile(
    r"EXIT STRING: .*|BAD TERMINATION.*|mpiexec@.*|prterun noticed .*|prterun detected .*|"
    r"prterun was unable .*|.*lost connection .*|PRTE has lost .*|.*daemon .*|"
    r".*[Ss]ending Ctrl-C.*|.*prterun .*|The PMIx server's .*"
)
"""What launchers say when ranks, or what they started on other hosts, are gone."""

SWEEPS_SAY = re.compile(r"\[.*\] .* (failed|timed out), .*: .+|stopped because .*|.* missing: .*")
OURS = re.compile(r"omb-py: (?!note: ).*")


class CannotInjectError(Exception):
    """This machine does not let this user cause such a fault; one sentence says why."""


@dataclass(frozen=True)
class Outcome:
    """What came of a fault.

    ``late`` is whether it came when the run was over. It took ``seconds`` from the fault to the
    end, with exit code ``code``, and ``says`` is the sentence on it. ``rows`` are those before the
    fault, after it, and after the next start. ``losses`` are sentences on what should not be.
    """

    fault: Fault
    late: bool
    seconds: float
    code: int | None
    says: str
    rows: tuple[int, int, int]
    losses: tuple[str, ...]

    def __str__(self) -> str:
        when = "too late" if self.late else f"{self.seconds:.1f} s"
        after = " > ".join(map(str, self.rows))
        losses = "".join(f"\n       LOST: {loss}" for loss in self.losses)
        ended = f"{when}, exit code {self.code}, rows {after}"
        return f"{self.fault}: {ended}; {self.says[:90]}{losses}"


@dataclass(frozen=True)
class Place:
    """A program, where it runs: its environment, and its hosts if they are virtual."""

    program: Program
    environment: dict[str, str]
    hosts: Hosts | None

    @property
    def mark(self) -> str:
        """The mark of its processes."""
        return self.environment[processes.MARK]

    @property
    def outputs(self) -> Path:
        """The folder of what it prints."""
        return self.program.folder


def inject(fault: Fault) -> Outcome:
    """Run, cause the fault, wait for the end, start again.

    Raises `CannotInjectError` where this machine cannot have such a fault.
    """
    with ExitStack() as stack:
        # a short name, since sockets of MPI libraries may lie in it
        temporary = tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        own = stack.enter_context(own_temporary_folder())
        hosts = stack.enter_context(virtual_hosts(2)) if fault.kind is Kind.NETWORK_LOST else None
        one = program(fault.program, folder, hosts)
        environment = own | ENVIRONMENT | {processes.MARK: folder.name}
        if hosts is not None:
            environment |= hosts.environment
        if fault.kind is Kind.DISK_FILLED:
            stack.enter_context(disk(one.results))
            if fault.temporary:
                environment["TMPDIR"] = str(one.results)
        if fault.kind is Kind.CLOCK_SET:
            compiler = shutil.which("cc")
            if compiler is None:
                raise CannotInjectError("a clock of its own needs a C compiler")
            environment |= clock.make(folder, compiler)
        place = Place(one, environment, hosts)
        try:
            return observe(fault, place)
        finally:
            processes.end(processes.of_run(folder.name))


@contextmanager
def disk(folder: Path) -> Iterator[None]:
    """A small file system on a folder."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        raise CannotInjectError("a disk of its own needs root, and a mount of tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def observe(fault: Fault, place: Place) -> Outcome:
    """What comes of a fault."""
    one = place.program
    with started(place, "first") as process:
        wait_for_rows(fault, one, process)
        over = process.poll() is not None
        before, rows = one.records(), one.rows()
        heal = None if over else strike(fault, place, process)
        began = time.monotonic()
        limit = patience(fault, one)
        with suppress(subprocess.TimeoutExpired):
            process.wait(limit)
        seconds = time.monotonic() - began
        code = process.poll()
    losses = [] if code is not None else [f"it did not end within {limit:.0f} s"]
    says = sentence(place.outputs, "first", code)
    losses += judge(one, code, bool(says) or is_silent(fault, one), place)
    losses += kept(one, before)
    # nobody reaches the other host, so only what is on the launcher's can be gone
    losses += remains(place, place.hosts.hosts[1] if place.hosts else None)
    after = one.rows()
    if heal is not None:
        heal()
    # TCP tries again at intervals that double: once more within the time that it was cut off
    losses += remains(place, seconds=GONE_AFTER + seconds) if place.hosts else []
    with started(place, "next") as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(NEXT_START)
        next_code = process.poll()
    if next_code != 0:
        reason = sentence(place.outputs, "next", next_code)
        losses.append(f"the next start ended with {next_code}: {reason}")
    losses += kept(one, before)
    losses += complete(one, after)
    losses += remains(place)
    found = (rows, after, one.rows())
    return Outcome(fault, heal is None, seconds, code, says, found, tuple(losses))


def patience(fault: Fault, one: Program) -> float:
    """Seconds within which a run ends after a fault, by what it says of its limits."""
    if fault.kind is Kind.NETWORK_LOST and one.sweeps:
        return 4 * one.limit + SLACK  # of two points, in one launch and each by itself
    return one.limit + SLACK


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
        clock.move(place.environment, fault.step)
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
    if fault.kind is Kind.STOPPED:
        return process.pid if process.poll() is None else None
    among = {Kind.RANK_FROZEN: processes.ranks, Kind.LAUNCHER_FROZEN: processes.launchers}[
        fault.kind
    ]
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


def sentence(folder: Path, name: str, code: int | None) -> str:
    """What is said of a run's end: by omb-py, its sweep, the launcher, or the shell of a signal."""
    streams = [folder / f"{name}.{stream}" for stream in ("err", "out")]
    lines = "".join(path.read_text(errors="replace") for path in streams).splitlines()
    for pattern in (OURS, SWEEPS_SAY, LAUNCHERS_SAY):
        if said := next(filter(None, map(pattern.search, lines)), None):
            return said[0]
    if code is not None and code < 0:
        return signal.strsignal(-code) or f"signal {-code}"
    return ""


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
    host = os.readlink(f"/proc/{unreachable.process}/ns/pid_for_children") if unreachable else ""
    left = processes.left(place.mark, seconds, host)
    found = [f"left behind: {one.name} {one.pid}" for one in left]
    processes.end(left)
    return found

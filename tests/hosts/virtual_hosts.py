"""Several hosts on one machine: namespaces of Linux, a network between them, a remote shell.

    python tests/hosts/virtual_hosts.py --hosts 3 --delay 1ms --loss 0.1% -- COMMAND…

runs COMMAND on the first host. Each host has its own name, network card and address, processes,
shared memory, temporary folder and clock; they share the processors and all other files, as the
nodes of a cluster share a home. All of it belongs to processes that end when this one does, however
it ends: nothing has a name outside, so that runs at the same time cannot collide.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.hosts import network

REMOTE_SHELL = Path(__file__).parent / "remote_shell.py"
TOOLS = ("ip", "tc", "unshare", "nsenter", "hostname")
SPACES = {"net": "net", "uts": "uts", "ipc": "ipc", "mount": "mnt"}
"""Kinds of namespaces, and what the kernel calls them."""

SPACES_OF_CHILDREN = {"pid": "pid_for_children", "time": "time_for_children"}
"""Those that a process does not move to itself when it makes them."""

UNSHARE = ["unshare", *(f"--{space}" for space in (*SPACES, *SPACES_OF_CHILDREN)), "--fork"]

SECONDS_BETWEEN_CLOCKS = 100_000
"""No two hosts' clocks show the same, as no two machines were started at the same moment."""

SECONDS_TO_END = 10
SKIPPED = 77
"""The exit code by which a test program says that it was skipped."""

HOST = """
set -e
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs "$TMPDIR"
mount -t sysfs sysfs /sys
mount --bind "$2" /etc/hosts
hostname "$1"
ip link set lo up
"$3" -I -S "$4" serve &
# the parent of all that lose theirs waits for none of them
exec env --ignore-signal=CHLD cat > /dev/null
"""

CLEAN = 'echo ready; cat > /dev/null; rm -rf "$1"'


class CannotMakeHostsError(Exception):
    """This user cannot make hosts on this machine; one sentence says why."""


@dataclass(frozen=True)
class Host:
    """A virtual host; ``process`` is the one, seen from outside, whose children are on it."""

    name: str
    process: int

    def inside(self, command: Sequence[str], folder: Path | None = None) -> list[str]:
        """The command line that runs ``command`` on this host, in ``folder`` or the current one."""
        spaces = (SPACES | SPACES_OF_CHILDREN).items()
        enter = [f"--{space}=/proc/{self.process}/ns/{file}" for space, file in spaces]
        go = ["sh", "-c", 'cd "$0" && exec "$@"', str(folder or Path.cwd())]
        return ["nsenter", *enter, "--", *go, *command]

    def running(self) -> list[str]:
        """The command lines of the processes on this host, without those that make it one."""
        here = os.readlink(f"/proc/{self.process}/ns/pid_for_children")
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(folder / "ns" / "pid") == here:
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                    found.append(line)
            except OSError:
                continue  # it has ended
        server = f"{REMOTE_SHELL} serve"
        return [line for line in found if line not in ("", "cat") and not line.endswith(server)]


@dataclass(frozen=True)
class Hosts:
    """The hosts that there are, and what a launcher on the first one needs to reach all."""

    hosts: tuple[Host, ...]
    folder: Path

    @property
    def first(self) -> Host:
        """The one that launchers run on."""
        return self.hosts[0]

    @property
    def file(self) -> Path:
        """A file with the name of each host on a line."""
        return self.folder / "hosts"

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which the launchers of MPICH and Open MPI reach all hosts."""
        shell = str(self.folder / "rsh")
        return {
            "TMPDIR": str(self.folder / "tmp"),
            "VIRTUAL_HOSTS_FILE": str(self.file),
            "VIRTUAL_HOSTS_SHELL": shell,
            "HYDRA_HOST_FILE": str(self.file),
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": shell,
            "PRTE_MCA_prte_default_hostfile": str(self.file),
            "PRTE_MCA_plm_ssh_agent": shell,
            "OMPI_MCA_btl": "self,sm,tcp",
            # each host believes that all cores are its own, and its ranks would not step aside
            "OMPI_MCA_mpi_yield_when_idle": "1",
            "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
            "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "16",
        }


def check() -> None:
    """Raise `CannotMakeHostsError` unless this user can make hosts on this machine."""
    if not sys.platform.startswith("linux"):
        raise CannotMakeHostsError("virtual hosts are made of namespaces, which Linux alone has")
    if os.geteuid() != 0:
        raise CannotMakeHostsError(
            "virtual hosts need root, for namespaces and a network of theirs"
        )
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise CannotMakeHostsError(
            f"virtual hosts need {', '.join(missing)}: install iproute2, util-linux and hostname"
        )
    cards = "ip link add one type veth peer name other".split()
    probe = subprocess.run([*UNSHARE, *cards], capture_output=True, text=True, check=False)
    if probe.returncode:
        raise CannotMakeHostsError(refusal(probe.stderr))


def refusal(complaints: str) -> str:
    """A sentence from what a command said that this machine refused."""
    lines = complaints.strip().splitlines() or ["for no reason it gives"]
    return f"this machine does not let root make virtual hosts: {lines[-1]}"


@contextmanager
def virtual_hosts(count: int, link: network.Link = network.PERFECT) -> Iterator[Hosts]:
    """Hosts ``node1`` … on one network, each with such a ``link`` to it, until the end.

    Raises `CannotMakeHostsError` where that is not possible.
    """
    check()
    with ExitStack() as kept:
        folder = Path(tempfile.mkdtemp(prefix="hosts-"))

        def keep(command: Sequence[str]) -> int:
            return kept.enter_context(alive(command, folder)).pid

        keep(["sh", "-c", CLEAN, "sh", str(folder)])
        names = [f"node{number}" for number in range(1, count + 1)]
        known = write_files(folder, names)
        made = tuple(
            Host(name, keep(host_command(name, number, known)))
            for number, name in enumerate(names, 1)
        )
        network.connect([host.process for host in made], link, keep)
        yield Hosts(made, folder)


def host_command(name: str, number: int, known: Path) -> list[str]:
    """The command that is host ``number``, which knows the addresses in the file ``known``."""
    clock = str(number * SECONDS_BETWEEN_CLOCKS)
    more = ["--monotonic", clock, "--boottime", clock, "--kill-child", "--mount-proc"]
    words = [name, str(known), sys.executable, str(REMOTE_SHELL)]
    return [*UNSHARE, *more, "sh", "-c", HOST, "sh", *words]


def write_files(folder: Path, names: Sequence[str]) -> Path:
    """Write what hosts and launchers read; gives the file of the hosts' addresses."""
    (folder / "tmp").mkdir()
    (folder / "hosts").write_text("".join(f"{name}\n" for name in names))
    shell = folder / "rsh"
    shell.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{REMOTE_SHELL}" "$@"\n')
    shell.chmod(0o755)
    known = folder / "addresses"
    lines = [f"{network.address(number)} {name}\n" for number, name in enumerate(names, 1)]
    known.write_text("127.0.0.1 localhost\n" + "".join(lines))
    return known


@contextmanager
def alive(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command that says ``ready`` when it is, and ends with its input: ours or of our death."""
    complaints = folder / "complaints"
    with complaints.open("w") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            env=os.environ | {"TMPDIR": str(folder / "tmp")},
            start_new_session=True,  # Ctrl-C is for the command that runs on the hosts
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdout as answer:
            if answer.readline() != b"ready\n":
                raise CannotMakeHostsError(refusal(complaints.read_text()))
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> int:
    """Run a command on the first of some hosts; its exit code, or `SKIPPED` without hosts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=2, metavar="N")
    parser.add_argument("--delay", type=network.parse_delay, default=0.0, metavar="TIME")
    parser.add_argument("--loss", type=network.parse_loss, default=0.0, metavar="PERCENT")
    parser.add_argument("--slow", type=int, action="append", default=[], metavar="HOST")
    parser.add_argument("--slow-delay", type=network.parse_delay, default=0.0, metavar="TIME")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    given = parser.parse_args()
    link = network.Link(
        given.delay, given.loss, slow=tuple(given.slow), slow_delay=given.slow_delay
    )
    try:
        with virtual_hosts(given.hosts, link) as hosts:
            command = hosts.first.inside(given.command)
            return subprocess.call(command, env=os.environ | hosts.environment)
    except CannotMakeHostsError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())

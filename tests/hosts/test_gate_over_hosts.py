"""`omb-py gate` over twelve virtual hosts: the slow or silent one is named, and no other."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from omb_py.analysis.conclusion import UNDECIDED
from tests.conftest import Finished
from tests.hosts.jobs import job
from tests.hosts.network import Link
from tests.hosts.virtual_hosts import Host, Hosts, virtual_hosts

HOSTS = 12
SLOW = Link(delay=5e-4, slow=(7,), slow_delay=2e-2)
NARROW = Link(slow_rates=((7, 2e7),))
"""Far slower than needed on a machine of their own: 12 hosts share the cores of this one, and those
with other tests."""

pytestmark = [pytest.mark.long, pytest.mark.every_library]


def gate(hosts: Hosts, folder: Path, *words: str, ranks: int = 1) -> tuple[Finished, list[str]]:
    """A gate of so many ranks on each host, and the hosts to drain."""
    options = ["--time", "40s", "--sizes", "8,64K", "--timeout", "40", "--drain", "drain"]
    options += ["--results", "rows.csv", *words]
    number = ranks * len(hosts.hosts)
    done = job(hosts, number, ranks, "gate", *options, folder=folder, timeout=150)
    return done, text_of(folder / "drain").split()


def decided(hosts: Hosts, folder: Path, *words: str, ranks: int = 1) -> tuple[Finished, list[str]]:
    """The same of a slow host: once more if other tests keep the machine too busy to name it."""
    for _ in range(2):
        done, named = gate(hosts, folder, *words, ranks=ranks)
        if done.code != UNDECIDED or "too noisy" not in done.out:
            break
        (folder / "rows.csv").unlink()
    return done, named


@pytest.mark.parametrize(
    ("link", "drained", "codes"),
    [(SLOW, ["node7"], {4}), (NARROW, ["node7"], {4}), (Link(delay=5e-4), [], {0, 7})],
)
def test_gate_names_the_slow_host_and_no_other(
    can_make_hosts: None, tmp_path: Path, link: Link, drained: list[str], codes: set[int]
) -> None:
    with virtual_hosts(HOSTS, link) as hosts:
        done, named = (decided if drained else gate)(hosts, tmp_path)
    assert (named, done.code in codes) == (drained, True), done.out + done.err


def test_gate_says_what_slow_hosts_share(can_make_hosts: None, tmp_path: Path) -> None:
    (tmp_path / "racks").write_text("".join(f"node{n} rack{n > 9:d}\n" for n in range(1, 13)))
    with virtual_hosts(HOSTS, Link(delay=5e-4, slow=(10, 11, 12), slow_delay=2e-2)) as hosts:
        words = "--sizes", "8", "--groups", "racks", "--time", "80s"
        done, named = decided(hosts, tmp_path, *words)
    assert (done.code, named) == (4, ["node10", "node11", "node12"]), done.out + done.err
    assert "group rack1: 3 of its 3 hosts are slow" in done.out
    assert "what they share is slow, as a switch" in done.out


def test_gate_names_a_slow_link_and_no_host(can_make_hosts: None, tmp_path: Path) -> None:
    with virtual_hosts(8, Link(delay=5e-4, slow=(2, 5), slow_delay=4e-2)) as hosts:
        done, named = decided(hosts, tmp_path, "--sizes", "8", "--time", "60s")
    assert (done.code, named) == (4, []), done.out + done.err
    assert "FAIL: node2 - node5  latency 8 B in pairs" in done.out
    assert "which of the two ends cannot be told" in done.out


def test_gate_of_two_ranks_a_host_names_the_slow_one(can_make_hosts: None, tmp_path: Path) -> None:
    with virtual_hosts(5, Link(delay=5e-4, slow=(3,), slow_delay=3e-2)) as hosts:
        done, named = decided(hosts, tmp_path, "--sizes", "8", ranks=2)
    assert (done.code, named) == (4, ["node3"]), done.out + done.err
    assert "allreduce 8 B on the node" in done.out


def freeze(host: Host, folder: Path) -> None:
    """Stop the processes of a host once its job has measured a turn."""
    end = time.monotonic() + 60
    while time.monotonic() < end and "pack" not in text_of(folder / "rows.csv"):
        time.sleep(0.1)
    here = os.readlink(f"/proc/{host.process}/ns/pid_for_children")
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (
                os.readlink(one / "ns/pid") == here
                and b"\0gate\0" in (one / "cmdline").read_bytes()
            ):
                os.kill(int(one.name), signal.SIGSTOP)


def text_of(path: Path) -> str:
    """The text of a file that may not be there yet."""
    with suppress(FileNotFoundError):
        return path.read_text()
    return ""


def test_gate_names_a_host_that_falls_silent_and_judges_others(
    can_make_hosts: None, tmp_path: Path
) -> None:
    for _ in range(2):  # noise of other tests may hide points of the five others
        (tmp_path / "rows.csv").unlink(missing_ok=True)
        with virtual_hosts(6, Link(delay=5e-4)) as hosts:
            threading.Thread(target=freeze, args=(hosts.hosts[4], tmp_path)).start()
            done, named = gate(hosts, tmp_path, "--timeout", "15")
        if "too noisy" not in done.out or "5 of 6 hosts fine" in done.out:
            break
    assert (done.code, named) == (4, ["node5"]), done.out + done.err
    assert re.findall(r"^FAIL: (node\d+)  ", done.out, re.MULTILINE) == ["node5"], done.out
    assert "node5  does not answer" in done.out
    assert "5 of 6 hosts fine" in done.out, done.out


def test_gate_of_two_hosts_fails_their_pair_by_expected_values(
    can_make_hosts: None, tmp_path: Path
) -> None:
    (tmp_path / "site.csv").write_text("benchmark,bytes,value,unit\nlatency,8,0.1,us\n")
    with virtual_hosts(2) as hosts:
        done, named = gate(hosts, tmp_path, "--expected", "site.csv", "--time", "8s")
    assert (done.code, named) == (4, []), done.out + done.err
    assert "which of the two cannot be told" in done.out

"""Virtual hosts are as strangers to each other as real ones, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.helpers.waiting import processes_with, wait_for
from tests.hosts import virtual_hosts
from tests.hosts.fixtures import FAR
from tests.hosts.network import Link
from tests.hosts.virtual_hosts import CannotMakeHostsError, Host, Hosts

SCRIPT = virtual_hosts.__file__


def said(host: Host, *command: str, **variables: str) -> str:
    """What a command on a host printed."""
    done = subprocess.run(
        host.inside(command), env=os.environ | variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def shell(hosts: Hosts, *words: str) -> subprocess.CompletedProcess[str]:
    """What the remote shell, called on the first host, did."""
    command = hosts.first.inside([hosts.environment["VIRTUAL_HOSTS_SHELL"], *words])
    return subprocess.run(command, capture_output=True, text=True, check=False, input="given\n")


def test_each_host_has_what_a_machine_has(near: Hosts) -> None:
    names = [said(host, "uname", "-n") for host in near.hosts]
    assert names == ["node1", "node2", "node3"]
    clocks = [float(said(host, "cut", "-d ", "-f1", "/proc/uptime")) for host in near.hosts]
    assert all(later - earlier > 90_000 for earlier, later in pairwise(clocks))
    for folder in ("/dev/shm", near.environment["TMPDIR"]):
        said(near.first, "touch", f"{folder}/mine")
        seen = ["mine" in said(host, "ls", folder).split() for host in near.hosts]
        assert seen == [True, False, False]


def test_hosts_see_only_their_own_processes(near: Hosts) -> None:
    command = near.hosts[1].inside(["head", "-c", "54321"])
    with subprocess.Popen(command, stdin=subprocess.PIPE):  # the end of its input ends it
        wait_for(lambda: near.hosts[1].running() == ["head -c 54321"])
        assert near.first.running() == []
        seen = [said(host, "sh", "-c", "cat /proc/[0-9]*/cmdline") for host in near.hosts]
        assert ["54321" in lines for lines in seen] == [False, True, False]


def test_the_remote_shell_is_one(near: Hosts) -> None:
    done = shell(near, "-x", "node2", "uname -n; cat; echo wrong >&2;", "exit 3")
    assert (done.stdout, done.stderr, done.returncode) == ("node2\ngiven\n", "wrong\n", 3)
    assert shell(near, "node2", "kill -9 $$").returncode == 137
    unknown = shell(near, "node4", "true")
    assert unknown.returncode == 255
    assert "node4" in unknown.stderr


def test_packets_take_their_time(far: Hosts) -> None:
    """The shell makes four connections one after the other, each of which is a round trip."""
    start = time.monotonic()
    shell(far, "node2", "true")
    assert time.monotonic() - start > 4 * 2 * FAR.delay


def test_everything_is_lost_where_all_packets_are(can_make_hosts: None) -> None:
    with virtual_hosts.virtual_hosts(2, Link(loss=1.0)) as hosts:
        command = hosts.first.inside(["timeout", "1", hosts.environment["VIRTUAL_HOSTS_SHELL"]])
        assert subprocess.run([*command, "node2", "true"], check=False).returncode == 124


SLEEP = f"9999.{os.getpid()}"
"""Seconds that nobody else sleeps."""


@pytest.mark.long
@pytest.mark.any_library
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_any_end_leaves_nothing(
    can_make_hosts: None, tmp_path: Path, number: signal.Signals
) -> None:
    told = tmp_path / "told"
    leave = f'setsid sleep {SLEEP} & echo "$TMPDIR" > {told}.new; mv {told}.new {told}; wait'
    command = ["env", "--default-signal=INT"]  # which shells ignore in what runs in the background
    command += [sys.executable, SCRIPT, "--delay", "1ms", "--", "sh", "-c", leave]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            wait_for(told.exists)
            folder = Path(told.read_text().strip()).parent
            assert folder.exists()
            os.killpg(process.pid, number)
            assert process.wait(120) != 0
        finally:
            process.kill()
    wait_for(lambda: not folder.exists())
    wait_for(lambda: not processes_with(SLEEP) and not processes_with(str(folder)))


@pytest.mark.any_library
def test_the_command_line_gives_the_commands_exit_code(can_make_hosts: None) -> None:
    words = [sys.executable, SCRIPT, "--hosts", "2", "--", "sh", "-c", "exit $(uname -n | wc -c)"]
    assert subprocess.run(words, check=False).returncode == len("node1\n")


def test_not_root_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["virtual_hosts.py", "true"])
    assert virtual_hosts.main() == virtual_hosts.SKIPPED
    assert "skipped: virtual hosts need root" in capsys.readouterr().err


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CannotMakeHostsError, match=r"need ip, tc, unshare.*: install iproute2"):
        virtual_hosts.check()

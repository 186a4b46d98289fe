"""`omb-py info --for-issue`: enough for a maintainer, and no names of hosts or users."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.cli import for_issue
from tests.conftest import Finished
from tests.helpers.refusals import assert_refused

TOLD = ("omb-py ", "Python ", "MPI ", "binding ", "install ", "packages ", "library ", "launcher ")


def test_it_has_what_a_maintainer_asks_for(in_process: Callable[..., Finished]) -> None:
    done = in_process("info", "--for-issue", UCX_TLS="tcp,self")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    for beginning in (*TOLD, "system ", "GPUs ", "job "):
        assert any(line.startswith(beginning) for line in lines), beginning
    assert "UCX_TLS=tcp,self" in lines[-1]
    (packages,) = [line for line in lines if line.startswith("packages ")]
    assert "mpi4py " in packages
    assert "pytest " not in packages
    assert "  " not in lines[-1].removeprefix("settings ")


def test_names_stay_out_unless_wanted(
    in_process: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node17.cluster.example")
    monkeypatch.setattr(socket, "getfqdn", lambda: "node17.cluster.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    setting = "/home/ada/hosts,node17,node17.cluster.example,10.1.2.3,canada,node170"
    done = in_process("info", "--for-issue", UCX_NET_DEVICES=setting)
    assert "UCX_NET_DEVICES=~/hosts,HOST,HOST,ADDRESS,canada,node170" in done.out
    done = in_process("info", "--for-issue", "--names", UCX_NET_DEVICES=setting)
    assert setting in done.out


def test_names_without_for_issue_refused(in_process: Callable[..., Finished]) -> None:
    assert_refused(in_process("info", "--names"), 2, "--names --for-issue")


def test_a_program_that_does_not_answer_is_said() -> None:
    assert for_issue.said(["/no/such/program"]) == "no answer (FileNotFoundError)"
    assert for_issue.said(["sh", "-c", "exit 3"]) == "exit code 3"
    assert for_issue.said(["sh", "-c", "echo Hello; echo 'program  1.2'"]) == "program 1.2"

"""The transport of messages, as a made-up system and library tell it."""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from omb_py.measure.transport import (
    METADATA,
    judged,
    network_devices,
    opened_by_process,
    pml,
)
from omb_py.results.metadata import TCP
from tests.helpers.refusals import assert_names

LOOPBACK, SECOND = "127.0.0.1", "127.0.0.2"


def process(root: Path, opened: Mapping[int, str]) -> str:
    """The files of a process with these targets of its descriptors."""
    (root / "proc/self/fd").mkdir(parents=True)
    for number, target in opened.items():
        (root / f"proc/self/fd/{number}").symlink_to(target)
    return str(root)


@pytest.mark.parametrize(
    ("opened", "found"),
    [
        (("/dev/null", "pipe:[1]"), []),
        (("/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"), ["mlx5_3"]),
        (("/dev/cxi1", "/dev/xpmem"), ["cxi1", "xpmem"]),
    ],
)
def test_opened_devices_are_named(
    tmp_path: Path, opened: tuple[str, ...], found: list[str]
) -> None:
    device = tmp_path / "sys/class/infiniband_verbs/uverbs0"
    device.mkdir(parents=True)
    (device / "ibdev").write_text("mlx5_3\n")
    assert opened_by_process(process(tmp_path, dict(enumerate(opened)))) == found


@pytest.mark.parametrize(
    ("address", "found"), [(LOOPBACK, []), (SECOND, [TCP])], ids=["same host", "other address"]
)
def test_opened_tcp_connection_is_named_by_its_ends(
    tmp_path: Path, address: str, found: list[str]
) -> None:
    with (
        socket.create_server((address, 0)) as listening,
        socket.create_connection(listening.getsockname(), 5, (LOOPBACK, 0)) as connected,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.connect((SECOND, 9))
        others = [one.fileno() for one in (listening, datagrams, *socket.socketpair())]
        links = {number: f"socket:[{number}]" for number in (*others, 10**6)}
        root = process(tmp_path / "others", links)
        assert opened_by_process(root) == []
        with_connection = links | {connected.fileno(): "socket:[1]"}
        assert opened_by_process(process(tmp_path / "all", with_connection)) == found
        connected.getpeername()  # it is open still


def test_system_without_these_files_tells_nothing(tmp_path: Path) -> None:
    assert opened_by_process(str(tmp_path)) == []
    assert network_devices(str(tmp_path)) == []


def test_network_devices_have_a_link(tmp_path: Path) -> None:
    for name, state in (("mlx5_0", "4: ACTIVE"), ("mlx5_1", "1: DOWN")):
        port = tmp_path / "sys/class/infiniband" / name / "ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text(f"{state}\n")
    (tmp_path / "sys/class/cxi/cxi0").mkdir(parents=True)
    assert network_devices(str(tmp_path)) == ["cxi0", "mlx5_0"]


@pytest.mark.parametrize(
    ("told", "words", "surprises"),
    [
        (["pml ob1\n", "pml ob1\n"], "pml ob1", False),
        (
            ["pml ob1\nmlx5_0\n" + TCP, "pml ob1\nmlx5_0"],
            f"pml ob1, {TCP}, not opened: mlx5_0",
            True,
        ),
        (["pml ucx\nmlx5_0\nmlx5_0\n" + TCP], f"pml ucx, {TCP}, mlx5_0", False),
        (["device ch4:ofi\n\n" + TCP], f"device ch4:ofi, {TCP}", False),
        (["device ch4:ofi\ncxi0\n" + TCP + "\nxpmem"], f"{TCP}, xpmem, not opened: cxi0", True),
    ],
)
def test_tcp_beside_an_unused_network_is_noted(
    told: list[str], words: str, surprises: bool
) -> None:
    metadata, note = judged(told)
    assert metadata[METADATA].endswith(words)
    assert (note is not None) == surprises
    if note is not None:
        assert_names(note, "TCP UCX_TLS FI_PROVIDER")


def test_library_without_the_component_has_no_pml() -> None:
    assert pml(ctypes.CDLL(None)) == ""

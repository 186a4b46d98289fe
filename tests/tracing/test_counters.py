"""Counters of wires, read from folders as the kernel has them, and what is between two readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.tracing import counters
from omb_py.tracing.counters import Link, usage
from tests.helpers.kernel_files import interface, port, write

SNMP = """Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm InSegs OutSegs RetransSegs
Tcp: 1 10 {sent} {again}"""


PORT = "mlx5_0/ports/1/counters"
WORDS = {"port_xmit_data": 1000, "port_rcv_data": 500}
COUNTED: dict[str, tuple[Any, Mapping[str, object], dict[str, object]]] = {
    "interface: bytes and frames": (
        *(counters.interfaces, interface("eth0", 5000, 7000)),
        {
            "name": "eth0",
            "sent": 5000,
            "received": 7000,
            "events": {"frames sent": 5, "frames received": 7},
        },
    ),
    "InfiniBand: words of four bytes": (
        *(counters.ports, port(PORT, **WORDS)),
        {"name": "mlx5_0/1", "sent": 4000, "received": 2000},
    ),
    "InfiniBand: waits": (
        *(counters.ports, port(PORT, port_xmit_wait=9, **WORDS)),
        {"sent": 4000, "events": {"waits for room to send": 9}},
    ),
    "EFA: bytes": (
        *(counters.ports, port("efa_0/ports/1/hw_counters", tx_bytes=123, rx_bytes=45)),
        {"sent": 123, "received": 45},
    ),
    "port without counters": (
        *(counters.ports, {"sys/class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec"}),
        {"sent": None, "remark": "not readable"},
    ),
}


@pytest.mark.parametrize("case", COUNTED)
def test_link_has_what_the_kernel_counted(tmp_path: Path, case: str) -> None:
    meter, files, expected = COUNTED[case]
    (link,) = meter(write(tmp_path, {**files, "sys/class/net/bonding_masters": "bond0"}))
    assert {name: getattr(link, name) for name in expected} == expected


def test_an_interface_above_others_names_them(tmp_path: Path) -> None:
    files = {**interface("bond0", 10, 10), **interface("eth0", 10, 10)}
    write(tmp_path, {**files, "sys/class/net/bond0/lower_eth0/type": 1})
    assert [wire.over for wire in counters.interfaces(tmp_path)] == [("eth0",), ()]


def test_what_cannot_be_read_is_said_not_invented(tmp_path: Path) -> None:
    write(tmp_path, {**interface("eth0", 1, 1), "sys/class/net/eth0/statistics/tx_bytes": "?"})
    (wire,) = counters.interfaces(tmp_path)
    assert (wire.sent, wire.remark) == (None, "not readable")
    found = usage(wire, wire)
    assert (found.sent, found.received, found.remark) == (None, 0, "not readable")


def test_wide_counters_go_before_those_that_stay_full(tmp_path: Path) -> None:
    full = {"port_xmit_data": (1 << 32) - 1, "port_rcv_data": 7}
    write(tmp_path, port("mlx4_0/ports/2/counters", **full))
    (narrow,) = counters.ports(tmp_path)
    assert "full" in usage(narrow, narrow).remark
    assert (usage(narrow, narrow).sent, usage(narrow, narrow).received) == (None, 0)
    wide = {"port_xmit_data_64": 1 << 33, "port_rcv_data_64": 7}
    write(tmp_path, port("mlx4_0/ports/2/counters_ext", **wide))
    (wire,) = counters.ports(tmp_path)
    assert wire.sent == 4 << 33
    assert usage(wire, replace(wire, sent=(4 << 33) + 400)).sent == 400


def test_segments_that_were_sent_again_are_counted(tmp_path: Path) -> None:
    (before,) = counters.segments(
        write(tmp_path, {"proc/net/snmp": SNMP.format(sent=100, again=2)})
    )
    (after,) = counters.segments(write(tmp_path, {"proc/net/snmp": SNMP.format(sent=150, again=5)}))
    assert usage(before, after).events == {"segments sent": 50, "segments sent again": 3}


def test_a_host_without_any_of_this_has_no_wires(tmp_path: Path) -> None:
    for meter in (counters.interfaces, counters.ports, counters.segments):
        assert list(meter(tmp_path)) == []


def test_this_host_has_a_loopback() -> None:
    assert "lo" in [row["name"] for row in counters.read_links()]


def test_a_counter_that_went_back_is_not_known() -> None:
    before = Link("network", "eth0", 1000, 1000)
    found = usage(before, replace(before, sent=10, received=1500))
    assert (found.sent, found.received) == (None, 500)
    assert found.remark == "a counter was set back"

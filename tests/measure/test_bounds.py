"""What a host can do: as its system says, and as it is measured here."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.measure import bounds
from tests.helpers.kernel_files import write


def test_caches_of_data_are_read(tmp_path: Path) -> None:
    cache = "devices/system/cpu/cpu0/cache"
    parts = [
        (1, "Data", "48K"),
        (1, "Instruction", "32K"),
        (2, "Unified", "2M"),
        (3, "Unified", ""),
    ]
    for index, (level, kind, size) in enumerate(parts):
        texts = {"level": str(level), "type": kind, "size": size}
        write(tmp_path, {f"{cache}/index{index}/{name}": text for name, text in texts.items()})
    assert bounds.caches(tmp_path) == {"L1": 48 << 10, "L2": 2 << 20}


def test_interfaces_that_are_up_and_no_virtual_ones_have_rates(tmp_path: Path) -> None:
    for name, device, speed, state in (
        ("eth0", "pci0/net/eth0", "25000", "up"),
        ("eth1", "pci0/net/eth1", "25000", "down"),
        ("eth2", "pci0/net/eth2", "-1", "up"),
        ("docker0", "virtual/net/docker0", "10000", "up"),
    ):
        write(tmp_path, {f"devices/{device}/speed": speed, f"devices/{device}/operstate": state})
        (tmp_path / "class/net").mkdir(parents=True, exist_ok=True)
        (tmp_path / "class/net" / name).symlink_to(tmp_path / "devices" / device)
    assert bounds.interfaces(tmp_path) == {"eth0": 3125.0}


def test_active_ports_of_infiniband_have_rates(tmp_path: Path) -> None:
    ports = "class/infiniband/mlx5_0/ports"
    write(
        tmp_path,
        {
            f"{ports}/1/rate": "200 Gb/sec (4X HDR)",
            f"{ports}/1/state": "4: ACTIVE",
            f"{ports}/2/rate": "10 Gb/sec (4X SDR)",
            f"{ports}/2/state": "1: DOWN",
        },
    )
    assert bounds.infiniband(tmp_path) == {"mlx5_0:1": 25_000.0}


def test_what_the_system_does_not_say_is_left_out(tmp_path: Path) -> None:
    found = (bounds.caches(tmp_path), bounds.interfaces(tmp_path), bounds.infiniband(tmp_path))
    assert found == ({}, {}, {})


@pytest.mark.slow
def test_copies_are_measured_on_one_core_and_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LARGEST", 1 << 20)
    found = bounds.copies()
    assert [copy.bytes for copy in found] == [1 << 16, 1 << 18, 1 << 20]
    assert all(rate > 100 for copy in found for rate in (copy.one_core, copy.all_cores))


def test_all_cores_have_their_own_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "cores", lambda: [0, 1, 2])
    monkeypatch.setattr(
        bounds, "copy_rates", lambda sizes, on: [9e4 if len(on) == 1 else 2e4 for _ in sizes]
    )
    assert {(copy.one_core, copy.all_cores) for copy in bounds.copies()} == {(9e4, 2e4)}


def test_copies_need_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SMALLEST", 1 << 60)
    assert bounds.copies() == []

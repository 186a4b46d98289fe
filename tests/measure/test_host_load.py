"""What other programs took of the cores, from texts that a kernel wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.measure import host_load
from omb_py.measure.host_load import (
    Load,
    LoadReading,
    core_seconds,
    load,
    process_seconds,
    waited_seconds,
)
from tests.helpers.refusals import assert_names

BEFORE = """\
cpu  8787 0 6764 119723 348 0 85 11 0 0
cpu0 2301 0 2694 62650 172 0 12 5 0 0
cpu1 6485 0 4070 57072 176 0 73 5 0 0
intr 242103 0 0 15 0 135
ctxt 407931
btime 1795364000
"""
PROXY = (
    "8349 (hydra) pmi_proxy) R 8348 8349 8349 0 -1 4194560 371 0 0 0 12 8 60 40 20 0 1 0 7325 "
    "4218880 401 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)


def later(stat: str, core: int, user: int = 0, interrupts: int = 0, steal: int = 0) -> str:
    """The text of `/proc/stat` with so many ticks more on a core."""
    lines = stat.splitlines()
    name, *fields = lines[1 + core].split()
    ticks = [int(field) for field in fields]
    ticks[0], ticks[5], ticks[7] = ticks[0] + user, ticks[5] + interrupts, ticks[7] + steal
    lines[1 + core] = " ".join([name, *map(str, ticks)])
    return "\n".join(lines)


def reading(clock: float, stat: str, launcher: float = 0.0) -> LoadReading:
    return LoadReading(clock, core_seconds(stat), own=0.0, launcher=launcher, waited=0.0)


def of_ten_seconds(
    stat: str,
    own: float,
    usable: frozenset[int] = frozenset({0, 1}),
    launcher: float = 0.0,
    waited: float = 0.0,
    running: int = 2,
) -> Load:
    """What `load` says of ten seconds after which `/proc/stat` was ``stat``."""
    after = reading(110.0, stat, launcher)
    found = load(reading(100.0, BEFORE), after, usable, own, waited, running)
    assert found is not None
    return found


def test_the_kernel_s_texts_are_read_in_seconds() -> None:
    assert core_seconds(BEFORE) == {0: (49.95, 0.05), 1: (105.55, 0.05)}
    assert waited_seconds("617717 2500000000 2\n") == 2.5
    assert process_seconds(PROXY) == (8348, 0.2, 1.0)


def test_what_neither_ranks_nor_their_launcher_spent_is_others() -> None:
    stat = later(later(BEFORE, 0, user=900), 1, user=600)
    assert of_ten_seconds(stat, own=10.0, launcher=1.0).others == pytest.approx(0.2, abs=0.002)


def test_ranks_launcher_and_interrupts_are_no_others() -> None:
    stat = later(later(BEFORE, 0, user=1000, interrupts=500), 1, user=950)
    found = of_ten_seconds(stat, own=19.0, launcher=0.5)
    assert found.others == 0.0
    assert found.note("node1") is None


def test_one_tick_of_each_core_is_an_error_of_reading() -> None:
    stat = later(later(BEFORE, 0, user=1001), 1, user=1001)
    assert of_ten_seconds(stat, own=20.0).others == pytest.approx(0.0)


def test_only_cores_count_that_the_ranks_may_run_on() -> None:
    stat = later(BEFORE, 1, user=1000)
    assert of_ten_seconds(stat, own=0.0, usable=frozenset({0})).others == 0.0
    found = of_ten_seconds(stat, own=0.0, usable=frozenset({1, 77}))
    assert found.others == pytest.approx(1.0, abs=0.002)
    assert found.cores == 1


def test_what_the_hypervisor_took_is_told_apart() -> None:
    found = of_ten_seconds(later(BEFORE, 0, user=1000, steal=400), own=10.0)
    assert found.others == 0.0
    assert found.stolen == pytest.approx(0.199)
    note = found.note("node1")
    assert note is not None
    assert "other virtual machines 20% of the 2 cores of node1" in note


def test_wait_next_to_other_processes_is_noted() -> None:
    some = later(BEFORE, 0, user=1060)
    note = of_ten_seconds(some, own=10.0, waited=3.0).note("node1")
    assert_names(note, "other processes 3% of the 2 cores of node1 30% quiet machine")
    assert of_ten_seconds(some, own=10.0, waited=3.0, running=4).note("node1") is None
    quiet = later(BEFORE, 0, user=1000)
    assert of_ten_seconds(quiet, own=10.0, waited=3.0).note("node1") is None


@pytest.mark.parametrize("seconds", [0.0, 0.0006, 0.19])
def test_load_of_a_short_time_is_unknown(seconds: float) -> None:
    after = reading(100.0 + seconds, later(BEFORE, 0, user=3))
    assert load(reading(100.0, BEFORE), after, frozenset({0, 1}), 0.0, seconds, 2) is None


@given(
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.floats(0, 100),
    st.floats(0, 100),
    st.floats(0.21),
)
def test_shares_are_valid(user: int, steal: int, own: float, waited: float, seconds: float) -> None:
    after = reading(100.0 + seconds, later(BEFORE, 0, user=user, steal=steal))
    found = load(reading(100.0, BEFORE), after, frozenset({0, 1}), own, waited, 2)
    assert found is not None
    assert all(0 <= share <= 1 for share in (found.others, found.stolen, found.waited))
    assert (found.note("node1") is not None) == (found.worst >= host_load.BUSY)


def test_unknown_text_has_no_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert core_seconds("") == {}
    assert core_seconds("cpu0 1 2\ncpux 1 2 3 4 5 6 7 8\n\n") == {}
    bare = reading(100.0, "")
    assert load(bare, reading(101.0, BEFORE), frozenset({0, 1}), 0.0, 0.0, 2) is None
    monkeypatch.setattr(host_load, "PROC", str(tmp_path))
    assert host_load.read(whole=True) is None
    assert host_load.read(whole=False) is None

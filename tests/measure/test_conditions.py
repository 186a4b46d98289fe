"""The conditions of a host: as a made-up system says them, and what is said of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.measure.conditions import (
    Condition,
    clock_tick,
    clocks,
    coarse,
    core_now,
    cores_of,
    distances,
    pace,
    placement,
    share,
)
from tests.helpers.kernel_files import write
from tests.helpers.refusals import assert_names, missing

CPU = "devices/system/cpu"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {
                "cpu3/cpufreq/scaling_governor": "powersave",
                "cpu3/cpufreq/scaling_driver": "intel_pstate",
                "intel_pstate/no_turbo": "1",
                "smt/active": "1",
            },
            "governor powersave, turbo off, SMT on",
        ),
        ({"cpufreq/boost": "1"}, "turbo on"),
        ({}, ""),
    ],
)
def test_known_settings_are_read(tmp_path: Path, files: dict[str, str], words: str) -> None:
    write(tmp_path / CPU, files)
    assert clocks("n1", [3], str(tmp_path)) == Condition(words)


def test_governors_that_differ_are_named(tmp_path: Path) -> None:
    governors = {0: "performance", 1: "ondemand", 2: "performance"}
    files = {f"{CPU}/cpu{core}/cpufreq/scaling_governor": name for core, name in governors.items()}
    found = clocks("n1", [0, 1, 2], str(write(tmp_path, files)))
    assert found.words == "governor ondemand and performance"
    assert not missing("governor ondemand some cores of n1", found.note)


@pytest.mark.parametrize(
    ("governor", "driver", "slow"),
    [
        ("performance", "acpi-cpufreq", False),
        ("powersave", "intel_pstate", False),
        ("powersave", "acpi-cpufreq", True),
        ("ondemand", "acpi-cpufreq", True),
        ("ondemand", "intel_pstate", True),
    ],
)
def test_slowing_governor_is_noted(tmp_path: Path, governor: str, driver: str, slow: bool) -> None:
    scaling = f"{CPU}/cpu0/cpufreq/scaling"
    write(tmp_path, {f"{scaling}_governor": governor, f"{scaling}_driver": driver})
    note = clocks("n1", [0], str(tmp_path)).note
    assert (note is not None) == slow
    assert note is None or not missing(f"governor {governor} cores of n1", note)


def test_pace_names_cores_clocks_and_a_loop(tmp_path: Path) -> None:
    files = {f"cpu{core}/cpufreq/scaling_cur_freq": f"{2400 + 100 * core}000" for core in range(4)}
    write(tmp_path / CPU, files)
    found = pace([3, 1, 2, 1], str(tmp_path))
    assert found.startswith("cores 1-3, 2.50 to 2.70 GHz, a loop takes ")
    assert pace([2], str(tmp_path)).startswith("core 2, 2.60 GHz, a loop takes ")


def test_pace_without_clocks_has_the_loop(tmp_path: Path) -> None:
    assert re.fullmatch(r"core 5, a loop takes \d+\.\d\d ms", pace([5], str(tmp_path)))
    assert re.fullmatch(r"a loop takes \d+\.\d\d ms", pace([], str(tmp_path)))


def test_core_of_this_process_is_known() -> None:
    assert core_now() in range(os.cpu_count() or 1)


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cores_is_read_as_the_kernel_writes_it(cores: set[int]) -> None:
    ordered = sorted(cores)
    starts = [core for core in ordered if core - 1 not in cores]
    ends = [core for core in ordered if core + 1 not in cores]
    text = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in zip(starts, ends, strict=True))
    assert cores_of(text) == cores


@given(st.text())
def test_anything_else_is_no_list(text: str) -> None:
    assert all(core >= 0 for core in cores_of(text[:20]))


def masks(*cores: set[int]) -> list[frozenset[int]]:
    return [frozenset(one) for one in cores]


@pytest.mark.parametrize(
    ("of_ranks", "words"),
    [
        (masks({0, 1, 2, 3}, {0, 1, 2, 3}), "ranks not bound within 4 cores"),
        (masks({0}, {1}), "each rank bound to 1 core"),
        (masks({0, 1}, {2, 3}), "bound to 2 cores"),
        (masks({0}, {2, 3}), "bound to 1 to 2 cores"),
        (masks(set(), set()), ""),
    ],
)
def test_binding_is_noted(tmp_path: Path, of_ranks: list[frozenset[int]], words: str) -> None:
    found = placement("n1", [4, 5], of_ranks, 4, str(tmp_path))
    assert not missing(words, found.words)
    assert (bool(found.words), found.note) == (bool(words), None)


def test_ranks_on_one_core_are_named_unless_there_are_too_few(tmp_path: Path) -> None:
    ranks, of_ranks = [0, 1, 2], masks({7}, {3}, {7})
    note = placement("n1", ranks, of_ranks, 8, str(tmp_path)).note
    assert_names(note, "ranks 0, 2 core 7 of n1, 8: --bind-to core")
    assert placement("n1", ranks, of_ranks, 2, str(tmp_path)).note is None


@pytest.mark.parametrize("bound", [masks({1}, {5}), masks({1, 5}, {1, 5}), masks({1}, {1, 5})])
def test_ranks_sharing_a_physical_core_noted(tmp_path: Path, bound: list[frozenset[int]]) -> None:
    for core in range(8):
        siblings = f"{core % 4},{core % 4 + 4}"
        write(tmp_path, {f"{CPU}/cpu{core}/topology/thread_siblings_list": siblings})
    two = placement("n1", [0, 1], bound, 8, str(tmp_path)).note
    assert_names(two, "ranks 0-1 share physical core 1 of n1, 4")
    every = masks(*({core} for core in range(8)))
    assert placement("n1", list(range(8)), every, 8, str(tmp_path)).note is None


def test_threads_on_fewer_cores_than_they_are_take_turns(tmp_path: Path) -> None:
    bound, several = masks({0}, {1, 2}), (1, 2)
    assert placement("n1", [4, 5], bound, 8, str(tmp_path), threads=several).note is None
    note = placement("n1", [4, 5], bound, 8, str(tmp_path), threads=(1, 3)).note
    assert_names(note, "3 threads of rank 5 2 of 8 cores of n1 --bind-to none")


def test_ranks_on_the_same_few_cores_are_bound(tmp_path: Path) -> None:
    found = placement("n1", [0, 1], masks({0, 1}, {0, 1}), 128, str(tmp_path))
    assert (found.words, found.note) == ("each rank bound to 2 cores", None)


def test_tick_of_a_clock_is_found() -> None:
    coarse_clock = [tick * 41e-9 for tick in (0, 0, 0, 1, 1, 2, 2, 2, 4)]
    assert clock_tick(coarse_clock) == pytest.approx(41e-9)
    assert clock_tick([0.0, 35e-9, 71e-9, 105e-9]) == 0.0
    assert clock_tick([]) == 0.0


def test_sizes_with_few_ticks_in_an_iteration_are_named() -> None:
    sizes = [(1, 0.3e-6), (8, 0.4e-6), (4096, 3e-6)]
    assert_names(coarse(41e-9, sizes), "tick clock, 41 ns, 5% at 1, 8 bytes: medians means")
    assert coarse(1e-9, sizes) is None


def two_numa_nodes(root: Path) -> str:
    """A system with cores 0 and 1 near a network card, 2 and 3 near a GPU."""
    numa = "devices/system/node"
    files = {
        f"{numa}/online": "0-1",
        f"{numa}/node0/cpulist": "0-1",
        f"{numa}/node1/cpulist": "2-3",
    }
    files |= {
        "class/infiniband/mlx5_0/device/numa_node": "0",
        "class/cxi/cxi0/device/numa_node": "-1",
        "bus/pci/devices/0000:3b:00.0/numa_node": "1",
        "gpus/0000:3B:00.0/information": "GPU UUID: GPU-5A5A5A5A-0000-0000-0000-000000000001",
    }
    return str(write(root, files))


GPU = "5a5a5a5a000000000000000000000001"


@pytest.mark.parametrize(("mask", "far"), [({0}, True), ({2, 3}, False), ({1, 2}, False)])
def test_rank_far_from_its_gpu_is_noted(tmp_path: Path, mask: set[int], far: bool) -> None:
    root = two_numa_nodes(tmp_path)
    found = distances("n1", [4], masks(mask), [GPU], root, f"{root}/gpus")
    assert not missing("NUMA node mlx5_0 on 0, GPU 5a5a5a5a on 1", found.words)
    assert "cxi0" not in found.words
    assert (found.note is not None) == far
    if far:
        assert_names(found.note, "rank 4 n1 NUMA node 1: --device")


def test_distances_of_one_numa_node_are_not_told(tmp_path: Path) -> None:
    assert distances("n1", [0], masks({0}), [GPU], str(tmp_path)) == Condition()


def test_unbound_ranks_on_several_numa_nodes_are_noted(tmp_path: Path) -> None:
    every = masks({0, 1, 2, 3}, {0, 1, 2, 3})
    found = placement("n1", [0, 1], every, 4, two_numa_nodes(tmp_path))
    assert_names(found.note, "n1 not bound 2 NUMA nodes: --bind-to core")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SLURM_CPUS_ON_NODE": "8"}, "8 of 64 cores"),
        ({"NCPUS": "64"}, "all 64 cores"),
        ({}, ""),
        ({"NCPUS": "many"}, ""),
    ],
)
def test_share_of_a_node_is_what_its_scheduler_gave(variables: dict[str, str], words: str) -> None:
    assert words in share(64, variables).words
    assert bool(share(64, variables).words) == bool(words)

"""Options of single families: their values, and which benchmarks have them."""

from __future__ import annotations

from typing import Any

import click
import pytest

from omb_py.benchmarks import all_benchmarks, find_benchmark
from omb_py.core.calls.topology import Topology
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.options.parse import words_of
from omb_py.options.table import parameters
from omb_py.options.types import NODE_MAP, THREADS, TOPOLOGY
from omb_py.results.columns import EXPERIMENT
from tests.helpers.refusals import refuses
from tests.options.test_command_line import parsed

CARTESIAN = Topology()


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        *((THREADS, text, value) for text, value in (("3", (3, 3)), ("1:2", (1, 2)))),
        *((THREADS, text, value) for text, value in (("12:7", (12, 7)), ((2, 3), (2, 3)))),
        *((NODE_MAP, text, value) for text, value in (("2", 2), ("0,0,1,1", (0, 0, 1, 1)))),
        *((NODE_MAP, text, value) for text, value in (("5,3", (5, 3)), ((0, 1), (0, 1)), (2, 2))),
        (TOPOLOGY, CARTESIAN, CARTESIAN),
    ],
)
def test_value_is_converted_or_kept(kind: click.ParamType[Any], given: Any, value: object) -> None:
    assert kind.convert(given, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((THREADS, text) for text in ("", "0", "1:0", "1:2:3", "-1", "two")),
        *((NODE_MAP, text) for text in ("0", "", "0,", "a,b", "-1")),
        *((TOPOLOGY, text) for text in ("cart:1", "ring")),
    ],
)
def test_wrong_value_of_an_option_refused(kind: click.ParamType[Any], text: str) -> None:
    with pytest.raises(click.BadParameter):
        kind.convert(text, None, None)


def test_defaults_are_native_ombs() -> None:
    assert parsed("put_latency").window_sync == "flush"
    assert parsed("put_bibw").window_sync == "pscw"
    assert parsed("get_acc_latency").window_kind == "create"
    assert parsed("get_acc_latency").window_sync == "lock"
    assert parsed("latency_mt").threads == (1, 2)
    assert parsed("latency_mt").thread_level == "multiple"
    assert parsed("latency_mp").threads == (2, 2)
    assert parsed("iallreduce").test_calls == 0
    assert parsed("neighbor_allgather").topology == Topology("cart:1:1", 1, 1)
    assert find_benchmark("iallreduce").counts(Options(), 8192) == (1_000, 100)


def test_letters_mean_what_they_mean_in_native_omb() -> None:
    assert parsed("put_latency", "-w", "dynamic", "-s", "pscw").window_kind == "dynamic"
    assert parsed("iallreduce", "-t", "100", "-r", "cpu").test_calls == 100
    assert parsed("latency_mt", "-t", "4").threads == (4, 4)
    assert parsed("ineighbor_alltoall", "-N", "cart:2:1").topology.dimensions == 2
    assert parsed("bw_fan_in", "--node-map", "2").node_map == 2


def test_no_benchmark_has_an_option_twice() -> None:
    for benchmark in all_benchmarks():
        letters = [name for option in parameters(benchmark) for name in option.opts]
        assert len(set(letters)) == len(letters), benchmark.name


def test_writes_are_synchronised_unless_that_is_turned_off() -> None:
    assert parsed("file_write", "--file", "data").file_sync
    assert not parsed("file_write_all", "--file", "data", "--no-file-sync").file_sync


def test_default_option_is_turned_off_from_python() -> None:
    benchmark = find_benchmark("file_write")
    assert words_of(benchmark, {"file_sync": False}) == ["--no-file-sync"]
    assert words_of(benchmark, {"file_sync": True, "session": False}) == ["--file-sync"]


def test_rows_of_other_synchronisation_are_not_compared() -> None:
    assert "file_sync" in EXPERIMENT


@pytest.mark.parametrize("text", ["2", "mod:2", "node", "0-3,4-7", "0+2,1+3"])
def test_split_of_ranks_is_kept_as_text(text: str) -> None:
    assert parsed("alltoall_persistent", "--split", text).split == text


def test_every_collective_runs_on_groups_and_no_file_or_start() -> None:
    found = {one.name for one in all_benchmarks() if "split" in one.options}
    collective = {one.name for one in all_benchmarks() if one.collective and one.planned}
    assert {"latency", "bw", "bibw", "barrier", "ialltoallw", "neighbor_allgather"} <= found
    assert not found & {"file_write", "init", "ft_detect", "comm_spawn"}
    assert {one for one in collective if "all" in one or "reduce" in one} <= found


def test_congestor_defaults_to_64_kib_and_half_the_ranks() -> None:
    options = parsed("allreduce", "--congestor", "alltoall")
    assert (options.congestor, options.split) == (("alltoall", 65536), "mod:2")
    options = parsed("allreduce", "--congestor", "osu_bcast:1M", "--split", "node")
    assert (options.congestor, options.split) == (("bcast", 1 << 20), "node")
    assert parsed("bcast", "--congestor", "barrier").congestor == ("barrier", 0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--split 2 --samples s.npy", "--samples groups"),
        ("--rounds 6", "--rounds --congestor"),
        ("--congestor bcast -c", "leave out -c"),
        ("--congestor bcast --max-time 1", "turns of equal length"),
        ("--congestor bcast -x auto", "turns of equal length"),
        ("--congestor latency_mt", "not on groups"),
        ("--congestor bcas", "did you mean bcast"),
        ("--congestor bcast:much", "much"),
        ("--split 0-3,2", "rank 2 twice"),
    ],
)
def test_option_impossible_with_groups_refused(words: str, sentence: str) -> None:
    with refuses(UsageError, sentence):
        parsed("allreduce", *words.split())

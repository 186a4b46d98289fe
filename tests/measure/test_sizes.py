"""Which message sizes are measured."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.benchmarks import Benchmark, find_benchmark
from omb_py.core.datatypes import find_types, parse_layout
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.measure.sizes import Sizes, message_sizes, sizes_by_type
from tests.helpers.refusals import missing, refuses


def sizes_of(name: str, ranks: int = 2, datatype: str = "int8", **options: object) -> Sizes:
    benchmark: Benchmark = find_benchmark(name)
    return message_sizes(benchmark, Options(**options), find_types([datatype])[0], ranks)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "options", "sizes"),
    [
        pytest.param("bw", {}, tuple(2**power for power in range(23)), id="native's default"),
        pytest.param(
            "allreduce", {}, tuple(2**power for power in range(21)), id="native's default"
        ),
        pytest.param("latency", {}, (0, *(2**power for power in range(23))), id="from empty"),
        ("bw", {"smallest": 3, "largest": 100}, (3, 6, 12, 24, 48, 96)),
        ("bw", {"smallest": 0, "largest": 4}, (0, 1, 2, 4)),
        ("bw", {"sizes": (1000, 0, 7)}, (1000, 0, 7)),
        ("reduce_scatter_block", {"ranks": 3, "largest": 8}, (4, 8)),
        ("reduce_scatter", {"ranks": 3, "largest": 8}, (1, 2, 4, 8)),
        ("bcast", {"layout": parse_layout("vect:8:4"), "largest": 32}, (8, 16, 32)),
    ],
)
def test_sizes_of_a_benchmark(name: str, options: dict[str, Any], sizes: tuple[int, ...]) -> None:
    assert sizes_of(name, **options).sizes == sizes


def test_default_sizes_are_whole_elements() -> None:
    assert sizes_of("bw", datatype="int32", largest=16) == Sizes((4, 8, 16))
    found = sizes_of("bw", datatype="int32", smallest=1, largest=16)
    assert found == Sizes((4, 8, 16), note="sizes of bw (int32) begin with 4 bytes")
    found = sizes_of("bw", datatype="int32", sizes=(4, 6, 10))
    assert found.sizes == (4,)
    assert not missing("6, 10 bytes: whole int32", found.left_out)


@pytest.mark.parametrize("size", [7, 28])
def test_a_broken_element_is_noted_however_small(size: int) -> None:
    found = sizes_of("bw", datatype="float64", sizes=(size, 8))
    assert not missing(f"{size} bytes: whole float64", found.left_out)


def test_requested_uneven_sizes_are_noted() -> None:
    assert sizes_of("reduce_scatter_block", ranks=3, largest=8).left_out == ()
    (words,) = sizes_of("reduce_scatter_block", ranks=3, sizes=(2, 3)).left_out
    reason = "reduce_scatter_block on 3 ranks needs at least 3 elements"
    assert words == f"2 bytes of int8: {reason}"
    (words,) = sizes_of("partitioned_latency", sizes=(4, 8, 12), partitions=8).left_out
    reason = "partitioned_latency has 8 parts of whole elements"
    assert words == f"4, 12 bytes of int8: {reason}"
    (words,) = sizes_of("bcast", layout=parse_layout("vect:8:4"), sizes=(4, 8)).left_out
    assert words == "4 bytes of int8: layout vect:8:4 sends nothing of them"


def test_the_memory_limit_cuts_default_sizes_with_a_note() -> None:
    found = sizes_of("alltoall", ranks=1024)
    assert found.sizes[-1] == 1 << 18
    assert "memory limit of 536870912 bytes" in found.left_out[0]


@pytest.mark.parametrize("asked", [{"largest": 1 << 20}, {"sizes": (1 << 20,)}])
def test_the_memory_limit_refuses_sizes_that_were_asked_for(asked: dict[str, Any]) -> None:
    with refuses(UsageError, "1048576 bytes 1024 ranks memory"):
        sizes_of("alltoall", ranks=1024, **asked)


def test_sizes_out_of_order_blame_those_that_do_not_fit() -> None:
    with refuses(UsageError, "1073741824 bytes on 2 ranks need more"):
        sizes_of("latency", sizes=(8, 1 << 30, 64))


def test_memory_of_a_one_sided_window_counts_both_sides() -> None:
    assert sizes_of("put_bw", largest=4 << 20).sizes[-1] == 4 << 20
    with refuses(UsageError, "8388608 bytes memory"):
        sizes_of("put_bw", largest=8 << 20)


def test_memory_of_a_window_counts_each_message() -> None:
    assert sizes_of("bibw", buffer_per_message=True).sizes[-1] == 4 << 20
    with pytest.raises(UsageError):
        sizes_of("bibw", buffer_per_message=True, largest=8 << 20)


def test_type_without_a_size_is_left_out() -> None:
    benchmark, options = find_benchmark("bw"), Options(sizes=(1, 2))
    found = sizes_by_type(benchmark, options, find_types(["int16", "float64"]), ranks=2)
    assert [sizes.sizes for sizes in found.values()] == [(2,), ()]
    with refuses(UsageError, "no message size to measure"):
        sizes_by_type(benchmark, options, find_types(["float64"]), ranks=2)


@given(st.integers(0, 1000), st.integers(0, 1 << 22))
def test_sizes_stay_within_their_bounds(smallest: int, largest: int) -> None:
    if smallest > largest:
        with pytest.raises(UsageError):
            sizes_of("latency", smallest=smallest, largest=largest)
    else:
        found = sizes_of("latency", smallest=smallest, largest=largest).sizes
        assert found[0] == smallest
        assert found[-1] <= largest
        assert list(found) == sorted(set(found))

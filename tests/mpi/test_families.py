"""What single families promise beyond data that is right: their own options and columns."""

from __future__ import annotations

from itertools import product

import pytest

from omb_py.core.options import ACTIVE
from omb_py.options.table import PASSIVE, WINDOW_KINDS
from tests import ROOT
from tests.helpers.battery import Battery, Line, completed, each_line, passes
from tests.mpi.lines import CHECKED, MEASURED, QUICK, WITH_DATA, lines, named

BINDINGS = ("buffer", "native")
EACH = "-i 12 -t 2 --thread-comm each"
GRAPH = ROOT / "tests" / "data" / "graph.txt"
NEIGHBORHOODS = [one for one in WITH_DATA if "topology" in one.options]
OVERLAPPED = [one for one in MEASURED if "overlap" in one.options]


def combined(names: str, form: str, *choices: tuple[str, ...]) -> list[Line]:
    """Lines of these benchmarks with every combination of choices, by both kinds of bindings."""
    return [
        line
        for binding in BINDINGS
        for choice in product(*choices)
        for line in lines(named(names), f"{CHECKED} --binding {binding} {form.format(*choice)}")
    ]


WINDOWS = combined(
    "put_latency get_latency acc_latency get_acc_latency rput_latency fop_latency put_bw get_bw",
    "-w {} -s {}",
    WINDOW_KINDS,
    PASSIVE + ACTIVE,
) + combined("put_bibw", "-w {} -s {}", WINDOW_KINDS, ACTIVE)


@pytest.mark.product
@each_line(WINDOWS)
def test_every_window_with_every_synchronization(battery: Battery, line: Line) -> None:
    record = passes(battery(line))
    words = line.arguments
    assert {row["window_kind"] for row in record.rows} == {words[words.index("-w") + 1]}
    assert {row["window_sync"] for row in record.rows} == {words[words.index("-s") + 1]}


@each_line(lines(named("alltoallv gatherv"), f"{CHECKED} --binding array --skew 2", ranks=3))
def test_arrays_of_unequal_blocks(battery: Battery, line: Line) -> None:
    """mpi4py takes counts as a list: a tuple is one of counts and one of displacements."""
    passes(battery(line))


@pytest.mark.product
@each_line(
    combined("latency_mt", "-i 12 -t {}", ("1", "1:2", "2:2", "2:3", "3:2")),
    combined("mbw_mr_mt", "-i 12 -t {}", ("1", "2:3")),
    combined("sendrecv_mt", "-i 12 -t {}", ("1", "3")),
    lines(named("latency_mt"), f"{CHECKED} --binding pickle -t 2:3"),
)
def test_any_number_of_threads_on_each_side(battery: Battery, line: Line) -> None:
    record = passes(battery(line))
    given = line.arguments[-1]
    assert record.rows[0]["threads"] == (given if ":" in given else f"{given}:{given}")
    assert record.rows[0]["thread_comm"] == "one"


@each_line(
    lines(named("latency_mt mbw_mr_mt"), f"{CHECKED} --binding persistent {EACH}"),
    (
        line
        for binding in ("array", "buffer", "native", "pickle", "prebound")
        for line in lines(
            named("latency_mt mbw_mr_mt sendrecv_mt"), f"{CHECKED} --binding {binding} {EACH}"
        )
    ),
)
def test_a_communicator_for_each_thread(battery: Battery, line: Line) -> None:
    record = passes(battery(line))
    assert record.rows[0]["thread_comm"] == "each"


@each_line(lines(named("latency_mp"), f"{CHECKED} -t 3:1"))
def test_processes_beside_the_ranks(battery: Battery, line: Line) -> None:
    passes(battery(line))
    assert battery(line).rows[0]["threads"] == "3:1"


@pytest.mark.long
@pytest.mark.product
@pytest.mark.parametrize(
    "line",
    [
        line
        for binding in BINDINGS
        for ranks, topology in ((4, f"graph:{GRAPH}"), (9, "cart:2:1"), (5, "cart:1:2"))
        for line in lines(
            NEIGHBORHOODS, f"{CHECKED} -N {topology} --binding {binding}", ranks=ranks
        )
    ],
    ids=lambda line: str(line).replace(str(GRAPH.parent), "…"),
)
def test_neighborhoods_of_any_topology_pass(battery: Battery, line: Line) -> None:
    record = passes(battery(line))
    assert record.rows[0]["topology"] in line.arguments


@pytest.mark.long
@pytest.mark.product
@each_line(
    line
    for binding in BINDINGS
    for ranks, nodes in ((3, "1"), (6, "2"), (4, "1,0,1,0"))
    for line in lines(
        named("bw_fan_in bw_fan_out"),
        f"{CHECKED} --binding {binding} --node-map {nodes}",
        ranks=ranks,
    )
)
def test_fans_of_any_number_of_nodes_pass(battery: Battery, line: Line) -> None:
    record = passes(battery(line))
    assert record.rows[0]["nodes"] == {3: 3, 6: 3, 4: 2}[line.ranks]


@pytest.mark.product
@each_line(
    line
    for binding in BINDINGS
    for line in lines(OVERLAPPED, f"-i 20 -x 2 -t 3 --binding {binding}")
)
def test_rows_tell_how_much_computing_hides(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    assert record.measured
    for row in record.measured:
        assert 0 <= row["overlap_percent"] <= 100
        times = ("overall_us", "compute_us", "latency_us", "start_us", "test_us", "wait_us")
        assert all(row[name] > 0 for name in times)
        assert row["test_calls"] == 3
        assert row["iterations"] == 20
    assert "Overlap(%)" in record.out


@each_line(lines(named("allreduce"), QUICK))
def test_other_rows_have_no_overlap(battery: Battery, line: Line) -> None:
    assert battery(line).rows[0]["overlap_percent"] is None


@pytest.mark.product
@each_line(
    line
    for binding in BINDINGS
    for line in lines(
        named("file_write file_write_all"), f"{CHECKED} --file-sync --binding {binding}"
    )
    + lines(
        named("partitioned_latency partitioned_bw"), f"{CHECKED} --partitions 4 --binding {binding}"
    )
    + lines(named("file_read file_write_all"), f"{CHECKED} --binding {binding}", ranks=3)
)
def test_files_and_parts(battery: Battery, line: Line) -> None:
    passes(battery(line))

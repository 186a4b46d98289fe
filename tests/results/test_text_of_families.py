# ruff: noqa: E501 - lines of native output are as long as they are
"""The text of the newer families has native OMB's layout: lines of its real outputs."""

from __future__ import annotations

import io
import re

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.core.datatypes import find_types
from omb_py.core.options import Options
from omb_py.results.row import Row
from omb_py.results.text import TextWriter, values_of

ALLOCATED = Options(window_kind="allocate")

NATIVE = {
    "iallreduce": (
        Options(),
        """
# OSU MPI Non-blocking Allreduce Latency Test v7.4
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
1                       1.86              1.25              0.51              0.00
4                       2.37              1.73              1.39             54.00
""",
    ),
    "iallreduce -t 100 -f": (
        Options(test_calls=100, full=True),
        """
# OSU MPI Non-blocking Allreduce Latency Test v7.4
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Coll. Init(us)      MPI_Test(us)      MPI_Wait(us)    Pure Comm.(us)     Min Comm.(us)     Max Comm.(us)        Overlap(%)
1                      95.72             78.63              4.80              3.60              8.58              0.70              0.63              0.77              0.00
2                    1345.84             84.57              0.66              3.96           1256.52              0.80              0.69              0.92              0.00
""",
    ),
    "iallreduce -c -z99": (
        Options(full=True, validate=True, percentiles=(99,)),
        """
# OSU MPI Non-blocking Allreduce Latency Test v7.4
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Coll. Init(us)      MPI_Test(us)      MPI_Wait(us)    Pure Comm.(us)     Min Comm.(us)     Max Comm.(us)        Overlap(%)        Validation  P99 Tail Lat(us)
1                      21.92             13.26              0.20              0.00              8.35              4.54              4.43              4.65              0.00              Pass              6.04
""",
    ),
    "ialltoall": (
        Options(),
        """
# OSU MPI Non-blocking All-to-All Latency Test v7.4
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
1                       1.07              0.56              0.44              0.00
""",
    ),
    "ibarrier": (
        Options(),
        """
# OSU MPI Non-blocking Barrier Latency Test v7.4
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
         1.90              0.98              0.56              0.00
""",
    ),
    "ineighbor_alltoallw": (
        Options(),
        """
# OSU MPI Non-blocking Neighborhood Alltoallw Latency Test v7.4
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_CHAR.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
1                       7.60              3.76              3.14              0.00
""",
    ),
    "neighbor_allgather": (
        Options(),
        """
# OSU MPI Neighborhood Allgather Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.89
""",
    ),
    "allreduce_persistent": (
        Options(),
        """
# OSU MPI Allreduce Persistent Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       0.38
""",
    ),
    "alltoall_persistent": (
        Options(),
        """
# OSU MPI All-to-All Personalized Exchange Persistent Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       0.23
""",
    ),
    "barrier_persistent": (
        Options(),
        """
# OSU MPI Barrier Persistent Latency Test v7.4
# Avg Latency(us)
             0.20
""",
    ),
    "latency_persistent": (
        Options(),
        """
# OSU MPI Latency Persistent Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       0.61
""",
    ),
    "bw_persistent": (
        Options(),
        """
# OSU MPI Bandwidth Persistent Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                      11.99
""",
    ),
    "put_latency": (
        ALLOCATED,
        """# OSU MPI_Put Latency Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size          Latency (us)
1                       0.07
""",
    ),
    "put_latency -w create -s fence -z": (
        Options(window_kind="create", window_sync="fence", percentiles=(50, 90, 99)),
        """# OSU MPI_Put Latency Test v7.4
# Window creation: MPI_Win_create
# Synchronization: MPI_Win_fence
# Datatype: MPI_CHAR.
# Size          Latency (us)  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)
1                       1.88              0.64              0.79              0.94
""",
    ),
    "acc_latency": (
        ALLOCATED,
        """# OSU MPI_Accumulate latency Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size          Latency (us)
1                       0.10
""",
    ),
    "put_bw": (
        ALLOCATED,
        """# OSU MPI_Put Bandwidth Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                      74.86
""",
    ),
    "put_bibw": (
        Options(window_kind="allocate", window_sync="pscw"),
        """# OSU MPI_Put Bi-directional Bandwidth Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_post/start/complete/wait
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                      74.86
""",
    ),
    "cas_latency": (
        ALLOCATED,
        """# OSU MPI_Compare_and_swap latency Test v7.4
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size          Latency (us)
1                       0.07
""",
    ),
}


def row(cells: list[str], columns: list[str], options: Options, sized: bool) -> Row:
    """A row whose numbers are those of a line of native output."""
    values: dict[str, object] = {}
    rest = iter(cells)
    if sized:
        values["bytes"] = int(next(rest))
    values |= {column: float(next(rest)) for column in columns}
    if options.validate:
        values["validation"] = next(rest)
    values["percentiles"] = tuple((percent, float(next(rest))) for percent in options.percentiles)
    assert list(rest) == []
    return Row(**values)


@pytest.mark.parametrize("command", NATIVE)
def test_layout_is_native_ombs(command: str) -> None:
    options, native = NATIVE[command]
    benchmark = find_benchmark(command.split()[0])
    columns = list(values_of(benchmark, options).values())
    stream = io.StringIO()
    writer = TextWriter(stream, benchmark, options)
    writer.start({"ranks": "2"})
    writer.section(find_types(["mpi_char"])[0] if benchmark.sized else None)
    for line in native.splitlines():
        if line and not line.startswith("#"):
            writer.row(row(line.split(), columns, options, benchmark.sized))
    ours = re.sub(r"(?m)^(# OSU MPI.*v7\.4) \(omb-py .*\)$", r"\1", stream.getvalue())
    assert ours == native


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("latency_mt", "# Number of Sender threads: 3"),
        ("latency_mt", "# Number of Receiver threads: 4"),
        ("latency_mp", "# Number of forked processes in sender: 3"),
        ("put_mr", "# [ pairs: 2 ] [ window size: 64 ]"),
    ],
)
def test_options_of_the_family_are_named_below_the_banner(name: str, line: str) -> None:
    stream = io.StringIO()
    writer = TextWriter(stream, find_benchmark(name), Options(threads=(3, 4)))
    writer.start({"ranks": "4"})
    assert line in stream.getvalue().splitlines()


def test_what_native_omb_lacks_does_not_bear_its_name() -> None:
    for name in ("rput_latency", "put_mr", "reduce_scatter_block_persistent", "sendrecv", "pack"):
        stream = io.StringIO()
        TextWriter(stream, find_benchmark(name), ALLOCATED).start({"ranks": "2"})
        assert "# OMB-Py MPI" in stream.getvalue()

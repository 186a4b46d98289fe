"""What cannot be done is refused: by the command line, by all ranks, or by one when it measures."""

from __future__ import annotations

from collections.abc import Container, Iterable

import pytest

from tests.conftest import Run
from tests.helpers.battery import Battery, Line, each_line, line, refused
from tests.helpers.refusals import ANY_CODE, assert_refused

FOUND_BY: dict[Line, str] = {
    line(2, "alreduce"): "unknown benchmark 'alreduce' did you mean allreduce",
    line(2, "latency --no-such-option"): "--no-such-option",
    line(
        3, "latency"
    ): "exactly 2 ranks this job has 3: start it with: mpiexec -n 2 omb-py latency",
    line(2, "latency_mt --thread-level single"): "latency_mt needs thread level multiple",
    line(2, "bw -clog:/proc/none"): "cannot write /proc/none for -clog",
    line(2, "latency --output /proc/none/results.csv"): "cannot write /proc/none/results.csv",
    line(2, f"latency --sizes {1 << 60} -M 8000000000G"): "cannot allocate",
    line(2, "file_write --file /no/such/folder/data"): "cannot make this file",
}
"""What is found by the command line, by all ranks, by rank 0, or by one when it measures."""

WRONG: dict[Line, str] = {
    line(2, "latency --buffer numpi"): "unknown buffer 'numpi' numba, numpy",
    line(2, "latency --binding nativ"): "unknown binding 'nativ' buffer, coroutine",
    line(2, "latency -T mpi_string"): "unknown type 'mpi_string' mpi_char",
    line(1, "latency"): "exactly 2 ranks this job has 1",
    line(3, "bw"): "exactly 2 ranks",
    line(3, "multi_lat"): "an even number of ranks this job has 3 mpiexec -n 4",
    line(3, "mbw_mr"): "an even number of ranks",
    line(2, "mbw_mr -p 2"): "at most 1 pairs",
    line(2, "spawn --binding native -i 1"): "binding native has no comm_spawn",
    line(2, "iallreduce -r gpu"): "-r gpu which buffer numpy has not",
    line(2, "latency -m 64:8"): "64 larger than the largest 8",
    line(2, "latency -m 8388608:"): "larger than the largest",
    line(2, "latency -m -5"): "not a number of bytes",
    line(2, "latency -m lots"): "'lots' is not a number of bytes",
    line(2, "latency --sizes 1,-2"): "'-2' is not a number of bytes",
    line(2, "latency --sizes 1 -T float64"): "no message size to measure",
    line(2, "bw -W 0"): "--window-size 0 is not in the range x>=1",
    line(2, "bw -i 0"): "--iterations",
    line(2, "bw -W 3:4"): "--window-size '3:4' is not a whole number",
    line(2, "bw -d cuda"): "-d cuda: --buffer cupy",
    line(2, "neighbor_allgather -N graph:/dev/zero"): "cannot read /dev/zero: it is a device",
    line(2, "bw -D indx:/dev/zero"): "cannot read /dev/zero: it is a device",
    line(2, "bw -z101"): "101 is not a percentage",
    line(2, "latency -c -D vect:8:4"): "exclude each other",
    line(2, "gather -k fixed:2"): "there is no rank 2",
    line(2, "gather -k moving"): "neither fixed:RANK nor rotate",
    line(2, "alltoall -m 1048576 -M 1M"): "memory limit raise -M",
    line(2, "latency --output results.txt"): ".csv or .json",
    line(2, "latency --output /proc/none/results.csv"): "cannot write --output",
    line(2, "latency D"): "both ends",
    line(2, "latency -m 1152921504606846976"): "memory limit raise -M",
    line(2, "neighbor_allgather"): "a grid of 2 start 3 ranks or more",
    line(2, "ineighbor_alltoall -N graph:/no/such"): "cannot read /no/such",
    line(2, "bw_fan_in"): "2 ranks are on 1 node --node-map",
    line(3, "put_latency"): "exactly 2 ranks this job has 3",
    line(2, "put_latency -w heap"): "'heap' is not one of dynamic",
    line(2, "cas_latency -T float32"): "only integers, not float32",
    line(2, "latency_mt -t 1:0"): "each side needs at least 1",
    line(2, "latency_mt --binding pkl5"): "one thread receive at a time",
    line(2, "iallreduce --binding pickle"): "binding pickle has no iallreduce",
    line(2, "put_latency --binding persistent"): "which MPI cannot set up",
    line(2, "file_write"): "--file",
}
"""More of what command lines ask for in vain."""


@each_line(WRONG)
def test_refused_command_names_value_and_fix(battery: Battery, line: Line) -> None:
    refused(battery(line), WRONG[line])


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line(3, "latency"), marks=pytest.mark.smoke),
        *(one for one in FOUND_BY if one != line(3, "latency")),
        *(pytest.param(one, marks=pytest.mark.exhaustive) for one in WRONG),
    ],
    ids=str,
)
def test_refused_job_prints_no_row(mpiexec: Run, line: Line) -> None:
    job = mpiexec(line.ranks, *line.arguments)
    assert_refused(job, ANY_CODE, (FOUND_BY | WRONG)[line])
    assert job.rows == []


Row = tuple[int, str, int | Container[int], str]
NARROW = "--sizes 64,4096 -c -u 1 -i 2 -q"
LAUNCHES = "--launches 2 -n 2 --sizes 8 -i 60 -x 2 --rounds 12"

SHORT: list[Row] = [
    (4, "alltoallv --skew 5", 2, "--skew 4 ranks"),
    (4, "alltoallv --skew 2 --in-place", 2, "--in-place --skew"),
    (4, "alltoallv --skew 2 --p2p-algorithm pairwise", 2, "--p2p-algorithm --skew"),
    (4, "alltoallv --skew 2 -D vect:4:2", 2, "-D --skew"),
    (4, "alltoallv --skew 2 --sizes 128M", 2, "memory limit -M"),
    (2, "put_latency --target-busy 50 -s fence", 2, "--target-busy -s flush"),
    (2, "allreduce --binding tcp --p2p-algorithm library", ANY_CODE, "binding tcp no allreduce"),
    (2, "scan --binding tcp", ANY_CODE, "binding tcp no scan send"),
    (2, "bcast --binding asyncio -D vect:4:2", ANY_CODE, "leave out -D"),
    (2, "latency --binding tcp --backend gloo", ANY_CODE, "--backend binding tcp"),
    (2, "latency --binding buffer --interface lo", ANY_CODE, "--interface binding buffer"),
    (2, "kmeans --binding tcp --backend nccl", ANY_CODE, "--backend binding tcp"),
    (2, "overhead latency --bindings tcp,buffer --backend nccl", ANY_CODE, "--backend tcp buffer"),
    (2, "latency --binding tcp --interface none0", ANY_CODE, "none0 has no IPv4 address here"),
    (2, "latency_mt --binding tcp", ANY_CODE, "one thread at a time"),
    (2, f"allreduce -T bfloat16 {NARROW}", 5, "MPI_BFLOAT16_T --p2p-algorithm ring"),
    (2, f"allreduce -T bfloat16 --binding native {NARROW}", 5, "MPI_BFLOAT16_T -T"),
    (2, f"allreduce -T bfloat16 --binding pickle {NARROW}", 5, "pickle bfloat16 -T"),
    (2, f"allreduce -T float8 --p2p-algorithm ring {NARROW}", 5, "MPI_FLOAT8_T -T"),
    (2, f"overhead allreduce {LAUNCHES}", 2, "--launches without a launcher -n RANKS"),
    (2, "overhead latincy", 2, "did you mean latency"),
    (2, "overhead latency --bindings native", 2, "at least two"),
    (2, "overhead latency --bindings native,nativ", 2, "unknown binding 'nativ'"),
    (2, "overhead latency -c", 2, "No such option"),
    (2, "overhead alltoallv --bindings native,pickle", 5, "binding pickle has no alltoallv"),
]
LONG: list[Row] = [
    (3, "allreduce --congestor alltoall --split 1 --sizes 4", 2, "--split 1 group: more ranks"),
    (2, "allreduce --congestor alltoall --sizes 4", 2, "--split: 2 ranks at most 1 group of 2"),
    (3, "allreduce --congestor bw --split 0-1,2", 2, "group 2 of 2 rank 2 alone"),
    (5, "allreduce --congestor bw --split 3-4,0-2", 2, "bw exactly 2 ranks, 3"),
    (4, "allreduce --congestor alltoall:1G", 2, "--congestor alltoall:1073741824 4294967296"),
    (
        *(5, "allreduce --congestor bcast:8 --split 2-4,0-1 --binding raising --sizes 4"),
        *(1, "RuntimeError: the network is on fire"),
    ),
    (4, "gather --split 0+3,1-2 -k fixed:2", 2, "-k: no rank 2; last of 2 ranks"),
    (4, "allreduce --split 0-2,3", 2, "group 2 of 2 rank 3 alone"),
    (4, "bcast --split 4", 2, "4 ranks at most 2 groups"),
    (4, "bcast --split 3", 2, "--split: 4 ranks at most 2 groups"),
    (4, "allreduce --split 2 -c --binding corrupting --sizes 8", 1, "wrong data allreduce 8"),
    (
        *(4, "allreduce --split 0-2 --binding raising --sizes 8"),
        *(1, "rank 1: RuntimeError: the network is on fire"),
    ),
    (*(2, "allreduce --coll-algorithm rign", 2), "did you mean ring? default, recursive_doubling"),
    (2, "scatterv --coll-algorithm ring", 2, "algorithms MPI_Scatterv"),
    *(
        (
            *(2, f"allreduce --coll-algorithm ring --binding {binding}", 5),
            f"binding {binding} MPI_Allreduce",
        )
        for binding in ("pickle", "persistent")
    ),
    *(
        (2, f"{name} --coll-algorithm ring", 2, "No such option")
        for name in ("iallreduce", "allreduce_persistent", "latency")
    ),
]
ANY_LIBRARY: list[Row] = [
    (2, "pairs --by node", ANY_CODE, "pairs two nodes 2 ranks on 1 node"),
    (2, "pairs --by device", ANY_CODE, "--by device: buffer no device"),
    (1, "pairs", ANY_CODE, "pairs two ranks more"),
    (2, "pairs -x auto", ANY_CODE, "-x auto: number"),
    (2, "pairs --alone bw", ANY_CODE, "benchmark first: omb-py pairs bw --alone"),
    (2, "pairs alltoall", ANY_CODE, "alltoall pairs: latency, bw, bibw"),
    (2, "latency -G gif", 2, "-G gif: tty, png, svg, pdf"),
]


def marked(rows: Iterable[Row], *marks: pytest.MarkDecorator) -> list[object]:
    """Parameters of rows, with marks."""
    return [pytest.param(*row, marks=marks, id=f"{row[0]} {row[1]}") for row in rows]


@pytest.mark.parametrize(
    ("ranks", "words", "code", "sentence"),
    marked(SHORT) + marked(LONG, pytest.mark.long) + marked(ANY_LIBRARY, pytest.mark.any_library),
)
def test_refused_job_ends_with_its_code_and_one_sentence(
    mpiexec: Run, ranks: int, words: str, code: int | Container[int], sentence: str
) -> None:
    assert_refused(mpiexec(ranks, *words.split()), code, sentence)

"""Bindings that do not send by MPI, and coroutines over it: the data arrives, faults are said."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from omb_py.benchmarks.algorithms import TABLE
from omb_py.core.options import Options
from omb_py.measure.adapted import labelled
from tests.conftest import OMB_PY, Run, rows_in_text, run, succeeded
from tests.helpers.battery import Battery, Line, each_line, line, passes
from tests.helpers.pace import slowness
from tests.helpers.refusals import assert_refused, missing
from tests.mpi.lines import CHECKED, lines, named

needs_grpc = pytest.mark.skipif(find_spec("grpc") is None, reason="grpcio is not installed")

PAIRS = named("latency multi_lat sendrecv")
WINDOWS = named("bw bibw mbw_mr")
WAYS = ("tcp", "asyncio", "grpc")
PROGRAM = Path(__file__).parent / "programs" / "truncated.py"


def lines_of(way: str) -> list[Line]:
    words = f"{CHECKED} --binding {way}"
    many = named(" ".join(name for name in TABLE if name != "barrier"))
    found = lines(PAIRS, words, "--sizes 0,1,100000")
    found += lines(WINDOWS, f"{words} -b multiple", "--sizes 1,100000")
    return found + lines(many, words, ranks=3)


@pytest.mark.product
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(one, id=str(one), marks=[needs_grpc] if way == "grpc" else [])
        for way in (*WAYS, "coroutine")
        for one in lines_of(way)
    ],
)
def test_the_data_arrives(battery: Battery, line: Line) -> None:
    passes(battery(line), broken=True)


@pytest.mark.product
@each_line(
    line(2, f"{name} --binding {way} --repeats 1")
    for name in ("kmeans", "dispatch --hidden 64", "merge --rows 9000", "transpose_sum --size 99")
    for way in ("tcp", "asyncio", "coroutine")
)
def test_applications_run_on_them(battery: Battery, line: Line) -> None:
    record = battery(line)
    assert record.code == 0, record.error
    assert {row["check"] for row in record.measured} == {"Pass"}


def test_results_say_how_messages_travel_and_what_they_cost(mpiexec: Run, tmp_path: Path) -> None:
    arguments = ("--binding", "tcp", "-i", "20", "-m", "8:8", "--output", str(tmp_path / "o.csv"))
    finished = succeeded(mpiexec(3, "allreduce", *arguments))
    assert "own algorithm by_size" in finished.out
    text = (tmp_path / "o.csv").read_text()
    assert {"# serialization: none", "# address: 127.0.0.1"} <= set(text.splitlines())
    (row,) = rows_in_text(text)
    assert row["algorithm"] == "by_size"
    assert float(row["cpu_us"]) > 0


def test_a_request_that_fails_ends_the_wait_for_it(mpi: str, tmp_path: Path) -> None:
    done = run([mpi, "-n", "1", sys.executable, str(PROGRAM)], {}, tmp_path, timeout=30)
    assert (done.code, done.out) == (0, "refused\n"), done.err


@pytest.mark.parametrize(
    ("options", "label"),
    [
        (Options(backend="gloo"), "backend gloo"),
        (Options(backend="gloo", variant="mine"), "mine"),
        (Options(interface="lo"), None),
    ],
    ids=["backend", "own label", "interface"],
)
def test_label_of_results_is_the_backend_unless_there_is_one(
    options: Options, label: str | None
) -> None:
    assert labelled(options).variant == label


@pytest.mark.parametrize(
    ("binding", "words", "named"),
    [
        ("tcp", "-m 8:8", "--message-size (8:8, not 4:4)"),
        ("asyncio", "--sizes 4,8", "--message-size (the default) and --sizes (4,8, not"),
        ("tcp", "-m 4:4 -i 7", "--iterations (7, not the default)"),
        ("tcp", "-m 4:4 -c -u 6", "--validation (on, not off) and --validation-warmup (6, not 5)"),
        ("tcp", "-m 4:4:x4", "factor of --message-size (4.0, not 2.0)"),
        pytest.param("grpc", "-m 4:4 -x 7", "--warmup (7, not", marks=needs_grpc),
        ("tcp", "-m 4:4 --binding asyncio", "--binding (asyncio, not tcp)"),
        ("buffer", "-m 4:4:x4", "factor of --message-size (4.0, not 2.0)"),
        ("buffer", "-m 4:4 -T mpi_int", "--type (mpi_int, not none)"),
        ("buffer", "-m 4:4 --buffer bytearray", "--buffer (bytearray, not numpy)"),
    ],
)
def test_other_options_end_soon(
    mpi: str, tmp_path: Path, binding: str, words: str, named: str
) -> None:
    first = (OMB_PY, "latency", "-m", "4:4", "--binding", binding)
    other = (OMB_PY, "latency", "--binding", binding, *words.split())
    done = run([mpi, "-n", "1", *first, ":", "-n", "1", *other], {}, tmp_path, timeout=60)
    assert done.code == 2
    assert done.err.count("rank 1 was started") == 1
    assert not missing(f"another {named} than rank 0", done.err)
    assert done.seconds < 10 * slowness()


@needs_grpc
@pytest.mark.parametrize("name", ["scan", "put_latency", "latency_mt"])
def test_servers_end_with_the_job_that_fails(mpiexec: Run, name: str) -> None:
    assert_refused(mpiexec(2, name, "--binding", "grpc", timeout=30), 5, "grpc")


@pytest.mark.skipif(find_spec("ucxx") is not None, reason="ucxx is installed")
@pytest.mark.parametrize("words", ["bw --binding ucxx", "overhead bw --bindings buffer,ucxx"])
def test_a_missing_package_is_one_sentence_of_all_ranks(mpiexec: Run, words: str) -> None:
    finished = mpiexec(3, *words.split())
    assert_refused(finished, 8, "binding ucxx package ucxx")
    assert "Abort" not in finished.err

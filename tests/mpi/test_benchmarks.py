"""Every benchmark runs on real ranks, and the data that arrives is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.analysis.table import load
from omb_py.benchmarks import Ranks
from tests.conftest import Run, succeeded
from tests.helpers.battery import Battery, Line, completed, each_line, passes, refused
from tests.helpers.plans import functions, prepared
from tests.mpi.lines import (
    CHECKED,
    COLLECTIVES,
    MEASURED,
    QUICK,
    SIZES,
    WITH_DATA,
    WITHOUT_DATA,
    having,
    lines,
    named,
)
from tests.mpi.vendor import MPI

COMMUNICATORS = (MPI.Intracomm, MPI.Distgraphcomm)
TAKE_OBJECTS = {name for kind in (*COMMUNICATORS, MPI.Request) for name in dir(kind)} | {"mrecv"}
"""Functions that mpi4py has in lower case, too; a message's is called ``recv``."""

PICKLED_WHOLE = {"irecv", "reduce", "allreduce", "scan", "exscan"}
"""Functions with which mpi4py.util.pkl5 keeps no data beside the pickle."""

SENT_WINDOWS = [one for one in having("window") if "buffer_num" in one.options]
ONE_SIDED_WINDOWS = [one for one in having("window") if "window_kind" in one.options]
PAIRS = [benchmark for benchmark in WITH_DATA if benchmark.ranks is Ranks.EVEN]
EVERY_TYPE = "latency allreduce reduce_scatter alltoallw iallreduce put_latency acc_latency"


def by_binding(binding: str, *options: str) -> str:
    return " ".join((CHECKED, "--binding", binding, *options))


@pytest.mark.product
@each_line(
    lines(WITH_DATA, CHECKED, SIZES),
    lines(WITH_DATA, by_binding("native"), SIZES),
    lines(WITH_DATA, by_binding("prebound")),
    lines(WITH_DATA, f"{CHECKED} --buffer bytearray"),
    lines(named("latency iallreduce alltoallw"), by_binding("native", "--buffer bytearray")),
)
def test_what_arrives_is_what_was_sent(battery: Battery, line: Line) -> None:
    passes(battery(line), broken=True)


@pytest.mark.product
@each_line(
    lines(COLLECTIVES, CHECKED, SIZES, ranks=3),
    lines(COLLECTIVES, by_binding("native"), SIZES, ranks=3),
    lines([one for one in COLLECTIVES if "exscan" not in one.name], CHECKED, ranks=1),
)
def test_collectives_need_no_power_of_two(battery: Battery, line: Line) -> None:
    passes(battery(line), broken=True)


@pytest.mark.product
@each_line(
    lines(having("in_place"), f"{CHECKED} -l", ranks=3),
    lines(having("in_place"), by_binding("native", "-l"), ranks=3),
    lines(having("root"), f"{CHECKED} -i 3 -k rotate", ranks=3),
    lines(having("root"), by_binding("native", "-i 3 -k rotate -l"), ranks=3),
    lines(having("root"), f"{CHECKED} -k fixed:2 -l", ranks=3),
)
def test_in_place_and_with_any_root(battery: Battery, line: Line) -> None:
    passes(battery(line), broken=True)


@pytest.mark.product
@each_line(
    lines(PAIRS, CHECKED, ranks=4),
    lines(named("multi_lat mbw_mr put_mr get_mr"), by_binding("native"), ranks=4),
    lines(named("mbw_mr put_mr get_mr"), f"{CHECKED} -p 1", ranks=4),
    lines(named("put_mr get_mr"), f"{CHECKED} -p 1 -s fence", ranks=4),
)
def test_many_pairs_receive_what_was_sent(battery: Battery, line: Line) -> None:
    passes(battery(line))
    assert battery(line).rows[0]["pairs"] == (1 if "-p" in line.arguments else 2)


@pytest.mark.product
@each_line(
    lines(having("buffer_num"), f"{CHECKED} -b multiple"),
    lines(SENT_WINDOWS, f"{CHECKED} -b multiple -W 3"),
    lines(SENT_WINDOWS, by_binding("native", "-b multiple -W 3")),
    lines(ONE_SIDED_WINDOWS, f"{CHECKED} -W 3"),
    lines(ONE_SIDED_WINDOWS, by_binding("native", "-W 3")),
)
def test_memory_for_each_message(battery: Battery, line: Line) -> None:
    passes(battery(line))


@pytest.mark.product
@each_line(
    lines(having("layout"), f"{QUICK} -D vect:4:3", "--sizes 64"),
    lines(having("layout"), f"{QUICK} -D vect:4:3 --binding native", "--sizes 64"),
)
def test_gaps_between_elements_are_not_sent(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    assert [row["payload_bytes"] for row in record.measured] == [48]


@pytest.mark.product
@each_line(
    lines(named(EVERY_TYPE), f"{CHECKED} -T all", "--sizes 32,4096"),
    lines(named(EVERY_TYPE), by_binding("native", "-T all"), "--sizes 32,4096"),
    lines(named("fop_latency"), f"{CHECKED} -T all"),
    lines(named("get_acc_latency"), f"{CHECKED} -T all", "--sizes 32,4096"),
)
def test_data_of_every_type_pass(battery: Battery, line: Line) -> None:
    record = battery(line)
    sizes = 2 if "--sizes" in line.arguments else 1
    passes(record, rows=16 * sizes)
    assert record.out.count("# Datatype: ") == 16


@each_line(lines(named("exscan"), CHECKED, ranks=1))
def test_where_nothing_arrives_nothing_passes(battery: Battery, line: Line, tmp_path: Path) -> None:
    record = battery(line)
    assert (record.code, record.validation) == (0, {None})
    (tmp_path / "table.txt").write_text(record.out)
    assert load(tmp_path / "table.txt").rows.validation.isna().tolist() == [True, True]


@each_line(lines(WITHOUT_DATA, QUICK))
def test_what_moves_no_data_runs(battery: Battery, line: Line) -> None:
    record = battery(line)
    if "spawn" in line.arguments and record.error:
        pytest.skip(record.error)
    assert not record.error, record.error
    assert len(record.measured) == 1


@pytest.mark.product
@each_line(lines(WITH_DATA, by_binding("array")))
def test_bare_arrays_carry_the_same_data(battery: Battery, line: Line) -> None:
    if "alltoallw" in line.arguments[0]:
        refused(battery(line), "binding array has no alltoallw")
    else:
        passes(battery(line))


def has_persistent_form(function: str) -> bool:
    """Whether MPI can set up a call of a function, blocking or not."""
    names = [f"{name}_init".capitalize() for name in (function, function.removeprefix("i"))]
    return any(hasattr(kind, name) for kind in COMMUNICATORS for name in names)


@pytest.mark.product
@each_line(lines(WITH_DATA, by_binding("persistent")))
def test_persistent_requests_carry_the_same_data(battery: Battery, line: Line) -> None:
    (benchmark,) = named(line.arguments[0])
    if not all(map(has_persistent_form, prepared(benchmark))):
        refused(battery(line), "which MPI cannot set up")
    elif "this MPI library lacks" not in battery(line).error:
        passes(battery(line))


@pytest.mark.product
@each_line(lines(WITH_DATA, by_binding("pickle")), lines(WITH_DATA, by_binding("pkl5")))
def test_objects_carry_the_same_data_where_mpi4py_takes_them(battery: Battery, line: Line) -> None:
    (benchmark,) = named(line.arguments[0])
    called, record = functions(benchmark), battery(line)
    whole = called & PICKLED_WHOLE or "threads" in benchmark.options
    if not called <= TAKE_OBJECTS:
        refused(record, f"binding {line.binding} has no ")
    elif line.binding == "pkl5" and whole:
        refused(record, "use --binding pickle")
    else:
        passes(record)


@each_line(
    lines(named("alltoallw"), f"{QUICK} --binding array"),
    lines(named("allgather"), f"{QUICK} --binding pickle -l"),
    lines(named("allgather"), f"{QUICK} --binding pickle -D vect:4:3"),
    lines(named("neighbor_allgather"), QUICK, ranks=2),
    lines(named("neighbor_allgather"), f"{QUICK} -N cart:2:1", ranks=3),
    lines(named("bw_fan_in"), f"{QUICK} --node-map 4", ranks=4),
    lines(named("bw_fan_in"), f"{QUICK} --node-map 0,0,0,1", ranks=4),
    lines(named("latency_mt"), f"{QUICK} -t 0"),
    lines(named("cas_latency"), f"{QUICK} -T float32"),
    lines(named("put_latency"), f"{QUICK} -w heap"),
    lines(named("put_bibw"), f"{QUICK} -s flush"),
    lines(named("put_latency"), QUICK, ranks=3),
    lines(named("iallreduce"), f"{QUICK} -t -1"),
)
def test_what_cannot_be_done_is_one_sentence(battery: Battery, line: Line) -> None:
    record = battery(line)
    refused(record, " ")
    assert "\n" not in record.error


def test_native_calls_in_a_session_and_for_every_type(mpiexec: Run) -> None:
    options = ("-c", "-u", "0", "--sizes", "32,4096", "-T", "all", "-I", "--binding", "native")
    job = succeeded(mpiexec(2, "allreduce", *QUICK.split(), *options))
    assert job.sentences == []
    assert [row[-1] for row in job.rows] == ["Pass"] * 32


def test_narrow_sums_do_not_overflow_on_many_ranks(mpiexec: Run) -> None:
    job = mpiexec(9, "allreduce", "-i", "1", "-c", "-u", "0", "--sizes", "1,64", "-T", "int8")
    assert job.code == 0
    assert [row[-1] for row in job.rows] == ["Pass"] * 2


ONE_OF_EACH_FAMILY = {
    benchmark.family: line for benchmark, line in zip(MEASURED, lines(MEASURED, QUICK), strict=True)
}


@pytest.mark.parametrize("family", ONE_OF_EACH_FAMILY)
def test_a_benchmark_of_each_family_in_a_job_of_its_own(mpiexec: Run, family: str) -> None:
    line = ONE_OF_EACH_FAMILY[family]
    job = succeeded(mpiexec(line.ranks, *line.arguments))
    assert job.sentences == []
    assert len(job.rows) in (1, 2)


def test_session_instead_of_init(mpiexec: Run) -> None:
    for name in ("allreduce", "iallreduce", "put_latency"):
        job = succeeded(mpiexec(2, name, *CHECKED.split(), "--sizes", "8,4096", "-I"))
        assert [row[-1] for row in job.rows] == ["Pass"] * 2


def test_hyphens_and_native_names_mean_the_same(mpiexec: Run) -> None:
    for name in ("multi-lat", "osu_multi_lat"):
        assert mpiexec(2, name, *QUICK.split(), "--sizes", "8").code == 0

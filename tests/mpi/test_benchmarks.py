"""Every benchmark runs on real ranks, and the data that arrives is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omb_py.benchmarks import Ranks, all_benchmarks
from tests.conftest import Finished

SIZES = "0,1,4,8,1000,4096,65536"
QUICK = ("-i", "2", "-x", "1")
CHECKED = (*QUICK, "-c", "-u", "1", "--sizes", SIZES)
BENCHMARKS = list(all_benchmarks())
WITH_DATA = [benchmark for benchmark in BENCHMARKS if benchmark.sized]
COLLECTIVES = [benchmark for benchmark in WITH_DATA if benchmark.family == "collective"]
PICKLED = (
    "latency bw bibw multi_lat mbw_mr allgather allreduce alltoall bcast gather reduce scan exscan "
    "scatter"
).split()


def names(benchmarks: list) -> list[str]:
    return [benchmark.name for benchmark in benchmarks]


def with_feature(feature: str) -> list[str]:
    return names([benchmark for benchmark in WITH_DATA if feature in benchmark.options])


def assert_all_pass(job: Finished, sizes: int = 3) -> None:
    assert job.sentences == []
    assert job.code == 0
    assert len(job.rows) >= sizes
    assert all("Pass" in row for row in job.rows)


@pytest.mark.parametrize("name", names(WITH_DATA))
def test_two_ranks_receive_what_was_sent(mpiexec: Callable[..., Finished], name: str) -> None:
    assert_all_pass(mpiexec(2, name, *CHECKED))


@pytest.mark.parametrize("name", names(COLLECTIVES))
@pytest.mark.parametrize("ranks", [1, 3])
def test_collectives_need_no_power_of_two(
    mpiexec: Callable[..., Finished], name: str, ranks: int
) -> None:
    assert_all_pass(mpiexec(ranks, name, *CHECKED, "-i", "1"))


@pytest.mark.parametrize("name", ["multi_lat", "mbw_mr"])
def test_many_pairs_receive_what_was_sent(mpiexec: Callable[..., Finished], name: str) -> None:
    assert_all_pass(mpiexec(4, name, *CHECKED, "-i", "1"))


@pytest.mark.parametrize("name", names(WITH_DATA))
def test_bytearrays_carry_the_same_data(mpiexec: Callable[..., Finished], name: str) -> None:
    assert_all_pass(mpiexec(2, name, *CHECKED, "--buffer", "bytearray"))


@pytest.mark.parametrize("name", PICKLED)
def test_pickled_objects_carry_the_same_data(mpiexec: Callable[..., Finished], name: str) -> None:
    assert_all_pass(mpiexec(2, name, *CHECKED, "--binding", "pickle"))


@pytest.mark.parametrize("name", names(WITH_DATA))
@pytest.mark.parametrize("ranks", [2, 3])
def test_native_calls_carry_the_same_data(
    mpiexec: Callable[..., Finished], name: str, ranks: int
) -> None:
    if ranks == 2 or name in names(COLLECTIVES):
        assert_all_pass(mpiexec(ranks, name, *CHECKED, "--binding", "native"))


@pytest.mark.parametrize("name", with_feature("in_place"))
def test_native_calls_in_place_and_with_any_root(
    mpiexec: Callable[..., Finished], name: str
) -> None:
    options = ("-l", "-k", "rotate") if name in with_feature("root") else ("-l",)
    job = mpiexec(3, name, *CHECKED, "-i", "3", "--binding", "native", *options)
    assert_all_pass(job)


@pytest.mark.parametrize("name", with_feature("layout"))
def test_native_calls_with_gaps_between_elements(
    mpiexec: Callable[..., Finished], name: str
) -> None:
    job = mpiexec(2, name, *QUICK, "-D", "vect:4:3", "--sizes", "64", "--binding", "native")
    assert job.code == 0
    assert job.rows[0][-1] == "48"


def test_native_calls_in_a_session_and_for_every_type(mpiexec: Callable[..., Finished]) -> None:
    options = ("-c", "-u", "0", "--sizes", "32,4096", "-T", "all", "-I", "--binding", "native")
    assert_all_pass(mpiexec(2, "allreduce", *QUICK, *options), sizes=32)


@pytest.mark.parametrize("name", sorted(set(names(WITH_DATA)) - {"alltoallw"}))
def test_bare_arrays_carry_the_same_data(mpiexec: Callable[..., Finished], name: str) -> None:
    assert_all_pass(mpiexec(2, name, *CHECKED, "--binding", "array"))


@pytest.mark.parametrize("name", names(WITH_DATA))
def test_persistent_requests_carry_the_same_data(
    mpiexec: Callable[..., Finished], name: str
) -> None:
    job = mpiexec(2, name, *CHECKED, "--binding", "persistent")
    if job.code == 0:
        assert_all_pass(job)
        return
    (sentence,) = job.sentences
    assert f"binding persistent has no {name}: this MPI library lacks" in sentence


@pytest.mark.parametrize(
    "name", ["latency", "multi_lat", "allgather", "alltoall", "bcast", "gather", "scatter"]
)
def test_objects_with_data_out_of_band(mpiexec: Callable[..., Finished], name: str) -> None:
    assert_all_pass(mpiexec(2, name, *CHECKED, "--binding", "pkl5"))


@pytest.mark.parametrize(
    ("name", "binding", "words"),
    [
        ("alltoallw", "array", "binding array has no alltoallw"),
        ("allreduce", "pkl5", "binding pkl5 has no allreduce"),
        ("bw", "pkl5", "binding pkl5 cannot post receives"),
    ],
)
def test_what_a_binding_lacks_is_one_sentence(
    mpiexec: Callable[..., Finished], name: str, binding: str, words: str
) -> None:
    job = mpiexec(2, name, *QUICK, "--binding", binding)
    assert job.code != 0
    (sentence,) = job.sentences
    assert words in sentence


@pytest.mark.parametrize("name", sorted(set(names(WITH_DATA)) - set(PICKLED)))
def test_what_objects_cannot_do_is_one_sentence(
    mpiexec: Callable[..., Finished], name: str
) -> None:
    job = mpiexec(2, name, *QUICK, "--binding", "pickle")
    assert job.code != 0
    (sentence,) = job.sentences
    assert f"binding pickle has no {name}" in sentence
    assert job.rows == []


@pytest.mark.parametrize("name", with_feature("in_place"))
def test_in_place(mpiexec: Callable[..., Finished], name: str) -> None:
    assert_all_pass(mpiexec(3, name, *CHECKED, "-i", "1", "-l"))


@pytest.mark.parametrize("name", with_feature("root"))
@pytest.mark.parametrize("options", [("-k", "rotate"), ("-k", "fixed:2", "-l")])
def test_any_rank_can_be_the_root(
    mpiexec: Callable[..., Finished], name: str, options: tuple[str, ...]
) -> None:
    assert_all_pass(mpiexec(3, name, *CHECKED, "-i", "3", "-u", "0", *options))


@pytest.mark.parametrize("name", with_feature("window"))
def test_memory_for_each_message_of_a_window(mpiexec: Callable[..., Finished], name: str) -> None:
    assert_all_pass(mpiexec(2, name, *CHECKED, "-W", "3", "-b", "multiple"))


@pytest.mark.parametrize("name", ["latency", "allreduce", "reduce_scatter", "alltoallw"])
def test_every_type(mpiexec: Callable[..., Finished], name: str) -> None:
    job = mpiexec(2, name, *QUICK, "-c", "-u", "0", "--sizes", "32,4096", "-T", "all")
    assert_all_pass(job, sizes=32)
    assert job.out.count("# Datatype: ") == 16


def test_narrow_sums_do_not_overflow_on_many_ranks(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(9, "allreduce", "-i", "1", "-c", "-u", "0", "--sizes", "1,64", "-T", "int8")
    assert_all_pass(job, sizes=2)


@pytest.mark.parametrize("name", ["barrier", *with_feature("layout")])
def test_runs_without_checking(mpiexec: Callable[..., Finished], name: str) -> None:
    options = ("-D", "vect:4:3", "--sizes", "64") if name != "barrier" else ()
    job = mpiexec(2, name, *QUICK, *options)
    assert job.code == 0
    assert len(job.rows) == 1
    assert options == () or job.rows[0][-1] == "48"


def test_session_instead_of_init(mpiexec: Callable[..., Finished]) -> None:
    assert_all_pass(mpiexec(2, "allreduce", *CHECKED, "-I"))


def test_hyphens_and_native_names_mean_the_same(mpiexec: Callable[..., Finished]) -> None:
    for name in ("multi-lat", "osu_multi_lat"):
        assert mpiexec(2, name, *QUICK, "--sizes", "8").code == 0


def test_every_rule_for_ranks_is_tested_here() -> None:
    pairs = {benchmark.name for benchmark in BENCHMARKS if benchmark.ranks is Ranks.EVEN}
    assert pairs == {"multi_lat", "mbw_mr"}

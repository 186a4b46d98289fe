"""The algorithm named is the one that runs: counted message by message, on both libraries."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from omb_py.algorithms import DEFAULT, Algorithm, AlgorithmLibrary, library
from omb_py.algorithms.patterns import CollectiveShape, Pattern, Round, messages
from omb_py.algorithms.rules import LibraryBuild, Rule, rules_format
from omb_py.core.mpi import abi
from omb_py.simulation.collectives import of_library
from omb_py.simulation.program import Send
from tests.conftest import Run, rows_of, run, succeeded
from tests.helpers.refusals import assert_refused
from tests.helpers.sent_messages import Sent, difference
from tests.layers import MANY_RANKS
from tests.mpi.vendor import VENDOR

pytestmark = pytest.mark.xdist_group(MANY_RANKS)

PROGRAMS = Path(__file__).parent / "programs"
COUNTING = Path(__file__).parent / "counting" / "ucx.c"
Traffic: TypeAlias = Callable[..., list[dict[str, Any]]]
SIZES = (8, 64, 1000, 65536, 840000)
"""Less than an element for each rank, the same for each, unequal parts, segments."""

UNKNOWN = 1 << 48
"""What the counting library adds for a message whose bytes it cannot know."""

OPEN_MPI = {
    "OMPI_MCA_pml_monitoring_enable": "1",
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_priority": "77",
}
OPEN_MPI_BY_UCX = {
    "OMPI_MCA_pml_monitoring_enable": "0",
    "OMPI_MCA_pml": "ucx",
    "OMPI_MCA_pml_ucx_tls": "any",
    "OMPI_MCA_pml_ucx_devices": "any",
    "UCX_TLS": "self,sm,tcp",
}


@pytest.fixture(scope="session")
def vendor() -> str:
    """The MPI library of this environment."""
    return VENDOR


@pytest.fixture(scope="session")
def before_ucx(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which a library counts what goes to UCX."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build what counts messages")
    built = tmp_path_factory.mktemp("counting") / "libcounting.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(built), str(COUNTING)]
    subprocess.run([*command, "-ldl"], check=True)
    return {"LD_PRELOAD": str(built)}


@pytest.fixture(scope="session")
def counting(vendor: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment in which messages are counted."""
    if vendor == "Open MPI":
        return OPEN_MPI
    before_ucx: dict[str, str] = request.getfixturevalue("before_ucx")
    return before_ucx | {"MPIR_CVAR_NOLOCAL": "1"}


@pytest.fixture(scope="session")
def ordering(vendor: str, before_ucx: dict[str, str]) -> dict[str, str]:
    """What to add to that environment so that the order of messages is known."""
    return before_ucx | OPEN_MPI_BY_UCX if vendor == "Open MPI" else {}


@pytest.fixture(scope="session")
def traffic(
    mpi: str, counting: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Traffic:
    """``traffic(ranks, *arguments)``: what each rank sent in each call; asked again, known."""

    @cache
    def start(
        ranks: int, *arguments: str, sizes: tuple[int, ...] = SIZES, **environment: str
    ) -> list[dict[str, Any]]:
        folder = tmp_path_factory.mktemp("traffic")
        output = folder / "traffic.json"
        listed = ",".join(map(str, sizes))
        program = [sys.executable, str(PROGRAMS / "traffic.py"), str(output), listed, *arguments]
        command = [mpi, "-n", str(ranks), *program]
        succeeded(run(command, counting | environment, folder, timeout=240))
        found: list[dict[str, Any]] = json.loads(output.read_text())
        return found

    return start


def sent_of(call: dict[str, Any]) -> Sent:
    """Messages and bytes, the latter None where they are not known."""
    return [[(m, None if n >= UNKNOWN else n) for m, n in row] for row in call["sent"]]


def simulated(algorithm: Algorithm) -> Pattern:
    """The messages of an algorithm's program, and those of ranks to themselves, which it lacks."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        program = of_library(algorithm, shape)
        for rank in range(shape.ranks):
            sends = (one for one in program.operations(rank) if isinstance(one, Send))
            yield Round([(rank, one.peer, one.nbytes) for one in sends])
        yield Round([one for one in messages(algorithm.rounds, shape) if one[0] == one[1]])

    return rounds


def differences(
    found: AlgorithmLibrary, calls: list[dict[str, Any]], in_place: bool = False
) -> list[str]:
    """What is wrong with calls that were made, in words; checks that some were compared."""
    wrong, compared = [], set()
    for call in calls:
        if call["word"] == DEFAULT or call.get("refused"):
            continue
        algorithm = found.algorithm(call["function"], call["word"])
        shape = CollectiveShape(call["ranks"], call["bytes"], call["itemsize"], in_place)
        where = f"{call['function']} {call['word']} {call['ranks']} ranks {call['bytes']} bytes"
        for pattern in (algorithm.rounds, simulated(algorithm)):
            try:
                unlike = difference(pattern, shape, sent_of(call))
            except NotImplementedError:
                break
            compared.add((call["function"], call["word"]))
            if unlike is not None:
                wrong.append(f"{where}: {unlike}")
    assert len(compared) > 1
    return wrong


@pytest.mark.long
@pytest.mark.parametrize(
    "ranks", [2, 3, 4, 6, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (5, 7, 8))]
)
def test_every_word_sends_what_its_algorithm_does(
    traffic: Traffic, vendor: str, ranks: int
) -> None:
    """For fewer elements than ranks, for more, and for messages of several segments."""
    assert differences(library(vendor), traffic(ranks)) == []


@pytest.mark.long
def test_every_word_in_place(traffic: Traffic, vendor: str) -> None:
    calls = traffic(5, "in-place", sizes=(64, 65536))
    assert differences(library(vendor), calls, in_place=True) == []


@pytest.mark.long
def test_each_word_is_compared(traffic: Traffic, vendor: str) -> None:
    found = library(vendor)
    calls = traffic(4) + traffic(2)
    seen = {(call["function"], call["word"]) for call in calls if not call.get("refused")}
    missing = {(name, word) for name in found.table for word in found.words(name)} - seen
    # Open MPI's allgatherv cannot be chosen anew in a running job: see the next test
    assert {name for name, _ in missing} <= {"allgatherv"}


@pytest.mark.long
@pytest.mark.parametrize("ranks", [4, 5, 6])
def test_open_mpi_allgatherv_is_chosen_before_the_start(
    traffic: Traffic, vendor: str, ranks: int
) -> None:
    if vendor != "Open MPI":
        pytest.skip("MPICH's is among all others")
    found = library(vendor)
    for algorithm in found.table["allgatherv"]:
        if algorithm.refusal(CollectiveShape(ranks, 64)):
            continue
        chosen = {"OMPI_MCA_coll_tuned_allgatherv_algorithm": algorithm.value}
        calls = traffic(ranks, "allgatherv", sizes=(8, 1000, 65536), **chosen)
        made = [call for call in calls if call["word"] == algorithm.word]
        assert len(made) == 3
        for call in made:
            shape = CollectiveShape(ranks, call["bytes"])
            assert difference(algorithm.rounds, shape, sent_of(call)) is None, algorithm.word


@pytest.mark.long
def test_patterns_are_distinct(traffic: Traffic, vendor: str) -> None:
    """What one word sent is not what another sends; but for those that differ only in order."""
    found = library(vendor)
    same = {"linear", "pairwise", "linear_sync", "linear_nonblocking"}
    for call in traffic(6):
        if call["bytes"] not in (0, 65536) or call["word"] == DEFAULT or call.get("refused"):
            continue
        shape = CollectiveShape(6, call["bytes"], call["itemsize"])
        for other in found.table[call["function"]]:
            alike = other.word == call["word"] or {other.word, call["word"]} <= same
            if alike or other.refusal(shape):
                continue
            try:
                unlike = difference(other.rounds, shape, sent_of(call))
            except NotImplementedError:
                continue
            assert unlike is not None, (call["function"], call["word"], other.word)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [4, 6, pytest.param(8, marks=pytest.mark.exhaustive)])
def test_ranks_send_in_the_order_of_rounds(
    traffic: Traffic, vendor: str, ordering: dict[str, str], ranks: int
) -> None:
    """Messages of one round may come in any order."""
    compared = set()
    for call in traffic(ranks, **ordering):
        if call["word"] == DEFAULT or call.get("refused") or 0 < call["bytes"] < 1000:
            continue
        algorithm = library(vendor).algorithm(call["function"], call["word"])
        shape = CollectiveShape(ranks, call["bytes"], call["itemsize"])
        try:
            rounds = [list(one.sends) for one in algorithm.rounds(shape) for _ in range(one.times)]
        except NotImplementedError:
            continue
        for rank, order in enumerate(call["order"]):
            name = call["function"], call["word"], call["bytes"], rank
            made = iter([target for target, _ in order if target != rank])
            for sends in rounds:
                wanted = sorted(target for source, target, _ in sends if source == rank != target)
                assert sorted(islice(made, len(wanted))) == wanted, name
            assert not list(made), name
        compared.add(call["word"])
    assert len(compared) > 5


@pytest.mark.long
def test_number_needs_dynamic_rules(traffic: Traffic, vendor: str) -> None:
    """The trap that the option is made for."""
    if vendor != "Open MPI":
        pytest.skip("a trap of Open MPI")
    number = {"OMPI_MCA_coll_tuned_allreduce_algorithm": "4"}

    def of_library(**environment: str) -> Sent:
        calls = traffic(5, "allreduce", sizes=(1000,), **environment)
        return sent_of(next(call for call in calls if call["word"] == DEFAULT))

    own = of_library(OMPI_MCA_coll_tuned_use_dynamic_rules="0")
    ring = library(vendor).algorithm("allreduce", "ring").rounds
    ignored = of_library(OMPI_MCA_coll_tuned_use_dynamic_rules="0", **number)
    obeyed = of_library(**number)
    assert ignored == own
    assert difference(ring, CollectiveShape(5, 1000, 4), ignored) is not None
    assert difference(ring, CollectiveShape(5, 1000, 4), obeyed) is None


RULES = {"allreduce": "ring", "bcast": "scatter_ring", "allgather": "ring", "alltoall": "bruck"}
"""Algorithms that no library takes by itself on four ranks for the sizes of the rules below."""


@pytest.mark.long
def test_file_of_rules_makes_the_library_send_what_its_algorithms_do(
    traffic: Traffic, vendor: str, tmp_path: Path
) -> None:
    """From 64 to 1000 bytes on four ranks; elsewhere it sends what it sends without the file."""
    found, form = library(vendor), rules_format(vendor)
    rules = [Rule(name, 4, 64, 1000, found.algorithm(name, word)) for name, word in RULES.items()]
    build = LibraryBuild(vendor, (5, 0, 10), Path(abi.library_path()))
    paths = [tmp_path / name for name in form.files]
    for path, text in zip(paths, form.write(rules, ["of a test"], build), strict=True):
        path.write_text(text)
    compared = {True: 0, False: 0}
    for ranks in (4, 5):
        own, obeyed = (
            {
                (call["function"], call["bytes"]): call
                for call in traffic(ranks, *RULES, **environment)
                if call["word"] == DEFAULT
            }
            for environment in ({}, form.environment(paths))
        )
        for (name, nbytes), call in obeyed.items():
            inside = ranks == 4 and 64 <= nbytes <= 1000
            if inside:
                shape = CollectiveShape(ranks, nbytes, call["itemsize"])
                rounds = found.algorithm(name, RULES[name]).rounds
                assert difference(rounds, shape, sent_of(call)) is None, (name, nbytes)
                unlike = difference(rounds, shape, sent_of(own[name, nbytes]))
                assert unlike is not None, (name, nbytes)
            else:
                assert sent_of(call) == sent_of(own[name, nbytes]), (name, nbytes, ranks)
            compared[inside] += 1
    assert compared[True] == 2 * len(RULES)
    assert compared[False] >= 4 * len(RULES)


def test_mpich_obeys_only_without_its_device(mpi: str, vendor: str, tmp_path: Path) -> None:
    """Above the level at which algorithms are chosen, the device has collectives of its own."""
    if vendor != "MPICH":
        pytest.skip("a trap of MPICH")
    command = [mpi, "-n", "3", sys.executable]
    command.append(str(PROGRAMS / "device_collectives.py"))
    chosen = {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "reduce_scatter_allgather"}
    refused = {}
    for device in ("0", "1"):
        more = {"MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE": device}
        job = succeeded(run(command, chosen | more, tmp_path, timeout=60))
        refused[device] = int(job.out.split()[-1])
    assert refused["0"] == 0
    assert refused["1"] > 0


@pytest.mark.long
@pytest.mark.parametrize("binding", ["buffer", "prebound", "array", "native"])
def test_size_that_falls_back_is_left_out(mpiexec: Run, tmp_path: Path, binding: str) -> None:
    output = tmp_path / "rows.csv"
    job = mpiexec(
        5,
        "allreduce",
        *("--coll-algorithm", "rabenseifner", "--binding", binding),
        *("--sizes", "4,8,1024", "-i", "5", "--output", str(output)),
    )
    words = "left out 4, 8 bytes rabenseifner MPI_Allreduce of 4 bytes 5 ranks"
    assert_refused(job, 3, words)
    (row,) = rows_of(output)
    assert row["bytes"] == "1024"
    assert row["library_algorithm"] == "rabenseifner"


@pytest.mark.usefixtures("long_time")
def test_data_is_right_with_every_word_of_allreduce_and_bcast(mpiexec: Run, vendor: str) -> None:
    for name in ("allreduce", "bcast"):
        for word in library(vendor).words(name):
            job = mpiexec(
                4, name, "--coll-algorithm", word, "-c", "--sizes", "4096", "-i", "3", "-u", "1"
            )
            rows = [row[-1] for row in job.rows]
            refused = word == "segmented_ring"
            assert (job.code, rows) == ((3, []) if refused else (0, ["Pass"])), (name, word)


@pytest.mark.long
def test_the_library_chooses_by_default(mpiexec: Run, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    for arguments in ([], ["--coll-algorithm", "default"]):
        job = mpiexec(2, "bcast", *arguments, "--sizes", "8", "-i", "3", "--output", str(output))
        assert job.code == 0, job.err
    assert [row["library_algorithm"] for row in rows_of(output)] == ["", "default"]


def test_a_variable_that_says_something_else_is_an_error(mpiexec: Run, vendor: str) -> None:
    name, value = {
        "MPICH": ("MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE", "1"),
        "Open MPI": ("OMPI_MCA_coll_tuned_use_dynamic_rules", "0"),
    }[vendor]
    job = mpiexec(2, "allreduce", "--coll-algorithm", "ring", **{name: value})
    assert_refused(job, 2, f"{name}={value} --coll-algorithm ring")


def test_the_option_comes_too_late_where_mpi_is_started(mpi: str, tmp_path: Path) -> None:
    program = tmp_path / "late.py"
    program.write_text(
        "from mpi4py import MPI\n"
        "import omb_py\n"
        "from omb_py.core.errors import OmbError\n"
        "try:\n"
        "    omb_py.run('allreduce', sizes=[8], coll_algorithm='ring')\n"
        "except OmbError as error:\n"
        "    print(error)\n"
    )
    command = [mpi, "-n", "2", sys.executable, str(program)]
    job = succeeded(run(command, {}, tmp_path, timeout=60))
    assert job.out.count("MPI is started already") == 2


@pytest.mark.long
def test_a_variant_is_kept_as_it_is(mpiexec: Run, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    name = 'UCX_TLS=tcp,self "x"; $(true)'
    job = mpiexec(2, "latency", "--label", name, "--sizes", "8", "-i", "3", "--output", str(output))
    assert job.code == 0, job.err
    assert [row["variant"] for row in rows_of(output)] == [name]
    succeeded(mpiexec(2, "init", "--label", "A=1", "--output", str(output), "--force"))
    assert {row["variant"] for row in rows_of(output)} == {"A=1"}
    assert_refused(mpiexec(2, "latency", "--label", "a\nb"), 2, "cannot be printed")

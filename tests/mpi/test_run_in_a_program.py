"""`omb_py.run` inside a program of somebody's: rows on rank 0, and the program goes on."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from omb_py.core import VERSION
from tests.conftest import Finished, Run, run, succeeded

PROGRAM = Path(__file__).parent / "programs" / "measuring.py"
OTHER_BINDINGS = PROGRAM.with_name("measuring_bindings.py")


@pytest.mark.parametrize("started", ["before", "after"])
def test_a_program_measures_and_goes_on(mpi: str, tmp_path: Path, started: str) -> None:
    command = [mpi, "-n", "2", sys.executable, str(PROGRAM), started]
    job = succeeded(run(command, {}, tmp_path, timeout=120))
    printed = job.out.splitlines()
    assert printed.count("sum 1 of 2") == 2
    assert "[8, 1024] [2] [1]" in printed
    assert any(re.match("True True (MP|Op)", line) for line in printed)
    assert "[1, 2, 4] ['native'] ['Pass']" in printed
    assert any(line.startswith("True ") and line.endswith(f"omb-py {VERSION}") for line in printed)
    refused = [line for line in printed if line.startswith("refused: ")]
    assert len(refused) == 5
    for line, words in zip(
        refused,
        (
            "no option 'no_such_option'",
            "unknown buffer 'numpi'",
            "run it alone",
            "window_size: 0 is not in the range",
            "did you mean sizes",
        ),
        strict=True,
    ):
        assert words in line


@pytest.fixture
def on_two_ranks(mpi: str, tmp_path: Path) -> Run:
    """``on_two_ranks(text)`` runs the text of a program on two ranks."""

    def start(text: str) -> Finished:
        return run([mpi, "-n", "2", sys.executable, "-c", text], {}, tmp_path, timeout=60)

    return start


UNCHANGED = r"""
import gc, os, signal
import omb_py
import mpi4py.util.pkl5 as pkl5
from mpi4py import MPI

def state():
    handlers = [MPI.COMM_WORLD.Get_errhandler() == MPI.ERRORS_RETURN]
    handlers += [signal.getsignal(number) for number in signal.valid_signals()]
    serializers = MPI.pickle.PROTOCOL, pkl5.pickle.PROTOCOL
    return dict(os.environ), gc.isenabled(), os.sched_getaffinity(0), handlers, serializers

before = state()
for words in ARGUMENTS:
    for sizes in ("8", "no size"):
        try:
            omb_py.run("bcast", sizes=sizes, iterations=5, **words)
        except omb_py.OmbError as error:
            os.write(1, b"refused\n")
    for old, new in zip(before, state()):
        assert old == new, words
os.write(1, b"unchanged\n")
"""


def test_a_program_s_state_is_unchanged_by_a_run(on_two_ranks: Run) -> None:
    arguments = [
        {"binding": "pickle", "pickle_protocol": 0},
        {"binding": "pkl5", "pickle_protocol": 5},
        {"binding": "native", "validation": True},
        {"timeout": 20},
    ]
    arguments += [{"binding": "grpc"}] if find_spec("grpc") else []
    job = succeeded(on_two_ranks(UNCHANGED.replace("ARGUMENTS", repr(arguments))))
    lines = job.out.splitlines()
    assert lines.count("unchanged") == 2
    assert lines.count("refused") == 2 * len(arguments)


AFTER_AN_ERROR = """
import os, sys
import omb_py
try:
    omb_py.run("allreduce", OPTION, sizes="8", iterations=5)
except omb_py.OmbError:
    from mpi4py import MPI
    sys.stdout.write(f"sum {MPI.COMM_WORLD.allreduce(1)}{os.linesep}")
"""


@pytest.mark.parametrize("option", ["coll_algorithm='none such'", "root=9", "device=9"])
def test_mpi_starts_and_ends_after_a_refused_run(on_two_ranks: Run, option: str) -> None:
    job = succeeded(on_two_ranks(AFTER_AN_ERROR.replace("OPTION", option)))
    assert job.out.splitlines() == ["sum 2", "sum 2"], job.err


OF_RANKS = """
import os, omb_py
own = [OF_RANK_0, OF_RANK_1][int(os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"])]
try:
    found = omb_py.run(own.pop("benchmark", "latency"), **{"sizes": 8, "iterations": 5} | own)
    text = found and [found.rows[0][name] for name in ("bytes", "iterations", "warmup")]
except omb_py.OmbError as error:
    text = error
os.write(1, f"{text}{os.linesep}".encode())
"""


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({}, {"sizes": "16"}, "another sizes (16, not 8) than rank 0"),
        ({}, {"benchmark": "bw"}, "another benchmark (bw, not latency) than rank 0"),
        ({}, {"benchmark": "no_such"}, "unknown benchmark 'no_such'"),
        ({"benchmark": "init", "sizes": None, "iterations": None}, {}, "run it alone"),
        ({"no_such": 1}, {}, "no option 'no_such'"),
        ({"session": True}, {}, "another session (off, not on) than rank 0"),
        ({"benchmark": "bcast", "coll_algorithm": "x"}, {"benchmark": "bcast"}, "no algorithm 'x'"),
        ({"iterations": 0}, {"iterations": 0}, "iterations: 0 is not in the range"),
        ({"sizes": []}, {"sizes": []}, "sizes"),
    ],
)
def test_arguments_that_differ_or_are_wrong_are_one_sentence_on_every_rank(
    on_two_ranks: Run, first: dict[str, Any], second: dict[str, Any], words: str
) -> None:
    program = OF_RANKS.replace("OF_RANK_0", repr(first)).replace("OF_RANK_1", repr(second))
    job = succeeded(on_two_ranks(program))
    one, other = job.out.splitlines()
    assert one == other
    assert words in one


@pytest.mark.any_library
def test_a_warmup_of_0_and_a_single_size_are_taken(on_two_ranks: Run) -> None:
    program = OF_RANKS.replace("OF_RANK_0, OF_RANK_1", "{'warmup': 0}, {'warmup': 0}")
    job = succeeded(on_two_ranks(program))
    assert sorted(job.out.splitlines()) == ["None", "[8, 5, 0]"]


WITHOUT_PANDAS = """
import sys
sys.modules["pandas"] = None
import omb_py
measured = omb_py.run("latency", sizes="8", iterations=10)
if measured:
    print([row["bytes"] for row in measured.rows], flush=True)
    try:
        measured.to_pandas()
    except omb_py.OmbError as error:
        print(error, flush=True)
"""


@pytest.mark.any_library
def test_without_pandas_rows_are_a_list(on_two_ranks: Run) -> None:
    rows, refused = succeeded(on_two_ranks(WITHOUT_PANDAS)).out.splitlines()
    assert rows == "[8]"
    assert "the Python package pandas" in refused


GOES_ON = r"""
import omb_py, os, time
for size in ("8", "no size"):
    try:
        omb_py.run("latency", sizes=size, iterations=10, timeout=5)
    except omb_py.OmbError:
        os.write(1, b"refused\n")
time.sleep(6)
children = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
os.write(1, f"goes on {children}\n".encode())
"""


@pytest.mark.long
def test_a_timeout_ends_with_the_measurement(on_two_ranks: Run) -> None:
    job = succeeded(on_two_ranks(GOES_ON))
    assert sorted(job.out.splitlines()) == ["goes on []"] * 2 + ["refused"] * 2


@pytest.mark.long
def test_bindings_close_what_they_opened(mpi: str, tmp_path: Path) -> None:
    """A group that the program made with torch goes on as it was."""
    packages = {"grpc": "grpc", "torch": "torch"}
    names = ["tcp", "asyncio", "coroutine"]
    names += [name for name, package in packages.items() if find_spec(package)]
    command = [mpi, "-n", "3", sys.executable, str(OTHER_BINDINGS), *names]
    job = succeeded(run(command, {}, tmp_path, timeout=120))
    assert job.out.splitlines() == [f"{name} ['Pass'] 0" for name in names]

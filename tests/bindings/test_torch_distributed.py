"""Binding torch on gloo, started by torchrun: real processes, a real torch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Finished, Run, rows_in_text, run, succeeded
from tests.helpers import torchrun
from tests.helpers.refusals import missing
from tests.helpers.torchrun import needs_torchrun

pytestmark = [needs_torchrun, pytest.mark.slow]


@pytest.fixture
def measure(tmp_path: Path) -> Run:
    """Runs a benchmark of binding torch on ranks that torchrun starts."""

    def run(line: str, ranks: int = 2) -> Finished:
        words = (*line.split(), "--binding", "torch", "-i", "10", "-x", "2")
        return torchrun.run(*words, folder=tmp_path, ranks=ranks)

    return run


CHECKED = (
    "latency -m 0:64",
    "bibw -m 1:4096",
    "allreduce -m 4:64 -T mpi_float",
    "allreduce -m 4:64 -l",
    "reduce -k rotate -m 4:64",
    "allgather -m 1:16",
    "alltoallv -m 1:16",
    "gather -k fixed:1 -m 1:16",
    "scatter -l -m 1:16",
    "iallreduce -m 4:4",
    "allreduce --p2p-algorithm ring -m 4:64",
)


@pytest.mark.long
@pytest.mark.product
@pytest.mark.parametrize("line", CHECKED)
def test_the_data_arrives(measure: Run, line: str) -> None:
    ranks = 2 if line.startswith(("latency", "bibw")) else 3
    done = succeeded(measure(f"{line} -c", ranks))
    assert "Pass" in done.out
    assert "Fail" not in done.out


@pytest.mark.long
def test_starting_a_call_is_told_apart_from_waiting_for_it(measure: Run, tmp_path: Path) -> None:
    succeeded(measure("allreduce -m 4:4 --output rows.csv"))
    text = (tmp_path / "rows.csv").read_text()
    assert "# backend: gloo" in text.splitlines()
    (row,) = rows_in_text(text)
    assert 0 < float(row["queued_mean_us"]) < float(row["sample_mean_us"])


@pytest.mark.long
def test_its_threads_have_ended_when_python_does(measure: Run, tmp_path: Path) -> None:
    """One that needs Python after its end would end the process by a signal."""
    torchrun.environment(tmp_path)
    (tmp_path / "lent" / "sitecustomize.py").write_text(
        "import atexit, os\n"
        "count = lambda: len(os.listdir('/proc/self/task'))\n"
        "at_end = lambda: os.write(2, b'threads: %d\\n' % count())\n"
        "if 'TORCHELASTIC_RUN_ID' in os.environ: atexit.register(at_end)\n"
    )
    done = succeeded(measure("alltoallv -m 1:1", ranks=3))
    threads = list(map(int, re.findall(r"threads: (\d+)", done.err)))
    assert len(threads) == 3, "of the ranks"
    assert max(threads) <= 2, "the main one, and one of torch's own"


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("allreduce --backend mpi", "without mpi: --backend gloo"),
        ("allreduce --backend mine", "torch cannot connect mine"),
        ("exscan", "binding torch has no exscan"),
        ("allreduce -T longdouble", "cannot add longdouble"),
        ("bcast -D vect:4:2", "leave out -D"),
    ],
)
def test_what_it_cannot_do_is_one_sentence(measure: Run, line: str, sentence: str) -> None:
    done = measure(f"{line} -m 16:16")
    assert done.code != 0
    assert not missing(sentence, done.err)
    assert "omb_py/" not in done.err, "a traceback of ours"


@pytest.mark.long
def test_gate_leaves_out_what_torch_lacks(tmp_path: Path) -> None:
    command = torchrun.command(ranks=4, module="tests.mpi.programs.gate_by_torch")
    done = run(command, torchrun.environment(tmp_path), tmp_path, timeout=120)
    assert done.code == 0, done.err
    lines = [*["allreduce 8 True"] * 3, "lacking pack failed"]
    assert done.out.splitlines() == lines

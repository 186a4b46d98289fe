"""`omb-py gate` on the ranks of one host, which nothing can be compared with."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Timer

import pytest

from tests.conftest import Run, rows_of

pytestmark = pytest.mark.every_library


@pytest.mark.long
def test_gate_that_judges_for_longer_than_its_timeout_goes_on(mpiexec: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "drain")  # rank 0 waits until it is read
    reader = Timer(12, (tmp_path / "drain").read_text)
    reader.start()
    done = mpiexec(2, "gate", "--time", "3s", "--timeout", "6", "--drain", "drain")
    reader.join()
    assert "no progress" not in done.err
    assert done.out.count("CANNOT TELL") == 1


def test_gate_with_unknown_expected_values_is_refused_before_it_measures(mpiexec: Run) -> None:
    done = mpiexec(2, "gate", "--expected", "none.csv", "--results", "gate.csv")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("--expected none.csv: no such file") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("ranks", "words"),
    [(1, ()), (2, ("--binding", "native", "--buffer", "bytearray")), (3, ("--sizes", "1"))],
)
def test_one_host_cannot_be_judged(
    mpiexec: Run, tmp_path: Path, ranks: int, words: tuple[str, ...]
) -> None:
    # copies beyond large caches take a busy machine longer than a host has to answer
    patient = ("--time", "3s", "--timeout", "60")
    done = mpiexec(ranks, "gate", *patient, "--results", "rows.csv", *words)
    assert done.code == 7, done.err
    assert done.out.strip().splitlines()[-1].startswith("CANNOT TELL: 0 of 1 host fine, 1")
    assert {row["split"] for row in rows_of(tmp_path / "rows.csv")} == {"node"}
    assert mpiexec(1, "show", "rows.csv").code == 0


@pytest.mark.parametrize("option", ["--output", "--drain", "--results"])
def test_file_that_cannot_be_written_is_one_sentence(
    mpiexec: Run, tmp_path: Path, option: str
) -> None:
    (tmp_path / "taken").touch()
    done = mpiexec(2, "gate", "--results", "rows.csv", option, "taken/x.csv")
    assert done.code == 1
    assert not (tmp_path / "rows.csv").exists(), "nothing was measured"
    assert [text.partition(";")[0] for text in done.sentences] == [
        "omb-py: cannot write taken/x.csv: Not a directory"
    ]

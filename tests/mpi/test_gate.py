"""``omb-py gate`` on real ranks, and from its files."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Timer

from tests.conftest import Run


def test_gate_that_judges_for_longer_than_its_timeout_goes_on(mpiexec: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "drain")  # rank 0 waits until it is read
    reader = Timer(12, (tmp_path / "drain").read_text)
    reader.start()
    done = mpiexec(2, "gate", "--time", "3s", "--timeout", "3", "--drain", "drain")
    reader.join()
    assert "no progress" not in done.err
    assert done.out.count("CANNOT TELL") == 1


def test_gate_with_unknown_expected_values_is_refused_before_it_measures(mpiexec: Run) -> None:
    done = mpiexec(2, "gate", "--expected", "none.csv", "--results", "gate.csv")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("--expected none.csv: no such file") == 1

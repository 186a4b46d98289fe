"""-D sends exactly the elements that the layout names, and leaves the gaps alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import run

PROGRAM = Path(__file__).parent / "programs" / "layouts.py"


@pytest.mark.parametrize("layout", ["cont", "vect:8:3", "vect:1:1", "vect:40:39", "indx:blocks"])
@pytest.mark.parametrize("binding", ["buffer", "prebound", "native", "persistent"])
def test_every_element_of_the_layout_arrives(
    mpi: str, tmp_path: Path, layout: str, binding: str
) -> None:
    (tmp_path / "blocks").write_text("# the last block must not get lost\n1,3\n10,1\n30,7\n")
    command = [mpi, "-n", "3", sys.executable, str(PROGRAM), layout, binding]
    job = run(command, {}, tmp_path, timeout=60)
    assert job.code == 0, job.err
    assert job.out.count("has what it should") == 3

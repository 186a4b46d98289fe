"""-D sends exactly the elements that the layout names, and leaves the gaps alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import run

PROGRAM = Path(__file__).parent / "programs" / "layouts.py"
BINDINGS = ("buffer", "prebound", "native", "persistent")
LAYOUTS = ("cont", "vect:8:3", "vect:1:1", "vect:40:39", "indx:blocks")


@pytest.fixture(scope="module")
def printed(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What three ranks print of every layout with every binding."""
    folder = tmp_path_factory.mktemp("layouts")
    (folder / "blocks").write_text("# the last block must not get lost\n1,3\n10,1\n30,7\n")
    command = [mpi, "-n", "3", sys.executable, str(PROGRAM), ",".join(BINDINGS), *LAYOUTS]
    job = run(command, {}, folder, timeout=300)
    return job.out + job.err


@pytest.mark.xdist_group("layouts")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("binding", BINDINGS)
def test_every_element_of_the_layout_arrives(printed: str, layout: str, binding: str) -> None:
    for rank in range(3):
        assert f"{binding} {layout} on rank {rank}: right" in printed, printed

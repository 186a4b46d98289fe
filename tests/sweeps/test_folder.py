"""What is in a sweep's folder decides what is measured: whole rows count, torn ones do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps.files import locked, write_atomically
from omb_py.sweeps.folder import (
    DONE,
    FAILED,
    STOPPED,
    Attempt,
    Folder,
    PointState,
    whole_rows,
)
from omb_py.sweeps.libraries import Software
from omb_py.sweeps.points import SweepPoint, plan
from tests.helpers.refusals import refuses
from tests.sweeps.configs import machine, sweep

TABLE = "# run: one\nrun,benchmark,bytes,ranks,part\none,latency,8,2,\none,latency,16,2,\n"


def point(**values: object) -> SweepPoint:
    """A point of three sizes."""
    (found,) = plan(sweep({"sizes": [8, 16, 32]} | values), machine()).points
    return found


def attempt(outcome: str) -> Attempt:
    """An attempt that ended so."""
    return Attempt(started="", seconds=1.0, exit_code=0, outcome=outcome, rows=0)


@given(st.integers(0, len(TABLE)))
def test_wherever_a_table_is_cut_whole_rows_are_taken(length: int) -> None:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"cut-{os.getpid()}.csv"
    folder.write_text(TABLE[:length])
    try:
        sizes = [row["bytes"] for row in whole_rows(folder)]
    finally:
        folder.unlink()
    ends = [place for place, letter in enumerate(TABLE) if letter == "\n"]
    assert sizes == ["8", "16"][: sum(length > end for end in ends[2:])]


def test_sizes_without_a_row_are_missing_unless_given_up(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.missing(point()) == (8, 16, 32)
    folder.csv(point()).parent.mkdir()
    folder.csv(point()).write_text(TABLE)
    assert folder.missing(point()) == (32,)
    folder.note(point(), PointState(given_up=(32,)))
    assert folder.missing(point()) == ()
    assert folder.missing(point(sizes=[8, 64])) == (64,)


def test_groups_of_ranks_have_one_size_together_and_other_files(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    halves, interleaved = (
        point(benchmarks="allreduce", ranks=4, options={"split": text}) for text in ("2", "mod:2")
    )
    folder.csv(halves).parent.mkdir()
    folder.csv(halves).write_text(TABLE.replace("one,latency,16,2,\n", "one,latency,8,2,\n"))
    assert folder.measured(halves) == (8,)
    assert folder.missing(halves) == (16, 32)
    assert folder.missing(interleaved) == (8, 16, 32)


def test_parts_of_a_benchmark_are_no_sizes(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (imports,) = plan(sweep({"benchmarks": "import_time"}), machine()).points
    folder.csv(imports).parent.mkdir()
    table = "run,benchmark,bytes,ranks,part\none,import_time,,2,numpy\n"
    folder.csv(imports).write_text(table)
    assert folder.missing(imports) == (0,)
    folder.csv(imports).write_text(table + "one,import_time,,2,total\n")
    assert folder.missing(imports) == ()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"attempts": 3}', "\0\0\0"])
def test_a_state_that_is_not_whole_is_no_state(tmp_path: Path, content: str) -> None:
    folder = Folder(tmp_path)
    folder.note(point(), PointState(given_up=(8,)))
    (path,) = tmp_path.glob("state/*.state")
    path.write_text(content)
    assert folder.state(point()) == PointState()


def test_an_attempt_that_was_stopped_is_no_failure() -> None:
    assert PointState().outcome is None
    assert PointState(attempts=(attempt(STOPPED),)).outcome is None
    assert PointState(attempts=(attempt(FAILED), attempt(STOPPED))).outcome == FAILED
    assert PointState(attempts=(attempt(FAILED), attempt(DONE))).outcome == DONE


def test_the_configuration_is_kept_and_can_be_used_again(tmp_path: Path) -> None:
    from omb_py.sweeps.config import Sweep
    from omb_py.sweeps.machine import Machine
    from omb_py.sweeps.toml import read

    mine = sweep({"environment": {"A": ["x", "é'\"\\"]}, "options": {"stats": True}})
    here = machine(modules=["mpich/5"], environment={"B": "#"})
    Folder(tmp_path).prepare(mine, here, [Software()])
    assert read(tmp_path / "sweep.toml", Sweep) == mine
    assert read(tmp_path / "machine.toml", Machine) == here


def test_another_machine_is_refused_but_not_another_walltime(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.prepare(sweep(), machine(), [Software()])
    own = {"walltime": "2h"}
    other = machine(job=own, description="other", nodes=4, accelerator="rocm")
    folder.prepare(sweep(), other, [Software()])
    with refuses(UsageError, "another environment of the machine"):
        folder.prepare(sweep(), machine(environment={"A": "1"}), [Software()])


MPICH = Software(library="MPICH 5.0.2", omb_py="omb-py 1", mpi4py="mpi4py 4", numpy="numpy 2")
OPEN_MPI = MPICH.model_copy(update={"library": "Open MPI 5.0.11"})


def test_other_software_is_refused_where_there_are_rows(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.prepare(sweep(), machine(), [MPICH])
    folder.prepare(sweep(), machine(), [OPEN_MPI])
    (tmp_path / "points").mkdir()
    folder.csv(point()).write_text(TABLE)
    folder.prepare(sweep(), machine(), [OPEN_MPI])
    with refuses(UsageError, "MPICH 5.0.2 instead of Open MPI 5.0.11; --mix"):
        folder.prepare(sweep(), machine(), [MPICH])
    folder.prepare(sweep(), machine(), [MPICH.model_copy(update={"library": ""})])
    folder.prepare(sweep(), machine(), [MPICH], mix=True)
    for known in (MPICH, OPEN_MPI):
        folder.prepare(sweep(), machine(), [known])
    with refuses(UsageError, "numpy 3 instead of numpy 2"):
        folder.prepare(sweep(), machine(), [MPICH.model_copy(update={"numpy": "numpy 3"})])


def test_software_of_each_library_is_its_own(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    both = [one.model_copy(update={"name": one.library[:4]}) for one in (MPICH, OPEN_MPI)]
    folder.prepare(sweep(), machine(), both)
    (tmp_path / "points").mkdir()
    folder.csv(point()).write_text(TABLE)
    folder.prepare(sweep(), machine(), both)
    newer = both[1].model_copy(update={"mpi4py": "mpi4py 5"})
    with refuses(UsageError, "of library Open mpi4py 5 instead of mpi4py 4 --mix"):
        folder.prepare(sweep(), machine(), [both[0], newer])


def test_another_table_of_a_library_is_refused_but_not_one_more(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    mpich = {"virtual_environment": "venv"}
    folder.prepare(sweep(), machine(library={"mpich": mpich}), [])
    folder.prepare(sweep(), machine(library={"mpich": mpich, "openmpi": {"bin": "bin"}}), [])
    with refuses(UsageError, "another library.openmpi of the machine"):
        folder.prepare(sweep(), machine(library={"openmpi": {"bin": "other"}}), [])


def test_unwritable_state_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refuses(OmbError, "run the same command again"):
        write_atomically(tmp_path / "file" / "state", "text")


def test_a_lock_is_one_process_s(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as first:
        assert first
        child = os.fork()
        if child == 0:
            with locked(tmp_path / "lock") as second:
                os._exit(0 if second else 7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with locked(tmp_path / "lock") as again:
        assert again


def test_files_of_no_point_are_found(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.csv(point()).parent.mkdir()
    folder.csv(point()).write_text(TABLE)
    assert folder.strangers([point()]) == []
    assert folder.strangers([]) == [folder.csv(point()).name]

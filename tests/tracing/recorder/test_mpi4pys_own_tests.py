"""mpi4py's own test suite, which nobody here wrote, under the profiler: the same results.

It comes with mpi4py's source, which is fetched from the package index; without that it is skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import mpi4py
import pytest

from omb_py.tracing.records.run import open_run
from tests.conftest import OMB_PY, Finished, run

MODULES = (
    "test_cco_nb_vec test_cco_obj test_cco_obj_inter test_comm test_comm_inter test_comm_topo "
    "test_exceptions test_file test_grequest test_handle test_objmodel test_p2p_buf_matched "
    "test_p2p_obj test_p2p_obj_matched test_pickle test_request test_subclass "
    "test_status test_util_pkl5 test_win"
).split()
MADE_BY_THE_C_INTERFACE = "testCAPI"
"""Objects that mpi4py's C interface makes are mpi4py's own, not of the observed class."""

FAILURE = re.compile(r"(?:FAIL|ERROR): (\w+) \(([\w.]+)\)")
RAN = re.compile(r"Ran (\d+) tests? in")
"""Not at the beginning of a line: another rank's line may end only after it."""


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of mpi4py's tests, of the version that is installed."""
    folder = tmp_path_factory.mktemp("mpi4py")
    wanted = f"mpi4py=={mpi4py.__version__}"
    words = "-m pip download --quiet --no-deps --no-binary mpi4py --dest".split()
    command = [sys.executable, *words, str(folder), wanted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    archives = list(folder.glob("mpi4py-*.tar.gz"))
    if done.returncode or not archives:
        pytest.skip(f"the source of {wanted} cannot be had")
    shutil.unpack_archive(archives[0], folder)  # tarfile's filters came with Python 3.11.4
    (tests,) = folder.glob("mpi4py-*/test")
    return tests


@pytest.fixture(scope="module")
def plain(mpi: str, suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The tests without the profiler."""
    main = [str(suite / "main.py"), "-q", *MODULES]
    folder = tmp_path_factory.mktemp("plain")
    return run([mpi, "-n", "2", sys.executable, *main], {}, folder, 300)


def results(done: Finished) -> tuple[set[str], list[str]]:
    """The tests that failed, and how many each rank ran."""
    failed = {f"{where}.{name}" for name, where in FAILURE.findall(done.err)}
    return {name for name in failed if MADE_BY_THE_C_INTERFACE not in name}, RAN.findall(done.err)


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.any_library
@pytest.mark.parametrize("options", [[], ["--events", "100000"]], ids=["tallies", "events"])
def test_mpi4pys_own_tests_have_the_same_results(
    mpi: str, suite: Path, plain: Finished, tmp_path: Path, options: list[str]
) -> None:
    main = [str(suite / "main.py"), "-q", *MODULES]
    ranks = [mpi, "-n", "2"]
    profile = [OMB_PY, "profile", *options]
    done = run([*ranks, *profile, *main], {}, tmp_path, 300)

    assert results(done) == results(plain)
    assert len(results(plain)[1]) == 2
    for record in open_run(tmp_path / "omb-profile").records:
        assert record.complete
        routines = {record.name(int(cell["routine"])) for cell in record.cells}
        assert len(routines) > 60
        assert record.header["cells_lost"] == record.header["names_lost"] == 0

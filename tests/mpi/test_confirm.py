"""`check` and `compare` with `--confirm` on real ranks, whose first allreduces may be slow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from omb_py.tracing.recorder.library import compiler
from perf.jobs import HERE
from tests.conftest import Run, succeeded
from tests.helpers.refusals import missing

pytestmark = pytest.mark.every_library

OPTIONS = ("-i", "10", "-x", "2", "--binding", "buffer", "-q")
CALL_US = {"OMB_CALL_US": "3000"}
SLOW = CALL_US | {"OMB_SLOW_CALLS": "12"}
EXPECTED = "benchmark,bytes,value,unit\nallreduce,1024,7000,us\nallreduce,2048,7000,us\n"
LIMIT = ("--expected", "expected.csv", "--tolerance", "99%")


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which allreduces can be slowed down."""
    library = tmp_path_factory.mktemp("slow") / "slow.so"
    command = [compiler(), "-shared", "-fPIC", "-o", str(library), str(HERE / "slow_start.c")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no C compiler")
    return {"LD_PRELOAD": str(library)}


def measured(mpiexec: Run, name: str, environment: dict[str, str], *words: str) -> None:
    """Measure 1 and 2 KiB on two ranks."""
    benchmark = words or ("allreduce", "--sizes", "1K,2K")
    succeeded(mpiexec(2, *benchmark, *OPTIONS, "-o", name, **environment))


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(SLOW, id="slow in each launch"),
        pytest.param(CALL_US, id="slow once", marks=pytest.mark.long),
    ],
)
def test_slow_first_calls_of_a_launch_are_no_failure(
    mpiexec: Run, omb_py: Run, slow: dict[str, str], tmp_path: Path, later: dict[str, str]
) -> None:
    (tmp_path / "expected.csv").write_text(EXPECTED)
    measured(mpiexec, "rows.csv", slow | SLOW)
    alone = omb_py("check", "rows.csv", *LIMIT)
    assert alone.code == 4
    assert not missing("Note: only the first points of the launch allreduce, 1 KiB", alone.out)
    done = omb_py("check", "rows.csv", *LIMIT, "--confirm", "2", **slow, **later)
    assert done.code == 0, done.out + done.err
    assert not missing("NOT CONFIRMED: allreduce, 1 KiB median PASS: 2 of 2", done.out)


@pytest.mark.long
def test_slow_machine_is_confirmed_in_one_launch_a_time(
    mpiexec: Run, omb_py: Run, slow: dict[str, str], tmp_path: Path
) -> None:
    text = EXPECTED.replace(",7000,", ",100,") + "latency,8,0.001,us\n"
    (tmp_path / "expected.csv").write_text(text)
    words = ("run", "allreduce --sizes 1K,2K", "latency --sizes 8")
    measured(mpiexec, "rows.csv", slow | CALL_US, *words)
    again = ("--confirm", "2", "--keep", "kept")
    done = omb_py("check", "rows.csv", *LIMIT, *again, **slow, **CALL_US)
    assert done.code == 4, done.err
    assert done.out.count("; confirmed: ") == 3
    assert len(list((tmp_path / "kept").glob("*.csv"))) == 2


@pytest.mark.long
def test_comparison_confirms_by_the_command_of_the_other_only(
    mpiexec: Run, omb_py: Run, slow: dict[str, str], tmp_path: Path
) -> None:
    measured(mpiexec, "base.csv", slow | CALL_US)
    measured(mpiexec, "new.csv", slow | SLOW)
    words = ("compare", "base.csv", "new.csv", "--fail-above", "5x", "--launch-spread", "3%")
    alone = omb_py(*words)
    assert alone.code == 4, alone.out
    done = omb_py(*words, "--confirm", "2", **slow, **SLOW)
    assert done.code == 0, done.out + done.err
    assert not missing("NOT CONFIRMED: new: allreduce 1 KiB median PASS", done.out)
    slower = {"OMB_CALL_US": "30000"}
    assert omb_py(*words, "--confirm", "2", **slow, **slower).code == 4

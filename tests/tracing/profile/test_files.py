"""The files of a profile in a run's folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from omb_py.cli.profile_finish import report
from omb_py.core.errors import OmbError
from omb_py.tracing.profile import store
from omb_py.tracing.profile.store import load
from omb_py.tracing.records.layout import EVENT_FORMAT
from tests.helpers.refusals import refuses
from tests.tracing.made_records import MadeRecord
from tests.tracing.profile.made_profiles import made_run


def test_the_text_and_the_table_are_of_all_ranks(tmp_path: Path) -> None:
    written = store.write(load([str(made_run(tmp_path))]), tmp_path)
    assert [path.name for path in written] == ["profile.txt", "profile.csv"]
    assert all(path.is_file() for path in written)
    assert (tmp_path / "profile.txt").read_text().startswith("Profile of all 4 ranks\n")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    profile = load([str(made_run(tmp_path))])
    (tmp_path / "file").write_text("")
    with refuses(OmbError, "cannot write profile.txt"):
        store.write(profile, tmp_path / "file")


def test_a_job_needs_nothing_more_than_numpy_for_it(tmp_path: Path) -> None:
    made_run(tmp_path)
    program = (
        "import sys; from omb_py.tracing.profile import store; "
        f"store.write(store.load([{str(tmp_path)!r}]), {str(tmp_path)!r}); "
        "print(*sorted({'pandas', 'rich', 'altair', 'click', 'mpi4py'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


EVENTS = 50_000


def bytes_read() -> int:
    """Bytes that this process has read so far."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


def test_report_of_full_rings_reads_only_calls(tmp_path: Path) -> None:
    for rank in range(2):
        record = MadeRecord(tmp_path, rank, 2, events=EVENTS)
        for number in range(EVENTS):
            record.call("MPI_Barrier", 10 * number, 10 * number + 5)
        record.finish(10 * EVENTS)
    report(str(tmp_path), 2, "profile", quiet=True)  # modules are imported the first time
    before = bytes_read()
    report(str(tmp_path), 2, "profile", quiet=True)
    assert bytes_read() - before < EVENTS * EVENT_FORMAT.size / 10

"""Rank 0 reads no events when it writes the profile of a run."""

from __future__ import annotations

from pathlib import Path

from omb_py.cli.profile_finish import report
from omb_py.tracing.records.layout import EVENT_FORMAT
from tests.tracing.made_records import MadeRecord

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

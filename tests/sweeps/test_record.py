"""What is recorded of jobs is read, and anything else in a record is ignored."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.sweeps.record import JobRecord, read_jobs
from omb_py.sweeps.schedulers import SCHEDULERS

PBS = SCHEDULERS["pbs"]
AT = 1795377600.0  # 2026-11-22T20:00:00Z


def read(folder: Path, text: str, name: str = "mine.record") -> list[JobRecord]:
    """The jobs of a folder with one record."""
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs" / name).write_text(text)
    return read_jobs(PBS, folder)


def test_events_of_a_job_are_one_job(tmp_path: Path) -> None:
    text = """\
2026-11-22T20:00:00Z 123.server submitted after=122.server
2026-11-22T20:05:00Z 123.server began host=n1 until=1795379100
2026-11-22T20:34:00Z 123.server ended exit=75
"""
    assert read(tmp_path, text) == [
        JobRecord(
            script="mine",
            number="123.server",
            submitted=AT,
            after="122.server",
            began=AT + 300,
            until=1795379100,
            ended=AT + 2040,
            exit_status=75,
        )
    ]


def test_a_later_walltime_and_a_second_start_count(tmp_path: Path) -> None:
    text = """\
2026-11-22T20:00:00Z 1 began until=5
2026-11-22T20:00:01Z 1 until=7
2026-11-22T20:00:02Z 1 ended exit=143
2026-11-22T20:00:03Z 1 began host=n2
"""
    (job,) = read(tmp_path, text)
    assert (job.until, job.began, job.ended, job.exit_status) == (None, AT + 3, None, None)


def test_an_end_of_the_first_start_is_not_one_of_the_second(tmp_path: Path) -> None:
    text = """\
2026-11-22T20:00:00Z 1 began host=n1 start=5.77
2026-11-22T20:00:01Z 1 rows=3 until=9 start=5.77
2026-11-22T20:00:02Z 1 began host=n2 start=7.42
2026-11-22T20:00:03Z 1 ended exit=75 signalled=yes start=5.77
2026-11-22T20:00:04Z 1 rows=4 until=11 start=7.42
"""
    (job,) = read(tmp_path, text)
    assert (job.began, job.until, job.ended, job.signalled) == (AT + 2, 11.0, None, False)
    assert job.rows == 3, "when it first began"
    (job,) = read(tmp_path, text + "2026-11-22T20:00:05Z 1 ended exit=0 start=7.42\n")
    assert (job.ended, job.exit_status) == (AT + 5, 0)


def test_a_cancelled_job_and_one_stopped_by_a_signal_are_known(tmp_path: Path) -> None:
    (job,) = read(tmp_path, "2026-11-22T20:00:00Z 1 cancelled\n")
    assert (job.cancelled, job.signalled) == (True, False)
    (job,) = read(tmp_path, "2026-11-22T20:00:00Z 1 ended exit=75 signalled=yes\n")
    assert (job.cancelled, job.signalled) == (False, True)
    (job,) = read(
        tmp_path,
        "2026-11-22T20:00:00Z 1 ended exit=75 signalled=yes\n2026-11-22T20:00:01Z 1 began\n",
    )
    assert not job.signalled


@pytest.mark.parametrize(
    "line",
    [
        "",
        "2026-11-22T20:00:00Z",
        "2026-11-22T20:00:00Z $(id) began",
        "2026-11-22T20:00:00Z -x began",
        "2026-11-22T20:00:00Z - began",
        "2026-11-22T20:00:00Z 1;2 began",
    ],
)
def test_lines_of_no_job_are_ignored(tmp_path: Path, line: str) -> None:
    assert read(tmp_path, f"{line}\n") == []


@pytest.mark.parametrize(
    "words", ["", "odd", "odd=1", "ended exit=x until=y after=$(id)", "ended exit=", "began =", "="]
)
def test_unknown_events_and_values_are_ignored(tmp_path: Path, words: str) -> None:
    (job,) = read(tmp_path, f"2026-11-22T20:00:00Z 1 {words}\n")
    assert (job.exit_status, job.until, job.after) == (None, None, None)


def test_jobs_come_in_the_order_of_their_submission(tmp_path: Path) -> None:
    read(tmp_path, "2026-11-22T20:00:01Z 2 submitted\n2026-11-22T20:00:03Z 4 submitted\n")
    found = read(
        tmp_path,
        "2026-11-22T20:00:00Z 1 submitted\n2026-11-22T20:00:02Z 3 submitted\n",
        "mine-2-nodes.record",
    )
    assert [(job.number, job.script) for job in found] == [
        ("1", "mine-2-nodes"),
        ("2", "mine"),
        ("3", "mine-2-nodes"),
        ("4", "mine"),
    ]


PIECES = st.sampled_from(
    [
        *("2026-11-22T20:00:00Z", "9999-99-99T99:99:99Z", "1", "1.server", "began", "ended"),
        *(
            "submitted",
            "cancelled",
            "signalled=yes",
            "start=5.1",
            "exit=75",
            "exit=-1",
            "until=99999999999999",
            "after=1",
        ),
        *(" ", "=", "\n", "\r", "\x00", "\u2028", "\udcff"),
    ]
)


@given(st.text() | st.lists(PIECES).map(" ".join))
def test_any_text_gives_jobs_or_is_ignored(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "jobs", "mine.record")
        path.parent.mkdir()
        path.write_bytes(text.encode(errors="surrogateescape" if "\udcff" in text else "replace"))
        for job in read_jobs(PBS, Path(folder)):
            assert PBS.number.fullmatch(job.number)
            assert job.after is None or PBS.number.fullmatch(job.after)

"""What is recorded of jobs is read, and anything else in a record is ignored."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.sweeps.jobs import JobRecord, read_record
from omb_py.sweeps.schedulers import SCHEDULERS

PBS = SCHEDULERS["pbs"]


def read(folder: Path, *events: str) -> list[JobRecord]:
    """The jobs of a folder with a record of these events."""
    (folder / "jobs").mkdir(exist_ok=True)
    lines = (f"2026-11-22T20:00:00Z {event}\n" for event in events)
    (folder / "jobs/record").write_text("".join(lines))
    return read_record(PBS, folder)


def test_events_of_a_job_are_one_job(tmp_path: Path) -> None:
    events = (
        "123.server mine submitted after=122.server",
        "123.server mine began host=n1",
        "123.server mine ended exit=75 signalled=yes",
        "123.server mine cancelled",
    )
    assert read(tmp_path, *events) == [
        JobRecord("123.server", "mine", "122.server", True, 75, signalled=True, cancelled=True)
    ]


def test_a_second_start_counts(tmp_path: Path) -> None:
    (job,) = read(tmp_path, "1 mine began", "1 mine ended exit=143 signalled=yes", "1 mine began")
    assert job == JobRecord("1", "mine", began=True)
    assert job.may_be_active


def test_what_a_signal_has_stopped_may_start_again(tmp_path: Path) -> None:
    first, second = read(tmp_path, "1 mine ended exit=75", "2 mine ended exit=75 signalled=yes")
    assert (first.may_be_active, second.may_be_active) == (False, True)


@pytest.mark.parametrize(
    ("event", "jobs"),
    [
        *(
            (f"{job} began", [])
            for job in ("", "mine", "$(id) mine", "-x mine", "- mine", "1;2 mine")
        ),
        *(
            (f"1 mine {words}", [JobRecord("1", "mine")])
            for words in ("odd", "odd odd=1", "ended exit=x after=$(id)", "ended exit=")
        ),
    ],
)
def test_unknown_record_is_ignored(tmp_path: Path, event: str, jobs: list[JobRecord]) -> None:
    assert read(tmp_path, event) == jobs


def test_jobs_come_in_the_order_of_their_submission(tmp_path: Path) -> None:
    events = ("3 mine submitted", "1 mine-2-nodes submitted", "2 mine began", "3 mine began")
    assert [(job.number, job.script) for job in read(tmp_path, *events)] == [
        ("3", "mine"),
        ("1", "mine-2-nodes"),
        ("2", "mine"),
    ]


PIECES = st.sampled_from(
    [
        *("2026-11-22T20:00:00Z", "1", "1.server", "mine", "began", "ended"),
        *("submitted", "cancelled", "signalled=yes", "exit=75", "exit=-1", "after=1"),
        *(" ", "=", "\n", "\r", "\x00", "\u2028", "\udcff"),
    ]
)


@given(st.text() | st.lists(PIECES).map(" ".join))
def test_any_text_gives_jobs_or_is_ignored(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "jobs", "record")
        path.parent.mkdir()
        path.write_bytes(text.encode(errors="surrogateescape" if "\udcff" in text else "replace"))
        for job in read_record(PBS, Path(folder)):
            assert PBS.number.fullmatch(job.number)
            assert job.after is None or PBS.number.fullmatch(job.after)

"""The jobs that are recorded are read, and anything else in a record is ignored."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from omb_py.sweeps.jobs import append, jobs_of_chain, read_record


def test_recorded_jobs_are_read_with_the_job_that_submitted_them(tmp_path: Path) -> None:
    append(tmp_path, "122.server", "mine")
    append(tmp_path, "123.server", "mine", "122.server")
    assert read_record(tmp_path) == {"122.server": None, "123.server": "122.server"}


def test_incomplete_line_is_ignored(tmp_path: Path) -> None:
    append(tmp_path, "1", "mine")
    with (tmp_path / "jobs/record").open("a") as file:
        file.write("\n2026-11-22T20:00:00Z\n2026-11-22T20:00:00Z 2 mine 1")
    assert read_record(tmp_path) == {"1": None}


def test_jobs_of_a_chain_are_counted_from_a_person_s_submission() -> None:
    known = {"1": None, "2": "1", "3": "2", "9": None}
    counts = {number: jobs_of_chain(known, number) for number in ("1", "3", "9", "10")}
    assert counts == {"1": 1, "3": 3, "9": 1, "10": 1}


def test_circle_of_jobs_is_counted_once() -> None:
    assert jobs_of_chain({"1": "2", "2": "1"}, "1") == 2


PIECES = st.sampled_from(
    [
        "2026-11-22T20:00:00Z",
        "1",
        "1.server",
        "mine",
        " ",
        "=",
        "\n",
        "\r",
        "\x00",
        "\u2028",
        "\udcff",
    ]
)


@given(st.text() | st.lists(PIECES).map(" ".join))
def test_any_text_gives_jobs_or_is_ignored(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "jobs", "record")
        path.parent.mkdir()
        path.write_bytes(text.encode(errors="surrogateescape" if "\udcff" in text else "replace"))
        found = read_record(Path(folder))
        assert all(jobs_of_chain(found, number) >= 1 for number in found)

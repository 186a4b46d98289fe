"""Programs under ``omb-py profile`` on real ranks, and what was recorded of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.reading import RankRecord
from omb_py.tracing.records.run import open_run
from tests.conftest import OMB_PY, Finished, run, succeeded


@dataclass(frozen=True)
class Profile:
    """A job under ``omb-py profile``, and its records, if it left any."""

    job: Finished
    records: list[RankRecord]

    @property
    def record(self) -> RankRecord:
        """The record of the one rank of a job that went well."""
        (record,) = succeeded_records(self)
        return record


Profiled: TypeAlias = Callable[..., Profile]


@pytest.fixture(scope="session")
def recorder_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for the compiled library, which begins empty."""
    return str(tmp_path_factory.mktemp("recorder"))


@pytest.fixture
def profiled(mpi: str, tmp_path: Path, recorder_cache: str) -> Profiled:
    """``profiled(ranks, *words, program=text)`` profiles a program, whose text ``words`` precede.

    Without a text, ``words`` name the program, too.
    """

    def start(ranks: int, *words: str, program: str = "", **environment: str) -> Profile:
        if program:
            (tmp_path / "program.py").write_text(program)
            words = (*words, "program.py")
        command = [mpi, "-n", str(ranks), OMB_PY, "profile", *words]
        job = run(command, {"OMB_PY_CACHE_DIR": recorder_cache} | environment, tmp_path, 120)
        folder = tmp_path / "omb-profile"
        return Profile(job, open_run(folder).records if list(folder.glob("*.record")) else [])

    return start


def succeeded_records(profile: Profile) -> list[RankRecord]:
    """The records of a job, after asserting that it went well and that they are complete."""
    succeeded(profile.job)
    assert all(record.complete for record in profile.records)
    return profile.records


def calls_of(record: RankRecord) -> dict[str, list[int]]:
    """Calls and bytes of each routine."""
    found: dict[str, list[int]] = {}
    for cell in record.cells:
        into = found.setdefault(record.name(cell["routine"]), [0, 0])
        into[0] += int(cell["calls"])
        into[1] += int(cell["nbytes"])
    return found


def sequences(record: RankRecord, kind: EventKind) -> list[int]:
    """The numbers of the messages in events of a kind, with this rank's rank 0."""
    return [int(e["sequence"]) for e in record.events if e["kind"] == kind and e["peer"] == 0]

"""Calls of MPI's files on real ranks: each is counted with its bytes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.routines import Role, role
from omb_py.tracing.records.run import open_run
from tests.conftest import OMB_PY, run, succeeded

BEGINS = ("MPI_File_iread", "MPI_File_iwrite")
PROGRAM = Path(__file__).parent / "programs" / "file_calls.py"


def test_every_call_of_a_file_is_counted_with_its_bytes(mpi: str, tmp_path: Path) -> None:
    options = ("-q", "--events", "100000")
    succeeded(run([mpi, "-n", "2", OMB_PY, "profile", *options, str(PROGRAM)], {}, tmp_path, 120))
    for record in open_run(tmp_path / "omb-profile").records:
        expected = json.loads((tmp_path / f"expected-{record.rank}.json").read_text())
        found: dict[str, list[int]] = {}
        for cell in record.cells:
            if role(name := record.name(cell["routine"])) is Role.FILE:
                into = found.setdefault(name, [0, 0])
                into[0] += int(cell["calls"])
                into[1] += int(cell["nbytes"])
        assert found == expected
        begun = {name: calls for name, calls in expected.items() if name.startswith(BEGINS)}
        done = Counter(
            record.name(event["name"]) for event in record.events if event["kind"] == EventKind.DONE
        )
        assert done == {name: calls for name, (calls, _) in begun.items()}

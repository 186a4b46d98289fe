"""A look as a table, as lines and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from omb_py.core.text.tables import plain
from omb_py.tracing.monitor.findings import findings
from omb_py.tracing.monitor.observations import Observation, json_line, lines, sheet
from omb_py.tracing.monitor.snapshots import Snapshot, changes
from tests.tracing.monitor.scenes import Rank, look


def seen_of(one: Snapshot) -> Observation:
    recent = changes(None, one)
    return Observation(one, recent, recent, findings(one, 1.0, 5.0), 5.0)


def late(folder: Path, ranks: int, slowpoke: int) -> Observation:
    """All ranks but one are in a barrier."""
    waits = Rank("MPI_Barrier", since=2.0, collectives=1, calls=[("MPI_Send", 0.0, 1.0, 5_000)])
    return seen_of(look(folder, *(Rank() if r == slowpoke else waits for r in range(ranks))))


def shown(seen: Observation) -> list[str]:
    return plain([sheet(seen)], ()).splitlines()


def test_every_rank_has_a_row_that_says_what_it_is_in(tmp_path: Path) -> None:
    text = shown(late(tmp_path, 4, 2))
    assert "10.0 s: 4 ranks; 0.3 calls/s, 1.5 kB/s, 68 % in MPI" in text[0]
    assert "for rank 2, which is outside MPI" in text[1]
    rows = {line.split()[0]: line.split() for line in text if line.strip()[:1].isdigit()}
    assert rows["0"][1:6] == ["MPI_Barrier", "world", "8.0", "s", "0.1"]
    assert rows["2"][1:3] == ["outside", "MPI"]


def test_data_of_files_has_its_own_columns(tmp_path: Path) -> None:
    calls = [("MPI_Send", 0.0, 1.0, 5_000), ("MPI_File_write_at", 1.0, 2.0, 70_000)]
    seen = seen_of(look(tmp_path / "1", Rank(calls=calls), Rank()))
    text = shown(seen)
    assert "500 B/s, 10 % in MPI; files: 0 B/s read, 7 kB/s written" in text[0]
    head, first = (next(line for line in text if word in line) for word in ("calls/s ", "outside"))
    assert "read" in head.split()
    assert first.split()[-10:-4] == ["500", "B/s", "0", "B/s", "7", "kB/s"]
    found = json.loads(json_line(seen, 0.0))["per_rank"][0]
    assert (found["bytes"], found["files_read"], found["files_written"]) == (5_000, 0, 70_000)
    assert found["rates"]["files_written_per_s"] == 7_000
    assert "written" not in " ".join(shown(late(tmp_path / "2", 2, 1)))


def test_hosts_are_shown_where_there_are_several(tmp_path: Path) -> None:
    assert " host " not in shown(late(tmp_path / "1", 2, 0))[2]
    two = seen_of(look(tmp_path / "2", Rank(), Rank(host="node17")))
    assert any("node17" in line for line in shown(two))


def test_lines_have_the_whole_run_and_what_there_is_to_say(tmp_path: Path) -> None:
    first, second = lines(late(tmp_path, 3, 1))
    assert first == "10.0 s: 3 ranks; 0.2 calls/s, 1 kB/s, 60 % in MPI"
    assert second.startswith("  ranks 0, 2 wait in MPI_Barrier")


def test_a_run_is_over_when_all_ranks_are(tmp_path: Path) -> None:
    ended = Rank(ended=True)
    over = seen_of(look(tmp_path / "1", ended, ended))
    assert over.over
    assert lines(over)[0] == "10.0 s: 2 ranks, all ended; 0 calls/s, 0 B/s, 0 % in MPI"
    assert not seen_of(look(tmp_path / "2", ended, Rank())).over
    assert not seen_of(look(tmp_path / "3", ended, None)).over


def test_json_has_everything_for_programs(tmp_path: Path) -> None:
    found = json.loads(json_line(late(tmp_path, 3, 1), 12.5))
    assert (found["time"], found["ranks"], found["over"]) == (12.5, 3, False)
    assert found["findings"][0]["concern"] == "waiting"
    assert (found["findings"][0]["ranks"], found["findings"][0]["waiting"]) == ([1], [0, 2])
    rank = found["per_rank"][0]
    assert (rank["routine"], rank["for_s"], rank["state"]) == ("MPI_Barrier", 8.0, "runs")
    assert found["per_rank"][1]["routine"] is None

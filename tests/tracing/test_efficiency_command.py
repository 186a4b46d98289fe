"""``omb-py efficiency``: tables of one run and of several, in every form."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.tracing.efficiency import details, load, notes, row_of, scaling, series_of, sheet
from omb_py.tracing.records import layout
from tests import ROOT
from tests.conftest import Finished
from tests.helpers.properties import examples
from tests.helpers.refusals import assert_refused, missing
from tests.tracing.made_records import MadeRecord

Command = Callable[..., Finished]
MS = 1_000_000

NAMES_AT = layout.HEADER_BYTES + layout.TEXT_BYTES
CELLS_AT = NAMES_AT + layout.NAMES_BYTES
EVENTS_AT = CELLS_AT + layout.CELLS * layout.CELL_FORMAT.size
STARTS = (0, layout.HEADER_BYTES, NAMES_AT, CELLS_AT, EVENTS_AT)
USED = [start + at for start in STARTS for at in range(340 if start != NAMES_AT else 60)]
"""Bytes of a small record in which something stands."""


def made(folder: Path, ranks: int, *, weak: bool = False) -> Path:
    """A run of 5 steps: compute, then an allreduce, which waits for all and takes 0.2 ms."""
    folder.mkdir(exist_ok=True)
    computed = [8 * MS // (1 if weak else ranks) + 100_000 * rank for rank in range(ranks)]
    step = max(computed) + (200_000 if ranks > 1 else 0)
    for rank, time in enumerate(computed):
        record = MadeRecord(folder, rank, ranks)
        for number in range(5):
            began = number * step
            record.call("MPI_Allreduce", began + time, began + step, sequence=number + 1)
        record.finish(5 * step)
        record.file.close()
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Folders of the same problem on 1, 2 and 4 ranks."""
    return [str(made(tmp_path / f"on-{ranks}", ranks)) for ranks in (4, 1, 2)]


@pytest.fixture
def efficiency(in_process: Command) -> Command:
    def start(*arguments: str) -> Finished:
        return in_process("efficiency", *arguments)

    return start


def line_of(printed: str, beginning: str) -> list[str]:
    """The cells of the only line that begins so."""
    (found,) = [line for line in printed.splitlines() if line.startswith(beginning)]
    return found.removeprefix(beginning).replace(" %", "").split()


def test_factors_are_rows_and_runs_sorted_columns(efficiency: Command, runs: list[str]) -> None:
    done = efficiency(*runs)
    assert (done.code, done.err) == (0, "")
    assert "1 rank   2 ranks   4 ranks" in done.out
    assert line_of(done.out, "Run") == ["on-1", "on-2", "on-4"]
    assert line_of(done.out, "-- Load balance") == ["100.0", "98.8", "93.5"]
    assert line_of(done.out, "- Computation scaling") == ["100.0", "98.8", "93.0"]
    assert line_of(done.out, "Global efficiency")[0] == "100.0"
    assert "relative to on-1 (1 rank)." in done.out
    assert not missing("strong scaling: assumed, 4 times", done.out)


def test_one_run_is_compared_to_nothing(efficiency: Command, runs: list[str]) -> None:
    done = efficiency(runs[0])
    assert line_of(done.out, "-- Load balance") == ["93.5"]
    assert "Computation scaling" not in done.out
    assert "scaling" not in done.out.split("Note")[0]


def test_the_csv_keeps_the_identities_to_rounding(efficiency: Command, runs: list[str]) -> None:
    printed = efficiency(*runs, "--format", "csv").out
    found = [
        {name: float(value) for name, value in row.items() if name not in ("run", "command")}
        for row in csv.DictReader(io.StringIO(printed.replace("strong", "0")))
        if all(row.pop(name) == "" for name in list(row) if name.startswith("cpu_"))
    ]
    assert [row["ranks"] for row in found] == [1, 2, 4]
    for row in found:
        parallel, communication = row["parallel_efficiency"], row["communication_efficiency"]
        products = {
            parallel: row["load_balance"] * communication,
            communication: row["outside_max_s"] / row["elapsed_s"],
            row["global_efficiency"]: parallel * row["computation_scaling"],
            row["outside_mean_s"]: row["load_balance"] * row["outside_max_s"],
            row["computation_scaling"]: found[0]["outside_sum_s"] / row["outside_sum_s"],
            row["speedup"] / row["ranks"] * found[0]["parallel_efficiency"]: row[
                "global_efficiency"
            ],
        }
        for whole, product in products.items():
            assert whole == pytest.approx(product, abs=1e-12)


def test_json_has_each_rank_and_the_notes(efficiency: Command, runs: list[str]) -> None:
    found = json.loads(efficiency(*runs, "--format", "json").out)
    assert [len(run["outside_s"]) for run in found["runs"]] == [1, 2, 4]
    assert [row["ranks"] for row in found["rows"]] == [1, 2, 4]
    assert found["notes"][0].startswith("strong scaling")


@pytest.mark.slow
def test_markdown_is_a_table(omb_py: Command, runs: list[str]) -> None:
    printed = omb_py("efficiency", *runs, "--format", "markdown").out
    assert "| - Parallel efficiency |" in printed
    assert "**Note:** strong scaling" in printed


def test_tables_go_to_files(efficiency: Command, runs: list[str], tmp_path: Path) -> None:
    efficiency(*runs, "-o", "factors.csv")
    assert (tmp_path / "factors.csv").read_text() == efficiency(*runs, "--format", "csv").out
    assert "--force" in efficiency(*runs, "-o", "factors.csv").err


def test_weak_scaling_is_asked_for(efficiency: Command, tmp_path: Path) -> None:
    """More time outside MPI may be more work or slower cores: only the user knows."""
    names = [str(made(tmp_path / f"on-{ranks}", ranks, weak=True)) for ranks in (1, 4)]
    done = efficiency(*names)
    assert done.code == 0
    assert line_of(done.out, "-- Load balance")[0] == "100.0"
    for words in ("Global efficiency", "Speed-up", "Computation scaling", "weak scaling:"):
        assert words not in done.out
    assert not missing("add --strong --weak 4 times the ranks 4.08 times as long", done.out)
    rows = json.loads(efficiency(*names, "--format", "json").out)["rows"]
    assert [(row["scaling"], row["speedup"], row["reference_ranks"]) for row in rows] == [
        (None, None, None)
    ] * 2
    found = load(names)
    first, last_run = series_of(found).runs
    last, asked = (scaling(last_run, first, weak) for weak in (True, False))
    assert last is not None
    assert asked is not None
    assert 0.9 < last.computation < 1
    assert asked.computation == pytest.approx(last.computation / 4)
    assert "weak scaling: as was asked for" in efficiency(*names, "--weak").out


def sharing(folder: Path, ranks: int, elapsed: int, outside: int, cpu: int) -> str:
    """A run whose ranks computed for some time, and had a core for less of it."""
    folder.mkdir()
    for rank in range(ranks):
        record = MadeRecord(folder, rank, ranks)
        record.call("MPI_Barrier", outside * MS, elapsed * MS, sequence=1)
        record.finish(elapsed * MS, user_ns=cpu * MS)
        record.file.close()
    return str(folder)


@pytest.mark.parametrize(("outside", "cpu"), [(250, 140), (250, 290), (97, 140)])
def test_run_that_took_longer_on_shared_cores_is_called_no_speed_up(
    efficiency: Command, tmp_path: Path, outside: int, cpu: int
) -> None:
    one = sharing(tmp_path / "on-1", 1, 194, 190, 194)
    two = sharing(tmp_path / "on-2", 2, 291, outside, cpu)
    done = efficiency(one, two)
    assert "Speed-up" not in done.out
    assert "add --strong if the work was the same in total" in done.out
    assert line_of(efficiency(one, two, "--strong").out, "Speed-up") == ["1.00", "0.667"]


def test_ranks_that_share_a_core_are_pointed_out(efficiency: Command, tmp_path: Path) -> None:
    """Two ranks on one core: each computes for as long as the one rank did, half of it waiting."""
    for ranks in (1, 2):
        folder = tmp_path / f"on-{ranks}"
        folder.mkdir()
        for rank in range(ranks):
            record = MadeRecord(folder, rank, ranks)
            record.call("MPI_Barrier", 80 * MS, 100 * MS, sequence=1)
            record.finish(100 * MS, user_ns=100 * MS // ranks)
            record.file.close()
    done = efficiency("on-1", "on-2", "--strong")
    assert line_of(done.out, "- Computation scaling") == ["100.0", "50.0"]
    assert line_of(done.out, "CPU time / elapsed, threads together") == ["100.0", "50.0"]
    assert not missing("on-2: no core 10 %", done.out)


def test_mpitrace_files_of_several_ranks_are_one_run(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "data" / "mpitrace" / "thetagpu-cpu-16ranks.txt").read_text()
    for rank in (0, 1):
        content = text.replace("rank 0 of 16", f"rank {rank} of 16")
        (tmp_path / f"mpi_profile.77.{rank}").write_text(content)
    (found,) = load([str(tmp_path / f"mpi_profile.77.{rank}") for rank in (0, 1)])
    assert found.name == str(tmp_path / "mpi_profile.77")
    assert found.ranks == len(found.outside) == 16


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), ("", "is empty"), ("ranks,1", "is no profile")]
)
def test_file_that_is_no_run_refused(
    efficiency: Command, tmp_path: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "run").write_text(content)
    done = efficiency("run")
    assert_refused(done, 2, words)
    assert len(done.err.splitlines()) == 1


def test_records_of_two_runs_in_a_folder_are_refused(tmp_path: Path) -> None:
    made(tmp_path, 4)
    made(tmp_path, 2)
    with pytest.raises(UsageError, match="several runs"):
        load([str(tmp_path)])


@examples(150)
@given(st.data())
def test_a_damaged_record_is_refused_or_shown(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = made(Path(folder), 2) / "rank-000001.record"
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.sampled_from(USED))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, 2)) * 40_000 or None])
        try:
            found = series_of(load([folder]))
        except UsageError:
            return
    assert sheet(found).rows
    assert len([row_of(run, found) for run in found.runs]) == 1
    assert details(found)["runs"]
    assert all(notes(found))

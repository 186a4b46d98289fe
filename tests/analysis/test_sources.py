"""What is taken for repeated runs of one thing, and what only looks alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from omb_py.analysis.charts.figures import charts
from omb_py.analysis.charts.groups import Request
from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.points import points_of
from omb_py.analysis.select import assumptions
from omb_py.analysis.table import Results, load
from omb_py.analysis.values import value_column
from omb_py.cli import command
from omb_py.cli.analysis_options import read
from omb_py.cli.plot import command as plot
from omb_py.core.errors import UsageError
from omb_py.results.columns import IDENTITY
from tests import RESULTS
from tests.helpers.refusals import missing, refuses

SIZES = (64, 128, 256, 512, 1024, 2048)


def osu(path: Path, latencies: dict[int, float], title: str = "Latency", command: str = "") -> Path:
    """A file as native OMB prints it, with the command line before it if there is one."""
    lines = [command, f"# OSU MPI {title} Test v7.4", "# Datatype: MPI_CHAR."]
    lines.append(f"# Size{'Avg Latency(us)':>22}")
    lines += [f"{size:<10}{value:>18.2f}".rstrip() for size, value in latencies.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def ours(path: Path, latencies: dict[int, float], validation: str = "", run: str = "R") -> Path:
    """Our CSV of a run whose metadata says all of it."""
    lines = [f"# run: {run}", "# omb_py: 0.1.0", "# mpi_library: MPICH Version: 5.0.2"]
    lines += ["# hosts: node1:2", "run,benchmark,bytes,ranks,buffer,binding,latency_us,validation"]
    lines += [
        f"{run},latency,{size},2,numpy,buffer,{value:.9g},{validation}"
        for size, value in latencies.items()
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def our_text(path: Path, latencies: dict[int, float]) -> Path:
    """Our text of the same."""
    lines = ["# OSU MPI Latency Test v7.4 (omb-py 0.1.0: buffer numpy, binding buffer)"]
    lines += ["# Datatype: MPI_CHAR.", f"# Size{'Avg Latency(us)':>22}"]
    lines += [f"{size:<10}{value:>18.2f}".rstrip() for size, value in latencies.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def lines_of(results: Results) -> dict[str, list[float]]:
    """The values of each line of the one figure over sizes."""
    (chart,) = charts(results, Request("size")).values()
    assert chart.data["runs"].max() == 1
    lines = chart.data.groupby("line", sort=False)["value"]
    return {str(name): values.tolist() for name, values in lines}


@pytest.fixture
def two_libraries(tmp_path: Path) -> list[Path]:
    """Two outputs that do not say of which library they are."""
    return [
        osu(tmp_path / "mpich.txt", dict.fromkeys(SIZES, 1.53)),
        osu(tmp_path / "openmpi.txt", dict.fromkeys(SIZES, 0.18)),
    ]


class TestFilesThatDoNotSayWhatTheyAreOf:
    def test_are_a_line_each_named_by_the_file(self, two_libraries: list[Path]) -> None:
        shown = lines_of(load(two_libraries))
        assert shown == {"mpich.txt": [1.53] * 6, "openmpi.txt": [0.18] * 6}

    @pytest.mark.slow
    def test_are_noted_with_what_to_do(self, two_libraries: list[Path], tmp_path: Path) -> None:
        result = CliRunner().invoke(
            plot, [*map(str, two_libraries), "--output", str(tmp_path / "figure.png")]
        )
        assert result.exit_code == 0
        assert "MPI library and number of hosts" in result.stderr
        assert "mpich.txt, openmpi.txt" in result.stderr
        assert "--assume mpi=... --assume hosts=..." in result.stderr

    def test_are_repeated_runs_once_that_is_assumed(self, two_libraries: list[Path]) -> None:
        results = load(two_libraries, {"mpi": "MPICH 5.0.2", "hosts": 1})
        assert results.notes == ()
        (chart,) = charts(results, Request("size")).values()
        assert chart.data["runs"].tolist() == [2] * 6

    def test_of_unknown_numbers_of_ranks_are_not_averaged(self, tmp_path: Path) -> None:
        for ranks, value in ((4, 2.5), (8, 4.5)):
            osu(tmp_path / f"{ranks}.txt", dict.fromkeys(SIZES, value), "Allreduce Latency")
        shown = lines_of(load(tmp_path, {"mpi": "MPICH 5.0.2", "hosts": 1}))
        assert shown == {"4.txt": [2.5] * 6, "8.txt": [4.5] * 6}

    def test_of_several_scales_are_repeated_runs_by_patterns(self, tmp_path: Path) -> None:
        for name, value in (("4-64-a", 2.5), ("4-64-b", 2.6), ("16-512-a", 4.5), ("16-512-b", 4.6)):
            osu(tmp_path / f"x-{name}.txt", dict.fromkeys(SIZES, value), "Allreduce Latency")
        texts = ["mpi=MPICH 5.0.2", "hosts=4", "*-16-512-*:ranks=512", "*-4-64-*:ranks=64"]
        results = load(tmp_path, assumptions([*texts, "*-16-*:hosts=16"]))
        assert results.notes == ()
        rows = results.rows.groupby("ranks")
        assert rows["hosts"].unique().map(list).to_dict() == {64: [4], 512: [16]}
        assert rows["run"].nunique().to_dict() == {64: 2, 512: 2}

    def test_of_unknown_ranks_get_a_note_on_patterns(self, tmp_path: Path) -> None:
        for name in ("4-64", "16-512"):
            osu(tmp_path / f"{name}.txt", dict.fromkeys(SIZES, 2.5), "Allreduce Latency")
        (note,) = load(tmp_path).notes
        assert "--assume 'PATTERN:ranks=...'" in note

    def test_of_one_name_are_told_apart_by_their_folders(self, tmp_path: Path) -> None:
        for folder, value in (("a", 1.5), ("b", 2.5)):
            osu(tmp_path / folder / "latency.txt", dict.fromkeys(SIZES, value))
        assert set(lines_of(load(tmp_path))) == {"a/latency.txt", "b/latency.txt"}

    def test_repeated_tables_of_one_file_are_repeated_runs(self, tmp_path: Path) -> None:
        text = osu(tmp_path / "a.txt", dict.fromkeys(SIZES, 1.5)).read_text()
        (tmp_path / "a.txt").write_text(text + text.replace("1.50", "2.50"))
        points = points_of(value_column(load(tmp_path).rows), [*IDENTITY, "bytes"])
        assert set(points["runs"]) == {2}

    def test_are_compared_with_the_file_of_the_same_name(self, tmp_path: Path) -> None:
        for folder, factor in (("before", 1.0), ("after", 2.0)):
            for name, value in (("mpich.txt", 1.5), ("openmpi.txt", 0.2)):
                osu(tmp_path / folder / name, dict.fromkeys(SIZES, factor * value))
        points = compare(tmp_path / "before", tmp_path / "after")
        assert set(points["base"]) == {1.5, 0.2}
        assert set(points["ratio"].round(9)) == {2.0}
        assert set(points["runs_base"]) == {1}


class TestFilesThatAUserNames:
    """Two files on a command line are side by side; what one folder holds are repeated runs."""

    @pytest.fixture
    def before_and_after(self, tmp_path: Path) -> list[str]:
        """Two files of one installation, measured in the same way."""
        return [
            str(ours(tmp_path / f"{name}.csv", {n: value * n for n in SIZES}, "", name))
            for name, value in (("before", 1.5), ("after", 3.5))
        ]

    def lines(self, paths: list[str], *names: str) -> set[str]:
        return set(lines_of(read(paths, names=names)))

    def test_are_a_line_each_where_no_column_differs(
        self, before_and_after: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.lines(before_and_after) == {"before.csv", "after.csv"}
        assert not missing("repeated runs, same --name", capsys.readouterr().err)

    def test_are_repeated_runs_in_a_folder(self, before_and_after: list[str]) -> None:
        folder = str(Path(before_and_after[0]).parent)
        rows = read([folder], names=()).rows
        assert rows["source"].isna().all()

    def test_have_no_label_if_a_column_differs(self, before_and_after: list[str]) -> None:
        other = Path(before_and_after[1])
        other.write_text(other.read_text().replace("numpy", "bytearray"))
        assert self.lines(before_and_after) == {"numpy", "bytearray"}

    def test_are_called_what_the_user_says(self, before_and_after: list[str]) -> None:
        assert self.lines(before_and_after, "old", "new") == {"old", "new"}

    def test_are_repeated_runs_by_one_name(self, before_and_after: list[str]) -> None:
        assert set(read(before_and_after, names=("runs", "runs")).rows["source"]) == {"runs"}

    def test_fewer_names_than_files_are_refused(self, before_and_after: list[str]) -> None:
        with refuses(UsageError, "2 files names, 1"):
            read(before_and_after, names=("old",))

    def test_name_lines_of_different_libraries(self, before_and_after: list[str]) -> None:
        other = Path(before_and_after[1])
        other.write_text(other.read_text().replace("MPICH Version: 5.0.2", "Open MPI v5.0.11"))
        assert self.lines(before_and_after) == {"MPICH 5.0.2", "Open MPI 5.0.11"}
        assert self.lines(before_and_after, "old", "new") == {"old", "new"}

    def test_are_lines_by_the_column_file(self, before_and_after: list[str]) -> None:
        other = Path(before_and_after[1])
        other.write_text(other.read_text().replace("MPICH Version: 5.0.2", "Open MPI v5.0.11"))
        (chart,) = charts(load(before_and_after), Request("size", ("file",))).values()
        assert chart.data["line"].unique().tolist() == ["before.csv", "after.csv"]
        assert "before.csv: MPICH 5.0.2; after.csv: Open MPI 5.0.11" in chart.caption


class TestCheckedData:
    def test_is_another_line_than_data_that_is_not(self, tmp_path: Path) -> None:
        ours(tmp_path / "a.csv", dict.fromkeys(SIZES, 1.5), "", "A")
        ours(tmp_path / "b.csv", dict.fromkeys(SIZES, 28.0), "Pass", "B")
        shown = lines_of(load(tmp_path))
        assert shown == {"not validated": [1.5] * 6, "validated": [28.0] * 6}

    def test_is_never_compared_with_data_that_is_not(self, tmp_path: Path) -> None:
        base = ours(tmp_path / "a.csv", dict.fromkeys(SIZES, 1.5), "", "A")
        other = ours(tmp_path / "b.csv", dict.fromkeys(SIZES, 28.0), "Pass", "B")
        with refuses(UsageError, "b was measured with -c"):
            compare(base, other)


LATENCIES = dict(zip(SIZES, (0.1812, 0.1923, 0.2267, 0.4112, 1.1234, 2.5031), strict=True))
FEW_DIGITS = dict.fromkeys(SIZES, 0.1812)


@pytest.mark.parametrize(
    ("latencies", "name", "others", "is_one"),
    [
        pytest.param(LATENCIES, "log.txt", LATENCIES, True, id="CSV and text"),
        pytest.param(LATENCIES, "copy.csv", LATENCIES, True, id="copy"),
        pytest.param(LATENCIES, "log.txt", LATENCIES | {2048: 2.51}, False, id="another number"),
        pytest.param(FEW_DIGITS, "log.txt", FEW_DIGITS, False, id="digits by chance"),
        pytest.param({8: 0.1812}, "a.txt", {8: 0.1812}, True, id="few digits, one name"),
    ],
)
def test_a_run_that_is_there_twice_counts_once(
    tmp_path: Path, latencies: dict[int, float], name: str, others: dict[int, float], is_one: bool
) -> None:
    ours(tmp_path / "a.csv", latencies)
    (our_text if name.endswith(".txt") else ours)(tmp_path / name, others)
    results = load(tmp_path)
    assert len(results.rows) == len(latencies) * (1 if is_one else 2)
    assert len(results.problems) == is_one
    for problem in results.problems:
        assert Path(problem.path).name == name
        assert re.search(r"\d rows? .*a\.csv.*once$", problem.text)


class TestWhatACommandIsNotAbout:
    """It is said, not left out in silence."""

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["compare", "model"])
    def test_rows_of_overheads(self, name: str, tmp_path: Path) -> None:
        log = tmp_path / "job.log"
        log.write_text(ours(tmp_path / "a.csv", LATENCIES).read_text())
        overhead = RESULTS / "overhead-mpich.csv"
        with log.open("a") as file:
            file.write(overhead.read_text())
        words = [name, str(log)] + ([str(tmp_path / "a.csv")] if name == "compare" else [])
        result = CliRunner().invoke(command, words)
        assert result.exit_code == 0, result.output
        assert not missing("omb-py overhead left out", result.stderr)

    def test_results_of_applications(self, tmp_path: Path) -> None:
        log = tmp_path / "job.log"
        table = (RESULTS / "applications-mpich.csv").read_text()
        log.write_text(ours(tmp_path / "a.csv", LATENCIES).read_text() + table)
        (problem,) = load(log).problems
        assert problem.text.startswith("results of applications are left out")

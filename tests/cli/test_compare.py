"""`omb-py compare` as a user meets it: tables, verdicts, exit codes, sentences."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest

from omb_py.analysis.compare.side_by_side import COLUMNS, compare
from omb_py.analysis.table import load
from omb_py.benchmarks import find_benchmark
from omb_py.cli.compare import with_plain_sizes
from tests import RESULTS
from tests.conftest import Run, succeeded
from tests.helpers.refusals import assert_names, assert_refused, missing
from tests.helpers.tables import comparison_text

MPICH, OPEN_MPI = RESULTS / "families-mpich.csv", RESULTS / "families-openmpi.csv"
LATENCY = ("--where", "benchmark=latency", "--where", "binding=native")
SPREAD = ("--launch-spread", "3%")

NATIVE_TEXT = """
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
8                       1.00
1048576               100.00
"""


def cells(line: str) -> list[str]:
    """The cells of a line of the text table, which are two spaces or more apart."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def slowed(factor: float, path: Path) -> Path:
    """The reference results with every time multiplied."""
    lines = MPICH.read_text().splitlines(keepends=True)
    header = next(i for i, line in enumerate(lines) if line.startswith("run,"))
    columns = lines[header].strip().split(",")
    slower = [i for i, name in enumerate(columns) if name.endswith("_us")]
    for number, line in enumerate(lines):
        if number > header and not line.startswith("#"):
            (row,) = csv.reader([line])
            for i in slower:
                row[i] = repr(float(row[i]) * factor) if row[i] else ""
            lines[number] = ",".join(row) + "\n"
    path.write_text("".join(lines))
    return path


@pytest.mark.slow
def test_two_files_are_a_table_and_a_verdict(in_process: Run) -> None:
    done = succeeded(in_process("compare", str(MPICH), str(OPEN_MPI), *LATENCY, *SPREAD))
    lines = done.out.splitlines()
    assert lines[0] == "families-openmpi against families-mpich, medians"
    assert not missing("above 1 slower bandwidth below", done.out)
    assert "2 ranks" in lines[1]
    assert "MPICH 5.0.2 against Open MPI 5.0.11" in lines[1]
    rows = [cells(line) for line in lines if "8 B" in line or " mean " in line]
    assert rows[0] == [
        *("latency", "8 B", "902 ns", "376 ns", "0.417", "0.377 to 0.462", "faster"),
    ]
    assert rows[1] == ["mean", "0.636", "0.581 to 0.698", "faster"]
    assert not missing("families-openmpi 1.572x 1.721x 1.433x 2.401x 1.030x", lines[-1])
    assert lines[-1].endswith("of 2 points 0 slower, 1 faster, 1 within noise")
    assert "\x1b" not in done.out  # colours are for terminals


@pytest.mark.slow
def test_equal_results_are_said_to_be_equal_within_a_margin(
    in_process: Run, tmp_path: Path
) -> None:
    same = str(slowed(1.0001, tmp_path / "same.csv"))
    words = ("compare", str(MPICH), same, *LATENCY, "--launch-spread", "0.1%", "--where", "bytes=8")
    assert "; of 1 points 0 slower, 0 faster, 0 within noise, 1 equal within 9 %" in (
        in_process(*words, "--tolerance", "1.09x").out
    )
    assert "of 1 points 0 slower, 0 faster, 1 within noise" in (
        in_process(*words, "--tolerance", "0.1%").out
    )


@pytest.mark.slow
def test_99th_percentiles_are_compared_where_they_are_asked_for(
    in_process: Run, tmp_path: Path
) -> None:
    slower = str(slowed(1.5, tmp_path / "slower.csv"))
    done = in_process("compare", str(MPICH), slower, *LATENCY, *SPREAD, "--tail")
    assert ", 99th percentiles\n" in done.out
    *_, medians, tails = done.out.splitlines()
    assert medians.startswith("slower: 1.500x slower on average")
    assert tails.startswith("slower, 99th percentiles: 1.500x slower on average")


@pytest.mark.slow
def test_verdicts_are_corrected_for_many_sizes(in_process: Run, tmp_path: Path) -> None:
    # 20 sizes, of which one is slower by more than its own interval
    head = "run,benchmark,bytes,ranks,latency_us\n"
    for name, value in (("base", 1.0), ("other", 1.1)):
        rows = [f"{name},latency,{size},2,{value if size == 3 else 1.0}\n" for size in range(20)]
        (tmp_path / f"{name}.csv").write_text(head + "".join(rows))
    words = ("compare", "base.csv", "other.csv", "--launch-spread", "3%", "--fail-above", "0.1%")
    done = in_process(*words)
    assert done.code == 7
    assert "0 slower" in done.out


@pytest.mark.long
def test_summary_prints_verdicts_only(omb_py: Run) -> None:
    done = omb_py("compare", str(MPICH), str(OPEN_MPI), *LATENCY, *SPREAD, "--summary")
    (verdict,) = done.out.split("\n", 1)[1].splitlines()
    assert verdict.startswith("families-openmpi: 1.572x faster on average")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_document_has_every_point_and_column_and_nothing_else(
    in_process: Run, tmp_path: Path, kind: str
) -> None:
    words = ("compare", str(MPICH), str(OPEN_MPI))
    done = in_process(*words, "--format", kind)
    of_json = kind == "json"
    rows = json.loads(done.out)["rows"] if of_json else pd.read_csv(io.StringIO(done.out))
    read = pd.DataFrame(rows)
    assert tuple(read.columns) == COLUMNS
    expected = compare(MPICH, OPEN_MPI)["ratio"].to_numpy(float)
    assert read["ratio"].to_numpy(float) == pytest.approx(expected, nan_ok=True)
    assert not missing("families-openmpi: unclear 0 within noise", done.err)
    in_process(*words, "--output", f"deep/points.{kind}")
    assert (tmp_path / "deep" / f"points.{kind}").read_text() == done.out
    assert_refused(in_process(*words, "--output", f"deep/points.{kind}"), 2, "--force")


@pytest.mark.slow
def test_json_has_verdicts_failures_and_a_summary(in_process: Run) -> None:
    words = ("compare", str(MPICH), str(OPEN_MPI), *LATENCY, *SPREAD, "--fail-above", "5%")
    document = json.loads(in_process(*words, "--format", "json").out)
    assert [one.split(":")[0] for one in document["summary"]] == ["families-openmpi"]
    assert all("allowed is 1.050x" in reason for reason in document["failures"])
    assert {"slowdown", "slowdown_low", "slowdown_high"} <= set(document["pairs"][0])


@pytest.mark.slow
def test_markdown_is_a_table_of_the_same_cells(in_process: Run, tmp_path: Path) -> None:
    done = in_process("compare", str(MPICH), str(OPEN_MPI), *LATENCY, *SPREAD, "-o", "table.md")
    assert done.code == 0, done.err
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert any(
        line.endswith("| 8 B | 902 ns | 376 ns | 0.417 | 0.377 to 0.462 | faster |")
        for line in lines
    )
    tables = [line for line in lines if line.startswith("|")]
    assert len({line.count("|") for line in tables}) == 1


@pytest.mark.long
def test_a_guard_passes_and_fails_with_its_own_exit_code(in_process: Run, tmp_path: Path) -> None:
    slower = str(slowed(1.2, tmp_path / "slower.csv"))
    for limit, code in (("40%", 0), ("1.4x", 0), ("5%", 4)):
        done = in_process("compare", str(MPICH), slower, *LATENCY, *SPREAD, "--fail-above", limit)
        assert done.code == code, done.err
        assert ("PASS" in done.out) == (code == 0)
        assert "CANNOT TELL" not in done.out
    reasons = [line for line in done.out.splitlines() if line.startswith("FAIL: ")]
    assert len(reasons) == 4
    assert not missing("slower: latency, 2 ranks 1.200x average 1.050x", reasons[0])
    assert "8 B: 1.08 µs against 902 ns" in reasons[1]


@pytest.mark.slow
def test_guard_of_one_run_a_side_cannot_tell(in_process: Run, tmp_path: Path) -> None:
    slower = str(slowed(30, tmp_path / "slower.csv"))
    done = in_process("compare", str(MPICH), slower, *LATENCY, "--fail-above", "5%")
    assert done.code == 7, done.err
    assert not missing("Note: one run a side repeat 5", done.out)
    assert not missing("CANNOT TELL: 0 of 2 points 1.050x slower, 2 cannot be judged", done.out)
    assert "PASS" not in done.out


@pytest.mark.slow
def test_a_guard_that_compares_only_a_part_fails(in_process: Run, tmp_path: Path) -> None:
    part = tmp_path / "part.csv"
    part.write_text("".join(MPICH.read_text().splitlines(keepends=True)[:17]))
    done = in_process("compare", str(MPICH), str(part), *LATENCY, "--fail-above", "5%")
    assert done.code == 4
    failure, said = [line for line in done.out.splitlines() if line.startswith("FAIL: ")]
    assert_names(failure, "part: latency, 2 ranks not 1 MiB")
    assert "1 cannot be judged" in said


@pytest.mark.slow
def test_native_text_is_compared_with_ours(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "osu_latency.txt").write_text(NATIVE_TEXT)
    done = in_process("compare", "osu_latency.txt", str(MPICH), "--where", "benchmark=latency")
    assert done.code == 0, done.err
    assert "osu_latency" in done.out
    assert "unclear" in done.out
    assert "one run a side" in done.out
    assert "means" in done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "base", "said"),
    [
        ("put_latency", "native-omb.txt", True),
        ("put_bw", "native-omb.txt", False),
        ("put_latency", "families-openmpi.csv", False),
    ],
)
def test_a_table_tells_what_native_omb_times_besides(benchmark: str, base: str, said: bool) -> None:
    results = [load(RESULTS / name).rows for name in (base, "beside-native-omb.csv")]
    chosen = [rows[(rows.benchmark == benchmark) & (rows.binding != "buffer")] for rows in results]
    points = compare(*chosen)
    text = comparison_text(points, "base")
    assert ("two clock readings" in text) == said


@pytest.mark.slow
def test_several_results_stand_beside_each_other(in_process: Run) -> None:
    names = ("--name", "base", "--name", "same", "--name", "open")
    done = in_process("compare", *map(str, (MPICH, MPICH, OPEN_MPI)), *LATENCY, *names, *SPREAD)
    same, other = [cells(line) for line in done.out.splitlines() if " 8 B " in line]
    assert same[-6:] == ["8 B", "902 ns", "902 ns", "1.000", "0.921 to 1.085", "within noise"]
    assert other[-1] == "faster"
    assert not missing("same: no difference 1.000 95 % interval 0.", done.out)


@pytest.mark.slow
def test_points_of_one_side_only_are_named(in_process: Run) -> None:
    chosen = ("--where", "benchmark=latency,hello", "--where", "mpi=Open MPI 5.0.11")
    full = RESULTS / "two-core-vm.csv"
    done = in_process("compare", str(full), str(OPEN_MPI), *chosen, "--where", "binding=buffer")
    assert done.code == 0, done.err
    assert "8 B" in done.out
    assert not any(" 512 KiB " in line for line in done.out.splitlines())
    (only,) = [line for line in done.out.splitlines() if "Only in the base" in line]
    assert not missing("families-openmpi: latency, 2 ranks: 22 points 0 B, 16 B 17 more", only)
    assert "of 2 points" in done.out
    assert "22 only in base" in done.out


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        ("-m 1:1M", "-m 1:1048576"),
        ("-m1K:64KiB", "-m1024:65536"),
        ("-m :4M -i 10", "-m :4194304 -i 10"),
        ("--message-size=2K: -M 1G", "--message-size=2048: -M 1073741824"),
        ("--sizes 8,1K,1M --mem-limit 512M", "--sizes 8,1024,1048576 --mem-limit 536870912"),
        ("-Tmpi_int -W 64 --label 1M -z50,99.9", "-Tmpi_int -W 64 --label 1M -z50,99.9"),
        ("-x 20 -m", "-x 20 -m"),
    ],
)
def test_native_omb_gets_sizes_in_plain_bytes(given: str, passed_on: str) -> None:
    options = with_plain_sizes(find_benchmark("bw"), given.split())
    assert " ".join(options) == passed_on


def with_transport(path: Path, words: str) -> Path:
    """A file of one row whose run went over a transport."""
    head = f"# run: {path.stem}\n# transport: {words}\n"
    columns = "run,benchmark,bytes,ranks,buffer,binding,iterations,latency_us\n"
    path.write_text(f"{head}{columns}{path.stem},latency,8,2,numpy,native,10,2.5\n")
    return path


@pytest.mark.slow
def test_different_transports_are_named(in_process: Run, tmp_path: Path) -> None:
    one = with_transport(tmp_path / "one.csv", "pml ucx, mlx5_0")
    two = with_transport(tmp_path / "two.csv", "pml ob1, TCP to other hosts, not opened: mlx5_0")
    done = in_process("compare", str(one), str(two))
    assert not missing("transports differ one by pml ucx, mlx5_0; two by pml ob1", done.err)
    assert not missing("slow transport TCP mlx5_0", done.err)
    assert "differ" not in in_process("compare", str(one), str(one)).err


@pytest.mark.slow
@pytest.mark.parametrize(("again", "code"), [("1.01", 0), ("1.90", 4)])
def test_slow_point_fails_if_it_is_slow_again(
    in_process: Run, tmp_path: Path, again: str, code: int
) -> None:
    for name, value in (("base", "1.00"), ("new", "2.00"), ("again", again)):
        text = NATIVE_TEXT.replace("8                       1.00", f"8   {value}")
        (tmp_path / f"{name}.txt").write_text(text)
    done = in_process(
        *("compare", "base.txt", "new.txt", "--fail-above", "20%", "--launch-spread", "1%"),
        *("--confirm", "2", "--again", "cat again.txt", "--format", "json", "-o", "found.json"),
    )
    assert done.code == code, done.out
    assert ("NOT CONFIRMED" in done.out) == (code == 0)
    document = json.loads((tmp_path / "found.json").read_text())
    assert bool(document["failures"]) == (code == 4)
    assert bool(document["not_confirmed"]) == (code == 0)

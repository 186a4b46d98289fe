"""``omb-py show``: every row as it was read, in units that people read; ``-o`` loses nothing."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow
import pytest
from click.testing import CliRunner

import omb_py
from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.table import Results, load
from omb_py.cli.show import command
from omb_py.core.errors import OmbError, UsageError
from tests import RESULTS, ROOT
from tests.helpers.refusals import missing

REFERENCE = RESULTS / "families-mpich.csv"
NATIVE = ROOT / "tests" / "data" / "omb" / "osu_latency.txt"


def show(*arguments: str | Path) -> str:
    result = CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_latex_is_a_table_of_booktabs() -> None:
    words = ("--where", "benchmark=latency", "--across", "binding", "--format", "latex")
    text = show(RESULTS / "beside-native-omb.csv", *words)
    assert not missing(r"\toprule size & native & buffer & best \\ \bottomrule", text)


def test_empty_cells_are_chosen_by_no_value() -> None:
    whole = show(REFERENCE, "--where", "benchmark=latency")
    assert whole == show(REFERENCE, "--where", "benchmark=latency", "--where", "part=")


def test_shared_values_are_above_the_table() -> None:
    lines = show(REFERENCE, "--where", "benchmark=latency").splitlines()
    assert lines[0] == "latency"
    assert lines[1].startswith("4 rows; omb-py 0.1.0, MPICH 5.0.2, 2 ranks, 1 host, numpy")
    assert lines[2].split()[:3] == ["binding", "size", "latency"]
    assert lines[4].split()[:5] == ["native", "8", "B", "961", "ns"]
    assert len({len(line) for line in lines[2:8]}) == 1, "columns are aligned"


TYPES = """
# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
4                       0.37
8                       0.22
# Datatype: MPI_INT.
# Size       Avg Latency(us)
4                       0.22
8                       0.23
"""


def test_rows_of_several_element_types_say_which(tmp_path: Path) -> None:
    path = tmp_path / "types.txt"
    path.write_text(TYPES)
    lines = show(path).splitlines()
    assert lines[2].split() == ["mpi_type", "size", "latency"]
    assert [line.split()[0] for line in lines[4:8]] == ["MPI_CHAR", "8", "MPI_INT", "8"]


def test_means_of_extreme_ranks_are_named() -> None:
    names = "bytes,latency_us,latency_min_us,latency_max_us"
    heading = show(REFERENCE, "--where", "benchmark=allreduce", "--columns", names).splitlines()[2]
    assert "fastest rank" in heading
    assert "slowest rank" in heading
    assert "latency_min" not in heading


@pytest.mark.slow
def test_every_benchmark_has_a_table_of_all_its_rows() -> None:
    text = show(REFERENCE)
    assert text.count(" rows; ") + text.count(" row; ") > 100
    assert show(NATIVE, "--format", "markdown").count("\n| ") == 2 + 4


def test_results_of_device_suites_are_shown() -> None:
    lines = show(NATIVE.parents[1] / "nccl-tests" / "all_reduce_v3.json").splitlines()
    assert lines[1].startswith("8 rows; nccl-tests, 4 ranks, 2 hosts, cuda, nccl, D")


def test_columns_can_be_chosen() -> None:
    lines = show(REFERENCE, "--columns", "bytes,warmup,ranks", "--where", "benchmark=bw")
    assert lines.splitlines()[2].split() == ["warmup", "ranks", "size"]


@pytest.mark.long
@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_standard_input_may_be_compressed(compression: str) -> None:
    content = REFERENCE.read_bytes()
    if compression == "gzip":
        content = gzip.compress(content)
    elif compression == "zstd":
        content = pyarrow.compress(content, "zstd", asbytes=True)
    piped = subprocess.run(
        [sys.executable, "-m", "omb_py", "show", "-"], input=content, capture_output=True
    )
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert piped.stdout.decode() == show(REFERENCE).replace(str(REFERENCE), "-")


def test_a_long_table_is_cut_and_says_so() -> None:
    rows = ["--where", "benchmark=latency", "--rows"]
    assert show(REFERENCE, *rows, "1").splitlines()[5:] == ["and 3 more rows: --rows all", ""]
    assert "--rows all" not in show(REFERENCE, *rows, "all")


def test_show_across_has_ratios_and_the_best() -> None:
    lines = show(REFERENCE, "--across", "binding", "--where", "benchmark=latency").splitlines()
    assert lines[0] == "latency, 2 ranks"
    assert lines[1].split() == ["size", "native", "buffer", "best"]
    size, unit, native, _, ratio, buffer, _, best = lines[3].split()
    assert (size, unit, best) == ("8", "B", "unclear")
    assert float(native) / 1000 / float(buffer) == pytest.approx(float(ratio[1:-2]), rel=0.01)
    assert "how many times longer than buffer" in lines[-2]


def test_best_of_simulated_rows_needs_no_repeated_launch() -> None:
    simulated = ROOT / "results" / "papers" / "segments-simulated.csv"
    text = show(simulated, "--where", "algorithm=pipelined_chain", "--across", "segment")
    assert re.search(r"^1 MiB .* segments of 16 KiB 1\.22x$", text, re.MULTILINE)
    assert "Single launches" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factor", "runs", "said"),
    [(2.0, 5, "fast 2.00x"), (1.001, 5, "fast, within noise"), (2.0, 1, "unclear")],
)
def test_best_is_faster_by_compare(factor: float, runs: int, said: str, tmp_path: Path) -> None:
    lines = ["run,benchmark,bytes,ranks,latency_us,variant\n"]
    for run in range(runs):
        for name, value in (("fast", 1.0), ("slow", factor)):
            lines.append(f"{name}{run},latency,8,2,{value * (1 + 0.01 * run)},{name}\n")
    (tmp_path / "x.csv").write_text("".join(lines))
    (row,) = [
        line
        for line in show(tmp_path / "x.csv", "--across", "variant").splitlines()
        if line.startswith("8 B")
    ]
    assert row.endswith(said)


def test_a_file_that_is_there_is_kept_without_force(tmp_path: Path) -> None:
    target = tmp_path / "x.csv"
    target.write_text("mine")
    refused = CliRunner().invoke(command, [str(NATIVE), "-o", str(target)])
    assert isinstance(refused.exception, UsageError)
    assert "--force" in str(refused.exception)
    assert target.read_text() == "mine"
    show(NATIVE, "-o", target, "--force")
    assert len(omb_py.load(target).rows) == 4


def test_notes_that_are_alike_are_one(tmp_path: Path) -> None:
    path = tmp_path / "job.txt"
    rows = "".join(f"{size}    1.\n# a remark\n" for size in range(107))
    path.write_text(f"# OSU MPI Latency Test v7.4\n# Size      Latency (us)\n{rows}200    1.25\n")
    result = CliRunner().invoke(command, [str(path)], catch_exceptions=False)
    (note,) = result.stderr.splitlines()
    places = ", ".join(f"{path}:{line}" for line in (5, 7, 9))
    assert note.endswith(f"job.txt:3: not a whole row, left out; so are {places} and 103 more")


SOURCES = [REFERENCE, ROOT / "tests" / "data" / "imb"]
OF_DEVICES = sorted((ROOT / "tests" / "data" / "nccl-tests").glob("*.json"))
OF_FILES = ["file", "line", "source"]


def converted(target: Path, *sources: Path) -> Results:
    show(*sources, "-o", target)
    return load(target)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_rows_and_metadata_come_back_as_they_were(tmp_path: Path, suffix: str) -> None:
    there, back = load(SOURCES), converted(tmp_path / f"all{suffix}", *SOURCES)
    different = [*OF_FILES, "variant"]
    pd.testing.assert_frame_equal(
        back.rows.drop(columns=different), there.rows.drop(columns=different)
    )
    assert back.runs == {
        run: {"run": run} | {name.lower(): text for name, text in data.items()}
        for run, data in there.runs.items()
    }
    if suffix != ".parquet":
        assert show(*SOURCES, "--format", suffix[1:]) == (tmp_path / f"all{suffix}").read_text()


@pytest.mark.parametrize("path", OF_DEVICES, ids=lambda path: path.name)
def test_results_of_device_suites_come_back_as_they_were(tmp_path: Path, path: Path) -> None:
    there, back = load(path), converted(tmp_path / "one.csv", path)
    assert len(there.rows) > 0
    pd.testing.assert_frame_equal(
        back.rows.drop(columns=OF_FILES), there.rows.drop(columns=OF_FILES)
    )
    assert back.runs.keys() == there.runs.keys()


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_overheads_are_converted_too(tmp_path: Path, suffix: str) -> None:
    source = RESULTS / "overhead-mpich.csv"
    back = converted(tmp_path / f"all{suffix}", source).overhead
    there = load(source).overhead
    pd.testing.assert_frame_equal(back.drop(columns=OF_FILES), there.drop(columns=OF_FILES))


def test_files_that_are_no_repeated_runs_stay_apart(tmp_path: Path) -> None:
    for name, time in (("a", "1.00"), ("b", "2.00")):
        text = f"# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n8{time:>27}\n"
        (tmp_path / f"{name}.txt").write_text(text)
    rows = converted(tmp_path / "both.csv", tmp_path / "a.txt", tmp_path / "b.txt").rows
    assert rows["variant"].tolist() == ["a.txt", "b.txt"]


def test_a_converted_file_compares_as_the_original_does(tmp_path: Path) -> None:
    converted(tmp_path / "one.csv", NATIVE)
    assert (compare(NATIVE, tmp_path / "one.csv")["ratio"] == 1).all()


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.zst", ".parquet"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, suffix: str) -> None:
    beginning = {
        ".csv.gz": b"\x1f\x8b\x08\x00",
        ".csv.zst": b"\x28\xb5\x2f\xfd",
        ".parquet": b"PAR1",
    }
    path = tmp_path / f"torn{suffix}"
    path.write_bytes(beginning[suffix] + b"nothing that follows")
    with pytest.raises(OmbError, match=r"torn.*(cannot be decompressed|no whole Parquet file)"):
        load(path)

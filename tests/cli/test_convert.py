"""``omb-py show -o``: nothing is lost on the way to another format, nor on the way back."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.table import Results, load
from omb_py.cli.show import command
from omb_py.core.errors import OmbError, UsageError
from tests import ROOT

SOURCES = [ROOT / "results" / "families-mpich.csv", ROOT / "tests" / "data" / "imb"]
NATIVE = ROOT / "tests" / "data" / "omb"
OF_DEVICES = sorted((ROOT / "tests" / "data" / "nccl-tests").glob("*.json"))
OF_FILES = ["file", "line", "source"]


def convert(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)))


def converted(target: Path, *sources: Path) -> Results:
    assert convert(*sources, "-o", target).exit_code == 0
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
    source = ROOT / "results" / "overhead-mpich.csv"
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
    native = NATIVE / "osu_latency.txt"
    assert convert(native, "-o", tmp_path / "one.csv").exit_code == 0
    assert (compare(native, tmp_path / "one.csv")["ratio"] == 1).all()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("out.xlsx", [NATIVE / "osu_bw.txt"]), ("out.parquet", [ROOT / "results"])],
)
def test_unwritable_result_refused(tmp_path: Path, name: str, arguments: list[Path]) -> None:
    refused = convert(*arguments, "-o", tmp_path / name)
    assert isinstance(refused.exception, UsageError)
    assert not (tmp_path / name).exists()


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

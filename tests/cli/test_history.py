"""`omb-py history` as a user meets it: tables, documents, the page, exit codes, sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("otava", reason="the extra history is not installed")

from perf.history import write
from tests import ROOT
from tests.conftest import Run, succeeded
from tests.helpers.refusals import assert_refused, missing

NATIVE = (
    "# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n8                       {:.2f}\n"
)


HEAD = "run,benchmark,bytes,ranks,latency_us,sample_p50_us,validation\n"

START = datetime(2026, 1, 1)


def write_nights(folder: Path, series: Mapping[int, np.ndarray], wrong: int | None = None) -> Path:
    """A file for each night with medians of latencies by message size; `nan` is no row.

    The means are all alike. The data of the night ``wrong`` was wrong.
    """
    folder.mkdir(exist_ok=True)
    for night in range(max(map(len, series.values()))):
        run = f"{START + timedelta(days=night):%Y%m%dT%H%M%SZ}-{night:06x}"
        checked = "Fail" if night == wrong else "Pass"
        rows = [
            f"{run},latency,{size},2,1.0,{values[night]:.6f},{checked}\n"
            for size, values in series.items()
            if not np.isnan(values[night])
        ]
        text = f"# run: {run}\n# omb_py: 1.0.0\n# processor: AMD EPYC\n{HEAD}{''.join(rows)}"
        (folder / f"r{night:04}.csv").write_text(text)
    return folder


def steady(nights: int = 60, seed: int = 0) -> np.ndarray:
    """Values around 1 with a deviation of 1 %."""
    return np.random.default_rng(seed).lognormal(0, 0.01, nights)


def slower(factor: float, newest: int) -> np.ndarray:
    return steady() * np.where(np.arange(60) < 60 - newest, 1, factor)


def slow_then_fast() -> dict[int, np.ndarray]:
    places = np.arange(60)
    return {8: steady() * np.select([places < 30, places < 45], [1, 1.5], 1.44)}


def three_short() -> dict[int, np.ndarray]:
    few = np.where(np.arange(60) < 52, np.nan, slower(10, 4))
    return {8: steady(), 16: few, 32: few, 64: few}


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    """60 runs of three points, of which one is 10 % slower from run 40 on, with another MPICH."""
    folder = tmp_path / "nightly"
    folder.mkdir()
    write(folder, runs=60, points=3)
    return folder


def test_changes_are_a_table_with_what_changed(in_process: Run, nightly: Path) -> None:
    done = in_process("history", str(nightly), "--where", "benchmark=allreduce")
    assert (done.code, done.err) == (0, "")
    (line,) = [line for line in done.out.splitlines() if "allreduce" in line]
    assert not missing("2026-01-02 µs % slower mpi: MPICH 5.0.1 5.0.2", line)
    assert "1 series of 60 runs were judged: 1 change, 0 outliers" in done.out


@pytest.mark.slow
def test_limit_below_the_change_fails_one_above_passes(in_process: Run, nightly: Path) -> None:
    failed = in_process("history", str(nightly), "--fail-above", "5%")
    assert failed.code == 4
    assert "FAIL: allreduce" in failed.out
    passed = succeeded(in_process("history", str(nightly), "--fail-above", "1.5x"))
    assert "PASS" in passed.out


@pytest.mark.parametrize(
    ("series", "code", "words"),
    [
        pytest.param(lambda: {8: steady()}, 0, "PASS: 1 of 1 series without", id="flat"),
        pytest.param(
            lambda: {8: slower(3, 4)}, 4, "FAIL: latency, 8 B: since 2026-02-26,", id="newest 4"
        ),
        pytest.param(
            lambda: {8: slower(10, 1)},
            7,
            "CANNOT TELL: 0 of 1 latency, 8 B: the newest run of 2026-03-01 too few",
            id="newest",
        ),
        pytest.param(slow_then_fast, 4, "FAIL: 8 B: slower since 2026-01-31,", id="slow, fast"),
        pytest.param(
            three_short, 7, "CANNOT TELL: 1 of 4 3 cannot 16 B: 32 B: 64 B: 8 runs", id="short"
        ),
        pytest.param(
            lambda: {8: steady(), 64: np.where(np.arange(60) < 59, steady(), np.nan)},
            7,
            "CANNOT TELL: 1 of 2 1 not measured (latency, 64 B: no run since 2026-02-28)",
            id="ended",
        ),
    ],
)
def test_gate_passes_only_what_it_judged(
    in_process: Run,
    tmp_path: Path,
    series: Callable[[], Mapping[int, np.ndarray]],
    code: int,
    words: str,
) -> None:
    folder = write_nights(tmp_path / "nightly", series())
    done = in_process("history", str(folder), "--fail-above", "5%")
    assert (done.code, missing(words, done.out)) == (code, [])


def test_native_text_in_the_folder_changes_no_other_series(in_process: Run, tmp_path: Path) -> None:
    folder = write_nights(tmp_path / "nightly", {8: slower(1.3, 20)})
    (folder / "osu-2026-01-05.txt").write_text(NATIVE.format(1.0))
    done = in_process("history", str(folder), "--fail-above", "5%")
    assert done.code == 4
    assert not missing("FAIL: latency, omb-py, 8 B: 1.307x slower since 2026-02-10", done.out)
    assert not missing("1 cannot be judged (latency, OSU, 8 B: 1 run until 2026-01-05", done.out)


def test_since_leaves_an_accepted_change_behind(in_process: Run, tmp_path: Path) -> None:
    folder = str(write_nights(tmp_path / "nightly", {8: slower(1.3, 29)}))
    assert in_process("history", folder, "--fail-above", "5%").code == 4
    done = in_process("history", folder, "--fail-above", "5%", "--since", "2026-02-01")
    assert succeeded(done).out.splitlines()[-2:] == [
        "1 series of 29 runs since 2026-02-01 (of 60) were judged: 0 changes, 0 outliers",
        "PASS: 1 of 1 series without a slowdown above 1.050x",
    ]
    late = in_process("history", folder, "--since", "2027-01-01")
    assert_refused(late, 1, "--since 2027-01-01: all 60 runs are older")


@pytest.mark.parametrize(("wrong", "code"), [(59, 4), (20, 0)])
def test_wrong_data_fails_in_the_newest_run_and_is_noted_before(
    in_process: Run, tmp_path: Path, wrong: int, code: int
) -> None:
    folder = write_nights(tmp_path / "nightly", {8: steady()}, wrong)
    done = in_process("history", str(folder), "--fail-above", "5%")
    assert done.code == code
    said = done.err if code == 0 else done.out
    assert not missing(f"latency 8 B data was wrong r{wrong:04}.csv", said)
    assert not missing("data was wrong", in_process("history", str(folder)).err)


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "markdown"])
def test_documents_have_changes_as_rows(in_process: Run, nightly: Path, form: str) -> None:
    succeeded(in_process("history", str(nightly), "--format", form, "-o", str(nightly / "found")))
    path = nightly / "found"
    if form == "markdown":
        assert "## Changes" in path.read_text()
        return
    if form == "json":
        document = json.loads(path.read_text())
        assert "3 series of 60 runs" in document["summary"][0]
        rows = pd.DataFrame(document["rows"])
    else:
        rows = {"csv": pd.read_csv, "parquet": pd.read_parquet}[form](path)
    assert {"change"} <= set(rows["kind"])
    assert list(rows["benchmark"][rows["kind"] == "change"]) == ["allreduce", "alltoall"]


def test_a_page_begins_with_the_newest_change(in_process: Run, nightly: Path) -> None:
    succeeded(in_process("history", str(nightly), "-o", "history.html"))
    page = (nightly.parent / "history.html").read_text()
    assert page.index("2026-01-02") < page.index('aria-label="Single outliers"')
    assert "Series 1 to 3, newest change first" in page


def test_documents_have_the_conclusion_and_its_names(in_process: Run, tmp_path: Path) -> None:
    folder = str(write_nights(tmp_path / "nightly", three_short()))
    asked = ("history", folder, "--fail-above", "5%", "--since", "2026-01-11")
    assert in_process(*asked, "-o", str(tmp_path / "found.json")).code == 7
    document = json.loads((tmp_path / "found.json").read_text())
    assert (document["since"], document["runs"], document["failures"]) == ("2026-01-11", 50, [])
    assert len(document["undecided"]) == 3
    assert in_process(*asked, "-o", str(tmp_path / "found.html")).code == 7
    page = (tmp_path / "found.html").read_text()
    assert not missing("Not CANNOT 1 of 4 series 64 B: 8 runs until", page)


def test_text_without_a_date_is_named_and_left_out(in_process: Run, tmp_path: Path) -> None:
    for day in range(1, 13):
        (tmp_path / f"osu-2026-11-{day:02}.txt").write_text(NATIVE.format(1 + day / 100))
    (tmp_path / "osu.txt").write_text(NATIVE.format(9.0))
    done = succeeded(in_process("history", str(tmp_path)))
    assert "1 file without a date left out" in done.err
    assert "1 series of 12 runs were judged" in done.out


def test_results_without_any_date_are_refused(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "osu.txt").write_text(NATIVE.format(9.0))
    done = in_process("history", str(tmp_path / "osu.txt"))
    assert_refused(done, 1, "no row has a date")


def test_few_runs_of_a_log_of_reframe_cannot_be_judged(in_process: Run) -> None:
    logs = ROOT / "tests" / "data" / "reframe"
    done = in_process("history", str(logs), "--fail-above", "5%")
    assert done.code == 7
    assert "2 had fewer than 10 runs" in done.out

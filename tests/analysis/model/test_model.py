"""Models of whole files: what is fitted to them, and said of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from omb_py.analysis.model.fit import Model, model
from omb_py.analysis.model.parameters import parameters, sheet
from omb_py.analysis.table import load, of_rows
from omb_py.cli.model import command
from omb_py.core.errors import OmbError
from tests import RESULTS
from tests.helpers.refusals import missing, refuses

SIZES = 2.0 ** np.arange(21)
ALPHA, BETA = 2.0, 1e-3


def rows(
    benchmark: str,
    ranks: int,
    times: dict[float, float] | None = None,
    bandwidths: dict[float, float] | None = None,
    **others: object,
) -> list[dict[str, object]]:
    """Rows of one job: times in us or bandwidths in MB/s by message size."""
    column = "latency_us" if bandwidths is None else "bandwidth_MBps"
    values = times if bandwidths is None else bandwidths
    assert values is not None
    common = {"run": "r", "benchmark": benchmark, "ranks": ranks, "buffer": "numpy", **others}
    return [
        {**common, "bytes": None if size < 0 else int(size), column: value}
        for size, value in values.items()
    ]


def frame(*jobs: list[dict[str, object]]) -> pd.DataFrame:
    return of_rows([row for job in jobs for row in job], {}).rows


def line(sizes: np.ndarray = SIZES, noise: float = 0.02, seed: int = 0) -> dict[float, float]:
    chance = np.random.default_rng(seed)
    times = (ALPHA + BETA * sizes) * np.exp(noise * chance.standard_normal(len(sizes)))
    return dict(zip(sizes.tolist(), times.tolist(), strict=True))


@pytest.mark.parametrize("part", [1, 2])
def test_bandwidth_is_fitted_as_time_of_its_bytes(part: int) -> None:
    times = line(noise=0.0)
    rates = {size: size / part / time for size, time in times.items() if size > 1}
    data = frame(rows("bw", 2, bandwidths=rates, window=8))
    data["payload_bytes"] = data["bytes"] // part
    (found,) = parameters(model(data)).to_dict("records")
    assert found["alpha_us"] == pytest.approx(ALPHA, rel=1e-3)
    assert found["beta_us_per_byte"] == pytest.approx(BETA, rel=1e-3)
    assert found["bandwidth_MBps"] == pytest.approx(1 / BETA, rel=1e-3)


def test_every_number_of_ranks_has_a_line() -> None:
    fitted = model(frame(rows("bcast", 2, line()), rows("bcast", 4, line(seed=1))))
    found = parameters(fitted)
    assert found[["curve", "ranks"]].to_numpy().tolist() == [["2 ranks", 2], ["4 ranks", 4]]
    assert found["alpha_us"].tolist() == pytest.approx([ALPHA, ALPHA], rel=0.05)


def crowded(hosts: str) -> Model:
    runs = {"r": {"hosts": hosts, "processor": "X, 32 logical cores"}}
    return model(frame(rows("bcast", 64, line())), runs)


@pytest.mark.parametrize(
    ("fitted", "words"),
    [
        (
            lambda: model(frame(rows("bcast", 2, line())).assign(hosts=1)),
            "All ranks ran on one host",
        ),
        (lambda: crowded("a:64 b:2"), "more ranks than cores"),
        (lambda: crowded("a:32 b:32"), "Values of bcast are means"),
    ],
)
def test_note_names_what_spoils_a_model(fitted: Callable[[], Model], words: str) -> None:
    assert not missing(words, fitted().notes[0])


def test_rows_that_cannot_be_fitted_are_left_out_and_said() -> None:
    right = rows("latency", 2, line(), validation="Pass")
    wrong = rows("latency", 2, {8: 1e9}, validation="Fail")
    unknown = [{**row, "ranks": None} for row in rows("bcast", 2, line())]
    alone, single = rows("allreduce", 1, line()), rows("barrier", 2, {-1: 1.0})
    fitted = model(frame(right, wrong, unknown, alone, single))
    (found,) = parameters(fitted).to_dict("records")
    assert (found["benchmark"], found["alpha_us"]) == ("latency", pytest.approx(ALPHA, rel=0.05))
    assert fitted.skipped == ("allreduce", "barrier")
    notes = " ".join(fitted.notes)
    for words in (
        "one rank communicates nothing",
        "1 row whose data was wrong is left out",
        "Rows of bcast do not say their number of ranks",
    ):
        assert words in notes


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lambda: frame(rows("latency", 2, {8: 1.0})), "two message sizes"),
        (lambda: frame(rows("latency", 2, line())).assign(ranks=pd.NA), "--assume ranks=N"),
        (lambda: load(RESULTS / "overhead-mpich.csv").rows, "overheads empty"),
    ],
)
def test_rows_without_a_model_are_an_error(data: Callable[[], pd.DataFrame], words: str) -> None:
    with refuses(OmbError, words):
        model(data())


def test_medians_are_taken_wherever_a_whole_benchmark_has_them() -> None:
    medians = rows("latency", 2, {8: 50.0, 1024: 90.0})
    for row, median in zip(medians, (2.0, 4.0), strict=True):
        row["sample_p50_us"] = median
    fitted = model(frame(medians, rows("bcast", 2, {8: 3.0, 1024: 5.0})))
    latency, bcast = parameters(fitted).to_dict("records")[:2]
    assert latency["alpha_us"] + 8 * latency["beta_us_per_byte"] == pytest.approx(2)
    assert bcast["alpha_us"] + 8 * bcast["beta_us_per_byte"] == pytest.approx(3)
    assert any("Values of bcast are means" in note for note in fitted.notes)


def test_two_sizes_have_a_bandwidth_only_if_it_is_reached() -> None:
    near, far = {1.0: 0.1700, 2.0: 0.1701}, {8.0: 1.0, 2.0**20: 100.0}
    fitted = model(frame(rows("latency", 2, near), rows("allreduce", 2, far)))
    rates = parameters(fitted)["bandwidth_MBps"].tolist()
    assert rates == [pytest.approx(np.nan, nan_ok=True), pytest.approx((1 << 20) / 99, rel=1e-3)]


@pytest.mark.long
@pytest.mark.parametrize("file", ["two-core-vm.csv", "families-mpich.csv", "families-openmpi.csv"])
def test_real_results_have_a_model(file: str) -> None:
    results = load(RESULTS / file)
    fitted = model(results.rows, results.runs)
    table = parameters(fitted)
    told = table[table["alpha_low_us"].notna()]
    assert (told["alpha_low_us"] <= told["alpha_us"]).all()
    assert (told["alpha_us"] <= told["alpha_high_us"]).all()
    assert (table["alpha_us"] >= 0).all()


def test_real_latencies_switch_where_the_library_does() -> None:
    """MPICH sends up to 4 KiB at once, Open MPI 2 KiB, on this machine."""
    results = load(RESULTS / "two-core-vm.csv")
    latency = results.rows[results.rows["benchmark"] == "latency"]
    last = parameters(model(latency)).groupby("curve")["last_bytes"].first()
    assert (last["MPICH 5.0.2"], last["Open MPI 5.0.11"]) == (4096, 2048)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), catch_exceptions=True)


def test_the_command_prints_a_table_and_notes() -> None:
    shown = run(str(RESULTS / "two-core-vm.csv")).output
    for title in ("Costs over message sizes", "one host"):
        assert title in shown
    assert "nan" not in shown


def test_range_of_sizes_is_printed_with_both_ends() -> None:
    fitted = model(frame(rows("latency", 2, line())))
    (cells,) = sheet(parameters(fitted)).rows
    assert cells[:2] == ("latency, 2 ranks", "1 B to 1 MiB")


@pytest.mark.slow
def test_the_command_writes_what_the_suffix_says(tmp_path: Path) -> None:
    data = frame(*(rows("bcast", ranks, line()) for ranks in (2, 4, 8)))
    source = tmp_path / "results.csv"
    data.drop(columns=["suite", "mpi", "hosts", "file", "line"]).to_csv(source, index=False)
    for name in ("m.json", "m.csv", "m.md", "m.txt"):
        result = run(str(source), "-o", str(tmp_path / name))
        assert result.exit_code == 0, result.output
    first, *_ = json.loads((tmp_path / "m.json").read_text())["rows"]
    assert (first["benchmark"], first["ranks"]) == ("bcast", 2)
    assert len(pd.read_csv(tmp_path / "m.csv")) > 1
    assert "| curve |" in (tmp_path / "m.md").read_text()
    assert "Costs over message sizes" in (tmp_path / "m.txt").read_text()

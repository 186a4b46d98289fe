"""Models of whole files: what is fitted to them, and said of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from omb_py.analysis.model.costs import algorithms
from omb_py.analysis.model.fit import Model, model
from omb_py.analysis.model.parameters import parameters
from omb_py.analysis.table import load, of_rows
from omb_py.cli.model import command
from omb_py.core.errors import OmbError
from tests import ROOT
from tests.helpers.refusals import refuses

RESULTS = ROOT / "results"
SIZES = 2.0 ** np.arange(21)
RANKS = (2, 4, 8, 16, 32, 64)
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


def collective(
    name: str,
    algorithm: str,
    ranks: tuple[int, ...] = RANKS,
    noise: float = 0.03,
    seed: int = 0,
    alpha: float = ALPHA,
    beta: float = BETA,
    sizes: np.ndarray = SIZES,
) -> pd.DataFrame:
    """A collective that costs exactly what a formula says, but for noise."""
    chance = np.random.default_rng(seed)
    (formula,) = (one for one in algorithms(name) if one.name == algorithm)
    jobs = []
    for number in ranks:
        p = np.full(len(sizes), float(number))
        times = alpha * formula.x(p, sizes) + beta * formula.y(p, sizes)
        times = times * np.exp(noise * chance.standard_normal(len(sizes)))
        jobs.append(rows(name, number, dict(zip(sizes, times, strict=True))))
    return frame(*jobs)


def line(sizes: np.ndarray = SIZES, noise: float = 0.02, seed: int = 0) -> dict[float, float]:
    chance = np.random.default_rng(seed)
    times = (ALPHA + BETA * sizes) * np.exp(noise * chance.standard_normal(len(sizes)))
    return dict(zip(sizes.tolist(), times.tolist(), strict=True))


def only(fitted: Model) -> pd.DataFrame:
    """Parameters of formulas, the best of each range of sizes."""
    table = parameters(fitted)
    return table[table["algorithm"].notna() & (table["place"] == 1)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("bcast", "binomial tree"),
        ("bcast", "scatter, ring allgather (van de Geijn)"),
        ("allreduce", "recursive doubling"),
        ("allreduce", "ring"),
        ("allgather", "ring"),
        ("alltoall", "Bruck"),
        ("alltoall", "pairwise exchange"),
        ("reduce_scatter", "recursive halving"),
        ("gather", "binomial tree"),
        ("scan", "one rank after another"),
    ],
)
def test_formula_that_made_the_times_is_fitted(name: str, algorithm: str) -> None:
    (best,) = only(model(collective(name, algorithm))).to_dict("records")
    assert best["algorithm"] == algorithm
    assert best["alpha_low_us"] < ALPHA < best["alpha_high_us"]
    assert best["beta_low_us_per_byte"] < BETA < best["beta_high_us_per_byte"]
    assert best["alpha_us"] == pytest.approx(ALPHA, rel=0.05)


def test_algorithms_that_change_with_size_are_ranges() -> None:
    small = collective("allreduce", "recursive doubling", sizes=SIZES[:12])
    large = collective("allreduce", "ring", sizes=SIZES[12:], alpha=4.0)
    table = only(model(pd.concat([small, large], ignore_index=True)))
    assert table["algorithm"].tolist() == ["recursive doubling", "ring"]
    assert table["last_bytes"].tolist() == [2048, 1 << 20]


def test_formulas_within_noise_are_named_too() -> None:
    data = collective("bcast", "binomial tree", ranks=(2, 4), noise=0.4, sizes=SIZES[:6])
    table = parameters(model(data))
    assert (table[table["algorithm"].notna()]["place"] > 1).any()


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


def test_a_barrier_is_fitted_over_ranks_alone() -> None:
    jobs = [rows("barrier", number, {-1: 3.0 * np.log2(number)}) for number in RANKS]
    fitted = model(frame(*jobs))
    (best,) = only(fitted).to_dict("records")
    assert best["algorithm"] == "dissemination"
    assert best["alpha_us"] == pytest.approx(3)
    assert pd.isna(best["first_bytes"])


def test_loggp_encloses_the_gap_and_leaves_l_and_o_together() -> None:
    """A window of 64 messages of 0.5 us each, and one message and an answer of 2 us."""
    sizes = [1.0, 2, 4, 8]
    latency = rows("latency", 2, dict.fromkeys(sizes, 2.0))
    windows = {size: 64 * size / (64 * 0.5 + 3.9) for size in sizes}
    data = frame(latency, rows("bw", 2, bandwidths=windows, window=64))
    found, _ = parameters(model(data)).to_dict("records")
    assert found["alpha_us"] == pytest.approx(2)
    assert found["gap_low_us"] <= 0.5 <= found["gap_high_us"]
    assert found["gap_high_us"] - found["gap_low_us"] == pytest.approx(4 / 64)
    assert found["gap_from"] == "bw, window 64"


def test_loggp_takes_the_gap_only_from_the_same_configuration() -> None:
    latency = rows("latency", 2, line(), binding="buffer")
    other = rows("bw", 2, bandwidths=dict.fromkeys(SIZES, 100.0), window=64, binding="native")
    assert parameters(model(frame(latency, other)))["gap_high_us"].isna().all()


def crowded(hosts: str) -> Model:
    runs = {"r": {"hosts": hosts, "processor": "X, 32 logical cores"}}
    return model(collective("bcast", "binomial tree"), runs)


def mixed() -> Model:
    data = collective("bcast", "binomial tree")
    return model(data.assign(hosts=data["ranks"].map(lambda ranks: 1 if ranks < 8 else 2)))


@pytest.mark.parametrize(
    ("fitted", "words"),
    [
        (lambda: model(collective("bcast", "linear").assign(hosts=1)), "All ranks ran on one host"),
        (mixed, "memory and network have different costs"),
        (lambda: crowded("a:64 b:2"), "more ranks than cores"),
        (lambda: crowded("a:32 b:32"), "Values of bcast are means"),
    ],
)
def test_what_spoils_a_model_is_said(fitted: Callable[[], Model], words: str) -> None:
    assert words in fitted().notes[0]


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
        (lambda: frame(rows("latency", 2, {8: 1.0})), "two sizes or two ranks"),
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


def test_the_command_prints_all_tables() -> None:
    shown = run(str(RESULTS / "two-core-vm.csv")).output
    for title in ("Costs over message sizes", "LogGP", "one host"):
        assert title in shown
    assert "nan" not in shown


def test_the_command_writes_what_the_suffix_says(tmp_path: Path) -> None:
    data = collective("bcast", "binomial tree", ranks=(2, 4, 8))
    source = tmp_path / "results.csv"
    data.drop(columns=["suite", "mpi", "hosts", "file", "line"]).to_csv(source, index=False)
    for name in ("m.json", "m.csv", "m.md", "m.txt"):
        result = run(str(source), "-o", str(tmp_path / name))
        assert result.exit_code == 0, result.output
    first, *_ = json.loads((tmp_path / "m.json").read_text())["rows"]
    assert first["formula"] == "alpha + n beta"
    assert len(pd.read_csv(tmp_path / "m.csv")) > 1
    assert "| curve |" in (tmp_path / "m.md").read_text()
    assert "Costs over ranks" in (tmp_path / "m.txt").read_text()

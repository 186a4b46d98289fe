"""Models of whole files: what is fitted to them, and said of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.model.costs import algorithms
from omb_py.analysis.model.fit import Model, model
from omb_py.analysis.model.parameters import parameters
from omb_py.analysis.model.text import write
from omb_py.analysis.table import load, of_rows
from omb_py.cli.model import command
from omb_py.core.errors import OmbError
from omb_py.core.text.tables import Target
from tests import ROOT
from tests.helpers.properties import examples

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
def test_the_formula_that_made_the_times_is_found_with_its_costs(name: str, algorithm: str) -> None:
    (best,) = only(model(collective(name, algorithm))).to_dict("records")
    assert best["algorithm"] == algorithm
    assert best["alpha_low_us"] < ALPHA < best["alpha_high_us"]
    assert best["beta_low_us_per_byte"] < BETA < best["beta_high_us_per_byte"]
    assert best["alpha_us"] == pytest.approx(ALPHA, rel=0.05)


def test_algorithms_that_change_with_the_size_are_found_by_range() -> None:
    small = collective("allreduce", "recursive doubling", sizes=SIZES[:12])
    large = collective("allreduce", "ring", sizes=SIZES[12:], alpha=4.0)
    table = only(model(pd.concat([small, large], ignore_index=True)))
    assert table["algorithm"].tolist() == ["recursive doubling", "ring"]
    assert table["last_bytes"].tolist() == [2048, 1 << 20]


def test_intervals_over_ranks_hold_the_truth() -> None:
    held = []
    for seed in range(40):
        (best,) = only(model(collective("bcast", "binomial tree", seed=seed))).to_dict("records")
        held.append(best["alpha_low_us"] < ALPHA < best["alpha_high_us"])
        held.append(best["beta_low_us_per_byte"] < BETA < best["beta_high_us_per_byte"])
    assert 0.88 <= np.mean(held) <= 1


@examples(15)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e4))
def test_a_machine_slower_by_a_factor_has_a_model_slower_by_it(seed: int, scale: float) -> None:
    data = collective("allreduce", "ring", ranks=(2, 4, 8), noise=0.1, seed=seed)
    slower = data.assign(latency_us=data["latency_us"] * scale)
    one, other = (parameters(model(each)) for each in (data, slower))
    for column in ("alpha_us", "alpha_low_us", "alpha_high_us", "beta_us_per_byte"):
        np.testing.assert_allclose(other[column], one[column] * scale, rtol=1e-4, atol=1e-9 * scale)


def test_formulas_within_noise_are_named_too() -> None:
    data = collective("bcast", "binomial tree", ranks=(2, 4), noise=0.4, sizes=SIZES[:6])
    table = parameters(model(data))
    assert (table[table["algorithm"].notna()]["place"] > 1).any()


@pytest.mark.parametrize("part", [1, 2])
def test_a_bandwidth_is_fitted_as_the_time_of_the_bytes_that_travel(part: int) -> None:
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


def test_a_collective_of_one_rank_is_left_out_and_said() -> None:
    data = collective("bcast", "binomial tree")
    alone = frame(rows("bcast", 1, line()))
    fitted = model(pd.concat([data, alone], ignore_index=True))
    assert set(parameters(fitted)["ranks"]) == {*map(str, RANKS), " ".join(map(str, RANKS))}
    assert any("one rank communicates nothing" in note for note in fitted.notes)


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


def test_times_measured_on_one_host_say_nothing_of_a_network() -> None:
    fitted = model(collective("bcast", "binomial tree").assign(hosts=1))
    assert any("nothing here says what a network costs" in note for note in fitted.notes)
    mixed = collective("bcast", "binomial tree")
    mixed["hosts"] = mixed["ranks"].map(lambda ranks: 1 if ranks < 8 else 2)
    assert any("memory and network" in note for note in model(mixed).notes)


def test_more_ranks_than_cores_are_said() -> None:
    runs = {"r": {"hosts": "a:64 b:2", "processor": "X, 32 logical cores"}}
    data = collective("bcast", "binomial tree")
    assert any("more ranks than cores" in note for note in model(data, runs).notes)
    enough = {"r": {"hosts": "a:32 b:32", "processor": "X, 32 logical cores"}}
    assert not any("more ranks than cores" in note for note in model(data, enough).notes)


def test_a_single_number_is_not_fitted_and_said() -> None:
    data = frame(rows("latency", 2, line()), rows("barrier", 2, {-1: 1.0}))
    fitted = model(data)
    assert fitted.skipped == ("barrier",)
    assert set(parameters(fitted)["benchmark"]) == {"latency"}
    with pytest.raises(OmbError, match="two message sizes or two numbers of ranks"):
        model(frame(rows("latency", 2, {8: 1.0})))


def test_rows_without_ranks_are_an_error_that_names_the_option() -> None:
    data = frame(rows("latency", 2, line())).assign(ranks=pd.NA)
    with pytest.raises(OmbError, match="--assume ranks=N"):
        model(data)


def test_overheads_have_no_model_and_say_so() -> None:
    with pytest.raises(OmbError, match="overheads and empty tables"):
        model(load(RESULTS / "overhead-mpich.csv").rows)


def test_medians_are_taken_wherever_a_whole_benchmark_has_them() -> None:
    medians = rows("latency", 2, {8: 50.0, 1024: 90.0})
    for row, median in zip(medians, (2.0, 4.0), strict=True):
        row["sample_p50_us"] = median
    fitted = model(frame(medians, rows("bcast", 2, {8: 3.0, 1024: 5.0})))
    latency, bcast = parameters(fitted).to_dict("records")[:2]
    assert latency["alpha_us"] + 8 * latency["beta_us_per_byte"] == pytest.approx(2)
    assert bcast["alpha_us"] + 8 * bcast["beta_us_per_byte"] == pytest.approx(3)
    assert any("Values of bcast are means" in note for note in fitted.notes)


@pytest.mark.parametrize("benchmark", ["latency", "allreduce"])
def test_two_sizes_of_one_time_have_no_bandwidth(
    benchmark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = model(frame(rows(benchmark, 2, {1: 0.1700, 2: 0.1701})))
    assert parameters(fitted)["bandwidth_MBps"].isna().all()
    write(fitted, Target())
    assert "GB/s" not in capsys.readouterr().out


def test_two_sizes_that_are_far_apart_have_a_bandwidth() -> None:
    fitted = model(frame(rows("latency", 2, {8: 1.0, 1 << 20: 100.0})))
    (found,) = parameters(fitted).to_dict("records")
    assert found["bandwidth_MBps"] == pytest.approx((1 << 20) / 99, rel=1e-3)


def test_rows_that_are_left_out_are_said() -> None:
    wrong = rows("latency", 2, {8: 1e9}, validation="Fail")
    unknown = [{**row, "ranks": None} for row in rows("bcast", 2, line())]
    fitted = model(frame(rows("latency", 2, line(), validation="Pass"), wrong, unknown))
    notes, (found,) = fitted.notes, parameters(fitted).to_dict("records")
    assert found["alpha_us"] == pytest.approx(ALPHA, rel=0.05)
    assert any("1 row whose data was wrong is left out" in note for note in notes)
    assert any("do not say their number of ranks" in note and "bcast" in note for note in notes)


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--where", "benchmark=nothing"), "nothing"),
        (("-o", "/dev/null/there.txt"), "cannot write"),
    ],
)
def test_what_cannot_be_is_one_sentence(arguments: tuple[str, ...], words: str) -> None:
    result = run(str(RESULTS / "two-core-vm.csv"), *arguments)
    assert isinstance(result.exception, OmbError | SystemExit)
    assert words in str(result.exception) + result.output

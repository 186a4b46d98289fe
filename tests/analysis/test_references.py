"""References: every file that is shipped, each verdict, which points a reference is of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from omb_py.analysis import references
from omb_py.analysis.references_check import Checked, check
from omb_py.analysis.references_learned import LARGEST, from_runs, sensitivity
from omb_py.analysis.table import load, of_rows
from omb_py.analysis.values import BUS
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.tables import Target
from perf.gates import check_made
from tests import ROOT
from tests.helpers.refusals import assert_names, missing

ROW = {"run": "a", "benchmark": "latency", "bytes": 8, "mpi": "MPICH 5.0.2", "binding": "native"}
RANKS = {"ranks": 2, "hosts": 2, "placement": "H"}
NCCL = ROOT / "tests" / "data" / "nccl-tests" / "all_reduce_2.13.txt"


BANDWIDTHS = ((20000.0, "low", 4), (20401.0, "pass", 0), (40000.0, "pass", 0))
"""MB/s beside 24000 - 15 %, and what is said of them."""


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    """Rows as `load` gives them."""
    return of_rows([ROW | row for row in rows], {}).rows


def known(folder: Path, *rows: dict[str, Any]) -> pd.DataFrame:
    """References as a file has them."""
    path = folder / "known.csv"
    pd.DataFrame(rows, dtype=object).to_csv(path, index=False)
    return references.load(str(path))


def against(folder: Path, reference: dict[str, Any], *rows: dict[str, Any]) -> Checked:
    """Rows beside a reference of a latency of 8 bytes."""
    usual = {"benchmark": "latency", "bytes": 8, "value": 2.0, "unit": "us"}
    return check(table(*rows), known(folder, usual | reference), "here")


@pytest.mark.parametrize("name", references.shipped())
def test_shipped_references_have_a_source_and_a_rate_or_time(name: str) -> None:
    found = references.load(name)
    assert set(found["system"]) == {name}
    assert found["source"].notna().all()
    assert found["software"].notna().all()
    assert found["conditions"].notna().all()
    assert (found["hosts"].notna() | found["conditions"].str.contains("hosts not stated")).all()
    assert not found.duplicated(["benchmark", "bytes", "placement", "ranks", "hosts"]).any()
    assert (found["unit"] == "us").eq(found["benchmark"].str.contains("latency")).all()


def test_shipped_alps_has_the_acceptance_limits_of_cscs() -> None:
    found = references.load("alps-gh200").set_index(["benchmark", "bytes", "placement"])
    assert found.loc[("latency", 256, "D"), ["value", "high"]].tolist() == [3.75, 0.15]
    assert found.loc[("latency", 256, "H"), ["value", "high"]].tolist() == [2.3, 0.6]
    assert found.loc[("bw", 4194304, "D"), ["value", "low"]].tolist() == [24000.0, -0.15]


@pytest.mark.parametrize(
    ("name", "ranks", "allreduce", "sendrecv"),
    [
        ("alps-gh200", 8, (150.0, -0.1, 0.1), (24.0, -0.05, 0.05)),
        ("alps-mi300", 8, (140.0, -0.05, 0.05), (24.0, -0.05, 0.05)),
        ("alps-mi200", 16, (105.0, -0.05, 0.05), (13.5, -0.15, 0.15)),
        ("alps-a100", 8, (66.0, -0.05, 0.05), (13.5, -0.15, 0.15)),
    ],
)
def test_shipped_alps_has_the_limits_of_cscs_on_every_partition(
    name: str, ranks: int, allreduce: tuple[float, ...], sendrecv: tuple[float, ...]
) -> None:
    found = references.load(name)
    found = found[found["bytes"] == 1 << 30].set_index("benchmark")
    columns = ["value", "low", "high"]
    assert found.loc["allreduce", columns].tolist() == list(allreduce)
    assert found.loc["sendrecv", columns].tolist() == list(sendrecv)
    assert found["ranks"].tolist() == [ranks, ranks]
    assert "NCCL_NCHANNELS_PER_NET_PEER=4" in found.loc["sendrecv", "conditions"]


def test_shipped_references_outside_alps_state_no_limits() -> None:
    limited = [
        name
        for name in references.shipped()
        if references.load(name)[["low", "high"]].notna().any(axis=None)
    ]
    assert limited == [name for name in references.shipped() if name.startswith("alps-")]


@pytest.mark.parametrize(
    ("reference", "measured", "verdict", "code"),
    [
        ({}, 2.29, "pass", 0),
        ({}, 2.31, "high", 4),
        ({}, 0.5, "pass", 0),
        ({"high": 0.6}, 3.19, "pass", 0),
        ({"high": 0.6}, 3.21, "high", 4),
        ({"low": -0.1, "high": 0.1}, 1.7, "low", 0),
        ({"low": -0.1}, 20.0, "high", 4),
        ({"low": -0.5, "high": 0.5}, 1.0, "pass", 0),
        ({"low": -0.5, "high": 0.5}, 3.0, "pass", 0),
    ],
)
def test_latency_outside_its_tolerance_has_a_verdict_and_a_code(
    tmp_path: Path, reference: dict[str, Any], measured: float, verdict: str, code: int
) -> None:
    found = against(tmp_path, reference, RANKS | {"latency_us": measured})
    assert found.lines["verdict"].tolist() == [verdict]
    assert found.conclusion.exit_code == code
    assert len(found.failures) == (code != 0)


@pytest.mark.parametrize(
    ("unit", "value", "low", "rate", "verdict", "code"),
    [
        *(("MB/s", 24000.0, -0.15, *case) for case in BANDWIDTHS),
        *(("GB/s", 24.0, -0.15, *case) for case in BANDWIDTHS),
        ("MB/s", 24000.0, -0.25, 18000.0, "pass", 0),
    ],
)
def test_bandwidth_below_its_tolerance_is_low_and_fails(
    tmp_path: Path, unit: str, value: float, low: float, rate: float, verdict: str, code: int
) -> None:
    reference = {"benchmark": "bw", "bytes": "4M", "value": value, "unit": unit, "low": low}
    row = {"benchmark": "bw", "bytes": 4 << 20, "bandwidth_MBps": rate}
    found = against(tmp_path, reference, row)
    assert (list(found.lines["verdict"]), found.conclusion.exit_code) == ([verdict], code)


def test_reference_without_a_point_is_not_measured(tmp_path: Path) -> None:
    found = against(tmp_path, {"bytes": 64}, RANKS | {"latency_us": 2.0})
    assert found.lines["verdict"].tolist() == ["not measured"]
    assert found.conclusion.exit_code == 7
    assert not missing(
        "CANNOT TELL: 0 of 1 value 1 not measured (latency, 64 B)", found.conclusion.sentence
    )
    assert "1 measured point without a reference" in found.remarks


def test_reference_without_a_column_is_of_every_point(tmp_path: Path) -> None:
    rows = [{"latency_us": 2.0, "binding": name} for name in ("native", "buffer")]
    found = against(tmp_path, {}, *rows)
    assert sorted(found.lines["binding"]) == ["buffer", "native"]
    found = against(tmp_path, {"binding": "buffer"}, *rows)
    assert found.lines["binding"].tolist() == ["buffer"]
    assert "1 measured point without a reference" in found.remarks


def test_point_counts_for_the_reference_that_states_most(tmp_path: Path) -> None:
    reference = {"benchmark": "latency", "bytes": 8, "unit": "us"}
    both = known(tmp_path, reference | {"value": 2.0}, reference | {"value": 4.0, "hosts": 2})
    found = check(table(RANKS | {"latency_us": 4.0}), both, "here")
    assert found.lines["verdict"].tolist() == ["pass", "not measured"]
    assert found.lines["expected"].tolist() == [4.0, 2.0]


def test_placement_of_both_ends_is_that_of_one_letter(tmp_path: Path) -> None:
    row = {"latency_us": 2.0, "placement": "D D"}
    assert against(tmp_path, {"placement": "D"}, row).conclusion.judged == 1
    assert against(tmp_path, {"placement": "D D"}, row | {"placement": "D"}).conclusion.judged == 1
    assert against(tmp_path, {"placement": "D"}, row | {"placement": "D H"}).conclusion.judged == 0


def test_missing_column_is_taken_from_the_only_reference(tmp_path: Path) -> None:
    found = against(tmp_path, {"hosts": 2}, {"latency_us": 2.0})
    assert found.conclusion.exit_code == 0
    assert found.remarks[0] == "results without hosts: taken as the references have them"


def test_missing_column_in_which_references_differ_is_not_judged(tmp_path: Path) -> None:
    both = known(
        tmp_path,
        *({"benchmark": "latency", "value": 2.0, "unit": "us", "hosts": n} for n in (1, 2)),
    )
    found = check(table({"latency_us": 0.74, "bytes": None}), both, "here")
    assert found.conclusion.exit_code == 7
    assert not missing("--assume hosts=VALUE", " ".join(found.remarks))


def test_missing_column_of_a_published_reference_is_not_compared() -> None:
    rows = table({"latency_us": 0.74, "bytes": 0, "placement": "D", "ranks": 2})
    booster = references.load("juwels-booster")
    found = check(rows, booster, "juwels-booster", tolerance=0.15)
    assert found.lines["verdict"].tolist() == ["not compared"] * 2 + ["not measured"] * 4
    assert len(found.conclusion.undecided) == 2
    assert not missing("without hosts --assume hosts=VALUE", " ".join(found.remarks))
    found = check(rows.assign(hosts=1), booster, "juwels-booster")
    assert found.measured["verdict"].tolist() == ["no limit"]
    assert found.measured["ratio"].tolist() == [1.0]


def test_conditions_of_a_published_reference_stand_in_its_failure() -> None:
    rows = table({"latency_us": 9.0, "bytes": 256, "placement": "D", "ranks": 2, "hosts": 2})
    (failure,) = check(rows, references.load("alps-gh200"), "alps-gh200").failures
    assert not missing("up to 4.31 MPICH_GPU_SUPPORT_ENABLED=1", failure.reason)


def test_messages_of_numpy_are_in_host_memory() -> None:
    row = {"latency_us": 9.0, "bytes": 256, "ranks": 2, "hosts": 2, "buffer": "numpy"}
    found = check(table(row), references.load("alps-gh200"), "alps-gh200")
    assert found.measured["placement"].tolist() == ["H"]


def test_repeated_runs_are_judged_by_their_median(tmp_path: Path) -> None:
    rows = [
        RANKS | {"run": name, "latency_us": time}
        for name, time in zip("abc", (2, 2.1, 9), strict=True)
    ]
    found = against(tmp_path, {}, *rows)
    assert (found.lines["value"].tolist(), found.lines["runs"].tolist()) == ([2.1], [3])


def test_bus_bandwidth_is_that_of_nccl_tests(tmp_path: Path) -> None:
    rows = load(NCCL).rows
    row = rows[rows["busbw_GBps"] > 0].iloc[-1]
    reference = {"benchmark": "allreduce", "bytes": int(row["bytes"]), "unit": BUS}
    reference |= {"in_place": bool(row["in_place"])}
    for value, verdict in ((row["busbw_GBps"], "pass"), (row["busbw_GBps"] * 1.3, "low")):
        found = check(rows, known(tmp_path, reference | {"value": value}), "here")
        assert found.lines["verdict"].tolist() == [verdict]
        assert found.lines["value"].tolist() == [row["busbw_GBps"]]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"unit": "ms"}, "unit ms us MB/s"),
        ({"bytes": "many"}, "many bytes"),
        ({"value": -1}, "value above 0"),
        ({"low": 0.1}, "low 0 or below"),
        ({"sise": 8}, "sise bytes"),
        ({"value": None}, "no value"),
    ],
)
def test_wrong_cell_of_a_file_is_refused(tmp_path: Path, cells: dict[str, Any], words: str) -> None:
    with pytest.raises(OmbError) as error:
        known(tmp_path, {"benchmark": "latency", "bytes": 8, "value": 2, "unit": "us"} | cells)
    assert not missing("known.csv " + words.split()[0], str(error.value))


def test_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(UsageError) as error:
        references.load("alps")
    assert not missing(" ".join(references.shipped()), str(error.value))


def test_several_systems_need_a_choice(tmp_path: Path) -> None:
    path = tmp_path / "site.json"
    limits = [2.0, None, 0.1, "us"]
    path.write_text(json.dumps({s: {"latency bytes=8": limits} for s in ("a:cpu", "a:gpu")}))
    with pytest.raises(UsageError, match="--system a:cpu"):
        references.load(str(path))
    assert references.load(str(path), "a:gpu")["high"].tolist() == [0.1]
    with pytest.raises(UsageError, match="--system b"):
        references.load(str(path), "b")


def test_json_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.json"
    for document in ([1], {"a": [1]}, {"a": {"latency": 2.0}}, {"a": {"latency": [1, None]}}):
        path.write_text(json.dumps(document))
        with pytest.raises(OmbError, match=r"\[value, low, high, \"us\"\]"):
            references.load(str(path))


def launches(spread: float, count: int = 6, factor: float = 1.0) -> pd.DataFrame:
    """Rows of launches whose latencies differ by a relative standard deviation."""
    noise = np.random.default_rng(7).normal(0, spread, count)
    rows = [
        RANKS
        | {"run": str(n), "bytes": size, "variant": "UCX_TLS=rc tuned"}
        | {"latency_us": factor * (1 + size / 1000) * float(np.exp(one))}
        for n, one in enumerate(noise)
        for size in (8, 64, 1 << 20)
    ]
    bandwidths = [
        RANKS
        | {"run": str(n), "benchmark": "bw", "bytes": 1 << 20, "window": 64}
        | {"bandwidth_MBps": 12000 / factor * float(np.exp(one))}
        for n, one in enumerate(noise)
    ]
    return table(*rows, *bandwidths)


@pytest.mark.parametrize("format_", ["csv", "json"])
@pytest.mark.parametrize("spread", [0.001, 0.02])
def test_own_references_pass_again_and_fail_30_percent_slower(
    tmp_path: Path, format_: str, spread: float
) -> None:
    path = str(tmp_path / f"site.{format_}")
    references.save(from_runs(launches(spread), "site"), Target(format_, path))
    found = references.load(path)
    again = check(launches(spread), found, "site")
    assert (again.conclusion.exit_code, len(again.measured)) == (0, 4)
    assert "without a reference" not in " ".join(again.remarks)
    slower = check(launches(spread, factor=1.3), found, "site")
    assert (slower.conclusion.exit_code, len(slower.failures)) == (4, 4)


def test_tolerance_of_own_references_is_students_limit_for_all_points() -> None:
    calm = from_runs(launches(0.001), "site")
    assert calm["high"].dropna().tolist() == [0.05] * 3
    assert calm["low"].dropna().tolist() == [-0.05]
    busy = launches(0.05)
    logs = np.log(busy.loc[busy["bytes"] == 8, "latency_us"].to_numpy(float))
    of_four_points = 3.163382  # Student's quantile of 1 - 5 % / 4, 5 degrees of freedom
    wide = np.expm1(of_four_points * logs.std(ddof=1) * np.sqrt(1 + np.pi / 2 / 6))
    found = from_runs(busy, "site")
    assert found["high"].dropna().tolist() == pytest.approx([wide] * 3, abs=1e-3)
    assert found["low"].dropna().tolist() == pytest.approx([1 / (1 + wide) - 1], abs=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("noise", ["independent", "shared by half", "one for all"])
@pytest.mark.parametrize("count", [3, 5, 10])
def test_healthy_launch_passes_160_own_references_95_of_100_times(noise: str, count: int) -> None:
    made = check_made(np.random.default_rng(11), noise, 0.05, count, trials=300, whole=1)
    assert made.passed.mean() >= 0.95
    assert (made.told > made.needed).mean() >= 0.85, "a slowdown is found as often as is told"


def of_deviation(spread: float, count: int) -> pd.DataFrame:
    """Launches of one point whose logarithms have exactly this standard deviation."""
    logs = np.linspace(-1, 1, count)
    times = np.exp(spread * logs / logs.std(ddof=1))
    return table(*(RANKS | {"run": str(n), "latency_us": float(t)} for n, t in enumerate(times)))


def test_own_references_that_find_nothing_say_how_many_launches_would() -> None:
    def said(count: int) -> list[str]:
        return sensitivity(from_runs(of_deviation(0.1, count), "site"))

    assert_names(said(3)[0], "9 times of 10 slower latency 8 B")
    assert_names(said(3)[1], "1 of 1 reference cannot find 50 % launches differ by 11 % measure")
    enough = int(said(3)[1].rpartition(" ")[2])
    assert len(said(enough)) == 1
    assert len(said(enough - 1)) > 1
    hopeless = from_runs(of_deviation(0.5, 3), "site")
    assert "not even 50 would do" in sensitivity(hopeless)[1]


def test_own_references_name_the_slowdown_at_the_narrowest_and_widest() -> None:
    rows = launches(0.03, count=10)
    quiet = (rows["benchmark"] == "latency") & (rows["bytes"] < 100)
    rows.loc[quiet, "latency_us"] = rows.loc[quiet, "latency_us"] ** 0.1
    (said,) = sensitivity(from_runs(rows, "site"))
    assert said.startswith("A launch is found 9 times of 10 if it is 5.3 % slower at latency, 8 B")
    assert_names(said, "1 MiB")


def test_two_launches_make_own_references_that_say_what_they_find() -> None:
    made = from_runs(launches(0.2, count=2), "site")
    assert made["high"].max() <= LARGEST
    said = sensitivity(made)
    assert_names(said[-1], "Limits of 2 launches times as wide as those of 5")
    assert any("cannot find" in one for one in said)


def test_own_references_need_repeated_launches() -> None:
    with pytest.raises(UsageError, match="measure 5 or more"):
        from_runs(launches(0.01, count=1), "site")

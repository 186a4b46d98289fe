"""Tables of applications are read whole, and become speed-ups over ranks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis import speedup
from omb_py.analysis.table import load as load_benchmarks
from omb_py.apps import divides_work
from omb_py.core.errors import OmbError, UsageError
from omb_py.results.application import ApplicationRow
from tests import RESULTS
from tests.analysis.application_tables import row, write
from tests.conftest import Run
from tests.helpers.damage import damaged
from tests.helpers.properties import examples
from tests.helpers.refusals import refuses

Speedups: TypeAlias = Callable[..., pd.DataFrame]
REFERENCE = RESULTS / "two-core-vm.csv"
ROWS = [row(1, 1.0), row(2, 1.8, 0.1), row(4, 3.25, 0.1)]


@pytest.fixture
def found(tmp_path: Path) -> Speedups:
    def speedups(*rows: ApplicationRow) -> pd.DataFrame:
        named = [one.replace(run=f"run-{number}") for number, one in enumerate(rows)]
        runs, problems = speedup.load(write(tmp_path / "table.csv", *named))
        assert problems == []
        return speedup.speedups(runs, divides_work)

    return speedups


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("tables") / "table.csv", *ROWS).read_bytes()


def test_points_come_in_the_order_of_their_ranks(found: Speedups) -> None:
    points = found(row(4, 3.0), row(1, 1.0), row(2, 1.5))
    assert points["ranks"].tolist() == [1, 2, 4]
    assert points["efficiency"].tolist() == [1.0, 0.75, 0.75]
    assert points["mpi"].tolist() == ["MPICH 5.0.2"] * 3


def test_ranks_on_several_numbers_of_nodes_are_lines_of_their_own(found: Speedups) -> None:
    points = found(row(1, 1.0), row(4, 3.0), row(4, 2.0, nodes=2))
    assert points[points["nodes"] == 2]["speedup"].tolist() == [2.0]
    assert list(points["line"].unique()) == ["1 node", "2 nodes"]


@pytest.mark.parametrize(
    "other",
    [
        {"application": "pca"},
        {"problem": "rows=16"},
        {"scaling": "weak"},
        {"buffer": "cupy"},
        {"binding": "pickle"},
        {"threads": 2},
        {"variant": "tuned"},
    ],
    ids=str,
)
def test_values_differ_by_line(found: Speedups, other: dict[str, Any]) -> None:
    assert found(row(1, 1.0), row(2, 1.5), row(2, 1.5, **other))["line"].nunique() == 2


def test_several_runs_are_their_median_and_extremes(found: Speedups) -> None:
    (point,) = found(row(2, 1.5, 0.1), row(2, 1.8, 0.2), row(2, 1.6)).to_dict("records")
    assert point["runs"] == 3
    ends = (point["speedup"], point["speedup_low"], point["speedup_high"])
    assert ends == pytest.approx((1.6, 1.5 / 1.1, 1.8 * 1.2))
    assert point["time_s"] == pytest.approx(8 / 1.6)


def test_without_speedup_one_rank_is_the_base(found: Speedups) -> None:
    alone = row(1, None, time_s=8.0, time_low_s=7.0, time_high_s=9.0)
    both = row(2, None, time_s=5.0, time_low_s=4.0, time_high_s=6.0)
    points = found(alone, both)
    assert pd.isna(points["speedup"][0])
    ends = points.loc[1, ["speedup", "speedup_low", "speedup_high"]].tolist()
    assert ends == pytest.approx([8 / 5, 7 / 6, 9 / 4])


@pytest.mark.parametrize(
    ("other", "speedup"),
    [({"scaling": "weak"}, 2.0), ({"application": "replay"}, None)],  # each rank does all of it
)
def test_one_rank_is_the_base_as_far_as_ranks_divide_its_work(
    found: Speedups, other: dict[str, Any], speedup: float | None
) -> None:
    last = found(*(row(n, None, **other) for n in (1, 2)))["speedup"][1]
    assert pd.isna(last) if speedup is None else last == speedup


def test_the_sequential_program_is_another_base(found: Speedups) -> None:
    ends = {"sequential_speedup_low": 1.0, "sequential_speedup_high": 4.0}
    points = found(row(1, 1.0, sequential_speedup=2.0, **ends), row(2, 2.0, sequential_s=6.0))
    assert points["sequential_speedup"].tolist() == [2.0, 1.5]


def test_ranks_that_share_cores_are_marked(found: Speedups) -> None:
    rows = [row(n, n / 2, host_cores=2, nodes=nodes) for n, nodes in ((2, 1), (4, 1), (8, 4))]
    points = found(*rows)
    assert points["oversubscribed"].tolist() == [False, True, False]
    (sheet,) = speedup.sheets(points)
    assert [line[0] for line in sheet.rows] == ["2", "4*", "8"]
    assert "ranks took turns" in sheet.remarks[-1]


def test_phases_are_parts_of_a_rank_s_own_time(found: Speedups) -> None:
    phases = {"compute_s": 1.0, "communicate_s": 2.0, "wait_s": 4.0}
    points = found(row(2, 1.5, **phases, distribute_s=1.0))
    shares = points[list(speedup.PHASES)].iloc[0].tolist()
    assert shares == [0.125, 0.25, 0.5, 0.125, 0.0]


def test_rows_of_ranks_and_parts_are_passed_over(tmp_path: Path) -> None:
    parts = [row(2, None, part="rank", rank=0), row(2, None, part="check", time_s=None)]
    runs, _ = speedup.load(write(tmp_path / "table.csv", ROWS[1], *parts))
    assert runs["speedup"].tolist() == [1.8]


def test_a_folder_may_hold_other_tables_and_logs(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "below.csv").write_bytes(content)
    (tmp_path / "job.log").write_bytes(b"starting\n" + content + b"done\n")
    (tmp_path / "benchmarks.csv").write_bytes(REFERENCE.read_bytes())
    runs, problems = speedup.load(tmp_path)
    assert len(runs) == 3
    assert [problem.text for problem in problems] == [
        "not a whole row, left out",
        f"3 rows of a run that is in {tmp_path / 'below.csv'}, too: counted once",
    ]


def test_who_reads_benchmarks_says_where_applications_are_shown(tmp_path: Path) -> None:
    table = write(tmp_path / "table.csv", *ROWS)
    for named in (table, [REFERENCE, table]):
        with refuses(OmbError, "omb-py show --speedup shows them"):
            load_benchmarks(named)
    (tmp_path / "benchmarks.csv").write_bytes(REFERENCE.read_bytes())
    results = load_benchmarks(tmp_path)
    assert len(results.rows) == len(load_benchmarks(REFERENCE).rows)
    (problem,) = results.problems
    assert "omb-py show --speedup shows them" in str(problem)


@pytest.mark.parametrize("name", ["missing.csv", "benchmarks.csv", "."])
def test_where_there_is_nothing_one_sentence_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "benchmarks.csv").write_bytes(REFERENCE.read_bytes())
    with pytest.raises(OmbError, match=r"cannot read|omb-py APPLICATION --output FILE\.csv"):
        speedup.load(tmp_path / name)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"check": "Fail"}, "the result of matmul was wrong"),
        ({"time_s": 0.0}, "not what its column holds"),
        ({"time_low_s": None}, "not what its column holds"),
        ({"speedup_low": None}, "not what its column holds"),
        ({"cores": 0}, "not what its column holds"),
        ({"ranks": "two"}, "not what its column holds"),
        ({"speedup": float("inf")}, "not what its column holds"),
        ({"scaling": "sideways"}, "not what its column holds"),
        ({"problem": ""}, "not what its column holds"),
    ],
)
def test_wrong_row_is_left_out_and_named(tmp_path: Path, wrong: dict[str, Any], words: str) -> None:
    runs, (problem,) = speedup.load(
        write(tmp_path / "table.csv", ROWS[0], ROWS[1].replace(**wrong))
    )
    assert runs["ranks"].tolist() == [1]
    assert words in problem.text
    assert problem.line is not None


@pytest.mark.slow
@given(st.data(), st.binary(max_size=300))
@examples(100)
def test_damage_is_left_out_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, data: st.DataObject, noise: bytes
) -> None:
    changed = data.draw(damaged(content))
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    for text in (changed, noise + changed, content + noise + b"\n" + changed):
        path.write_bytes(text)
        with suppress(OmbError):
            speedup.load(path)


def training(ranks: int, strategy: str, speed: float, depth: int = 110) -> ApplicationRow:
    problem = f"model=resnet layers={depth} strategy={strategy}"
    return row(ranks, speed, problem=problem, application="train")


@pytest.fixture
def trainings(tmp_path: Path) -> Path:
    rows = [
        training(8, "data", 2.0),
        training(8, "model", 3.0),
        training(8, "model", 5.0),
        training(16, "data", 6.0),
        training(16, "hybrid", 3.0),
    ]
    named = [one.replace(run=f"run-{number}") for number, one in enumerate(rows)]
    return write(tmp_path / "table.csv", *named)


def test_options_stand_side_by_side_with_the_best(trainings: Path) -> None:
    runs, _ = speedup.load(trainings)
    (sheet,) = speedup.across(runs, ["strategy"], "speedup")
    assert sheet.columns == ("ranks", "data", "model", "hybrid", "best")
    assert [line[:-1] for line in sheet.rows] == [
        ("8", "2.00", "4.00", "-"),
        ("16", "6.00", "-", "3.00"),
    ]


def test_single_runs_have_no_best(trainings: Path) -> None:
    runs, _ = speedup.load(trainings)
    for value in ("speedup", "time_s"):
        (sheet,) = speedup.across(runs, ["strategy"], value)
        assert [line[-1] for line in sheet.rows] == ["unclear", "unclear"]


@pytest.mark.parametrize(
    ("seconds", "best"), [((1.0, 2.0), "data"), ((2.0, 1.0), "model"), ((1.0, 1.001), "within")]
)
def test_best_of_repeated_runs_is_better_beyond_the_noise(
    tmp_path: Path, seconds: tuple[float, float], best: str
) -> None:
    noise = (0.99, 1.0, 1.01, 1.02, 0.98)
    rows = [
        training(8, strategy, 1 / (time * one)).replace(run=f"{strategy}-{number}")
        for strategy, time in zip(("data", "model"), seconds, strict=True)
        for number, one in enumerate(noise)
    ]
    runs, _ = speedup.load(write(tmp_path / "table.csv", *rows))
    (sheet,) = speedup.across(runs, ["strategy"], "speedup")
    assert best in sheet.rows[0][-1]


def test_only_some_runs_are_compared(trainings: Path) -> None:
    runs, _ = speedup.load(trainings, ["ranks=16", "strategy=data,hybrid"])
    (sheet,) = speedup.across(runs, ["strategy"], "speedup")
    assert sheet.columns == ("application", "data", "hybrid", "best")
    with refuses(UsageError, "no row has ranks=3: there are 16, 8"):
        speedup.load(trainings, ["ranks=3"])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("rank", "speedup", "no column 'rank': ranks"),
        ("strategy", "duration_s", "no column 'duration_s'"),
        ("ranks", "strategy", "'strategy' number"),
    ],
)
def test_name_without_a_run_refused(trainings: Path, name: str, value: str, words: str) -> None:
    runs, _ = speedup.load(trainings)
    with refuses(UsageError, words):
        list(speedup.across(runs, [name], value))


def test_show_prints_and_writes_speedups(in_process: Run, trainings: Path, tmp_path: Path) -> None:
    done = in_process("show", str(trainings), "--speedup", "-o", "speedup.csv")
    assert (done.code, done.err, done.out) == (0, "", "")
    assert len(pd.read_csv(tmp_path / "speedup.csv")) == 4
    done = in_process("show", str(trainings), "--speedup", "--across", "strategy")
    assert (done.code, done.err) == (0, "")
    assert "model" in done.out

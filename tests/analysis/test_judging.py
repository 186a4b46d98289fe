"""What may be judged: data that was right, each file once, a statistic for each series."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from omb_py.analysis.judging import rows_to_judge
from omb_py.analysis.table import load
from omb_py.analysis.values import measured, value_column
from omb_py.results.columns import IDENTITY
from tests import ROOT
from tests.analysis.report.test_report import visible
from tests.conftest import Run, succeeded
from tests.helpers.refusals import missing

DATA = ROOT / "tests" / "data" / "wrong"
FAILED_ROW = DATA / "failed-row.txt"

TEXT = """$ mpirun -n 4 osu_allreduce -c -m 4:16
# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_INT.
# Size       Avg Latency(us)        Validation
4                       1.0{number}              {validation}
8                       1.1{number}              {validation}
"""
ALIKE = ("--assume", "mpi=MPICH 5", "--assume", "hosts=1")


def folder(path: Path, *validations: str) -> str:
    """A folder of texts of native OMB, one for each result of its data's check."""
    path.mkdir()
    for number, validation in enumerate(validations):
        text = TEXT.format(number=number, validation=validation)
        (path / f"r{number}.txt").write_text(text)
    return str(path)


def site(path: Path) -> str:
    """References that the texts reach."""
    path.write_text("benchmark,bytes,value,unit\nallreduce,8,1.13,us\n")
    return str(path)


def test_rows_whose_data_was_wrong_are_left_out_by_name() -> None:
    rows, wrong = rows_to_judge(load(FAILED_ROW).rows)
    assert rows["bytes"].tolist() == [4, 16]
    (one,) = wrong
    assert not missing("failed-row.txt allreduce 8 B data wrong 1 row", one.reason)


def test_wrong_elements_of_nccl_tests_are_wrong_data() -> None:
    rows, wrong = rows_to_judge(load(DATA / "nccl-wrong.txt").rows)
    assert len(rows) == 11
    assert not missing("nccl-wrong.txt allreduce 195 KiB 1 row", wrong[0].reason)


@pytest.mark.parametrize("value", ["auto", "latency"])
def test_wrong_data_has_no_value_in_figures(value: str) -> None:
    assert measured(load(FAILED_ROW).rows, value)["bytes"].tolist() == [4, 16]


def test_show_has_the_row_with_its_check_and_a_note(in_process: Run) -> None:
    done = in_process("show", str(FAILED_ROW))
    assert [line.split() for line in done.out.strip().splitlines()[-3:]] == [
        ["4", "B", "1.08", "µs", "Pass"],
        ["8", "B", "1.03", "µs", "Fail"],
        ["16", "B", "1.09", "µs", "Pass"],
    ]
    assert not missing("note: failed-row.txt allreduce 8 B data wrong", done.err)


@pytest.mark.slow
@pytest.mark.parametrize("others", [("Fail",) * 6, ("Pass",) * 5 + ("Fail",)])
def test_check_fails_on_wrong_data(
    in_process: Run, tmp_path: Path, others: tuple[str, ...]
) -> None:
    expected = site(tmp_path / "site.csv")
    right = in_process("check", folder(tmp_path / "b", *["Pass"] * 6), "--expected", expected)
    assert (right.code, "PASS: 6 of 6 values" in right.out) == (0, True)
    done = in_process("check", folder(tmp_path / "n", *others), "--expected", expected, *ALIKE)
    assert done.code == 4
    assert not missing("FAIL: r5.txt allreduce data wrong", done.out)
    assert "PASS" not in done.out


@pytest.mark.slow
@pytest.mark.parametrize("others", [("Fail",) * 6, ("Pass",) * 5 + ("Fail",)])
@pytest.mark.parametrize("swapped", [False, True])
def test_compare_fails_on_wrong_data_of_either_side(
    in_process: Run, tmp_path: Path, others: tuple[str, ...], swapped: bool
) -> None:
    sides = [folder(tmp_path / "b", *["Pass"] * 6), folder(tmp_path / "n", *others)]
    words = (*(sides[::-1] if swapped else sides), "--fail-above", "50%", *ALIKE)
    done = in_process("compare", *words)
    assert done.code == 4
    assert not missing("allreduce data wrong", done.out + done.err)
    assert "PASS" not in done.out


def test_plot_draws_no_wrong_data_and_names_it(in_process: Run, tmp_path: Path) -> None:
    done = in_process("plot", folder(tmp_path / "n", "Fail"))
    assert done.code == 1
    assert not missing("note: allreduce data wrong nothing to draw", done.err)


def test_file_that_is_named_twice_is_one_launch(tmp_path: Path) -> None:
    (tmp_path / "over" / "sub").mkdir(parents=True)
    file = tmp_path / "over" / "sub" / "r.txt"
    shutil.copy(FAILED_ROW, file)
    (tmp_path / "over" / "latest.txt").symlink_to(file)
    over = tmp_path / "over"
    for paths in ([over, over / "sub"], [over / "sub", over], [file, over], [over, file]):
        found = load(paths)
        assert len(found.rows) == 3
        assert any("which was read: counted once" in one.text for one in found.problems)


def test_statistic_is_chosen_for_each_series(tmp_path: Path) -> None:
    (tmp_path / "native.txt").write_text(TEXT.format(number=1, validation="Pass"))
    head = "run,benchmark,bytes,ranks,buffer,binding,latency_us,sample_p50_us\n"
    rows = "20260101T000000Z-aaaaaa,allreduce,8,4,numpy,native,2.0,1.5\n"
    (tmp_path / "ours.csv").write_text(f"# run: 20260101T000000Z-aaaaaa\n{head}{rows}")
    values = value_column(load(tmp_path).rows, "auto", IDENTITY)
    found = values.set_index("binding")[["statistic", "value"]]
    assert found.loc["native"].tolist() == ["median", 1.5]
    assert set(found.loc["C", "statistic"]) == {"mean"}
    assert set(value_column(load(tmp_path).rows)["statistic"]) == {"mean"}  # side by side


@pytest.mark.slow
def test_row_of_a_stopped_job_is_named_everywhere_and_used_nowhere(
    in_process: Run, tmp_path: Path
) -> None:
    head = "run,benchmark,bytes,ranks,buffer,binding,latency_us,stopped_s\n"
    for name, seconds in (("a", ""), ("b", "10.5")):
        rows = f"{name},allreduce,8,4,numpy,native,2.0,{seconds}\n"
        rows += f"{name},allreduce,16,4,numpy,native,2.1,\n"
        (tmp_path / f"{name}.csv").write_text(f"# run: {name}\n{head}{rows}")
    named = "b.csv allreduce 8 B job was stopped meanwhile (stopped_s) 1 row"
    shown = in_process("show", "b.csv")
    assert not missing(named, shown.err)
    assert not missing("8 B 2.00 µs 10.50", shown.out)
    compared = in_process("compare", "a.csv", "b.csv", "--fail-above", "50%")
    assert compared.code == 4
    assert not missing(named, compared.out + compared.err)
    assert not missing("of 1 points 1 no value in other", compared.out)
    succeeded(in_process("report", "b.csv", "-o", "r.html"))
    page = visible((tmp_path / "r.html").read_text())
    assert "The job was stopped for 10.5 s at 8 B (run b)." in page

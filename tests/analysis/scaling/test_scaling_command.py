"""``omb-py scaling``: tables on the terminal, what they rest on, and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.container import ErrorbarContainer

from omb_py.analysis.plots.style import Page
from omb_py.analysis.scaling.figure import draw, names_of
from omb_py.analysis.scaling.rows import Run, read
from omb_py.analysis.scaling.series import series_of
from omb_py.analysis.scaling.text import PUBLISHED, sheets
from omb_py.apps import divides_work
from omb_py.results.application import ApplicationRow
from tests.analysis.scaling.tables import row, write
from tests.conftest import Finished
from tests.helpers.damage import damaged
from tests.helpers.layout import faults
from tests.helpers.properties import examples

Command = Callable[..., Finished]
AMDAHL = {n: 1 / (0.05 + 0.95 / n) for n in (1, 2, 4, 8)}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Jobs on up to 8 of 8 cores, and one of 16 ranks on them."""
    rows = [row(n, one, 0.05, host_cores=8) for n, one in AMDAHL.items()]
    return write(tmp_path / "table.csv", *rows, row(16, 4.0, 0.05, host_cores=8))


@pytest.fixture
def scaling(in_process: Command) -> Command:
    def start(*arguments: str) -> Finished:
        return in_process("scaling", *arguments)

    return start


def line_of(text: str, beginning: str, tables: int = 1) -> str:
    """The first line that begins so, of so many as there are tables with one."""
    found = [line for line in text.splitlines() if line.strip().startswith(beginning)]
    assert len(found) == tables
    return found[0]


@pytest.mark.usefixtures("table")
def test_points_and_predictions_are_tables(omb_py: Command) -> None:
    done = omb_py("scaling", "table.csv")
    assert (done.code, done.err) == (0, "")
    assert "matmul: rows=8; strong scaling, buffer numpy" in done.out
    four = line_of(done.out, "4 ", 2).split()
    assert four[:2] == ["4", "4"]
    assert {"3.48", "87.0", "5.0"} <= set(four)
    phases = done.out.partition("Share of the time by phase")[2]
    assert {"75.0", "25.0"} <= set(line_of(phases, "4 ").split())
    assert line_of(done.out, "16 *", 2)
    assert "Prediction for 224 ranks" in done.out
    assert "18.4" in line_of(done.out, "Amdahl  ")
    assert "s = 5.0 %" in line_of(done.out, "Amdahl  ")
    assert "Rests on the speed-up on 2, 4, 8 ranks; left out, for want of cores: 16." in done.out
    assert "28 times the most ranks measured" in done.out
    assert PUBLISHED in done.out


@pytest.mark.usefixtures("table")
def test_other_numbers_of_ranks_are_not_set_beside_the_paper_s(scaling: Command) -> None:
    done = scaling("table.csv", "--predict-ranks", "64")
    assert "Prediction for 64 ranks" in done.out
    assert PUBLISHED not in done.out


def test_how_little_it_rests_on_is_said(scaling: Command, tmp_path: Path) -> None:
    write(tmp_path / "two.csv", row(1, 1.0), row(2, 1.8, 0.1))
    done = scaling("two.csv")
    assert "Rests on the speed-up on 2 ranks." in done.out
    assert "Taken on trust, for no more is measured than fitted: Amdahl." in done.out


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row(1, 1.0)], "measure it on 2 and more ranks"),
        ([row(2, None), row(4, None)], "no run has a speed-up"),
        ([row(2, 1.5, host_cores=1)], "in all runs ranks shared cores"),
        ([row(2, 0.1), row(4, 0.2)], "No law fits"),
        ([row(2, None, application="replay")], "its ranks do not divide"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_nothing_can_be_predicted_it_is_said_why(
    rows: list[ApplicationRow], words: str
) -> None:
    *_, predictions = sheets(series_of((Run(one, "") for one in rows), divides_work), 224)
    assert any(words in remark for remark in predictions.remarks)


@given(st.data())
@examples(150)
def test_whatever_is_read_of_a_damaged_table_can_be_shown(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        rows = [row(n, one, 0.05, host_cores=8) for n, one in AMDAHL.items()]
        content = write(Path(folder) / "table.csv", *rows).read_bytes()
    found = series_of(read("table.csv", data.draw(damaged(content)), []))
    assert len(list(sheets(found, 224))) == 3 * len(found)


def test_weak_scaling_is_gustafson_s(scaling: Command, tmp_path: Path) -> None:
    rows = [row(n, n - 0.1 * (n - 1), 0.02, scaling="weak") for n in (1, 2, 4)]
    write(tmp_path / "weak.csv", *rows)
    done = scaling("weak.csv")
    assert "rows=8 (of one rank); weak scaling" in done.out
    assert "202" in line_of(done.out, "Gustafson")
    assert "Amdahl" not in done.out


@pytest.mark.usefixtures("table")
def test_figures_go_to_a_file_or_a_folder(scaling: Command, tmp_path: Path) -> None:
    done = scaling("table.csv", "--figure", "figure.svg")
    assert done.out.splitlines()[-1] == "figure.svg"
    first = (tmp_path / "figure.svg").read_bytes()
    assert b"<svg" in first
    assert scaling("table.csv", "--figure", "figure.svg").code == 0
    assert (tmp_path / "figure.svg").read_bytes() == first
    done = scaling("table.csv", "--figure", "figures/", "--format", "png")
    assert done.out.splitlines()[-1] == "figures/matmul-scaling.png"


@pytest.mark.usefixtures("table")
def test_two_series_do_not_go_into_one_file(scaling: Command, tmp_path: Path) -> None:
    write(tmp_path / "table.csv", row(1, 1.0, binding="pickle", run="another"))
    done = scaling("table.csv", "--figure", "figure.svg")
    assert done.code == 2
    assert "name a folder" in done.err


def test_nothing_but_images_is_overwritten(scaling: Command, table: Path, tmp_path: Path) -> None:
    (tmp_path / "figure.svg").write_text("my notes")
    assert scaling(str(table), "--figure", "figure.svg").code == 1
    assert (tmp_path / "figure.svg").read_text() == "my notes"


@pytest.mark.parametrize(
    "rows",
    [
        [row(1, 1.0)],
        [row(4, None)],
        [row(1, 1.0), row(2, 0.01, 0.5)],
        [row(n, one, 0.05, host_cores=4) for n, one in AMDAHL.items()],
        [row(n, n**0.9, 0.01) for n in range(1, 40)],
    ],
    ids=["one rank", "no speed-up", "slower", "oversubscribed", "many"],
)
def test_any_series_has_a_figure(rows: list[ApplicationRow]) -> None:
    (series,) = series_of(Run(one, "") for one in rows)
    figure = draw(series, 224, Page(8.5))
    assert faults(figure) == []
    above, below = figure.axes
    assert above.get_ylabel() == "Speed-up, median"
    assert len(below.get_xticks()) <= 13


def test_points_of_ranks_that_share_cores_are_hollow() -> None:
    rows = [row(n, one, 0.05, host_cores=4) for n, one in AMDAHL.items()]
    (series,) = series_of(Run(one, "") for one in rows)
    above, _ = draw(series, 64).axes
    markers = {
        str(container.get_label()): container.lines[0].get_markerfacecolor()
        for container in above.containers
        if isinstance(container, ErrorbarContainer)
    }
    assert markers == {"measured": "#000000", "measured, ranks share cores": "#FFFFFF"}


def test_figures_have_names_of_their_own() -> None:
    runs = [Run(row(1, 1.0, binding=name), "") for name in ("buffer", "pickle")]
    assert list(names_of(series_of(runs))) == ["matmul-scaling", "matmul-scaling-2"]

"""Versions around MPI are part of what was measured: results of two are told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from omb_py.analysis import across
from omb_py.analysis.charts.groups import Request, groups
from omb_py.analysis.compare.side_by_side import compare, names_of
from omb_py.analysis.compare.summary import sheets
from omb_py.analysis.history import POINT
from omb_py.analysis.points import common
from omb_py.analysis.table import of_rows
from omb_py.analysis.values import measured
from omb_py.results.columns import SOFTWARE


def rows(*versions: str, **of_python: str) -> pd.DataFrame:
    """Two sizes of a latency with each version of mpi4py."""
    made: list[dict[str, Any]] = [
        {"run": one, "benchmark": "latency", "bytes": size, "ranks": 2, "latency_us": 2.0}
        | {"buffer": "numpy", "binding": "buffer"}
        for one in versions
        for size in (8, 64)
    ]
    runs = {one: {"mpi4py": one, "numpy": "2.4.6"} | of_python for one in versions}
    return of_rows(made, runs).rows


def test_comparison_of_two_versions_names_both() -> None:
    points = compare(rows("4.1.0"), rows("4.1.1", python="CPython 3.12.1"), names=["a", "b"])
    assert list(points["ratio"]) == [1.0, 1.0]
    (sheet,) = sheets(points, "a")
    assert sheet.above.endswith("buffer, mpi4py 4.1.0 against mpi4py 4.1.1"), "none of one side"


def test_tables_and_figures_have_a_column_and_a_line_for_each_version() -> None:
    both = rows("4.1.0", "4.1.1")
    (sheet,) = across.sheets(both, ["mpi4py"])
    assert sheet.columns[1:3] == ("mpi4py 4.1.0", "mpi4py 4.1.1")
    (figure,) = groups(measured(both, "auto", "auto"), ["bytes"], Request())
    assert figure.lines == ("mpi4py",)
    assert "numpy 2.4.6" in common(both, figure.lines), "of a caption"


def test_history_goes_on_with_a_new_version() -> None:
    assert not set(SOFTWARE) & set(POINT)


def test_folder_keeps_all_of_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "m4.1.1"
    folder.mkdir()
    assert names_of([tmp_path / "base.csv", folder], None) == ["base", "m4.1.1"]

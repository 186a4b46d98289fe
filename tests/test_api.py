"""The Python interface: loaded when it is used; every function takes a path, results or a table."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import omb_py
from tests import RESULTS

FILE = RESULTS / "families-mpich.csv"


def test_nothing_is_imported_for_the_interface_until_it_is_used() -> None:
    program = "import sys, omb_py; print('pandas' in sys.modules, 'typing' in dir(omb_py))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]
    assert "load" in dir(__import__("omb_py"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rows of one benchmark, in a file."""
    lines = FILE.read_text(encoding="utf-8").splitlines(keepends=True)
    wanted = [one for one in lines if one.startswith(("#", "run,")) or ",allgather,8," in one]
    wanted += [one for one in lines if ",latency," in one]
    path: Path = tmp_path_factory.mktemp("small") / "2026-11-20.csv"
    path.write_text("".join(wanted), encoding="utf-8")
    return path


api: Any = omb_py
"""The interface to programs whose types nothing checks."""

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "compare": lambda source: omb_py.compare(source, source, names=("a", "b")),
    "figures": lambda source: sorted(omb_py.figures(source)),
    "guidelines": omb_py.guidelines,
    "model": omb_py.model,
    "check": lambda source: omb_py.check(source, "fugaku").lines,
    "history": lambda source: omb_py.history(source).rows,
    "report": lambda source: "<html" in omb_py.report(source, expected="fugaku"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_path_results_and_a_table_are_the_same_to_each_function(name: str, small: Path) -> None:
    function, results = FUNCTIONS[name], omb_py.load(small)
    found = [function(one) for one in (small, str(small), results, results.rows)]
    table = results.to_pandas()
    found += [function(table), function(table.to_dict("records"))]
    for one in found[1:]:
        if isinstance(one, pd.DataFrame):
            pd.testing.assert_frame_equal(one, found[0], check_dtype=False)
        else:
            assert one == found[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_has_a_signature_and_refuses_what_has_no_results(name: str) -> None:
    kinds = {one.kind for one in inspect.signature(getattr(omb_py, name)).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    for wrong in (5, pd.DataFrame(), [5], [None], [omb_py.load(FILE)]):
        with pytest.raises(omb_py.OmbError, match="has no results: give a path"):
            FUNCTIONS[name](wrong)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda of: api.load(api.load(of)), "a Results has no results: give a path"),
        (lambda of: api.load([of]), "a list has no results: give a path"),
        (lambda of: api.compare(of, of, launch_spread="3%"), "launch_spread is '3%'"),
        (lambda of: api.guidelines(of, tolerance="5%"), "tolerance is '5%': choose from 0 to 1"),
        (lambda of: api.check(of, "fugaku", tolerance=-1), "tolerance is -1: choose from 0"),
        (lambda of: api.compare(of, of, statistic="p50"), "there is no statistic 'p50'"),
        (lambda of: api.history(of, statistic="p50"), "there is no statistic 'p50': choose"),
        (lambda of: api.check(of, pd.DataFrame({"value": [1.3]})), "reference 1 has no"),
        (lambda of: api.run(7), "unknown benchmark '7'"),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    small: Path, call: Callable[[Any], object], sentence: str
) -> None:
    with pytest.raises(omb_py.OmbError, match=sentence):
        call(small)


def test_references_are_a_table_as_they_are_a_file(small: Path, tmp_path: Path) -> None:
    table = pd.DataFrame({"benchmark": "latency", "bytes": 8, "value": 1e-6, "unit": ["us"]})
    table.to_csv(file := tmp_path / "site.csv", index=False)
    lines = [omb_py.check(small, expected).lines for expected in (table, file)]
    assert list(lines[0]["verdict"])[:1] == ["high"]
    pd.testing.assert_frame_equal(*lines)


def test_results_have_a_length_a_short_repr_and_a_table_of_pandas_types(small: Path) -> None:
    results = omb_py.load(small)
    table = results.to_pandas()
    assert len(results) == len(table) == len(results.rows)
    assert len(repr(results)) < 120
    assert "2 benchmarks" in repr(results)
    assert table.notna().any().all()
    assert table["validated"].dtype == "boolean"
    assert not table["validated"].any()
    with pytest.raises(omb_py.OmbError, match="nothing to load"):
        omb_py.load()

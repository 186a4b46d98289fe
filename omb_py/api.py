"""The Python interface: what the command line does, for notebooks and scripts.

`run` measures inside an MPI job, and `phase` names what a program does there; everything else
needs no MPI. All but `phase` need the extra ``analysis``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from omb_py.core.errors import OmbError as OmbError
from omb_py.core.errors import needing
from omb_py.results.columns import LOADED, OverheadRow, PairRow, Row, described
from omb_py.tracing.recorder.annotation import phase as phase

if TYPE_CHECKING:
    import pandas as pd

    from omb_py.analysis.table import Results
    from omb_py.measure.progress import Progress

Paths = str | Path | Iterable[str | Path]


class Runs(dict[str, dict[str, str]]):
    """Metadata of runs by their names, as `load` attaches it to a table.

    pandas copies what is attached to a table with each of its parts: this stays one.
    """

    def __deepcopy__(self, memo: object) -> Runs:
        return self


def load(paths: Paths, **assume: Any) -> pd.DataFrame:
    """All rows of benchmarks in files, and in the folders' files, of any suite that is known.

    One row for each message size of each run, in the columns below, missing where a suite does not
    say; ``attrs["runs"]`` of the table has the metadata of each run by its name: the library,
    hosts, versions and command. ``assume`` gives columns a value where files do not, as in
    ``ranks=8`` for native OMB's text; a mapping has values by patterns of files' names, as in
    ``ranks={"*-n64-*": 64}``. What had to be left out is a `UserWarning`. Raises `OmbError`
    when a file cannot be read or holds no results.

    >>> import omb_py
    >>> rows = omb_py.load("results/families-mpich.csv")
    >>> best = rows[rows.benchmark == "latency"].groupby("binding").latency_us.min()
    """
    results = _load(paths, assume)
    return _with_runs(results.rows, results.runs)


def load_overhead(paths: Paths) -> pd.DataFrame:
    """All rows that ``omb-py overhead`` wrote, as `load` gives those of benchmarks."""
    results = _load(paths, {})
    return _with_runs(results.overhead, results.runs)


def load_pairs(paths: Paths) -> pd.DataFrame:
    """All rows that ``omb-py pairs`` wrote, as `load` gives those of benchmarks."""
    results = _load(paths, {})
    return _with_runs(results.pairs, results.runs)


def metadata(paths: Paths) -> pd.DataFrame:
    """What is known of each run, one row for each, with the run's name as index.

    The columns are texts: the library, hosts, versions, command and more.
    """
    results = _load(paths, {})
    with needing("analysis"):
        import pandas as pd

    return pd.DataFrame.from_dict(dict(results.runs), orient="index")


def compare(base: Any, *others: Any, **options: Any) -> pd.DataFrame:
    """Rows of two or more results side by side: see `omb_py.analysis.compare`."""
    with needing("analysis"):
        from omb_py.analysis.compare import side_by_side as comparison

    return comparison.compare(base, *others, **options)


def figures(rows: pd.DataFrame, **options: Any) -> dict[str, Any]:
    """Altair charts of rows by name: see `omb_py.analysis.charts.figures.figures`."""
    with needing("analysis"):
        from omb_py.analysis.charts import figures as drawing

    return drawing.figures(rows, **options)


def guidelines(rows: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """Which MPI calls are slower than others that do the same: see `check` of
    `omb_py.analysis.guidelines.check`."""
    with needing("analysis"):
        from omb_py.analysis.guidelines import check

    return check.check(rows, **options)


def model(rows: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """Parameters of communication fitted to rows, as `omb_py.analysis.model.parameters.parameters`
    gives them; ``attrs["notes"]`` says what to bear in mind. Options are those of
    `omb_py.analysis.model.fit.model`."""
    with needing("analysis"):
        from omb_py.analysis.model import fit, parameters

    fitted = fit.model(rows, **options)
    table = parameters.parameters(fitted)
    table.attrs["notes"] = list(fitted.notes)
    return table


def run(
    benchmark: str, *, progress: bool | Callable[[Progress], object] = False, **options: Any
) -> pd.DataFrame | None:
    """Measure a benchmark on all ranks of this MPI job, and go on.

    Collective: every rank calls it with the same arguments. ``options`` are the command line's
    long ones with underscores, as in ``sizes=[8, 1024], buffer="numpy", validation=True``; where
    one has only a letter in native OMB, that letter (``m="1:4096"``). On rank 0 returns the rows,
    in the columns of `load`, with the run's metadata in ``attrs["runs"]``; on the others None.
    ``progress`` shows on stderr how far it is, or is a function that rank 0 calls with an
    `omb_py.measure.progress.Progress`, never while a rank is timed. MPI is started if the program
    has not done so, and ended with the program. Raises `OmbError` on every rank where the command
    line would end, and before anything is measured where pandas is missing.

    >>> table = omb_py.run("allreduce", sizes=[8, 1024], iterations=100)   # doctest: +SKIP
    """
    from omb_py.benchmarks import find_benchmark
    from omb_py.cli.benchmark import graph_writers
    from omb_py.measure.in_program import measure
    from omb_py.options.parse import parse, words_of

    with needing("analysis"):  # before MPI: only rank 0 will import it, and all have to know
        if find_spec("pandas") is None:
            raise ModuleNotFoundError(name="pandas")
    found = find_benchmark(benchmark)
    display = None
    if callable(progress):
        from omb_py.measure.progress import Calls

        display = Calls(progress)
    shown = "on" if progress and display is None else "off"
    chosen = parse(found, words_of(found, {**options, "progress": shown}))
    rows, runs = measure(found, chosen, partial(graph_writers, chosen), display)
    if rows is None:
        return None
    from omb_py.analysis.table import of_rows

    return _with_runs(of_rows(rows, runs).rows, runs)


def _with_runs(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    rows.attrs["runs"] = Runs({name: dict(data) for name, data in runs.items()})
    return rows


def _load(paths: Paths, assume: dict[str, Any]) -> Results:
    with needing("analysis"):
        from omb_py.analysis import table

    results = table.load(paths, assume)
    if results.problems:
        more = f", and {len(results.problems) - 1} more" if len(results.problems) > 1 else ""
        warnings.warn(f"{results.problems[0]}{more}", UserWarning, stacklevel=3)
    for text in results.notes:
        warnings.warn(text, UserWarning, stacklevel=3)
    return results


def _describe_columns(function: Callable[..., Any], columns: Iterable[str]) -> None:
    """Add the meaning of columns to a function's docstring, which ``python -OO`` leaves out."""
    if function.__doc__ is not None:
        text = indent(described(columns), "    ")
        function.__doc__ = f"{function.__doc__.rstrip()}\n\n    Columns:\n\n{text}\n    "


_describe_columns(load, (*Row.columns, *LOADED))
_describe_columns(load_overhead, OverheadRow.columns)
_describe_columns(load_pairs, PairRow.columns)

"""The Python interface: the command line's functions, for notebooks and scripts.

`run` measures inside an MPI job, and `phase` names parts of a program there; everything else needs
no MPI. All but these two need the extra ``analysis``, and are functions of `omb_py.analysis`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import OmbError as OmbError
from omb_py.core.errors import UsageError, needing
from omb_py.results.columns import LOADED, OverheadRow, PairRow, Row, described
from omb_py.tracing.recorder.annotation import phase as phase

if TYPE_CHECKING:
    import pandas as pd

    from omb_py.analysis.table import Results

VALUE = re.compile(r"Invalid value for (?:'-\w' / )?'(--[\w-]+)'")
OPTION = re.compile(r"--([a-z][a-z0-9-]*)")
"""The beginning of an error of the command line, with an option's name."""


@dataclass(frozen=True)
class Measured:
    """The results of `run`, on rank 0.

    ``rows`` has a dictionary for each message size, with the columns of `load` that were measured;
    ``runs`` the metadata of the run by its name: the library, hosts, versions and options.
    """

    rows: list[dict[str, Any]]
    runs: dict[str, dict[str, str]]

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a table, as ``load(...).to_pandas()`` gives those of files.

        Raises `OmbError` if pandas is missing.
        """
        with needing("tables"):
            from omb_py.analysis.table import of_rows

        return of_rows(self.rows, self.runs).to_pandas()


def load(*paths: str | Path, **assume: Any) -> Results:
    """Return the results in files, and in all files of folders, of any known suite.

    Returns ``rows`` (a table of benchmarks: a row for each message size of each run, in the columns
    below, missing if a suite does not print them), ``overhead`` and ``pairs`` (tables of the
    results of ``omb-py overhead`` and ``omb-py pairs``), and ``runs``, the metadata of each run by
    its name: the library, hosts, versions and command. ``assume`` gives columns a value where files
    do not, as in ``ranks=8`` for native OMB's text; a mapping has values by patterns of files'
    names, as in ``ranks={"*-n64-*": 64}``. Each part left out is a `UserWarning`. Raises `OmbError`
    if a file cannot be read or holds no results.

    >>> import omb_py
    >>> rows = omb_py.load("results/families-mpich.csv").rows
    >>> best = rows[rows.benchmark == "latency"].groupby("binding").latency_us.min()
    """
    with needing("tables"):
        from omb_py.analysis import table

    if not paths:
        raise UsageError("nothing to load: name files or folders of results")
    results = table.load(paths, assume)
    if results.problems:
        more = f", and {len(results.problems) - 1} more" if len(results.problems) > 1 else ""
        warnings.warn(f"{results.problems[0]}{more}", UserWarning, stacklevel=2)
    for text in results.notes:
        warnings.warn(text, UserWarning, stacklevel=2)
    return results


def run(
    benchmark: str,
    *,
    buffer: str = "numpy",
    binding: str | None = None,
    sizes: Iterable[int] | int | str | None = None,
    iterations: int | None = None,
    warmup: int | str | None = None,
    window: int | None = None,
    type: str | None = None,
    validation: bool = False,
    output: str | Path | None = None,
    **options: Any,
) -> Measured | None:
    """Measure a benchmark on all ranks of this MPI job, and go on.

    Collective: every rank calls it with the same arguments. They are the command line's; all others
    are taken too, by their long names with underscores (``max_time=2, stats=True``), or native
    OMB's letters (``m="1:4096"``). ``sizes`` are message sizes in bytes, ``type`` is an element
    type, ``validation`` checks all data, ``output`` is a file to which rows are added. Returns the
    results on rank 0, None on the others. MPI is started if the program has not done so, and ended
    with the program. Raises `OmbError` on every rank if the command line would end.

    >>> measured = omb_py.run("allreduce", sizes=[8, 1024], iterations=100)   # doctest: +SKIP
    """
    from omb_py.benchmarks import find_benchmark
    from omb_py.cli.benchmark import graph_writers
    from omb_py.measure.in_program import failing_together, measure_in_program
    from omb_py.options.parse import parse, words_of
    from omb_py.options.table import alike

    if isinstance(sizes, Iterable) and not isinstance(sizes, str):
        sizes = ",".join(map(str, sizes))
    named = {
        "buffer": buffer,
        "binding": binding,
        "sizes": sizes,
        "iterations": iterations,
        "warmup": warmup,
        "window_size": window,
        "type": type,
        "validation": validation or None,
        "output": output,
    }
    given = {name: value for name, value in named.items() if value is not None} | options
    try:
        with failing_together():
            found = find_benchmark(str(benchmark))
            chosen = parse(found, words_of(found, given))
        rows, runs = measure_in_program(
            found, chosen, alike(chosen), partial(graph_writers, chosen)
        )
    except OmbError as error:
        error.args = (in_python(str(error)), *error.args[1:])
        raise
    return None if rows is None else Measured(rows, runs)


def in_python(text: str) -> str:
    """Return an error of the command line in the words of `run`.

    >>> in_python("choose another --buffer, or raise --max-time")
    'choose another buffer, or raise max_time'
    >>> in_python("Invalid value for '-W' / '--window-size': 0 is not in the range x>=1.")
    'window_size: 0 is not in the range x>=1.'
    """
    return OPTION.sub(lambda match: match[1].replace("-", "_"), VALUE.sub(r"\1", text))


def _describe_columns(function: Callable[..., Any], tables: Mapping[str, Iterable[str]]) -> None:
    """Add the meaning of columns to a function's docstring, which ``python -OO`` leaves out."""
    if function.__doc__ is None:
        return
    for name, columns in tables.items():
        text = indent(described(columns), "    ")
        function.__doc__ = f"{function.__doc__.rstrip()}\n\n    Columns of {name}:\n\n{text}\n    "


_describe_columns(
    load,
    {
        "rows": (*Row.columns, *LOADED),
        "overhead": OverheadRow.columns,
        "pairs": PairRow.columns,
    },
)

"""What columns mean is said once: by `help(omb_py.load)` as by docs/results.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import click
import pytest

import omb_py
from omb_py.analysis.table import EXTRA
from omb_py.benchmarks import all_benchmarks
from omb_py.options.table import parameters
from omb_py.results import columns
from omb_py.results.application import ApplicationRow
from omb_py.results.row import OverheadRow, PairRow, Row
from omb_py.results.row import columns as columns_of
from tests import ROOT

HEAD = "| column | meaning |\n|---|---|\n"
TABLES: tuple[Mapping[str, str], ...] = (
    columns.MEASURED,
    columns.LOADED,
    columns.OVERHEAD,
    columns.PAIRS,
)


def documented(number: int) -> dict[str, str]:
    """A table of the page as meanings by names, links as their texts."""
    text = (ROOT / "docs" / "results.md").read_text().split(HEAD)[1 + number]
    rows = re.findall(r"^\| (`.+?`) \| (.+) \|$", text.partition("\n\n")[0], re.MULTILINE)
    return {
        names.replace("`", ""): re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", meaning)
        for names, meaning in rows
    }


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_the_page_and_the_help_say_the_same(number: int) -> None:
    assert documented(number) == dict(TABLES[number])


def test_no_column_is_left_out() -> None:
    measured, loaded, overhead, pairs = (
        {name for names in table for name in names.split(", ")} for table in TABLES
    )
    assert measured == {*columns_of(Row)}
    assert loaded == {*EXTRA}
    assert overhead == {*columns_of(OverheadRow)}
    assert pairs == {*columns_of(PairRow)}


def test_no_column_of_applications_is_left_out() -> None:
    table = (ROOT / "docs" / "applications.md").read_text().split(HEAD)[-1]
    names = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    assert sorted(", ".join(names).replace("`", "").split(", ")) == sorted(
        columns_of(ApplicationRow)
    )


def test_help_shows_columns_with_their_units() -> None:
    text = omb_py.load.__doc__ or ""
    assert "    latency_us\n        latency in microseconds" in text
    assert "    suite\n        who measured" in text
    assert "    ratio, ratio_low, ratio_high\n" in (omb_py.load_overhead.__doc__ or "")


def test_a_table_carries_the_metadata_of_its_runs() -> None:
    rows = omb_py.load(ROOT / "results" / "families-mpich.csv")
    part = rows[rows.benchmark == "latency"][["run", "bytes"]]
    known = part.attrs["runs"][part.run.iloc[0]]
    assert known["mpi_library"].startswith("MPICH")
    assert known["hosts"]
    assert known["omb_py"]
    assert part.attrs["runs"] is rows.attrs["runs"]


def known_parameters() -> Iterator[click.Parameter]:
    for benchmark in all_benchmarks():
        yield from parameters(benchmark)


def test_options_that_columns_name_are_there() -> None:
    words = [*(text for table in TABLES for text in table.values())]
    words += [kind.__doc__ or "" for kind in (Row, OverheadRow, PairRow, ApplicationRow)]
    named = {option for text in words for option in re.findall(r"`(--[a-z0-9-]+)`", text)}
    known = {option for parameter in known_parameters() for option in parameter.opts}
    assert "--p2p-algorithm" in named
    assert named <= known, named - known

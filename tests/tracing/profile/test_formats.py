"""CSV of a profile: all of it, in a table that other programs read."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pandas as pd
from hypothesis import given

from omb_py.core.text.words import csv_cell, one_line
from omb_py.tracing.profile import store
from omb_py.tracing.profile.profile import Profile
from omb_py.tracing.profile.store import load
from tests.helpers.properties import examples
from tests.tracing.profile.made_profiles import made_run, profiles


@given(profile=profiles())
@examples(150)
def test_csv_has_every_rank_and_every_call(profile: Profile) -> None:
    table = pd.read_csv(StringIO(store.csv_text(profile)), dtype=str, keep_default_na=False)
    assert list(table.columns) == list(store.COLUMNS)
    of_ranks, of_calls = table[table["row"] == "rank"], table[table["row"] == "calls"]
    assert [int(one) for one in of_ranks["rank"]] == [one.rank for one in profile.members]
    assert list(of_ranks["counted"]) == [
        "no" if one.cells is None else "yes" for one in profile.members
    ]
    every = [call for one in profile.members for call in one.cells or ()]
    assert list(of_calls["calls"]) == [str(call.calls) for call in every]
    assert list(of_calls["routine"]) == [csv_cell(one_line(call.routine)) for call in every]
    assert list(of_calls["communicator"]) == [
        csv_cell(one_line(call.communicator.key)) if call.communicator else "" for call in every
    ]


def test_the_csv_is_one_table_for_everybody(tmp_path: Path) -> None:
    made_run(tmp_path)
    store.write(load([str(tmp_path)]), tmp_path)
    table = pd.read_csv(tmp_path / "profile.csv")
    calls = table[table["row"] == "calls"]
    assert calls.groupby("routine")["calls"].sum()["MPI_Allreduce"] == 4 * 4
    assert list(table[table["row"] == "rank"]["host"]) == ["node0", "node0", "node1", "node1"]

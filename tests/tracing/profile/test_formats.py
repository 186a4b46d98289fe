"""CSV and JSON of a profile: all of it, in tables and objects that other programs read."""

from __future__ import annotations

import json
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import pandas as pd
from hypothesis import given

from omb_py.core.text.words import one_line
from omb_py.tracing.profile import store
from omb_py.tracing.profile.profile import Profile
from omb_py.tracing.profile.store import load
from tests.helpers.properties import examples
from tests.tracing.profile.made_profiles import made_run, profiles


@given(profile=profiles())
@examples(150)
def test_json_has_every_rank_and_every_call(profile: Profile) -> None:
    found = json.loads(store.json_text(profile))
    assert found["ranks"] == profile.ranks
    assert [one["rank"] for one in found["members"]] == [one.rank for one in profile.members]
    for one, member in zip(found["members"], profile.members, strict=True):
        calls = [asdict(call) for call in member.cells or ()]
        assert one["counted"] == (member.cells is not None)
        for name in ("routine", "calls", "nbytes", "seconds"):
            assert [call[name] for call in one["calls"]] == [call[name] for call in calls]


@given(profile=profiles())
@examples(150)
def test_csv_is_one_table_of_as_many_rows_as_json_has(profile: Profile) -> None:
    text = store.csv_text(profile)
    table = pd.read_csv(StringIO(text), dtype=str, keep_default_na=False)
    members = json.loads(store.json_text(profile))["members"]
    of_calls = table[table["row"] == "calls"]
    assert [int(one) for one in table[table["row"] == "rank"]["rank"]] == [
        one["rank"] for one in members
    ]
    every = [call for one in members for call in one["calls"]]
    assert list(of_calls["calls"]) == [str(call["calls"]) for call in every]
    assert list(of_calls["routine"]) == [one_line(call["routine"]) for call in every]


def test_the_csv_is_one_table_for_everybody(tmp_path: Path) -> None:
    made_run(tmp_path)
    store.write(load([str(tmp_path)]), tmp_path)
    table = pd.read_csv(tmp_path / "profile.csv")
    calls = table[table["row"] == "calls"]
    assert calls.groupby("routine")["calls"].sum()["MPI_Allreduce"] == 4 * 4
    assert list(table[table["row"] == "rank"]["host"]) == ["node0", "node0", "node1", "node1"]

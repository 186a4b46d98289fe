"""CSV and JSON: all of a profile, and back again; damage is noticed."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.tracing.profile import formats, store, text
from omb_py.tracing.profile.profile import Profile
from omb_py.tracing.profile.store import load
from tests import ROOT
from tests.helpers.damage import damaged
from tests.helpers.properties import examples
from tests.tracing.profile.made_profiles import made_run, profiles

DATA = ROOT / "tests" / "data" / "mpitrace"
FORMATS = pytest.mark.parametrize(
    ("written", "name"), [(formats.csv_text, "profile.csv"), (formats.json_text, "profile.json")]
)
Written = Callable[[Profile], str]


def read_back(content: bytes, name: str) -> Profile:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return load([str(path)])


@FORMATS
@given(profile=profiles())
@examples(150)
def test_nothing_is_lost(written: Written, name: str, profile: Profile) -> None:
    assert read_back(written(profile).encode(), name) == profile


@FORMATS
@pytest.mark.parametrize("paths", [["thetagpu-cpu-16ranks.txt"], ["thetagpu-gpu-8ranks.txt"]])
def test_nothing_of_mpitrace_is_lost(written: Written, name: str, paths: list[str]) -> None:
    profile = load([str(DATA / path) for path in paths])
    assert read_back(written(profile).encode(), name) == profile


@FORMATS
def test_nothing_of_records_is_lost(written: Written, name: str, tmp_path: Path) -> None:
    profile = load([str(made_run(tmp_path))])
    assert read_back(written(profile).encode(), name) == profile


@FORMATS
@given(profile=profiles(), data=st.data())
@examples(100)
def test_a_file_that_was_cut_is_refused(
    written: Written, name: str, profile: Profile, data: st.DataObject
) -> None:
    content = written(profile).encode().rstrip()
    cut = content[: data.draw(st.integers(0, len(content) - 1))]
    with pytest.raises(UsageError):
        read_back(cut, name)


@FORMATS
@given(profile=profiles(), data=st.data())
@examples(200)
def test_damage_is_read_or_refused_in_a_sentence(
    written: Written, name: str, profile: Profile, data: st.DataObject
) -> None:
    try:
        found = read_back(data.draw(damaged(written(profile).encode())), name)
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        text.write(found, None, io.StringIO())


@given(st.binary(max_size=300))
@examples(200)
def test_any_bytes_are_no_profile(content: bytes) -> None:
    for start in (b"", b"{", formats.MARK, formats.MARK + b"\n# version: 1\n", b"OMBPYREC"):
        with pytest.raises(UsageError):
            read_back(start + content, "profile")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"version": 1', '"version": 99', "another version"),
        ('"ranks": 4', '"ranks": 3', "not those of a run of 3"),
        ('"calls": 3', '"calls": -3', "calls': input should be greater than or equal to 0"),
        ('"seconds": 0.001', '"seconds": NaN', "calls.2.seconds': input should be greater than"),
        ('"routine": "MPI_Wait"', '"routine": null', "routine': input should be a valid string"),
        ('"complete": true', '"complete": 1', "complete': input should be a valid boolean"),
        ('"counted": true', '"counted": false', "calls of ranks that are not there"),
    ],
)
def test_what_cannot_be_is_named(old: str, new: str, words: str, tmp_path: Path) -> None:
    content = formats.json_text(load([str(made_run(tmp_path))]))
    assert old in content
    with pytest.raises(UsageError, match=words):
        read_back(content.replace(old, new).encode(), "profile.json")


def test_numbers_beyond_all_reason_are_refused(tmp_path: Path) -> None:
    content = formats.json_text(load([str(made_run(tmp_path))]))
    for number in ("1" + 400 * "0", "1" + 5000 * "0", "1e999"):
        with pytest.raises(UsageError):
            read_back(content.replace('"switches": 3', f'"switches": {number}').encode(), "a.json")
        with pytest.raises(UsageError):
            read_back(content.replace('"nbytes": 8', f'"nbytes": {number}', 1).encode() + b"x", "a")


def test_the_csv_is_one_table_for_everybody(tmp_path: Path) -> None:
    import pandas as pd

    made_run(tmp_path)
    store.write(load([str(tmp_path)]), tmp_path)
    table = pd.read_csv(tmp_path / "profile.csv", comment="#")
    calls = table[table["row"] == "calls"]
    assert calls.groupby("routine")["calls"].sum()["MPI_Allreduce"] == 4 * 4
    assert list(table[table["row"] == "rank"]["host"]) == ["node0", "node0", "node1", "node1"]

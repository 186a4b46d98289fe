"""Which files make a profile, and what is said of what is missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli.profile import command
from omb_py.core.errors import UsageError
from omb_py.results.readers import source_of
from omb_py.tracing.profile import store
from omb_py.tracing.profile.mpitrace import parse, profile_of, read_file
from omb_py.tracing.profile.profile import LOST_NAME, Extreme, Profile
from omb_py.tracing.profile.store import load
from omb_py.tracing.records.layout import HEADER_OFFSETS, path_in
from omb_py.tracing.records.run import open_run
from tests import ROOT
from tests.helpers.damage import damaged, noisy
from tests.helpers.properties import examples
from tests.helpers.refusals import missing, refuses
from tests.tracing.made_records import MadeRecord
from tests.tracing.profile.made_profiles import MS, made_rank, made_run

DATA = ROOT / "tests" / "data" / "mpitrace"
OF_CPUS, OF_GPUS = DATA / "thetagpu-cpu-16ranks.txt", DATA / "thetagpu-gpu-8ranks.txt"


def test_a_folder_and_its_records_are_the_same(tmp_path: Path) -> None:
    made_run(tmp_path)
    whole = load([str(tmp_path)])
    assert (whole.ranks, whole.origin) == (4, "omb-py")
    assert whole.about == {"program": "made.py"}
    assert whole.notes == ()
    assert all(member.complete for member in whole.members)
    assert load(sorted(map(str, tmp_path.glob("*.record")), reverse=True)) == whole


def test_a_rank_has_what_its_record_says(tmp_path: Path) -> None:
    member = load([str(made_run(tmp_path))]).members[2]
    assert (member.rank, member.host, member.switches) == (2, "node1", 2)
    assert (member.elapsed_s, member.user_s, member.system_s) == pytest.approx((0.1, 0.06, 0.005))
    assert member.memory_bytes == 3 << 20
    assert member.cells is not None
    (sent,) = (cell for cell in member.cells if cell.routine == "MPI_Isend")
    assert (sent.peer, sent.calls, sent.nbytes, sent.bin) == (3, 1, 102, 6)
    (waited,) = (cell for cell in member.cells if cell.routine == "MPI_Wait")
    assert (waited.bin, waited.peer, waited.site) == (None, None, None)


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    made_rank(tmp_path, 1, ranks=8)
    made_rank(tmp_path, 5, ranks=8)
    profile = load([str(tmp_path)])
    assert not missing("records ranks 0, 2-4, 6-7 not there", profile.notes)


def test_a_rank_that_was_killed_has_what_it_did_until_then(tmp_path: Path) -> None:
    made_rank(tmp_path, 0, ranks=2)
    made_rank(tmp_path, 1, ranks=2, end=None)
    profile = load([str(tmp_path)])
    assert [member.complete for member in profile.members] == [True, False]
    assert profile.members[1].elapsed_s == pytest.approx(0.05)
    (note,) = profile.notes
    assert note.startswith("no end of rank 1: ")
    assert "0.050 s after the beginning" in note


def test_what_a_killed_rank_was_in_is_said(tmp_path: Path) -> None:
    made = MadeRecord(tmp_path, 0, 1)
    name = made.file.name("MPI_Recv")
    made.finish(None, now_name=name, now_began=1_000_000_000 + 40 * MS, updated=1_000_000_000)
    assert load([str(tmp_path)]).notes[1] == (
        "then rank 0 had been in MPI_Recv since 0.040 s or later"
    )


def test_a_rank_that_never_spoke_of_its_time_has_none(tmp_path: Path) -> None:
    made = MadeRecord(tmp_path, 0, 1)
    made.call("MPI_Barrier", 0, MS)
    made.finish(None, updated=0)
    (member,) = load([str(tmp_path)]).members
    assert (member.user_s, member.system_s) == (None, None)
    assert (member.memory_bytes, member.switches) == (None, None)
    assert not missing("CPU time memory rank 0 not known", load([str(tmp_path)]).notes)


def test_what_found_no_room_is_said(tmp_path: Path) -> None:
    made = MadeRecord(tmp_path, 0, 1, events=2)
    for turn in range(5):
        made.call("MPI_Barrier", turn * MS, (turn + 1) * MS)
    made.finish(9 * MS, cells_lost=17, names_lost=3)
    notes = load([str(tmp_path)]).notes
    assert all(note.startswith("rank 0: ") for note in notes)
    assert [note.split(":")[1].split()[:2] for note in notes] == [
        ["17", "calls"],
        ["3", "names"],
        ["3", "events"],
    ]


def test_a_routine_without_a_name_is_kept(tmp_path: Path) -> None:
    made = MadeRecord(tmp_path, 0, 1)
    made.file.write_cells([(0, 0, -1, 0, 0, 0, 4, 0, MS, MS, MS)])
    made.file.set("ended", 2_000_000_000)
    (member,) = load([str(tmp_path)]).members
    assert [(cell.routine, cell.calls) for cell in member.cells or ()] == [(LOST_NAME, 4)]


def test_a_record_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    made_run(tmp_path)
    Path(path_in(str(tmp_path), 2)).write_bytes(b"OMBPYREC")
    profile = load([str(tmp_path)])
    assert [member.rank for member in profile.members] == [0, 1, 3]
    assert "rank-000002.record is no record" in profile.notes[0]
    assert "rank 2 are not there" in profile.notes[1]
    with refuses(UsageError, "is no record"):
        load([path_in(str(tmp_path), 2)])


def test_records_of_several_runs_are_refused(tmp_path: Path) -> None:
    made_rank(tmp_path, 0, ranks=2)
    made_rank(tmp_path, 1, ranks=3)
    with refuses(UsageError, "several runs"):
        load([str(tmp_path)])
    other = tmp_path / "other.record"
    shutil.copy(path_in(str(tmp_path), 0), other)
    with refuses(UsageError, "both of rank 0"):
        load([path_in(str(tmp_path), 0), str(other)])


def mpitrace_files(folder: Path) -> list[str]:
    """Files of rank 0 and of rank 3, which has the maximum communication time."""
    text = OF_CPUS.read_text()
    (folder / "mpi_profile.4711.0").write_text(text)
    other = text.split("Communication summary")[0].replace("rank 0 of 16", "rank 3 of 16")
    other = other.replace("task 0 of 16 had the minimum", "task 3 of 16 had the maximum")
    other = other.replace("time = 10.602", "time = 12.177").replace("8161", "8162")
    (folder / "mpi_profile.4711.3").write_text(other)
    return sorted(map(str, folder.glob("mpi_profile.*")))


def test_files_of_mpitrace_are_put_together(tmp_path: Path) -> None:
    profile = load(mpitrace_files(tmp_path))
    assert (profile.ranks, profile.origin, len(profile.members)) == (16, "mpitrace", 16)
    assert [member.rank for member in profile.counted] == [0, 3]
    assert profile.members[3].communication_s == 12.177
    assert profile.members[4].communication_s == 11.84
    assert profile.members[5].communication_s == 11.83
    assert profile.extremes.median == Extreme(11.834, 5)
    assert profile.extremes.elapsed == Extreme(15.55, 7)
    assert not missing("mpitrace's ranks 0, 3", profile.notes[0])
    assert not missing("rank 0's ranks 1-2, 4-15", profile.notes[1])
    assert load([str(tmp_path)]) == profile


def test_missing_file_of_rank_0_leaves_ranks_unknown(tmp_path: Path) -> None:
    profile = load(mpitrace_files(tmp_path)[1:])
    assert [member.rank for member in profile.members] == [3]
    assert profile.extremes.maximum == Extreme(12.177, 3)
    assert profile.extremes.minimum is None
    assert profile.extremes.elapsed == Extreme(15.55, 7)
    assert not missing("nothing known ranks 0-2, 4-15", profile.notes)


def test_files_of_mpitrace_of_several_jobs_are_refused(tmp_path: Path) -> None:
    first, second = mpitrace_files(tmp_path)
    other = tmp_path / "mpi_profile.4712.3"
    shutil.copy(second, other)
    with refuses(UsageError, "of several runs"):
        load([first, str(other)])
    with refuses(UsageError, "of several runs"):
        load([second, str(OF_GPUS)])
    with refuses(UsageError, "both of rank 0"):
        load([first, str(OF_CPUS)])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "folder"),
        (["nothing"], "nothing: No such file"),
        (["empty"], "empty no profile"),
        (["profile.csv"], "profile.csv run's folder, records"),
        (["profile.txt"], "profile.txt run's folder, records"),
        (["mpi_profile.0", "rank-000000.record"], "files one kind"),
        (["some.txt"], "some.txt no profile omb-py mpitrace"),
    ],
)
def test_file_that_is_no_profile_refused(names: list[str], words: str, tmp_path: Path) -> None:
    made_run(tmp_path)
    store.write(load([str(tmp_path)]), tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "some.txt").write_text("some words\n")
    shutil.copy(OF_CPUS, tmp_path / "mpi_profile.0")
    with refuses(UsageError, words):
        load([str(tmp_path / name) for name in names])


def profile_in(content: bytes) -> Profile:
    return profile_of([parse(source_of("file", content), "file")])


@given(st.sampled_from([OF_CPUS, OF_GPUS]), st.data())
@examples(200)
def test_damaged_mpitrace_file_is_read_or_refused(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    changed = data.draw(
        st.one_of(
            damaged(content),
            noisy(content.decode()).map(str.encode),
            st.integers(0, len(content)).map(lambda cut: content[:cut]),
            st.binary(max_size=200).map(lambda noise: content[:90] + noise + content[90:]),
        )
    )
    try:
        profile = profile_in(changed)
    except UsageError:
        return
    assert len(profile.members) <= profile.ranks


def test_a_number_of_ranks_beyond_all_reason_costs_nothing() -> None:
    text = OF_CPUS.read_text().replace("rank 0 of 16:", "rank 0 of 999999999:")
    assert "nothing is known of ranks 16-999999998" in profile_in(text.encode()).notes


@given(name=st.sampled_from(sorted(HEADER_OFFSETS)), value=st.integers(-(2**63), 2**63 - 1))
@examples(300)
def test_damaged_header(name: str, value: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    path = folder / "rank-000000.record"
    if not path.exists():
        folder.mkdir()
        made_rank(folder, 0, ranks=1)
        (folder / "whole").write_bytes(path.read_bytes())
    content = bytearray((folder / "whole").read_bytes())
    at = HEADER_OFFSETS[name]
    content[at : at + 8] = value.to_bytes(8, "little", signed=True)
    path.write_bytes(content)
    try:
        load([str(path)])
    except UsageError as error:
        assert "rank-000000.record" in str(error)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json.gz", b"\x1f\x8b", "a.json.gz timeline: https://ui"),
        ("a.json", b'{"displayTimeUnit":"ns","otherData":{}}', "a.json timeline"),
        ("a", None, "cannot read a: pipe"),
    ],
)
def test_other_file_is_named(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is None:
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(content)
    with refuses(UsageError, words):
        load([str(tmp_path / name)])


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "rank-000000.record"
    os.mkfifo(pipe)
    with refuses(UsageError, "it is a pipe"):
        read_file(str(pipe))
    with refuses(UsageError, "it is a pipe"):
        open_run(tmp_path)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--events", "10", "show", "run"], "--events running"),
        (["--traffic", "show", "run"], "--traffic running"),
        (["-q", "show", "run"], "--quiet running"),
        (["--folder", "omb-profile", "show", "run"], "--folder running"),
    ],
)
def test_option_that_showing_would_ignore_refused(words: list[str], named: str) -> None:
    with refuses(UsageError, named):
        command.main(words, standalone_mode=False)

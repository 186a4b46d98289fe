"""The files of a profile in a run's folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from omb_py.core.errors import OmbError
from omb_py.tracing.profile import store
from omb_py.tracing.profile.store import load
from tests.helpers.refusals import refuses
from tests.tracing.profile.made_profiles import made_rank, made_run

WHOLE = {"profile.txt", "profile.csv", "profile.json"}


def test_texts_are_those_of_the_ranks_that_matter(tmp_path: Path) -> None:
    profile = load([str(made_run(tmp_path))])
    written = store.write(profile, tmp_path)
    ranks = {f"profile.{rank}.txt" for rank in (0, 1, 3)}
    assert {path.name for path in written} == WHOLE | ranks
    assert all(path.is_file() for path in written)
    assert (tmp_path / "profile.3.txt").read_text().startswith("Profile of rank 3 of 4\n")
    assert (tmp_path / "profile.txt").read_text().startswith("Profile of all 4 ranks\n")


def test_or_those_of_all_ranks(tmp_path: Path) -> None:
    profile = load([str(made_run(tmp_path))])
    written = store.write(profile, tmp_path / "new", ranks="all")
    assert len(written) == 3 + 4


def test_rank_0_is_left_out_where_nothing_is_known_of_it(tmp_path: Path) -> None:
    made_rank(tmp_path, 2)
    names = {path.name for path in store.write(load([str(tmp_path)]), tmp_path)}
    assert names == WHOLE | {"profile.2.txt"}


def test_earlier_texts_of_the_run_are_replaced(tmp_path: Path) -> None:
    profile = load([str(made_run(tmp_path))])
    store.write(profile, tmp_path, ranks="all")
    (tmp_path / "profile.old.txt").write_text("mine\n")
    before = {path.name for path in tmp_path.iterdir()}
    store.write(profile, tmp_path)
    assert before - {path.name for path in tmp_path.iterdir()} == {"profile.2.txt"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    profile = load([str(made_run(tmp_path))])
    (tmp_path / "file").write_text("")
    with refuses(OmbError, "cannot write profile.txt"):
        store.write(profile, tmp_path / "file")


def test_a_job_needs_nothing_more_than_numpy_for_it(tmp_path: Path) -> None:
    made_run(tmp_path)
    program = (
        "import sys; from omb_py.tracing.profile import store; "
        f"store.write(store.load([{str(tmp_path)!r}]), {str(tmp_path)!r}); "
        "print(*sorted({'pandas', 'rich', 'altair', 'click', 'mpi4py'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []

"""Node files of a job get more lines, one for each slot that ranks need."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.sweeps.launchers import with_slots

JOB = {"PBS_JOBID": "12[3].server", "COBALT_JOBID": "12"}
FILE = {"PBS_JOBID": "PBS_NODEFILE", "COBALT_JOBID": "COBALT_NODEFILE"}


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*FILE, *FILE.values(), "PBS_PPN"):
        monkeypatch.delenv(name, raising=False)


def start(monkeypatch: pytest.MonkeyPatch, variable: str, path: Path) -> None:
    monkeypatch.setenv(variable, JOB[variable])
    monkeypatch.setenv(FILE[variable], str(path))


@pytest.mark.parametrize("variable", JOB)
def test_a_file_named_after_the_job_has_a_line_for_each_slot(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes").write_text("a\nb")
    start(monkeypatch, variable, tmp_path / "nodes")
    found = with_slots(3, tmp_path / "mine")
    assert found == {FILE[variable]: str(tmp_path / "mine" / JOB[variable])}
    assert (tmp_path / "mine" / JOB[variable]).read_text() == "a\nb\na\na\nb\nb\n"
    assert (tmp_path / "nodes").read_text() == "a\nb"


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        pytest.param("a\na\nb\nb\n", "", id="enough"),
        pytest.param("", "", id="empty"),
        pytest.param(None, "", id="unreadable"),
        pytest.param("a\n", "8", id="slots by a variable"),
    ],
)
def test_file_of_nodes_stays(
    text: str | None, slots: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "nodes").write_text(text)
    start(monkeypatch, "PBS_JOBID", tmp_path / "nodes")
    if slots:
        monkeypatch.setenv("PBS_PPN", slots)
    assert with_slots(2, tmp_path / "mine") == {}


def test_outside_a_job_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert with_slots(2, tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


@given(lines=st.lists(st.sampled_from(["a", "b", "c.site"]), min_size=1), slots=st.integers(1, 9))
def test_lines_keep_their_numbers(lines: list[str], slots: int) -> None:
    """Open MPI starts its daemons by the number of the line that names a node first."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "nodes")
        path.write_text("".join(f"{line}\n" for line in lines))
        start(patch, "PBS_JOBID", path)
        ours = with_slots(slots, Path(folder, "mine")).get("PBS_NODEFILE", path)
        found = Path(ours).read_text().splitlines()
    assert found[: len(lines)] == lines
    before = Counter(lines)
    assert Counter(found) == {name: max(slots, before[name]) for name in before}

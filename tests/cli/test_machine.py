"""`omb-py machine`: files that come with omb-py, and one for a new user's cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.cli import command
from omb_py.core.errors import UsageError
from omb_py.sweeps import catalog
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.toml import read
from tests.helpers.refusals import missing, refuses
from tests.sweeps.job_scripts import Sandbox, shipped_names

Command = Callable[..., tuple[str, str]]


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A folder, and a PATH on which there is no scheduler yet."""
    made = Sandbox(tmp_path)
    made.enter(monkeypatch, schedulers=False)
    return made


@pytest.fixture
def run(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command of the suite and return what it prints, on both streams."""

    def call(*words: str) -> tuple[str, str]:
        capsys.readouterr()
        command.main(list(words), prog_name="omb-py", standalone_mode=False)
        out, err = capsys.readouterr()
        return out, err

    return call


def test_the_machines_that_come_with_omb_py_are_listed(run: Command) -> None:
    _, heads, _, *lines, _ = run("machine", "list")[0].splitlines()
    assert heads.split() == "name scheduler launcher nodes cores GPUs description".split()
    assert [line.split()[0] for line in lines] == shipped_names("machines")
    (thetagpu,) = [line for line in lines if line.startswith("thetagpu")]
    assert thetagpu.split()[1:6] == ["cobalt", "openmpi", "24", "128", "8"]
    assert not missing("24 DGX A100 nodes: 64-core AMD HDR200", thetagpu)


@pytest.mark.parametrize("name", shipped_names("machines"))
def test_a_machine_is_shown_to_be_copied(run: Command, name: str) -> None:
    text, _ = run("machine", "show", name)
    path = catalog.folder() / "machines" / f"{name}.toml"
    assert text == path.read_text(), "comments included"
    Path("mine.toml").write_text(text)
    assert read(Path("mine.toml"), Machine) == read(path, Machine)


def test_a_file_is_checked_and_its_largest_job_shown(run: Command) -> None:
    line, *asked = run("machine", "check", "polaris", "--queue", "prod")[0].splitlines()
    assert line == "polaris: PBS, launcher pals, 496 nodes of 32 cores and 4 GPUs"
    assert "#PBS -l select=496:system=polaris:mpiprocs=32" in asked
    assert "#PBS -q prod" in asked
    assert run("machine", "check", "local")[0].startswith("local: no scheduler, launcher auto, ")
    Path("mine.toml").write_text('name = "mine"\ncores = 4\n')
    with refuses(UsageError, "mine.toml, line 2: unknown key 'cores'"):
        run("machine", "check", "mine.toml")
    Path("mine.toml").write_text('name = "mine"\nscheduler = "lsf"\njob.filesystems = ["home"]\n')
    with refuses(UsageError, "machine mine: LSF knows no job.filesystems"):
        run("machine", "check", "mine.toml")

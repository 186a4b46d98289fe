"""`omb-py job`: scripts, and submitting them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.cli import command
from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import SweepPoint, plan
from omb_py.sweeps.toml import read
from tests import ROOT
from tests.helpers.refusals import refuses
from tests.sweeps.job_scripts import MACHINE, SWEEP, Sandbox

FOLDER = Path("sweeps/mine-here")

Command = Callable[..., list[str]]


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A folder with two configurations and stand-ins for the schedulers' commands."""
    made = Sandbox(tmp_path)
    made.enter(monkeypatch)
    Path("mine.toml").write_text(SWEEP)
    Path("here.toml").write_text(MACHINE)
    return made


@pytest.fixture
def job(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `omb-py job` and return the lines that it prints."""

    def run(*words: str) -> list[str]:
        capsys.readouterr()
        command.main(["job", *words], prog_name="omb-py", standalone_mode=False)
        return capsys.readouterr().out.splitlines()

    return run


MINE = ("mine.toml", "--machine", "here.toml")


def test_without_a_command_its_commands_are_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "omb_py", "job"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: omb-py job [OPTIONS] COMMAND [ARGS]...\n")
    assert "\n  submit " in done.stderr


def test_shipped_configurations_are_known_by_name(job: Command) -> None:
    lines = job("render", "scaling", "--machine", "thetagpu", "--nodes", "2")
    assert lines == (ROOT / "jobs" / "thetagpu.sh").read_text().splitlines()


def test_a_script_is_printed_or_written(job: Command) -> None:
    lines = job("render", *MINE, "--one-job")
    assert job("render", *MINE, "--one-job", "--output", "some/where.sh") == []
    assert Path("some/where.sh").read_text().splitlines() == lines
    assert Path("some/where.sh").stat().st_mode & 0o111 == 0o111
    Path("some/where.sh").write_text("mine\n")
    with refuses(UsageError, "some/where.sh was edited --output --force"):
        job("render", *MINE, "--one-job", "--output", "some/where.sh")
    assert Path("some/where.sh").read_text() == "mine\n"
    job("render", *MINE, "--one-job", "--output", "some/where.sh", "--force")
    assert Path("some/where.sh").read_text().splitlines() == lines


def test_several_scripts_go_into_a_folder(job: Command) -> None:
    with refuses(UsageError, "2 scripts --output"):
        job("render", *MINE)
    job("render", *MINE, "--output", "scripts")
    names = {path.name for path in Path("scripts").iterdir()}
    assert names == {"mine-here-1-node.sh", "mine-here-2-nodes.sh"}


def test_the_header_has_the_command_that_made_it(job: Command) -> None:
    wishes = ("--nodes", "2", "--account", "ours", "--queue", "fast", "--walltime", "2h")
    lines = job("render", *MINE, *wishes, "--folder", "elsewhere")
    (made,) = [line for line in lines if line.startswith("# Made by: ")]
    _, _, *words = shlex.split(made.removeprefix("# Made by: "), comments=True)
    assert job(*words) == lines
    assert "#SBATCH --account=ours" in lines
    assert "#SBATCH --partition=fast" in lines
    assert "#SBATCH --time=02:00:00" in lines
    assert "seconds=7140" in lines
    assert "jobs=elsewhere/jobs" in lines


def test_file_systems_are_chosen_on_the_command_line(job: Command) -> None:
    words = ("render", "quick", "--machine", "polaris", "--nodes", "1", "--filesystems")
    lines = job(*words, "home,grand")
    assert "#PBS -l filesystems=home:grand" in lines
    assert "#PBS -l filesystems=home:grand" in job(*words, "home:grand")
    made = "# Made by: omb-py job render quick --machine polaris --nodes 1 --filesystems home,grand"
    assert any(line.startswith(made) for line in lines)
    with refuses(UsageError, "--filesystems: '$' '$(id)'"):
        job(*words, "home,$(id)")
    with refuses(UsageError, "generic-torque: Torque job.filesystems"):
        job("render", "quick", "--machine", "generic-torque", "--filesystems", "home")


def test_missing_account_refused(job: Command, sandbox: Sandbox) -> None:
    words = ("submit", "quick", "--machine", "thetagpu", "--nodes", "1")
    with refuses(UsageError, "thetagpu account: --account PROJECT"):
        job(*words)
    assert sandbox.commands() == []
    path = "sweeps/quick-thetagpu/jobs/quick-1-node.sh"
    assert job(*words, "--dry-run") == [f"qsub-gpu {path}"]
    assert "\n# Fill in the account above: " in Path(path).read_text()
    sandbox.stand_in("qsub-gpu", "echo 7")
    assert job(*words, "--account", "ours") == [f"7 {path}"]
    assert "Fill in the account" not in Path(path).read_text()
    assert {program for program, *_ in sandbox.commands()} == {"qsub-gpu"}


def test_submitting_prints_and_remembers_the_numbers(job: Command, sandbox: Sandbox) -> None:
    sandbox.stand_in("sbatch", 'echo "$(( 40 + ${2//[!0-9]/} ))"')
    assert job("submit", *MINE) == [
        "41 sweeps/mine-here/jobs/mine-1-node.sh",
        "42 sweeps/mine-here/jobs/mine-2-nodes.sh",
    ]
    lines = Path("sweeps/mine-here/jobs/record").read_text().splitlines()
    assert [line.split()[1:] for line in lines] == [
        ["41", "mine-1-node"],
        ["42", "mine-2-nodes"],
    ]


def test_a_dry_run_submits_nothing(job: Command, sandbox: Sandbox) -> None:
    assert job("submit", *MINE, "--one-job", "--dry-run") == [
        "sbatch sweeps/mine-here/jobs/mine.sh"
    ]
    assert Path("sweeps/mine-here/jobs/mine.sh").exists()
    assert sandbox.commands() == []


def measured(point: SweepPoint) -> None:
    """Let all rows of a point be there."""
    path = Folder(FOLDER).csv(point)
    path.parent.mkdir(exist_ok=True)
    path.write_text("bytes\n" + "".join(f"{size}\n" for size in point.sizes))


def test_an_edited_script_is_overwritten_only_by_force(job: Command) -> None:
    script = FOLDER / "jobs/mine-1-node.sh"
    words = ("submit", *MINE, "--nodes", "1")
    job(*words)
    job(*words, "--account", "ours")
    assert "#SBATCH --account=ours\n" in script.read_text(), "nobody has edited it"
    edited = script.read_text().replace("--time=00:30:00", "--time=00:40:00")
    script.write_text(edited)
    for more in ((), ("--dry-run",), ("--account", "ours")):
        with refuses(UsageError, "mine-1-node.sh edited --force"):
            job(*words, *more)
    assert script.read_text() == edited
    job(*words, "--force")
    assert script.read_text() != edited


def test_what_is_complete_is_not_submitted(
    job: Command, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    job("submit", *MINE, "--one-job", "--dry-run")
    points = plan(read(Path("mine.toml"), Sweep), read(Path("here.toml"), Machine)).points
    for point in points:
        if point.nodes == 1:
            measured(point)
    assert job("submit", *MINE) == [f"1234 {FOLDER}/jobs/mine-2-nodes.sh"]
    for point in points:
        measured(point)
    submitted = len(sandbox.commands())
    capsys.readouterr()
    command.main(["job", "submit", *MINE], prog_name="omb-py", standalone_mode=False)
    said = capsys.readouterr()
    assert said.out == ""
    assert f"no row of {FOLDER}/jobs/mine-1-node.sh is missing: it is not submitted" in said.err
    assert sandbox.commands()[submitted:] == []
    job("submit", *MINE, "--force")
    assert sandbox.commands()[-1][0] == "sbatch"


def test_refused_submission_has_the_scheduler_s_words(job: Command, sandbox: Sandbox) -> None:
    sandbox.stand_in("sbatch", "echo 'sbatch: error: invalid partition' >&2; exit 1")
    with refuses(OmbError, "Slurm does not take : sbatch: error: invalid partition"):
        job("submit", *MINE, "--one-job")
    assert not Path("sweeps/mine-here/jobs/record").exists()

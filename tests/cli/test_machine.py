"""`omb-py machine`: files that come with omb-py, and one for a new user's cluster."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest

from omb_py.cli import command
from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps import catalog
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.toml import read
from tests import ROOT
from tests.sweeps.job_scripts import Sandbox, shipped_names

PBS = {
    "qstat": "echo pbs_version = 23.06.06",
    "pbsnodes": """cat <<'END'
n1
     Mom = n1
     state = free
     resources_available.host = n1
     resources_available.ncpus = 4

n2
     Mom = n2
     state = job-busy
     resources_available.host = n2
     resources_available.ncpus = 4
END""",
}
OPTIONS = (
    *("--scheduler", "pbs", "--nodes", "2", "--cores-per-node", "4", "--gpus-per-node", "0"),
    *("--launcher", "openmpi"),
)

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


def on_pbs(sandbox: Sandbox) -> None:
    """Put PBS's commands there, as on a cluster of two nodes with four cores."""
    for name, then in PBS.items():
        sandbox.stand_in(name, then)


def test_the_machines_that_come_with_omb_py_are_listed(run: Command) -> None:
    heads, *lines = run("machine", "list")[0].splitlines()
    assert heads.split() == "name scheduler launcher nodes cores GPUs description".split()
    assert [line.split()[0] for line in lines] == shipped_names("machines")
    (thetagpu,) = [line for line in lines if line.startswith("thetagpu")]
    assert thetagpu.split()[1:6] == ["cobalt", "openmpi", "24", "128", "8"]
    assert thetagpu.endswith("24 DGX A100 nodes: 8 A100 and two 64-core AMD Rome each, HDR200")


@pytest.mark.parametrize("name", shipped_names("machines"))
def test_a_machine_is_shown_to_be_copied(run: Command, name: str) -> None:
    text, _ = run("machine", "show", name)
    path = catalog.folder() / "machines" / f"{name}.toml"
    first, *others = text.splitlines()
    assert others == path.read_text().splitlines()[1:], "comments included"
    address = urlsplit(first.removeprefix("#:schema "))
    assert (address.scheme, Path(address.path).name) == ("file", "machine.schema.json")
    assert Path(address.path).is_file()
    Path("mine.toml").write_text(text)
    assert read(Path("mine.toml"), Machine) == read(path, Machine)


def test_a_file_is_checked_and_its_largest_job_shown(run: Command) -> None:
    line, *asked = run("machine", "check", "polaris", "--queue", "prod")[0].splitlines()
    assert line == "polaris: PBS, launcher pals, 496 nodes of 32 cores and 4 GPUs"
    assert "#PBS -l select=496:system=polaris:mpiprocs=32" in asked
    assert "#PBS -q prod" in asked
    assert run("machine", "check", "local")[0].startswith("local: no scheduler, launcher auto, ")
    Path("mine.toml").write_text('name = "mine"\ncores = 4\n')
    with pytest.raises(UsageError, match=r"mine.toml, line 2: unknown key 'cores'"):
        run("machine", "check", "mine.toml")
    Path("mine.toml").write_text('name = "mine"\nscheduler = "lsf"\njob.filesystems = ["home"]\n')
    with pytest.raises(UsageError, match=r"machine mine: LSF knows no job\.filesystems"):
        run("machine", "check", "mine.toml")


def test_my_pbs_cluster_of_two_nodes_with_four_cores_and_open_mpi(
    run: Command, sandbox: Sandbox
) -> None:
    on_pbs(sandbox)
    out, err = run("machine", "new", "-o", "mine.toml", "--launcher", "openmpi")
    assert out == "mine.toml\n"
    assert "omb-py job submit quick --machine ./mine.toml --dry-run" in err
    text = Path("mine.toml").read_text()
    assert 'name = "mine"\n' in text
    assert "nodes = 2  # detected by pbsnodes\n" in text
    assert "cores_per_node = 4  # detected by pbsnodes, which may count hardware threads\n" in text
    script, _ = run("job", "render", "quick", "--machine", "./mine.toml", "--one-job")
    lines = script.splitlines()
    assert "#PBS -l select=2:ncpus=4:mpiprocs=4" in lines
    assert "#PBS -l place=scatter:excl" in lines
    assert "#PBS -l walltime=00:30:00" in lines
    assert read(Path("mine.toml"), Machine).launcher == "openmpi"


def test_a_new_user_answers_questions_on_a_terminal(sandbox: Sandbox) -> None:
    on_pbs(sandbox)
    keyboard, terminal = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "omb_py", "machine", "new"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=sandbox.environment | {"PYTHONPATH": str(ROOT)},
        cwd=sandbox.here,
        text=True,
    )
    # name, scheduler, nodes, cores, GPUs, launcher (wrong, right), queue, account, walltime
    answers = ("cellar", "", "many", "", "", "", "mpirun", "openmpi", "work", "", "1h")
    os.write(keyboard, "".join(f"{answer}\n" for answer in answers).encode())
    out, err = started.communicate(timeout=120)
    os.close(keyboard)
    os.close(terminal)
    assert (started.returncode, out) == (0, "cellar.toml\n"), err
    assert "'many' is not a whole number" in err
    assert "unknown 'mpirun'" in err
    found = read(sandbox.here / "cellar.toml", Machine)
    assert (found.name, found.scheduler, found.launcher) == ("cellar", "pbs", "openmpi")
    assert (found.nodes, found.cores_per_node, found.gpus_per_node) == (2, 4, 0)
    assert (found.job.queue, found.job.account, found.job.walltime) == ("work", None, 3600)


def test_every_question_can_be_an_option(run: Command) -> None:
    more = ("--name", "x", "--queue", "work", "--account", "ours", "--walltime", "2h")
    out, _ = run("machine", "new", *OPTIONS, *more)
    assert out == "x.toml\n"
    found = read(Path("x.toml"), Machine)
    assert (found.job.queue, found.job.account, found.job.walltime) == ("work", "ours", 7200)
    assert "detected" not in Path("x.toml").read_text()


def test_every_key_is_in_a_new_file(run: Command) -> None:
    run("machine", "new", *OPTIONS)
    text = Path("mycluster.toml").read_text()
    for key in (*Machine.model_fields, *type(Machine.model_fields["job"].default).model_fields):
        assert f"\n{key} = " in text or f"\n# {key} = " in text or f"\n[{key}]\n" in text
    commented = text.replace("\n# environment = {", "\nenvironment = {")
    Path("all.toml").write_text(commented.replace("\n# queues = {", "\nqueues = {"))
    assert read(Path("all.toml"), Machine).job.queues["prod"].max_nodes == 496


def test_nothing_is_overwritten_but_by_force(run: Command) -> None:
    Path("mycluster.toml").write_text("mine\n")
    with pytest.raises(UsageError, match=r"mycluster.toml is there already: overwrite it by --for"):
        run("machine", "new", *OPTIONS)
    assert Path("mycluster.toml").read_text() == "mine\n"
    run("machine", "new", *OPTIONS, "--force")
    assert read(Path("mycluster.toml"), Machine).nodes == 2


def test_a_computer_without_a_scheduler_is_a_machine_too(run: Command) -> None:
    _, err = run("machine", "new", "--name", "desk", "--launcher", "mpich")
    assert "omb-py sweep quick --machine ./desk.toml --dry-run" in err
    found = read(Path("desk.toml"), Machine)
    assert (found.scheduler, found.nodes) == ("none", 1)
    assert found.cores_per_node == len(os.sched_getaffinity(0))
    assert "[job]" not in Path("desk.toml").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--scheduler", "pbs"), "--nodes cannot be detected here: name it"),
        (("--scheduler", "slrum"), "--scheduler: unknown 'slrum'; did you mean 'slurm'?"),
        ((*OPTIONS, "--account", "$(id)"), "--account: '$' is not permitted in '$(id)'"),
        ((*OPTIONS, "--walltime", "soon"), "--walltime: 'soon' is no duration such as"),
        ((*OPTIONS, "--name", "a/b"), "--name: '/' is not permitted in 'a/b'"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    run: Command, words: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises((OmbError, click.UsageError)) as caught:
        run("machine", "new", *words)
    said = getattr(caught.value, "message", str(caught.value))
    assert sentence in said
    assert len(said.splitlines()) == 1
    assert list(Path().glob("*.toml")) == []

"""What batch scripts do, whatever the scheduler: measure, stop in time, go on in another job."""

from __future__ import annotations

import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from omb_py.core.errors import UsageError
from omb_py.sweeps import render, sweep_job
from omb_py.sweeps.schedulers import SCHEDULERS
from tests import ROOT
from tests.helpers.refusals import assert_names, missing, refuses
from tests.helpers.waiting import wait_for
from tests.sweeps.job_scripts import UNFINISHED, Ran, Sandbox, own_job, shipped_job, shipped_names

JOBS = ROOT / "jobs"
MACHINES = [name for name in shipped_names("machines") if name != "local"]
IN_JOBS = ["thetagpu", "generic-pbs", "generic-torque", "generic-slurm"]

LISTENS = """
def stop(*_):
    pathlib.Path("stopped").write_text("stopped\\n")
    sys.exit(75)
for name in ("TERM", "USR1", "USR2", "HUP"):
    signal.signal(signal.Signals["SIG" + name], stop)
"""
READY = 'pathlib.Path("ready").touch()'
IMPORTS = "import pathlib, signal, sys, time"
"""Parts of a sweep in Python: bash cannot hear a signal that its parent ignored."""


def sweep_of(*parts: str) -> str:
    """What stands in for a sweep: Python that does these parts, then waits to be stopped."""
    program = "\n".join([IMPORTS, *parts, "time.sleep(60)"])
    return f"exec {shlex.quote(sys.executable)} -c {shlex.quote(program)}"


WAITS = sweep_of(LISTENS, READY)


def scripts(sweep: str, machine: str) -> list[str]:
    """The scripts of a shipped sweep on a machine: one job for all, and the largest of several."""
    whole = shipped_job(sweep, machine)
    jobs = (*sweep_job.divide(whole, None, True), sweep_job.divide(whole, None, False)[-1])
    return list(dict.fromkeys(render.script(job) for job in jobs))


@pytest.mark.slow
@pytest.mark.parametrize("sweep", shipped_names("sweeps"))
def test_bash_understands_every_script(sweep: str) -> None:
    for machine in MACHINES if sweep == "scaling" else ["thetagpu"]:
        for text in scripts(sweep, machine):
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="there is no shellcheck here")
@pytest.mark.parametrize("machine", MACHINES)
def test_shellcheck_has_nothing_to_say(machine: str) -> None:
    text = "".join(scripts("scaling", machine)[-1:])
    checked = subprocess.run(["shellcheck", "-"], input=text, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("machine", IN_JOBS)
def test_the_scripts_in_jobs_are_what_would_be_made_today(machine: str) -> None:
    few = 2 if machine == "thetagpu" else None  # its largest points take the whole machine
    (job,) = sweep_job.divide(shipped_job("scaling", machine), few, True)
    path = JOBS / f"{machine}.sh"
    assert path.read_text() == render.script(job), f"{path.name} is stale: make jobs"
    assert path.stat().st_mode & 0o111 == 0o111, f"{path.name}: Cobalt wants it executable"


def test_nothing_else_is_in_jobs() -> None:
    made = {f"{machine}.sh" for machine in IN_JOBS} | {"README.md"}
    assert {path.name for path in JOBS.iterdir()} == made


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_finished_sweep_ends_the_chain(scheduler: str, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    ran = sandbox.run(render.script(own_job(scheduler)))
    assert ran.code == 0, ran.said
    (measure,) = ran.of("omb-py")
    assert measure[:-1] == ["sweep", "mine", "--machine", "here", "--stop-after"]
    assert 1100 < int(measure[-1].removesuffix("s")) <= 1740


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_unfinished_sweep_goes_on_in_another_job(scheduler: str, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, sweep_ends=f"exit {UNFINISHED}")
    row = SCHEDULERS[scheduler]
    text = render.script(own_job(scheduler))
    ran = sandbox.run(text, **dict.fromkeys(row.job_id_variables, "7"))
    assert ran.code == 0, ran.said
    copy = "sweeps/mine-here/jobs/mine.sh"
    number = "1234" if row.job_id_command else "7"
    where = [number, "mine", "--machine", "here"]
    _, goes_on = ran.of("omb-py")
    *goes_on, seconds = goes_on
    assert goes_on == ["job", "continue", *where, "--chain", "resubmit", "--seconds"]
    assert 1200 < int(seconds) <= 1790, "less ten seconds to end"
    assert (sandbox.here / copy).read_text() == text


def test_a_signal_before_the_sweep_has_begun_ends_the_job(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.stand_in("module", "touch ready; until [ -e signalled ]; do sleep 0.02; done")
    started = sandbox.start(
        sandbox.spooled(render.script(own_job(modules=["gcc"]))), SLURM_JOB_ID="7"
    )
    wait_for((sandbox.here / "ready").exists)
    started.terminate()
    (sandbox.here / "signalled").touch()
    ran = sandbox.finish(started)
    assert (ran.code, ran.of("omb-py")) == (-signal.SIGTERM, [])


def test_a_failure_is_not_tried_again(tmp_path: Path) -> None:
    ran = Sandbox(tmp_path, sweep_ends="exit 1").run(render.script(own_job()))
    assert (ran.code, ran.continued) == (1, [])


def test_the_end_of_a_chain_is_the_code_of_its_last_job(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.stand_in("omb-py", '[ "$2" != continue ] || echo over; exit 75')
    ran = sandbox.run(render.script(own_job()))
    assert (ran.code, ran.said.splitlines()[-1]) == (75, "over")


QSTAT = """\
Job Id: 7.server
    Job_Name = scaling
    Resource_List.walltime = {}
    Variable_List = PBS_O_HOME=/home/me,PBS_O_LANG=C,
\tPBS_O_WORKDIR=/home/me
"""
# By scheduler, what says that 10 minutes are left of a job that begins.
TEN_MINUTES = {
    "pbs": ("qstat", QSTAT.format("00:10:00")),
    "torque": ("qstat", QSTAT.format("00:10:00").replace("    ", "\t")),
    "slurm": ("squeue", ""),
    "lsf": ("bjobs", "0:10 L"),
    "flux": ("flux", "600"),
}


def seconds_of(ran: Ran) -> int:
    """The seconds that the sweep of a script may take."""
    (words,) = ran.of("omb-py")
    return int(words[-1].removesuffix("s"))


def in_ten_minutes(scheduler: str, sandbox: Sandbox) -> dict[str, str]:
    """Let a scheduler say that 10 minutes are left; the variables that say so."""
    if scheduler == "cobalt":
        return {"COBALT_ENDTIME": str(round(time.time()) + 600)}
    program, text = TEN_MINUTES[scheduler]
    ends = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 600))
    text = f"RUNNING N/A {ends} None" if scheduler == "slurm" else text
    sandbox.stand_in(program, f"cat <<'END'\n{text}\nEND")
    return {}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_sweep_ends_before_the_scheduler_s_walltime(scheduler: str, tmp_path: Path) -> None:
    sandbox, began = Sandbox(tmp_path), time.time()
    variables = in_ten_minutes(scheduler, sandbox)
    ran = sandbox.run(render.script(own_job(scheduler)), **variables)
    slack = time.time() - began + 2
    assert 540 - slack <= seconds_of(ran) <= 541, "less job.reserve = 60 s"
    longer = own_job(scheduler, {"walltime": "3m"})
    assert (
        seconds_of(Ran(0, "", sandbox.run(render.script(longer), **variables).commands[-1:])) <= 120
    )


@pytest.mark.parametrize("answer", ["echo 'cannot connect' >&2; exit 2", "echo odd", None])
def test_script_without_an_answer_uses_its_walltime(answer: str | None, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    if answer:
        sandbox.stand_in("qstat", answer)
    ran = sandbox.run(render.script(own_job("pbs")))
    assert seconds_of(ran) > 1680
    assert not missing("note: PBS time left: walltime", ran.said)


def test_too_little_time_ends_the_job_in_order(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.stand_in("qstat", f"cat <<'END'\n{QSTAT.format('00:01:05')}\nEND")
    ran = sandbox.run(render.script(own_job("pbs")))
    assert (ran.code, ran.of("omb-py")) == (1, [])
    assert not missing("walltime job.reserve = 60 s too few", ran.said)


def test_script_submitted_from_its_copy_is_unchanged(tmp_path: Path) -> None:
    """Cobalt runs the very file that it was given."""
    sandbox = Sandbox(tmp_path)
    path = sandbox.here / "sweeps/mine-here/jobs/mine.sh"
    path.parent.mkdir(parents=True)
    path.write_text(render.script(own_job("cobalt")))
    ran = sandbox.finish(sandbox.start(path))
    assert ran.code == 0, ran.said
    assert path.read_text() == render.script(own_job("cobalt"))


def signalled(
    sandbox: Sandbox, text: str, number: int, **variables: str
) -> tuple[int, list[list[str]]]:
    """The code and the `job continue` of a script to which a signal comes while it measures."""
    started = sandbox.start(sandbox.spooled(text), **variables)
    wait_for((sandbox.here / "ready").exists)
    started.send_signal(number)
    ran = sandbox.finish(started)
    assert (sandbox.here / "stopped").read_text() == "stopped\n"
    return ran.code, ran.continued


ENDS = "2026-01-01T00:00:00"
SIGNALLED = ["--signalled"]


@pytest.mark.parametrize(
    ("number", "answer", "told"),
    [
        (signal.SIGTERM, f"COMPLETING N/A {ENDS} None", SIGNALLED),  # scancel
        (signal.SIGHUP, f"RUNNING {ENDS} {ENDS} None", SIGNALLED),  # preempted, with a grace time
        (signal.SIGTERM, "slurm_load_jobs error", SIGNALLED),
        (signal.SIGTERM, f"COMPLETING N/A {ENDS} TimeLimit", []),
        (signal.SIGUSR1, "", []),  # a warning that a directive asked for
        (signal.SIGUSR2, "", []),
    ],
)
def test_signal_that_is_the_walltime_continues_the_chain(
    number: int, answer: str, told: list[str], tmp_path: Path
) -> None:
    sandbox = Sandbox(tmp_path, WAITS)
    asked = f"if [ -e ready ]; then echo '{answer}'; fi"
    sandbox.stand_in("squeue", asked)
    code, continued = signalled(sandbox, render.script(own_job()), number, SLURM_JOB_ID="7")
    assert (code, continued) == (0, [["--chain", "resubmit", *told]])


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_warning_that_comes_before_the_sweep_listens_ends_no_job(
    number: int, tmp_path: Path
) -> None:
    over = "time.sleep(0.5); pathlib.Path('stopped').write_text('stopped\\n'); sys.exit(75)"
    sandbox = Sandbox(tmp_path, sweep_of(READY, over))
    code, continued = signalled(sandbox, render.script(own_job()), number)
    assert (code, continued) == (0, [["--chain", "resubmit"]])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_job_out_of_time_continues_in_another(scheduler: str, tmp_path: Path) -> None:
    text = render.script(own_job(scheduler)).replace('"$SECONDS" -ge "$left"', "1 -ge 0")
    code, continued = signalled(Sandbox(tmp_path, WAITS), text, signal.SIGTERM)
    assert (code, continued) == (0, [["--chain", "resubmit"]])


def test_a_script_says_that_it_does_not_go_on(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, sweep_ends=f"exit {UNFINISHED}")
    ran = sandbox.run(render.script(own_job(job={"chain": "none"})))
    assert ran.continued == [["--chain", "none"]]


@pytest.mark.parametrize("environment", [".venv", None])
def test_a_job_without_omb_py_says_where_it_looked(environment: str | None, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    (sandbox.programs / "omb-py").unlink()
    ran = sandbox.run(render.script(own_job(virtual_environment=environment)), SLURM_JOB_ID="7")
    assert ran.code == 1
    (line,) = ran.said.splitlines()
    assert line.startswith("omb-py: there is no omb-py on ")
    assert (f".venv/bin/omb-py in {sandbox.here}" in line) == (environment is not None)


def test_a_submit_folder_that_is_not_on_the_node_is_named(tmp_path: Path) -> None:
    ran = Sandbox(tmp_path).run(render.script(own_job("pbs")), PBS_O_WORKDIR="/not/here")
    assert ran.code == 1
    assert "/not/here: No such file or directory" in ran.said
    assert_names(ran.said.splitlines()[-1], "omb-py: folder submitted not on")


def test_the_submit_folder_is_where_results_go(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    elsewhere = tmp_path / "where qsub was"
    elsewhere.mkdir()
    for scheduler, variable in (("pbs", "PBS_O_WORKDIR"), ("torque", "SLURM_SUBMIT_DIR")):
        ran = sandbox.run(render.script(own_job(scheduler)), **{variable: str(elsewhere)})
        assert ran.code == 0, ran.said
        assert (elsewhere / "sweeps/mine-here/jobs/mine.sh").exists()
        shutil.rmtree(elsewhere / "sweeps")
    assert not list(sandbox.here.iterdir())


def test_the_environment_is_made_as_configured(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    activate = sandbox.root / "our venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.write_text("touch activated\n")
    folders = [str(tmp_path), str(sandbox.here)]
    text = render.script(
        own_job(module_paths=folders, modules=["gcc/12", "mpich"], virtual_environment="~/our venv")
    )
    assert text.startswith("#!/bin/bash -l\n"), "module is a function of login shells"
    ran = sandbox.run(text)
    assert ran.code == 0, ran.said
    loaded = [["load", "gcc/12"], ["load", "mpich"]]
    assert ran.of("module") == [*(["use", folder] for folder in folders), *loaded]
    assert (sandbox.here / "activated").exists()


FAILS = 'case "$*" in *gone*) echo "cannot: $*" >&2; exit 1;; esac'


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"modules": ["gcc", "gone/1", "mpich"]}, "module load gone/1 fails on "),
        ({"module_paths": ["/gone/modules"], "modules": ["mpich"]}, "module use /gone/modules fa"),
        ({"virtual_environment": "~/gone"}, "/gone/bin/activate fails on "),
    ],
)
def test_missing_environment_fails(values: dict[str, Any], words: str, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.stand_in("module", FAILS)
    ran = sandbox.run(render.script(own_job(**values)), SLURM_JOB_ID="7")
    (line,) = [line for line in ran.said.splitlines() if line.startswith("omb-py: ")]
    assert (ran.code, ran.of("omb-py")) == (1, [])
    assert words in line
    assert socket.gethostname() in line
    assert ["load", "mpich"] not in ran.of("module")


def test_a_host_without_modules_is_named(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    (sandbox.programs / "module").unlink()
    ran = sandbox.run(render.script(own_job(modules=["mpich"])))
    assert (ran.code, ran.of("omb-py")) == (1, [])
    assert not missing(f"omb-py: module load mpich {socket.gethostname()}:", ran.said)


@pytest.mark.parametrize("text", ["return 3", "exec 3< /not/here || return 1"])
def test_a_virtual_environment_that_fails_is_named(text: str, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    activate = sandbox.here / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(f"{text}\n")
    ran = sandbox.run(render.script(own_job()))
    assert (ran.code, ran.of("omb-py")) == (1, [])
    assert "omb-py: source .venv/bin/activate fails on " in ran.said


def test_each_number_of_nodes_is_a_job_of_its_own() -> None:
    whole = own_job()
    one, two = sweep_job.divide(whole, None, False)
    assert (one.name, two.name) == ("mine-1-node", "mine-2-nodes")
    assert "#SBATCH --nodes=2\n" in render.script(two)
    assert " --nodes 2)\n" in render.script(two)
    (single,) = sweep_job.divide(whole, None, True)
    assert "#SBATCH --nodes=2\n" in render.script(single)
    assert " --nodes 2)" not in render.script(single)
    assert sweep_job.divide(whole, 2, False) == [two]
    with refuses(UsageError, "no point on 3 nodes of here (it has on 1, 2)"):
        sweep_job.divide(whole, 3, False)


def test_a_walltime_leaves_time_to_end_in_order() -> None:
    assert "\nseconds=30\n" in render.script(own_job(job={"walltime": "90s"}))
    with refuses(UsageError, "walltime of 00:01:00 leaves nothing"):
        render.script(own_job(job={"walltime": "1m"}))


@pytest.mark.parametrize(
    ("scheduler", "settings", "words"),
    [
        ("none", {}, "machine here no scheduler: omb-py sweep"),
        ("slurm", {"select": ["system=polaris"]}, "machine here: Slurm job.select"),
    ],
)
def test_impossible_job_refused(scheduler: str, settings: dict[str, Any], words: str) -> None:
    with refuses(UsageError, words):
        own_job(scheduler, settings)

"""Directives are checked against the grammar that each scheduler's documentation gives.

Only Slurm and its Torque commands can be run here (`tests/schedulers/`): for all others this is
what stands in place of trying them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from omb_py.sweeps import render, sweep_job
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.sweep_job import SweepJob
from tests.sweeps.job_scripts import own_job, shipped_job, shipped_names

NAME = r"[A-Za-z][\w.+-]{0,14}"
WORD = r"[\w.:/@+-]+"
CLOCK = r"\d{2,}:[0-5]\d:[0-5]\d"
RESOURCE = r"[A-Za-z]\w*=[\w.-]+"

# qsub(1B) and pbs_resources(7B) of OpenPBS
PBS = (
    rf"-N {NAME}",
    rf"-l select=\d+(:{RESOURCE})*",
    r"-l place=(free|pack|scatter|vscatter)(:(excl|shared|exclhost))?(:group=\w+)?",
    rf"-l walltime={CLOCK}",
    rf"-l filesystems={WORD}",
    r"-j (oe|eo|n)",
    r"-k [deo]+",
    rf"-q {WORD}",
    rf"-A {WORD}",
)
# qsub and pbs_resources of Torque ("Requesting resources": nodes={count}[:ppn=][:gpus=][:property])
TORQUE = (
    rf"-N {NAME}",
    r"-l nodes=\d+(:ppn=\d+)?(:gpus=\d+)?(:\w+)*",
    rf"-l walltime={CLOCK}",
    r"-j (oe|eo|n)",
    rf"-q {WORD}",
    rf"-A {WORD}",
)
# qsub(1) of Cobalt, and ALCF's "Job and Queue Scheduling on ThetaGPU"; one --attrs only
COBALT = (
    rf"--jobname {NAME}",
    r"-n \d+",
    r"-t \d+",
    r"--attrs [\w-]+=[\w,.-]+(:[\w-]+=[\w,.-]+)*",
    rf"-q {WORD}",
    rf"-A {WORD}",
)
# sbatch(1)
SLURM = (
    rf"--job-name={NAME}",
    r"--nodes=\d+",
    r"--ntasks-per-node=\d+",
    r"--gpus-per-node=\d+",
    r"--exclusive",
    r"--constraint=\w+(&\w+)*",
    r"--licenses=\w+(,\w+)*",
    rf"--time={CLOCK}",
    r"--output=%x\.o%j",
    r"--open-mode=append",
    r"--requeue",
    rf"--partition={WORD}",
    rf"--account={WORD}",
    rf"--qos={WORD}",
)
# bsub(1) of LSF 10.1, and OLCF's "Summit User Guide" for -alloc_flags
LSF = (
    rf"-J {NAME}",
    r"-n \d+",
    r'-R "span\[ptile=\d+\]"',
    r"-x",
    r'-alloc_flags "\w+( \w+)*"',
    r"-W \d+:[0-5]\d",
    rf"-o {NAME}\.o%J",
    rf"-q {WORD}",
    rf"-P {WORD}",
)
# flux-batch(1) and RFC 36 of Flux
FLUX = (
    rf"--job-name={NAME}",
    r"--nodes=\d+",
    r"--exclusive",
    r"--time-limit=\d+m",
    r"--requires=[\w.,-]+",
    rf"--queue={WORD}",
    rf"--bank={WORD}",
)
GRAMMARS = {"pbs": PBS, "torque": TORQUE, "cobalt": COBALT, "slurm": SLURM, "lsf": LSF}
GRAMMARS |= {"flux": FLUX}

NEEDED = {
    "pbs": ("-l select=", "-l walltime="),
    "torque": ("-l nodes=", "-l walltime="),
    "cobalt": ("-n ", "-t "),
    "slurm": ("--nodes=", "--time="),
    "lsf": ("-n", "-W "),
    "flux": ("--nodes=", "--time-limit="),
}
ALL = {"queue": "debug", "account": "ours", "walltime": "90m"}


def directives(job: SweepJob, sentinel: str) -> list[str]:
    """The directives of a script that begin with ``sentinel``, which must be its first lines."""
    first, *lines = render.script(job).splitlines()
    assert first.startswith("#!/bin/bash")
    top = lines[: next(index for index, line in enumerate(lines) if line[:2] in ("#", "##"))]
    found = [line for line in lines if line.startswith(f"{sentinel} ")]
    assert found == top[: len(found)], "Cobalt reads the topmost lines only, Flux one block"
    return [line.removeprefix(f"{sentinel} ") for line in found]


def shipped_jobs() -> Iterator[tuple[str, SweepJob]]:
    """The scaling sweep on every shipped machine that has a scheduler."""
    for machine in shipped_names("machines"):
        if machine != "local":
            whole = shipped_job("scaling", machine)
            for job in (
                *sweep_job.divide(whole, None, True),
                *sweep_job.divide(whole, None, False),
            ):
                yield machine, job


def own_jobs() -> Iterator[tuple[str, SweepJob]]:
    """Jobs with everything and with nothing that can be asked for."""
    wishes = {
        "pbs": {"select": ["ngpus=4"], "attributes": ["place=scatter"], "filesystems": ["home"]},
        "torque": {"select": ["fast"]},
        "cobalt": {"attributes": ["mig-mode=True"], "filesystems": ["home", "eagle"]},
        "slurm": {"attributes": ["gpu", "hbm"], "filesystems": ["scratch", "cfs"]},
        "lsf": {"attributes": ["smt1", "gpumps"]},
        "flux": {"attributes": ["fast"]},
    }
    for scheduler in SCHEDULERS:
        yield scheduler, own_job(scheduler, gpus_per_node=4)
        yield scheduler, own_job(scheduler, wishes[scheduler] | ALL, gpus_per_node=4)


CASES = [
    pytest.param(job, id=f"{name}-{job.name}-{number}")
    for number, (name, job) in enumerate((*shipped_jobs(), *own_jobs()))
]


@pytest.mark.parametrize("job", CASES)
def test_directives_are_of_the_schedulers_grammar(job: SweepJob) -> None:
    grammar, needed = GRAMMARS[job.machine.scheduler], NEEDED[job.machine.scheduler]
    found = directives(job, job.scheduler.sentinel)
    read = [line for line in found if not line.startswith("#")]
    for line in read:
        assert any(re.fullmatch(rule, line, re.ASCII) for rule in grammar), line
    for beginning in needed:
        assert len([line for line in read if line.startswith(beginning)]) == 1, beginning
    assert len(set(read)) == len(read)


@pytest.mark.parametrize("job", CASES)
def test_what_is_left_to_fill_in_is_of_the_grammar_too(job: SweepJob) -> None:
    settings = job.machine.job  # a queue that is a QOS is in directives
    unread = job.scheduler.unread
    lines = render.script(job).splitlines()
    offered = [line.removeprefix(unread).strip() for line in lines if line.startswith(f"{unread} ")]
    assert len(offered) == [settings.queue, settings.account].count(None)
    for line in offered:
        assert any(re.fullmatch(rule, line) for rule in GRAMMARS[job.machine.scheduler]), line


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_site_s_own_directives_stand_below_the_others(scheduler: str) -> None:
    option = "-q"
    job = own_job(scheduler, {"directives": [f"{option} something"]})
    assert directives(job, SCHEDULERS[scheduler].sentinel)[-1] in (
        f"{option} something",
        "# --bank=PROJECT",
    )
    assert f"{SCHEDULERS[scheduler].sentinel} {option} something\n" in render.script(job)


def test_flux_reads_directives_as_a_shell_reads_words() -> None:
    for line in directives(own_job("flux", ALL), "#flux:"):
        assert len(shlex.split(line, comments=True)) == 1


def test_nodes_and_walltime_are_those_that_are_asked_for() -> None:
    asked = {
        "pbs": ["-l select=2:ncpus=8:mpiprocs=8", "-l walltime=01:30:00"],
        "torque": ["-l nodes=2:ppn=8", "-l walltime=01:30:00"],
        "cobalt": ["-n 2", "-t 90"],
        "slurm": ["--nodes=2", "--ntasks-per-node=8", "--time=01:30:00"],
        "lsf": ["-n 16", '-R "span[ptile=8]"', "-W 01:30"],
        "flux": ["--nodes=2", "--time-limit=90m"],
    }
    for scheduler, lines in asked.items():
        found = directives(own_job(scheduler, ALL), SCHEDULERS[scheduler].sentinel)
        assert set(lines) <= set(found), scheduler


@pytest.mark.parametrize(
    ("select", "line"),
    [
        ([], "-l select=2:ncpus=8:mpiprocs=8"),
        (["system=polaris"], "-l select=2:system=polaris:mpiprocs=8"),
        (["ncpus=8", "mpiprocs=4"], "-l select=2:ncpus=8:mpiprocs=4"),
    ],
)
def test_pbs_names_each_node_as_often_as_it_has_cores(select: list[str], line: str) -> None:
    """What else `select` takes is then for the machine's configuration to say."""
    assert line in directives(own_job("pbs", {"select": select}), "#PBS")


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({}, ["-l place=scatter:excl"]),
        ({"attributes": ["software=foo"]}, ["-l place=scatter:excl", "-l software=foo"]),
        ({"attributes": ["place=scatter"]}, ["-l place=scatter"]),
        ({"attributes": ["place=pack"]}, ["-l place=pack"]),
        ({"directives": ["-l place=vscatter"]}, ["-l place=vscatter"]),
    ],
)
def test_pbs_chunk_has_a_node_by_default(settings: dict[str, list[str]], lines: list[str]) -> None:
    found = directives(own_job("pbs", settings), "#PBS")
    assert [line for line in found if line.startswith(("-l place", "-l software"))] == lines


def test_a_job_is_never_cut_short_by_rounding() -> None:
    assert "-t 2" in directives(
        own_job("cobalt", {"walltime": "61.5s", "reserve": "1s"}), "#COBALT"
    )
    assert "-W 00:02" in directives(own_job("lsf", {"walltime": "61s", "reserve": "1s"}), "#BSUB")


def test_the_name_of_a_job_suits_every_scheduler() -> None:
    whole = own_job("torque")
    for name in ("3d-transposes-and-more", "a", "scaling.of-everything"):
        plan = whole.sweep.model_copy(update={"name": name})
        for job in sweep_job.divide(SweepJob(**(vars(whole) | {"sweep": plan})), None, False):
            assert re.fullmatch(NAME, job.title), job.title

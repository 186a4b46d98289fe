"""What schedulers say of jobs, as documented and as seen, and what is read from it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import OmbError
from omb_py.sweeps import scheduler
from omb_py.sweeps.scheduler import Said, Scheduler, said_of
from omb_py.sweeps.schedulers import SCHEDULERS
from tests.helpers.refusals import refuses

# OpenPBS 20 and later: attributes are indented by blanks, what is too long goes on after a tab.
PBS = """\
Job Id: 1.pbs-server
    Job_Name = scaling-1n
    job_state = F
    Output_Path = login-1:/home/me/a-long-folder-name/and-another-one-that-is-lon
\tg/scaling-1n.o1
    Resource_List.walltime = 00:30:00
    resources_used.walltime = 00:04:12
    substate = 92
    Variable_List = PBS_O_HOME=/home/me,ODD=a
\tjob_state = Q
    comment = Job run at Sun Nov 22 at 20:00 on (n1:ncpus=4) and finished
    Exit_status = 0

Job Id: 2.pbs-server
    job_state = F
    substate = 93
    Exit_status = 75
    Submit_arguments = mine.sh

Job Id: 3.pbs-server
    job_state = F
    resources_used.walltime = 00:30:05
    substate = 93
    Exit_status = -29

Job Id: 4.pbs-server
    job_state = F
    Resource_List.walltime = 00:30:00
    resources_used.walltime = 00:02:00
    substate = 91
    Exit_status = 271

Job Id: 5.pbs-server
    job_state = F
    Resource_List.walltime = 00:30:00
    resources_used.walltime = 00:30:21
    Exit_status = 271

Job Id: 6.pbs-server
    job_state = F
    Exit_status = 265

Job Id: 7.pbs-server
    job_state = F
    Exit_status = -3
    comment = job held, too many failed attempts to run

Job Id: 8.pbs-server
    job_state = R
    Resource_List.walltime = 00:30:00
    stime = Sun Nov 22 20:00:00 2026

Job Id: 9.pbs-server
    job_state = H
    Hold_Types = s

Job Id: 10.pbs-server
    job_state = F
    substate = 91
"""
TORQUE = """\
Job Id: 1.host
    Job_Name = STDIN
    job_state = C
    Output_Path = host:/opt/moab/STDIN.o1
    Variable_List = PBS_O_HOME=/home/user,PBS_O_LOGNAME=user,
\tPBS_O_PATH=/usr/local/sbin:/usr/local/bin
    exit_status = -1

Job Id: 2.host
    job_state = C
    Resource_List.walltime = 00:05:00
    resources_used.walltime = 00:05:30
    exit_status = 271

Job Id: 3.host
    job_state = C
    exit_status = -11
"""

# Torque's `qstat` of Slurm 22.05 tells no exit status.
TORQUE_OF_SLURM = """\
Job Id:\t1
\tJob_Name = a.sh
\tjob_state = C
\tctime = Sun Nov 22 20:19:54 2026
\tResource_List.walltime = 00:01:00

Job Id:\t2
\tjob_state = R
"""

COBALT = """\
    JobID          : 104927
    State          : running
    TimeRemaining  : 00:29:30

    JobID          : 104928
    State          : dep_hold
    TimeRemaining  : N/A
"""

# Slurm 22.05
SLURM = """\
1|FAILED|NonZeroExitCode
2|COMPLETED|None
3|TIMEOUT|TimeLimit
4|CANCELLED|None
5|NODE_FAIL|NodeDown
7|RUNNING|None
8|PENDING|Resources
9|COMPLETING|None
"""

LSF = """\
1|DONE|-|-
2|EXIT|75|-
3|EXIT|140|TERM_RUNLIMIT: job killed after reaching LSF run time limit
4|EXIT|130|TERM_OWNER: job killed by owner
5|PEND|-|-
6|SSUSP|-|-
"""

FLUX = """\
\u0192A1|COMPLETED|0|
\u0192A2|FAILED|75|
\u0192A3|TIMEOUT|142|timeout
\u0192A4|CANCELED|-128|cancel
\u0192A6|RUN||
fA7|DEPEND||
"""

RUN_AND_FINISHED = "comment Job run at Sun Nov 22 at 20:00 on (n1:ncpus=4) and finished"
RUN_LIMIT = "TERM_RUNLIMIT: job killed after reaching LSF run time limit"
TOLD: list[tuple[str, str, dict[str, Said], set[str]]] = [
    (
        "pbs",
        PBS,
        {
            "1.pbs-server": Said("F", f"Exit_status 0, {RUN_AND_FINISHED}"),
            "2.pbs-server": Said("F", "Exit_status 75"),
            "3.pbs-server": Said("F", "Exit_status -29"),
            "7.pbs-server": Said(
                "F", "Exit_status -3, comment job held, too many failed attempts to run"
            ),
            "8.pbs-server": Said("R"),
            "9": Said("H"),
            "10.pbs-server": Said("F"),
        },
        {"8.pbs-server", "9"},
    ),
    ("torque", TORQUE, {"1.host": Said("C", "exit_status -1")}, set()),
    ("torque", TORQUE_OF_SLURM, {"1": Said("C"), "2": Said("R")}, {"2"}),
    (
        "cobalt",
        COBALT,
        {"104927": Said("running"), "104928": Said("dep_hold")},
        {"104927", "104928"},
    ),
    (
        "slurm",
        SLURM,
        {
            "1": Said("FAILED", "NonZeroExitCode"),
            "2": Said("COMPLETED"),
            "3": Said("TIMEOUT", "TimeLimit"),
            "4": Said("CANCELLED"),
            "5": Said("NODE_FAIL", "NodeDown"),
            "7": Said("RUNNING"),
            "8": Said("PENDING", "Resources"),
            "9": Said("COMPLETING"),
        },
        {"7", "8", "9"},
    ),
    (
        "lsf",
        LSF,
        {
            "1": Said("DONE"),
            "2": Said("EXIT", "exit code 75"),
            "3": Said("EXIT", f"exit code 140, {RUN_LIMIT}"),
            "4": Said("EXIT", "exit code 130, TERM_OWNER: job killed by owner"),
            "5": Said("PEND"),
            "6": Said("SSUSP"),
        },
        {"5", "6"},
    ),
    (
        "flux",
        FLUX,
        {
            "\u0192A1": Said("COMPLETED", "return code 0"),
            "\u0192A2": Said("FAILED", "return code 75"),
            "\u0192A3": Said("TIMEOUT", "return code 142, timeout"),
            "\u0192A4": Said("CANCELED", "return code -128, cancel"),
            "fA6": Said("RUN"),
            "\u0192A7": Said("DEPEND"),
        },
        {"fA6", "\u0192A7"},
    ),
]
Answers = dict[str, tuple[str, str, int]]
told = pytest.mark.parametrize(("name", "text", "meant", "active"), TOLD)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What commands print on both streams, and their exit codes, by the command's name."""
    found: Answers = {}

    def ask(scheduler: Scheduler, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        out, err, code = found.get(words[0], ("", "", 0))
        return subprocess.CompletedProcess(list(words), code, out, err)

    monkeypatch.setattr(scheduler, "ask", ask)
    return found


@told
def test_an_answer_about_many_jobs_is_read(
    answers: Answers, name: str, text: str, meant: dict[str, Said], active: set[str]
) -> None:
    row = SCHEDULERS[name]
    answers[row.status[0]] = (text, "", 0)
    found = said_of(row, list(meant))
    assert found == meant
    assert {number for number, said in found.items() if row.is_active(said)} == active


@told
def test_jobs_that_it_does_not_know_are_left_out(
    answers: Answers, name: str, text: str, meant: dict[str, Said], active: set[str]
) -> None:
    row = SCHEDULERS[name]
    answers[row.status[0]] = (text, f"{row.unknown[0].title()} 99", 1)
    assert said_of(row, [*meant, "99"]) == meant


@told
def test_an_answer_with_an_error_of_another_kind_is_none(
    answers: Answers, name: str, text: str, meant: dict[str, Said], active: set[str]
) -> None:
    row = SCHEDULERS[name]
    answers[row.status[0]] = (text, "cannot connect to server", 1)
    with refuses(OmbError, "jobs 99 cannot connect to server"):
        said_of(row, [*meant, "99"])


@given(
    st.sampled_from(sorted(SCHEDULERS)),
    st.text() | st.lists(st.sampled_from(["|", "\n", "Job Id: 1", "    a = ", "1", "-", ":"])),
)
def test_any_answer_is_read_or_ignored(name: str, text: str | list[str]) -> None:
    for said in SCHEDULERS[name].read("".join(text)).values():
        assert said.word

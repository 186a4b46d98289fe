"""What schedulers say of jobs, as documented and as seen, and what is read from it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import OmbError
from omb_py.sweeps import jobs
from omb_py.sweeps.answers import duration, local_time
from omb_py.sweeps.jobs import Report, reports
from omb_py.sweeps.scheduler import (
    CANCELLED,
    ENDED,
    FAILED,
    HELD,
    KILLED,
    RUNNING,
    WAITING,
    WALLTIME,
    Scheduler,
)
from omb_py.sweeps.schedulers import SCHEDULERS

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
STARTED = local_time("Sun Nov 22 20:00:00 2026")
assert STARTED is not None

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

# Slurm 22.05; the last three are `sacct`'s.
SLURM = """\
1|FAILED|19200|29:54|NonZeroExitCode|mine|/home/me/slurm-1.out|
2|COMPLETED|0|30:00|None|mine|/home/me/%x.o%j|
3|TIMEOUT|0|0:00|TimeLimit|mine|/home/me/slurm-3.out|
4|CANCELLED|15|28:10|None|mine|/home/me/slurm-4.out|
5|NODE_FAIL|1|10:00|NodeDown|mine|/home/me/slurm-5.out|
6|FAILED|9|10:00|JobLaunchFailure|mine|/home/me/slurm-6.out|
7|RUNNING|0|1-00:00:30|None|mine|/home/me/odd|name.o7|
8|PENDING|0|30:00|Resources|mine|/home/me/b.sh.o%A|
9|OUT_OF_MEMORY|0:125|10:00|OutOfMemory|mine|N/A|
"""
SACCT = "11|COMPLETED|0:0\n12|CANCELLED by 1000|0:15\n13|FAILED|75:0\n"

LSF = """\
1|DONE|-|-|mine.o1
2|EXIT|75|-|mine.o2
3|EXIT|140|TERM_RUNLIMIT: job killed after reaching LSF run time limit|mine.o3
4|EXIT|130|TERM_OWNER: job killed by owner|mine.o4
5|PEND|-|-|mine.o%J
6|SSUSP|-|-|-
"""

FLUX = """\
\u0192A1|COMPLETED|0|0.0|
\u0192A2|FAILED|75|0.0|
\u0192A3|TIMEOUT|142|0.0|timeout
\u0192A4|CANCELED|-128||cancel
\u0192A5|FAILED|-9|0.0|
\u0192A6|RUN||1770.25|
fA7|DEPEND|||
"""

NOW = 1_800_000_000.0
HOME = "/home/me"
TOLD: list[tuple[str, str, dict[str, Report]]] = [
    (
        "pbs",
        PBS,
        {
            "1.pbs-server": Report(
                ENDED,
                0,
                output=f"login-1:{HOME}/a-long-folder-name/and-another-one-that-is-long/scaling-1n.o1",
            ),
            "2.pbs-server": Report(FAILED, 75),
            "3.pbs-server": Report(KILLED, fault=WALLTIME),
            "4.pbs-server": Report(CANCELLED),
            "5.pbs-server": Report(KILLED, fault=WALLTIME),
            "6.pbs-server": Report(KILLED, fault="signal 9"),
            "7.pbs-server": Report(KILLED, fault="the scheduler's exit status -3"),
            "8.pbs-server": Report(RUNNING, until=STARTED + 1800),
            "9": Report(HELD),
            "10.pbs-server": Report(CANCELLED),
        },
    ),
    (
        "torque",
        TORQUE,
        {
            "1.host": Report(
                KILLED, fault="the scheduler's exit status -1", output="host:/opt/moab/STDIN.o1"
            ),
            "2.host": Report(KILLED, fault=WALLTIME),
            "3.host": Report(KILLED, fault=WALLTIME),
        },
    ),
    ("torque", TORQUE_OF_SLURM, {"1": Report(ENDED), "2": Report(RUNNING)}),
    ("cobalt", COBALT, {"104927": Report(RUNNING, until=NOW + 1770), "104928": Report(HELD)}),
    (
        "slurm",
        SLURM,
        {
            "1": Report(FAILED, 75, output=f"{HOME}/slurm-1.out"),
            "2": Report(ENDED, 0, output=f"{HOME}/mine.o%j"),
            "3": Report(KILLED, 0, WALLTIME, output=f"{HOME}/slurm-3.out"),
            "4": Report(CANCELLED, output=f"{HOME}/slurm-4.out"),
            "5": Report(KILLED, fault="NODE_FAIL", output=f"{HOME}/slurm-5.out"),
            "6": Report(KILLED, fault="signal 9", output=f"{HOME}/slurm-6.out"),
            "7": Report(RUNNING, until=NOW + 86430, output=f"{HOME}/odd|name.o7"),
            "8": Report(WAITING, output=f"{HOME}/b.sh.o%A"),
            "9": Report(KILLED, fault="OUT_OF_MEMORY"),
        },
    ),
    (
        "lsf",
        LSF,
        {
            "1": Report(ENDED, None, output="mine.o1"),
            "2": Report(FAILED, 75, output="mine.o2"),
            "3": Report(KILLED, 140, WALLTIME, output="mine.o3"),
            "4": Report(CANCELLED, 130, output="mine.o4"),
            "5": Report(WAITING, output="mine.o%J"),
            "6": Report(HELD),
        },
    ),
    (
        "flux",
        FLUX,
        {
            "\u0192A1": Report(ENDED, 0),
            "\u0192A2": Report(FAILED, 75),
            "\u0192A3": Report(KILLED, 142, WALLTIME),
            "\u0192A4": Report(CANCELLED),
            "\u0192A5": Report(KILLED, fault="signal 9"),
            "fA6": Report(RUNNING, until=NOW + 1770.25),
            "\u0192A7": Report(HELD),
        },
    ),
]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, str, int]]:
    """What commands print on both streams, and their exit codes, by the command's name."""
    found: dict[str, tuple[str, str, int]] = {}

    def ask(scheduler: Scheduler, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        out, err, code = found.get(words[0], ("", "", 0))
        return subprocess.CompletedProcess(list(words), code, out, err)

    monkeypatch.setattr(jobs, "ask", ask)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return found


Answers = dict[str, tuple[str, str, int]]


@pytest.mark.parametrize(("name", "text", "meant"), TOLD)
def test_an_answer_about_many_jobs_is_read(
    answers: Answers, name: str, text: str, meant: dict[str, Report]
) -> None:
    row = SCHEDULERS[name]
    answers[row.status[0]] = (text, "", 0)
    assert reports(row, list(meant)) == meant


@pytest.mark.parametrize(("name", "text", "meant"), TOLD)
def test_jobs_that_it_does_not_know_are_left_out(
    answers: Answers, name: str, text: str, meant: dict[str, Report]
) -> None:
    row = SCHEDULERS[name]
    answers[row.status[0]] = (text, f"{row.unknown[0].title()} 99", 1)
    assert reports(row, [*meant, "99"]) == meant


@pytest.mark.parametrize(("name", "text", "meant"), TOLD)
def test_an_answer_with_an_error_of_another_kind_is_none(
    answers: Answers, name: str, text: str, meant: dict[str, Report]
) -> None:
    row = SCHEDULERS[name]
    answers[row.status[0]] = (text, "cannot connect to server", 1)
    with pytest.raises(OmbError, match=r"does not tell about jobs .*: cannot connect to server"):
        reports(row, [*meant, "99"])


def test_what_slurm_has_forgotten_is_looked_up_in_its_accounts(answers: Answers) -> None:
    row = SCHEDULERS["slurm"]
    answers["squeue"] = ("", "slurm_load_jobs error: Invalid job id specified", 1)
    answers["sacct"] = (SACCT, "", 0)
    assert reports(row, ["11", "12", "13", "14"]) == {
        "11": Report(ENDED, 0),
        "12": Report(CANCELLED),
        "13": Report(FAILED, 75),
    }
    answers["sacct"] = ("", "Slurm accounting storage is disabled", 1)
    assert reports(row, ["11"]) == {}


def test_many_jobs_are_asked_about_in_few_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def ask(scheduler: Scheduler, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        asked.append(list(words))
        return subprocess.CompletedProcess(list(words), 0, "", "")

    monkeypatch.setattr(jobs, "ask", ask)
    numbers = [str(number) for number in range(250)]
    reports(SCHEDULERS["pbs"], numbers)
    assert [words[:3] for words in asked] == [["qstat", "-x", "-f"]] * 3
    assert [number for words in asked for number in words[3:]] == numbers
    asked.clear()
    reports(replace(SCHEDULERS["slurm"], history=()), numbers)
    assert [len(words[-1].split(",")) for words in asked] == [100, 100, 50]


@given(
    st.sampled_from(sorted(SCHEDULERS)),
    st.text() | st.lists(st.sampled_from(["|", "\n", "Job Id: 1", "    a = ", "1", "-", ":"])),
)
def test_any_answer_is_read_or_ignored(name: str, text: str | list[str]) -> None:
    row = SCHEDULERS[name]
    for facts in row.layout("".join(text)).values():
        assert isinstance(jobs.report_of(row, facts, NOW), Report)


WORDS = st.sampled_from(
    ["state", "exit", "left", "start", "limit", "used", "reason", "output", "substate"]
)
VALUES = st.text(min_size=1).filter(str.strip) | st.from_regex(
    r"[-+]?[0-9:.-]{1,14}", fullmatch=True
)


@given(st.sampled_from(sorted(SCHEDULERS)), st.dictionaries(WORDS, VALUES))
def test_any_facts_are_a_report(name: str, facts: dict[str, str]) -> None:
    assert isinstance(jobs.report_of(SCHEDULERS[name], facts, NOW), Report)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30:00", 1800),
        ("00:30:00", 1800),
        ("1-02:03:04", 93784),
        ("8760:00:00", 31536000),
        ("12.5", 12.5),
        ("INVALID", None),
        ("UNLIMITED", None),
        ("", None),
        ("-5", None),
    ],
)
def test_durations_as_schedulers_write_them(text: str, seconds: float | None) -> None:
    assert duration(text) == seconds

"""How a job ended: the scheduler's word, the record and the job's files, each and together."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.sweeps.jobs import Report
from omb_py.sweeps.record import JobRecord
from omb_py.sweeps.scheduler import (
    ACTIVE,
    CANCELLED,
    ENDED,
    FAILED,
    HELD,
    KILLED,
    RUNNING,
    WAITING,
    WALLTIME,
)
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.status import (
    FINISHED,
    FORGOTTEN,
    SIGNALLED,
    STOPPED,
    UNKNOWN,
    End,
    Evidence,
    end_of,
)

COBALTLOG = "Sun Nov 22 20:00:00 2026 +0000 (UTC) Info: "
NORMALLY = "task completed normally with an exit code of"
TIME_OVER = End(KILLED, None, "at its walltime")
SLURMD = "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-22T20:00:00"


def record(**values: object) -> JobRecord:
    """A job that began, unless told otherwise."""
    return JobRecord(**{"script": "mine", "number": "1", "began": 5.0} | values)  # type: ignore[arg-type]


def end(
    known: JobRecord, report: Report | None = None, scheduler: str = "slurm", **values: object
) -> End:
    """What became of a job."""
    return end_of(Evidence(SCHEDULERS[scheduler], known, report, **values))  # type: ignore[arg-type]


ENDED_75 = record(ended=9.0, exit_status=75)
ENDED_143 = record(ended=9.0, exit_status=143)
SIGNAL = record(ended=9.0, exit_status=75, signalled=True)


@pytest.mark.parametrize("state", [WAITING, HELD, RUNNING])
def test_what_is_under_way_is_the_scheduler_s_word(state: str) -> None:
    assert end(record(began=None), Report(state)) == End(state)
    again = "(its script has ended)" if state == RUNNING else "(to start again)"
    assert end(ENDED_75, Report(state)) == End(state, None, again)


@pytest.mark.parametrize(
    ("known", "report", "expected"),
    [
        # both agree
        (record(ended=9.0, exit_status=0), Report(ENDED, 0), End(FINISHED, 0)),
        (ENDED_75, Report(FAILED, 75), End(STOPPED, 75)),
        (record(ended=9.0, exit_status=3), Report(FAILED, 3), End(FAILED, 3)),
        # the record has no end: node failures, SIGKILL
        (record(), Report(KILLED, fault=WALLTIME), End(KILLED, None, "at its walltime")),
        (record(), Report(KILLED, fault="NODE_FAIL"), End(KILLED, None, "(NODE_FAIL)")),
        (record(), Report(KILLED, fault="signal 9"), End(KILLED, None, "(signal 9)")),
        (record(), Report(CANCELLED), End(CANCELLED)),
        (record(), Report(FAILED, 3), End(FAILED, 3)),
        # Slurm gives exit status 0 to jobs that were cancelled in the queue, or killed
        (record(began=None, cancelled=True), Report(CANCELLED, 0), End(CANCELLED)),
        (record(), Report(KILLED, 0, WALLTIME), End(KILLED, None, "at its walltime")),
        (record(), Report(KILLED, 0, "NODE_FAIL"), End(KILLED, None, "(NODE_FAIL)")),
        (record(), None, End(KILLED)),
        # Torque's commands of Slurm say that it ended, not how
        (record(), Report(ENDED), End(KILLED)),
        (ENDED_75, Report(ENDED), End(STOPPED, 75)),
        # the scheduler has forgotten it
        (record(ended=9.0, exit_status=0), None, End(FINISHED, 0)),
        (ENDED_75, None, End(STOPPED, 75)),
        (record(ended=9.0, exit_status=1), None, End(FAILED, 1)),
        # a signal that came at the walltime or by a cancellation
        (ENDED_75, Report(KILLED, fault=WALLTIME), End(STOPPED, 75, "at its walltime")),
        (ENDED_143, Report(KILLED, fault=WALLTIME), End(KILLED, 143, "at its walltime")),
        (ENDED_75, Report(CANCELLED), End(CANCELLED, 75)),
        (record(cancelled=True), None, End(CANCELLED)),
        (record(began=None, cancelled=True), None, End(CANCELLED)),
        (record(ended=9.0, exit_status=75, cancelled=True), None, End(CANCELLED, 75)),
        (record(ended=9.0, exit_status=0, cancelled=True), None, End(FINISHED, 0)),
        # by a signal before its time was over: cancelled only where somebody says so
        (SIGNAL, None, End(SIGNALLED, 75)),
        (SIGNAL, Report(FAILED, 75), End(SIGNALLED, 75)),
        (SIGNAL, Report(KILLED, fault="PREEMPTED"), End(SIGNALLED, 75, "(PREEMPTED)")),
        (SIGNAL, Report(KILLED, fault=WALLTIME), End(STOPPED, 75, "at its walltime")),
        (SIGNAL, Report(CANCELLED), End(CANCELLED, 75)),
        (record(ended=9.0, exit_status=0, signalled=True), None, End(FINISHED, 0)),
        (record(ended=9.0, exit_status=143, signalled=True), None, End(SIGNALLED, 143)),
        # nothing but a number
        (JobRecord("mine", "1"), None, End(FORGOTTEN)),
        (JobRecord("mine", "1"), Report(ENDED, 0), End(FINISHED, 0)),
        (record(began=None, submitted=1.0), None, End(FORGOTTEN)),
        (record(began=None), Report(ENDED), End(ENDED, None, "before its script began")),
        (record(), Report("odd"), End("odd")),
    ],
)
def test_the_scheduler_and_the_record_decide_together(
    known: JobRecord, report: Report | None, expected: End
) -> None:
    assert end(known, report) == expected


@pytest.mark.parametrize("known", [record(), record(began=None), record(cancelled=True)])
def test_without_an_answer_of_the_scheduler_only_what_has_ended_is_known(known: JobRecord) -> None:
    assert end(known, answered=False) == End(UNKNOWN)
    assert end(ENDED_75, answered=False) == End(STOPPED, 75)


@pytest.mark.parametrize(
    ("scheduler", "log", "expected"),
    [
        ("slurm", f"{SLURMD} DUE TO TIME LIMIT ***", TIME_OVER),
        ("slurm", f"{SLURMD} DUE TO NODE FAILURE ***", End(KILLED)),
        ("slurm", f"{SLURMD} DUE TO JOB REQUEUE ***\nrows\n{SLURMD} ***", End(CANCELLED)),
        ("slurm", f"{SLURMD} ***", End(CANCELLED)),
        ("slurm", SLURMD.replace("JOB 1", "STEP 1.0"), End(KILLED)),
        ("pbs", "=>> PBS: job killed: walltime 152 exceeded limit 120", TIME_OVER),
        ("cobalt", f"{COBALTLOG}maximum execution time exceeded; initiating job", TIME_OVER),
        ("cobalt", f"{COBALTLOG}user delete requested with signal SIGTERM", End(CANCELLED)),
        ("cobalt", f"{COBALTLOG}{NORMALLY} 0; initiating job cleanup", End(FINISHED, 0)),
        ("cobalt", f"{COBALTLOG}{NORMALLY} 126; initiating job cleanup", End(FAILED, 126)),
        ("lsf", "TERM_RUNLIMIT: job killed after reaching LSF run time limit.", TIME_OVER),
        ("lsf", "Exited with exit code 75.", End(STOPPED, 75)),
        ("flux", "1.5s: job.exception type=timeout severity=0 expired", TIME_OVER),
    ],
)
def test_where_the_scheduler_has_forgotten_a_job_its_files_tell(
    scheduler: str, log: str, expected: End
) -> None:
    assert end(record(), None, scheduler, log=f"rows\n{log}\n") == expected


def test_a_job_that_vanished_at_the_end_of_its_time_was_probably_killed_by_it() -> None:
    now = time.time()
    over = record(until=now - 1000)
    assert end(over, seen=now - 1010) == End(KILLED, None, "(probably at its walltime)")
    assert end(over, seen=now - 2000) == End(KILLED)
    assert end(over) == End(KILLED)
    assert end(record(until=now + 50), seen=now) == End(KILLED)


def test_a_job_that_submitted_the_next_one_has_stopped_with_more_to_do() -> None:
    assert end(record(ended=9.0, exit_status=0), follower="2") == End(STOPPED, 0, "(2 goes on)")
    assert end(ENDED_75, Report(FAILED, 75), follower="2") == End(STOPPED, 75, "(2 goes on)")


TIMES = st.none() | st.floats(0, 2e9)
RECORDS = st.builds(
    JobRecord,
    script=st.just("mine"),
    number=st.just("1"),
    began=TIMES,
    until=TIMES,
    ended=TIMES,
    exit_status=st.none() | st.sampled_from([0, 1, 75, 143]),
    signalled=st.booleans(),
    cancelled=st.booleans(),
)
REPORTS = st.none() | st.builds(
    Report,
    state=st.sampled_from([*ACTIVE, ENDED, FAILED, CANCELLED, KILLED, "odd"]),
    exit_status=st.none() | st.sampled_from([0, 1, 75, 143]),
    fault=st.sampled_from(["", WALLTIME, "NODE_FAIL"]),
)


@given(RECORDS, REPORTS, st.booleans(), st.sampled_from(sorted(SCHEDULERS)), TIMES)
def test_every_job_has_an_end_and_no_active_one_is_over(
    known: JobRecord, report: Report | None, answered: bool, scheduler: str, seen: float | None
) -> None:
    found = end(known, report, scheduler, answered=answered, seen=seen)
    assert found.state in {
        *ACTIVE,
        *(
            ENDED,
            FAILED,
            CANCELLED,
            KILLED,
            FINISHED,
            STOPPED,
            SIGNALLED,
            FORGOTTEN,
            UNKNOWN,
            "odd",
        ),
    }
    assert (found.state in ACTIVE) == (report is not None and report.state in ACTIVE)
    assert (found.state == FINISHED) <= (found.exit_status == 0)

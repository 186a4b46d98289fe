"""What is said of a failed point has the word that matters, whoever said it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.sweeps.folder import FAILED, STOPPED, Attempt, Folder, PointState
from omb_py.sweeps.point_launch import share_mode
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.reasons import LONGEST, last_words, reasons
from tests.helpers.refusals import missing

RULE = "-" * 74
NO_SLOTS = f"""\
{RULE}
There are not enough slots available in the system to satisfy the 4
slots that were requested by the application:

  .venv/bin/python

Either request fewer procs for your application, or make more slots
available for use.
{RULE}
"""
NO_PROGRAM = f"""\
{RULE}
prterun was unable to launch the specified application as it could not
access an executable:

   Executable: /nowhere/x
   Node: n1

while attempting to start process rank 0.
{RULE}
"""
KILLED = f"""\
{RULE}
prterun noticed that process rank 0 with PID 21870 on node n1 exited on
signal 9 (Killed).
{RULE}
"""
FIRST_TO_FAIL = f"""\
{RULE}
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-n1-21900@1,0]
   Exit code:    3
{RULE}
"""
NO_MEMORY = f"""\
{RULE}
A system call failed during shared memory initialization that should
not have.

  Local host:  n1
  Error:       No space left on device (errno 28)
{RULE}
"""
HYDRA = """\
[proxy:0@n1] HYDU_create_process (lib/utils/launch.c:73): execvp error on file x (No such file)
[mpiexec@n1] control_cb (mpiexec/pmiserv_cb.c:280): assert (!closed) failed
"""
HYDRA_BOX = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 4711 RUNNING AT n1
=   EXIT CODE: 9
===================================================================================
"""
STACK = """\
Abort(1) on node 1 (rank 1 in comm 0): Fatal error in internal_Init: Other MPI error, error stack:
internal_Init(70)................: MPI_Init(argc=(nil), argv=(nil)) failed
MPIDI_OFI_mpi_init_hook(1593)....: OFI fi_getinfo() failed (ofi_init.c:1593:No data available)
"""
SLURM = """\
srun: error: Unable to create step for job 12: More processors requested than permitted
srun: error: n1: task 0: Exited with exit code 1
"""
PALS = """\
mpiexec: launch failed on x3006c0s13b1n0: Couldn't change directory to /home/me/sweeps
x3006c0s13b1n0: rank 0 exited with code 1
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
ImportError: libmpi.so.40: cannot open shared object file: No such file or directory
"""
SIGNAL = """\
[n1:21076] *** Process received signal ***
[n1:21076] Signal: Segmentation fault (11)
[n1:21076] Signal code: Address not mapped (1)
"""
SSH = f"""\
ssh: Could not resolve hostname n9: Name or service not known
{RULE}
A daemon failed to report back after being spawned.
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            NO_SLOTS,
            "There are not enough slots available in the system to satisfy the 4 slots that were "
            "requested by the application: .venv/bin/python",
        ),
        (
            NO_PROGRAM,
            "prterun was unable to launch the specified application as it could not access an "
            "executable: Executable: /nowhere/x Node: n1",
        ),
        (
            KILLED,
            "prterun noticed that process rank 0 with PID 21870 on node n1 exited on signal 9 "
            "(Killed).",
        ),
        (
            FIRST_TO_FAIL,
            "prterun detected that one or more processes exited with non-zero status, thus causing "
            "the job to be terminated. The first process to do so was: Process name: "
            "[prterun-n1-21900@1,0] Exit code: 3",
        ),
        (
            NO_MEMORY,
            "A system call failed during shared memory initialization that should not have. "
            "Local host: n1 Error: No space left on device (errno 28)",
        ),
        (HYDRA, HYDRA.splitlines()[0]),
        (
            HYDRA_BOX,
            "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES PID 4711 RUNNING AT n1 "
            "EXIT CODE: 9",
        ),
        (
            STACK,
            "Abort(1) on node 1 (rank 1 in comm 0): Fatal error in internal_Init: Other MPI error, "
            "error stack: internal_Init(70) : MPI_Init(argc=(nil), argv=(nil)) failed "
            "MPIDI_OFI_mpi_init_hook(1593) : OFI fi_getinfo() failed (ofi_init.c:1593:No data "
            "available)",
        ),
        (SLURM, SLURM.splitlines()[0]),
        (PALS, PALS.splitlines()[0]),
        (TRACEBACK, TRACEBACK.splitlines()[-1]),
        (SSH, SSH.splitlines()[0]),
        (SIGNAL, SIGNAL.splitlines()[1]),
        (f"n1: Warning: nothing to fear\n{KILLED}", " ".join(KILLED.splitlines()[1:3])),
        pytest.param(
            "no route to host\n" + "goodbye\n" * 20_000, "no route to host", id="128 ranks"
        ),
    ],
)
def test_error_sentence_is_whole(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"$ mpiexec -n 4 omb-py\n{text}")
    assert last_words(tmp_path / "log") == (None, said)


def test_only_what_came_after_the_last_command_counts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"$ first\nomb-py: of an earlier attempt\n$ second\n----\0\nno route\nbox\n")
    assert last_words(log) == (None, "no route")
    with log.open("ab") as file:
        file.write(b"omb-py: note: cores are few\nomb-py: the reason\nlauncher's words\n\0\0")
    assert last_words(log) == ("the reason", "no route")
    log.write_bytes(b"")
    assert last_words(log) == (None, "")


@pytest.mark.parametrize(
    ("words", "end"),
    [("word " * 500, "word …"), (f"{'word ' * 80}end. {'word ' * 80}", "end. …")],
    ids=["after a word", "after a sentence"],
)
def test_long_sentence_is_cut(tmp_path: Path, words: str, end: str) -> None:
    (tmp_path / "log").write_text(f"$ mpiexec\nomb-py: {words}\n{'letters ' * 500}\n")
    ours, theirs = last_words(tmp_path / "log")
    assert ours is not None
    assert ours.endswith(end)
    assert theirs.endswith("letters …")
    assert max(len(ours), len(theirs)) <= LONGEST + 2


def attempt(started: str, said: str, outcome: str = FAILED) -> Attempt:
    """How an attempt ended."""
    return Attempt(started=started, seconds=1.0, exit_code=1, outcome=outcome, rows=0, said=said)


def test_reasons_are_alike_but_for_numbers_of_processes(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    points = [SweepPoint("bcast", "numpy", "buffer", nodes, 2, (8,)) for nodes in (1, 2, 3, 4)]
    words = "prterun noticed that rank 0 with PID {0} on node n1, [prterun-n1-{0}@1,0], exited."
    for number, point in enumerate(points[:3]):
        started = "2026-11-22T20:00:00Z" if number < 2 else "2026-11-22T21:00:00Z"
        ended = attempt(started, words.format(4711 + number))
        stopped = attempt("2026-11-22T22:00:00Z", "", STOPPED)
        folder.note(point, PointState(attempts=(ended, stopped)))
    folder.note(points[3], PointState(attempts=(attempt("2026-11-22T21:00:00Z", "no memory"),)))
    found = list(reasons(folder, points, "2026-11-22T20:30:00Z"))
    assert [("in an earlier job: " in text, " and 1 more" in text) for text in found] == [
        (True, True),
        (False, False),
        (False, False),
    ]
    assert not missing("in an earlier job: prterun PID 4711 on", found[0])
    assert len(list(reasons(folder, points))) == 2


def test_files_of_ranks_have_the_permissions_of_the_log(tmp_path: Path) -> None:
    log, csv, missing = (tmp_path / name for name in ("log", "csv", "missing"))
    for path, mode in ((log, 0o640), (csv, 0o600)):
        path.touch()
        path.chmod(mode)
    share_mode(log, [csv, missing, tmp_path])
    assert csv.stat().st_mode & 0o777 == 0o640
    assert tmp_path.stat().st_mode & 0o111


LINES = st.lists(st.sampled_from([*NO_SLOTS.splitlines(), *STACK.splitlines(), *TRACEBACK, " x"]))


@given(lines=LINES, tail=st.binary(max_size=40))
def test_any_log_is_one_line_of_limited_length(lines: list[str], tail: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.write_bytes("\n".join(lines).encode() + tail)
        for text in last_words(log):
            assert len((text or "").splitlines()) <= 1
            assert len(text or "") <= LONGEST + 2

"""Programs see and print under ``omb-py profile`` what they do under Python, and end alike."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import OMB_PY, Finished, run

MPI = "from mpi4py import MPI\ncomm, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.rank\ncomm.Barrier()\n"

SEES = '''"""A program."""
import gc, os, signal, sys, threading, warnings
for name, value in [*globals().items()]: print(name, value)
print(sys.modules["__main__"].__dict__ is globals(), sys.argv, sys.path, sys.orig_argv[1:])
print(sys.flags, sys.warnoptions, sys.stdin, sys.stdout, sys.excepthook, warnings.filters)
print(threading.enumerate(), signal.getsignal(signal.SIGINT), sys.getrecursionlimit())
'''

SCRIPTS = {
    "sees": SEES,
    "annotations": """
class A: x: int
y: "int" = 1
print(A.__annotations__, __annotations__)
def f(a: Unknown = None): pass
""",
    "folder": f"""
{MPI}import os
os.chdir("/")
if rank == 0: print(open(os.path.dirname(__file__) + "/beside.txt").read(), __file__)
""",
    "pickles": f"""
{MPI}import atexit, inspect, pickle
class A: pass
atexit.register(lambda: print(type(pickle.loads(pickle.dumps(A()))), A.__module__))
print(comm.bcast(A() if rank == 0 else None).__class__ is A, inspect.getsource(A))
""",
    "spawns": """
import multiprocessing, sys
def work(n): return n * n, sys.argv, __name__
if __name__ == "__main__":
    from mpi4py import MPI
    with multiprocessing.get_context("spawn").Pool(1) as pool: print(pool.map(work, [1, 2]))
print("read as", __name__)
""",
    "joins": f"""
{MPI}import threading
def go(): raise SystemExit(3)
threading.Thread(target=go).start()
for one in threading.enumerate():
    if one is not threading.current_thread(): one.join()
print("joined", rank)
""",
    "fails": f"""
{MPI}import atexit, sys
atexit.register(lambda: print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno))
def f(): raise KeyError("of all")
try: f()
except KeyError as error: raise ValueError("after") from error
""",
    "hooks": f"""
{MPI}import sys
sys.excepthook = lambda kind, error, trace: print("hook", kind.__name__)
raise KeyError("hidden")
""",
    "does not compile": "x = = 1\n",
    "exits": f"{MPI}import sys\nsys.exit(f'text {{rank}}')\n",
    "executes": "exec('def f(): raise OSError(1)'); exec('b = 2'); print(b); f()\n",
    "signals": f"""
{MPI}import os, signal
signal.signal(signal.SIGUSR1, lambda *_: print("handled", rank))
os.kill(os.getpid(), signal.SIGUSR1)
signal.raise_signal(signal.SIGUSR1)
""",
    "forks beside a thread in MPI": f"""
{MPI}import os, threading, warnings
warnings.simplefilter("ignore")
requests, going = [comm.Recv_init(bytearray(1), source=rank) for _ in range(500)], True
def poll():
    while going: MPI.Request.Testall(requests)
thread = threading.Thread(target=poll)
thread.start()
for _ in range(20):
    child = os.fork()
    if not child: os._exit(0)
    os.waitpid(child, 0)
going = False
thread.join()
""",
}

FAILING = ("annotations", "fails", "hooks", "does not compile", "exits", "executes")

MODULES = {
    "package/__init__.py": "import sys\nprint(__name__, sys.argv, sys.path[0])\n",
    "package/below/__init__.py": "value = 7\n",
    "package/below/module.py": f"from . import value\nfrom .. import below\nprint(value)\n{SEES}",
    "package/__main__.py": f"{SEES}from .below import value\nraise ValueError(value)\n",
    "folder/__main__.py": f"{SEES}import helper\n",
    "folder/helper.py": "print(__name__, __file__)\n",
    "script.py": SEES,
    "beside.txt": "beside",
}

COMMANDS = {
    "module": ("-m", "package.below.module", "a", "-m"),
    "package": ("-m", "package"),
    "folder": ("folder", "--option"),
    "archive": ("archive",),
    "other folder": ("./folder/../script.py", ""),
}

VARYING = re.compile(r"0x[0-9a-f]+|started \d+|^omb-py: note: .*\n", re.MULTILINE)
"""Addresses, numbers of threads, and what omb-py adds to stderr."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with programs."""
    for name, text in MODULES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.write(tmp_path / "folder" / "__main__.py", "__main__.py")
        archive.write(tmp_path / "folder" / "helper.py", "helper.py")
    return tmp_path


def same(folder: Path, *words: str) -> Finished:
    """What a program does under profile, after asserting that it does so without."""
    plain, done = (
        run([*start, *words], {"PYTHONDEVMODE": "1"}, folder, 120)
        for start in ([sys.executable], [OMB_PY, "profile", "--force"])
    )
    assert VARYING.sub("", done.out) == VARYING.sub("", plain.out)
    assert VARYING.sub("", done.err) == VARYING.sub("", plain.err)
    assert done.code == plain.code
    return done


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_sees_and_prints_the_same(mpi: str, program: Path, name: str) -> None:
    (program / "named.py").write_text(SCRIPTS[name])
    done = same(program, "named.py", "a", "-b")
    assert (done.code == 0) == (name not in FAILING)
    assert (program / "omb-profile" / "profile.txt").exists() == ("MPI" in SCRIPTS[name])


@pytest.mark.any_library
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_program_named_otherwise_sees_the_same(
    mpi: str, program: Path, words: tuple[str, ...]
) -> None:
    same(program, *words)


ENDS = {
    "exception of a rank": (
        2,
        "if rank == 1: raise OSError(1)\ntime.sleep(1); print('result')",
        True,
    ),
    "_exit": (2, "MPI.Finalize(); os._exit(0)", True),
    "_exit too early": (1, "os._exit(0)", False),
    "exec": (2, "MPI.Finalize(); os.execvp('echo', ['echo', 'result'])", True),
    "exec too early": (1, "os.execvp('echo', ['echo', 'result'])", False),
    "exec that fails": (2, "try: os.execv('/nothing', ['nothing'])\nexcept OSError: pass", True),
}
"""Ranks and the end of a program; whether a profile can be written."""


@pytest.mark.parametrize("end", ENDS)
def test_end_leaves_results_and_a_profile_or_a_note(mpi: str, tmp_path: Path, end: str) -> None:
    ranks, text, written = ENDS[end]
    (tmp_path / "program.py").write_text(f"import os, time\n{MPI}{text}\n")
    done = run([mpi, "-n", str(ranks), OMB_PY, "profile", "program.py"], {}, tmp_path, 120)
    assert ("result" in done.out) == ("result" in text)
    assert (tmp_path / "omb-profile" / "profile.txt").exists() == written
    early = " came before MPI_Finalize; the profile so far: omb-py profile show omb-profile"
    assert done.err.count(early) == (not written or "fails" in end)


def test_interrupt_of_a_rank_that_awaits_others_ends_the_job_with_a_line(
    mpi: str, tmp_path: Path
) -> None:
    text = """import os, signal, threading, time
def later(): time.sleep(1); os.kill(os.getpid(), signal.SIGINT)
if rank == 0: time.sleep(100)
threading.Thread(target=later, daemon=True).start()
"""
    (tmp_path / "program.py").write_text(f"{MPI}{text}")
    done = run([mpi, "-n", "2", OMB_PY, "profile", "program.py"], {}, tmp_path, 60)
    assert "rank 1 failed and ends the job; the profile so far" in done.err
    assert "Traceback" not in done.err
    assert done.code == 130

"""In each Python process that a test starts: notes when it started, was ready and ended.

A .pth file that `perf/test_times.py` writes imports this; it reads what is written here.
"""

import atexit
import json
import os
import sys
import time

PATH = os.environ["OMB_PY_TEST_TIMES"]


def note(stage: str) -> None:
    """Add a line: the process, the moment, and the CPU seconds that it has used."""
    record = (os.getpid(), stage, time.time(), time.process_time())
    line = (json.dumps(record) + "\n").encode()
    file = os.open(PATH, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)


def notice(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: at the first event after mpi4py.MPI was loaded, MPI_Init included, say so."""
    global ready
    module = None if ready else sys.modules.get("mpi4py.MPI")
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        ready = True
        note("ready")


ready = False
note("start")
sys.addaudithook(notice)
atexit.register(note, "end")

"""Ranks of omb-py that a real ``torchrun`` starts, by a Python that has torch."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from tests.conftest import Finished, output_of

ROOT = Path(__file__).parents[2]
SYSTEM = "/usr/bin/python3"
"""Debian's Python, which the package python3-torch is for."""

STREAMS_AS_THEY_ARE = ("--redirects", "9:0", "--tee", "9:0")
"""For a rank that is not there: by default torchrun 1.13 fails on Python 3.11."""

AT_ONCE = ("--monitor_interval", "0.5")
"""How often torchrun looks for a rank that has ended: every 5 s by default in 1.13."""


@cache
def python_with_torch() -> str | None:
    """A Python that has torch with gloo: this one, or the system's."""
    found = sys.executable if find_spec("torch") else shutil.which(SYSTEM)
    check = "import torch.distributed as d, numpy; d.ProcessGroupGloo"
    if found is None or subprocess.run([found, "-c", check], capture_output=True).returncode:
        return None
    return found


needs_torchrun = pytest.mark.skipif(
    python_with_torch() is None, reason="no torch with gloo is here"
)


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def command(
    *words: str, ranks: int = 2, rendezvous: Sequence[str] = (), module: str = "omb_py"
) -> list[str]:
    """The command line by which torchrun starts ``module`` with these words."""
    python = python_with_torch()
    assert python is not None
    where = rendezvous or ("--master_port", str(free_port()))
    start = [python, "-m", "torch.distributed.run", "--nproc_per_node", str(ranks), *where]
    return [*start, *AT_ONCE, *STREAMS_AS_THEY_ARE, "-m", module, *words]


def environment(folder: Path) -> dict[str, str]:
    """Variables for it: omb-py, and click, which alone the system's Python lacks, in ``folder``."""
    lent = folder / "lent"
    lent.mkdir(exist_ok=True)
    if not (lent / "click").exists():
        (lent / "click").symlink_to(Path(click.__file__).parent)
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(lent)])}


def run(
    *words: str,
    folder: Path,
    ranks: int = 2,
    rendezvous: Sequence[str] = (),
    timeout: float = 120,
    **variables: str,
) -> Finished:
    """Run omb-py on ranks that torchrun starts, in ``folder``, to the end."""
    start = time.monotonic()
    process = subprocess.Popen(
        command(*words, ranks=ranks, rendezvous=rendezvous),
        env=environment(folder) | variables,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = (one.decode(errors="replace") for one in output_of(process, timeout))
    return Finished(process.returncode, out, err, time.monotonic() - start)

"""``omb-py info --for-issue``: facts for a maintainer, without names of hosts or users."""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from omb_py.cli.inventory import info_lines
from omb_py.core import DISTRIBUTION, mpi
from omb_py.core.errors import NoLibraryError, OmbError
from omb_py.core.mpi import launcher
from omb_py.core.text.words import count
from omb_py.results.metadata import process_metadata
from omb_py.sweeps import launchers

SECONDS = 10.0
"""Seconds that a program may take to print its version."""

NAME = re.compile(r"[A-Za-z0-9._-]+")
IPV4 = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
SHORTEST = 3
"""Characters of a name that is replaced wherever it stands."""


def report(names: bool) -> str:
    """A report for an issue; with ``names`` those of hosts and users stay."""
    text = "\n".join(lines())
    return text if names else without_names(text)


def lines() -> Iterator[str]:
    """Yield the lines of the report, names of hosts and users included."""
    yield from info_lines()
    known = process_metadata("")
    yield f"install  {installation()}"
    yield f"packages {', '.join(packages())}"
    yield f"library  {library_version()}"
    yield f"launcher {launcher_version()}"
    yield f"system   {known['system']}, {known['processor']}, {memory()}"
    yield f"GPUs     {devices()}"
    yield f"job      {job()}"
    yield f"settings {known['environment'] or 'none'}"


def installation() -> str:
    """Return the origin of the installation: an index, a file or a checkout, and its commit."""
    folder = Path(__file__).parents[2]
    found = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    origin = json.loads(found) if found else {}
    if (folder / ".git").exists():
        commit = said(["git", "-C", str(folder), "describe", "--always", "--dirty"])
        return f"checkout {commit}"
    if "vcs_info" in origin:
        return f"commit {origin['vcs_info'].get('commit_id', '?')}"
    return "a local file" if origin else "a package index"


def packages() -> Iterator[str]:
    """Yield versions of the installed packages that omb-py needs or can use."""
    lines = (
        line for line in metadata.requires(DISTRIBUTION) or () if "extra == 'test'" not in line
    )
    wanted = {found[0].lower() for line in lines if (found := NAME.match(line))}
    wanted |= {"impi-rt", "cupy"}
    installed = {one.metadata["Name"].lower(): one.version for one in metadata.distributions()}
    for name in sorted(wanted & installed.keys() - {DISTRIBUTION}):
        yield f"{name} {installed[name]}"


def library_version() -> str:
    """Return the MPI library's version text."""
    try:
        mpi.load()
    except NoLibraryError:
        return "none"
    return mpi.version()


def launcher_version() -> str:
    """Return the launcher next to this Python, or on the PATH, and its version."""
    for program in ("mpiexec", "srun"):
        with suppress(OmbError):
            found = launchers.find(program, in_venv=program == "mpiexec")
            return f"{found}: {said([found, '--version'])}"
    return "none on the PATH"


def said(command: list[str]) -> str:
    """Return the first line with words in a program's output, or why there is none."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no answer ({type(error).__name__})"
    told = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    version = [line for line in told if re.search(r"\d+\.\d+", line)]
    return " ".join((version or told or [f"exit code {done.returncode}"])[0].split())


def memory() -> str:
    """Return the size of this host's memory in GiB."""
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def devices() -> str:
    """The NVIDIA GPUs that the driver shows, and its version."""
    if shutil.which("nvidia-smi") is None:
        return "no nvidia-smi"
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return said(query)


def job() -> str:
    """Return the size of this process's job, and its scheduler."""
    schedulers = {"SLURM_JOB_ID": "Slurm", "PBS_JOBID": "PBS", "LSB_JOBID": "LSF"}
    schedulers |= {"COBALT_JOBID": "Cobalt", "FLUX_JOB_ID": "Flux", "JOB_ID": "Grid Engine"}
    within = [name for variable, name in schedulers.items() if variable in os.environ]
    return f"{count(launcher.ranks(), 'rank')}, {within[0] if within else 'no scheduler'}"


def without_names(text: str) -> str:
    """A text whose host, user and home folder are placeholders, as are addresses.

    >>> without_names("listen on 10.0.3.17")
    'listen on ADDRESS'
    """
    host = socket.gethostname()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = ""
    places = [(str(Path.home()), "~")]
    places += [(name, "HOST") for name in (socket.getfqdn(), host, host.partition(".")[0])]
    places += [(user, "USER")]
    for name, place in places:
        if len(name) >= SHORTEST and name not in ("localhost", "root"):
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", place, text)
    return IPV4.sub("ADDRESS", text)

"""Launchers' ways to start ranks on nodes: one row of a table each."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from omb_py.core import mpi
from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps.files import write_atomically

# Slots for Open MPI's ranks in a job of PBS, Torque or Cobalt.
#
# There Open MPI takes a node's slots from the job's node file, one for each line that names it, and
# not from a host file: PRRTE of Open MPI 5 and later in every build (component ras/pbs), Open MPI 4
# where it was built with Torque's library (ras/tm). To leave that component out would give up the
# launch ids that plm/tm needs, the lines' numbers, so the node file gets more lines at its end.
# Open MPI 4 expects it to be named after the job.

NODE_FILES = {"PBS_JOBID": "PBS_NODEFILE", "COBALT_JOBID": "COBALT_NODEFILE"}
"""The variable of a job's node file, by that of its number."""

SLOTS_ELSEWHERE = "PBS_PPN"
"""Set if a node file names each node once and this is its slots (ras/pbs, "SMP mode")."""


def with_slots(slots: int, folder: Path) -> dict[str, str]:
    """Return the variables for node files of this job with ``slots`` slots for each node.

    The files are written into ``folder``. Files with enough slots have no variable. Raises
    `OmbError` when one cannot be written.
    """
    found: dict[str, str] = {}
    for job, variable in NODE_FILES.items():
        number, path = os.environ.get(job), os.environ.get(variable)
        if not number or not path or SLOTS_ELSEWHERE in os.environ:
            continue
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        there = Counter(lines)
        more = [name for name in there for _ in range(slots - there[name])]
        if more:
            ours = folder.resolve() / Path(number).name
            write_atomically(ours, "".join(f"{name}\n" for name in lines + more))
            found[variable] = str(ours)
    return found


AUTO = "auto"
BINDINGS = ("default", "none", "core", "numa", "depth")
"""Places of ranks: the launcher's choice, anywhere, one core each, one NUMA domain, or an equal
share of the node's cores."""


@dataclass(frozen=True)
class Placement:
    """A number of ranks, their places, and their resources.

    ``ranks`` is ``nodes`` times ``ranks_per_node``. ``environment`` has the ranks' variables beyond
    those of this process, ``inherited`` are the names of those that they need of this process.
    ``options`` are further words for the launcher.
    """

    nodes: int
    ranks_per_node: int
    cores: int = 1
    gpus: int = 0
    binding: str = "default"
    oversubscribe: bool = False
    host_file: str | None = None
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    inherited: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """Number of ranks of the job."""
        return self.nodes * self.ranks_per_node

    @property
    def depth(self) -> int:
        """Cores for each rank of a node."""
        return max(1, self.cores // self.ranks_per_node)

    @property
    def slots(self) -> int:
        """Ranks of a node that have a core of their own."""
        return min(self.ranks_per_node, self.cores)

    @property
    def oversubscribed(self) -> bool:
        """True if ranks have to share cores."""
        return self.ranks_per_node > self.cores


@dataclass(frozen=True)
class Programs:
    """Places of programs: a ``folder`` of an environment or a library, and a ``path`` (PATH)."""

    folder: Path | None = field(default_factory=lambda: Path(sys.executable).parent)
    path: str | None = None


@dataclass(frozen=True)
class Launcher:
    """A launcher: its program, its words for a placement, and its environment."""

    program: str
    words: Callable[[Placement], list[str]]
    environment: Callable[[Placement], dict[str, str]] = lambda place: {}
    host_line: Callable[[str, Placement], str] = lambda host, place: host
    in_job: Callable[[Placement, Path], dict[str, str]] = lambda place, folder: {}
    """Variables for a start in a scheduler's job; files that they name go into the folder."""
    in_venv: bool = False
    """True if a virtual environment may have it, next to the MPI library that belongs to it."""
    starts_mpi: bool = True
    """True if its ranks can use MPI."""
    outliving_ranks: tuple[str, ...] = ()
    """Words for a job that goes on when ranks fail; none if it ends. Open MPI's collectives of
    component han, for several nodes, report success though a rank has failed."""

    def command(
        self, place: Placement, installed: bool = True, where: Programs | None = None
    ) -> list[str]:
        """Return the words that a program and its arguments follow.

        Raises `OmbError` when the launcher is not there, unless it need not be ``installed``.
        """
        program = find(self.program, self.in_venv, where) if installed else self.program
        return [program, *self.words(place), *place.options]


def hydra(place: Placement) -> list[str]:
    """Return the words of MPICH and Intel MPI; ranks get the environment by themselves."""
    hosts = ["-f", place.host_file] if place.host_file else []
    return [*hosts, "-n", str(place.ranks), "-ppn", str(place.ranks_per_node)]


def mpich(place: Placement) -> list[str]:
    """Return `mpiexec.hydra`'s words, from the user's guide of MPICH."""
    bind = {
        "none": ["-bind-to", "none"],
        "core": ["-bind-to", "core"],
        "numa": ["-bind-to", "numa"],
        "depth": ["-bind-to", f"core:{place.depth}"],
    }
    return [*hydra(place), *bind.get(place.binding, [])]


def stepping_aside(place: Placement) -> dict[str, str]:
    """Return variables with which ranks of MPICH that share cores yield them while they wait."""
    return mpi.THROTTLE if place.oversubscribed else {}


def intel_pinning(place: Placement) -> dict[str, str]:
    """Return the variables that bind Intel MPI (its developer reference, "Process Pinning")."""
    return {
        "none": {"I_MPI_PIN": "0"},
        "core": {"I_MPI_PIN_DOMAIN": "core"},
        "numa": {"I_MPI_PIN_DOMAIN": "numa"},
        "depth": {"I_MPI_PIN_DOMAIN": str(place.depth)},
    }.get(place.binding, {})


def open_mpi(place: Placement) -> list[str]:
    """Return `prterun`'s words; remote ranks get only the variables that are named."""
    hosts = ["--hostfile", place.host_file] if place.host_file else []
    mapping = f"ppr:{place.ranks_per_node}:node"
    mapping += f":pe={place.depth}" if place.binding == "depth" else ""
    mapping += ":oversubscribe" if place.oversubscribe else ""
    bind = {"none": "none", "core": "core", "numa": "numa", "depth": "core"}.get(place.binding)
    own = ("OMPI_", "PRTE_", "PMIX_")
    elsewhere = place.inherited if place.nodes > 1 else ()
    names = dict.fromkeys((*place.environment, *elsewhere))
    named = [name for name in names if not name.startswith(own)]
    return [
        *hosts,
        *("-n", str(place.ranks), "--map-by", mapping),
        *(["--bind-to", bind] if bind else []),
        *(word for name in named for word in ("-x", name)),
    ]


def pals(place: Placement) -> list[str]:
    """Return the words of HPE Cray PALS' `mpiexec`, as ALCF documents it for Polaris and Aurora."""
    hosts = ["--hostfile", place.host_file] if place.host_file else []
    count = ["-n", str(place.ranks), "--ppn", str(place.ranks_per_node)]
    bind = {
        "none": ["--cpu-bind", "none"],
        "core": ["--cpu-bind", "core"],
        "numa": ["--cpu-bind", "numa"],
        "depth": ["--depth", str(place.depth), "--cpu-bind", "depth"],
    }
    return [*hosts, *count, *bind.get(place.binding, [])]


def srun(place: Placement) -> list[str]:
    """Return the options of ``srun`` for a placement."""
    bind = {
        "none": ["--cpu-bind=none"],
        "core": ["--cpu-bind=cores"],
        "numa": ["--cpu-bind=ldoms"],
        "depth": [f"--cpus-per-task={place.depth}", "--cpu-bind=cores"],
    }
    return [
        f"--nodes={place.nodes}",
        f"--ntasks={place.ranks}",
        f"--ntasks-per-node={place.ranks_per_node}",
        "--kill-on-bad-exit=1",
        *(["--overcommit"] if place.oversubscribe else []),
        *bind.get(place.binding, []),
    ]


def flux(place: Placement) -> list[str]:
    """Return the words of `flux run`, which shares out cores and GPUs by rank."""
    affinity = {"none": ["-o", "cpu-affinity=off"], "core": ["-o", "cpu-affinity=per-task"]}
    affinity["depth"] = affinity["core"]
    gpus = place.gpus // place.ranks_per_node
    return [
        "run",
        *("-N", str(place.nodes), "-n", str(place.ranks), "-c", str(place.depth)),
        *(["-g", str(gpus)] if gpus else []),
        *affinity.get(place.binding, []),
    ]


def torchrun(place: Placement) -> list[str]:
    """Return the words of PyTorch's launcher, for ranks without MPI; raises `OmbError` if
    impossible."""
    if place.nodes > 1:
        raise OmbError("torchrun starts only the ranks of its own node: choose nodes = 1")
    if place.binding not in ("default", "none"):
        raise OmbError('torchrun binds no ranks to cores: choose binding = "default"')
    return ["--standalone", f"--nproc-per-node={place.ranks_per_node}", "--no-python"]


LAUNCHERS = {
    "mpich": Launcher("mpiexec", mpich, stepping_aside, in_venv=True),
    "openmpi": Launcher(
        "mpiexec",
        open_mpi,
        # Open MPI 4 and 5 use cores as slots if a host file has none
        host_line=lambda host, place: f"{host} slots={place.slots}",
        in_job=lambda place, folder: with_slots(place.slots, folder),
        in_venv=True,
        outliving_ranks=("--with-ft", "ulfm", "--mca", "coll", "^han"),
    ),
    "intel": Launcher("mpiexec", hydra, intel_pinning, in_venv=True),
    "pals": Launcher("mpiexec", pals),
    "srun": Launcher("srun", srun, stepping_aside),
    "flux": Launcher("flux", flux),
    "torchrun": Launcher("torchrun", torchrun, in_venv=True, starts_mpi=False),
}
"""By the names that a machine's configuration uses."""

SAYS = {"Intel": "intel", "Open MPI": "openmpi", "OpenRTE": "openmpi", "prterun": "openmpi"}
SAYS |= {"PALS": "pals", "HYDRA": "mpich"}
"""Words in the output of `mpiexec --version`, and its owner; Intel's and MPICH's are both Hydra."""

TITLES = {"mpich": "MPICH", "intel": "Intel MPI", "openmpi": "Open MPI", "pals": "HPE Cray PALS"}
"""Names of the projects that provide an `mpiexec`."""


def find(program: str, in_venv: bool = False, where: Programs | None = None) -> str:
    """Return the path of a program; in the folder first, if a virtual environment may have it.

    By default that is the folder of this Python. Raises `OmbError` if it is not found.
    """
    where = where or Programs()
    beside = where.folder / program if where.folder and in_venv else None
    if beside is not None and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which(program, path=where.path)
    if found is None:
        places = f"neither {beside} nor one on the PATH" if beside else "not on the PATH"
        raise OmbError(
            f"there is no {program} on {platform.node()}, {places}: load the module that has it, "
            "or name another launcher in the machine's configuration"
        )
    return found


@cache
def owner(program: str) -> str | None:
    """Return the owner of an `mpiexec`, by `LAUNCHERS`' names; None if it is unknown.

    It runs once. Raises `OmbError` when it does not answer.
    """
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, timeout=30, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OmbError(f"{program} --version does not answer: {error}") from error
    text = done.stdout + done.stderr
    return next((name for word, name in SAYS.items() if word in text), None)


def detect(where: Programs | None = None) -> str:
    """Return the owner of the installed `mpiexec`.

    Raises `OmbError` if there is none or its owner is unknown.
    """
    program = find("mpiexec", True, where)
    name = owner(program)
    if name is None:
        raise OmbError(
            f"{program} does not say whose it is: set launcher in the machine's configuration to "
            f"one of {', '.join(LAUNCHERS)}"
        )
    return name


def select(name: str, machine: str, where: Programs | None = None) -> str:
    """Return the launcher of a machine's configuration, or the installed one for ``auto``.

    Raises `UsageError` if the `mpiexec` that would run is another library's, `OmbError` if there is
    none.
    """
    if name == AUTO:
        return detect(where)
    row = LAUNCHERS[name]
    program = find(row.program, row.in_venv, where)
    other = owner(program) if row.program == "mpiexec" else name
    if other in (None, name) or {name, other} == {"mpich", "intel"}:
        return name
    raise UsageError(
        f'machine {machine} says launcher = "{name}", and {program} is that of {TITLES[other]}: '
        f'set launcher = "{other}" or "auto", or load the module of {TITLES[name]}'
    )

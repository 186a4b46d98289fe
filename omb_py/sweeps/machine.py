"""What a machine is: how programs are started on it, how jobs are asked for, what a node has."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import Field, field_validator

from omb_py.sweeps.launchers import AUTO, BINDINGS, LAUNCHERS
from omb_py.sweeps.schedulers import SCHEDULERS
from omb_py.sweeps.toml import Strict, suggestion
from omb_py.sweeps.values import Duration, EnvironmentName, Line, Name, Word


class JobSettings(Strict):
    """What a job asks the scheduler for; what is left out is left to the site.

    ``queue`` is Slurm's partition too, ``account`` the project that pays. ``reserve`` are seconds
    of the walltime kept for ending in order. ``select`` are resources of PBS's chunks, as in
    ``system=polaris``, ``attributes`` further ones of the job, as in PBS's ``-l place=scatter`` or
    Cobalt's ``--attrs``, ``directives`` whole lines without the scheduler's prefix.
    """

    queue: Word | None = None
    account: Word | None = None
    walltime: Duration = 1800.0
    reserve: Duration = 60.0
    filesystems: tuple[Word, ...] = ()
    select: tuple[Word, ...] = ()
    attributes: tuple[Word, ...] = ()
    directives: tuple[Line, ...] = ()


class Machine(Strict):
    """A machine, as `configs/machines/` has them.

    ``nodes`` is the most that one job takes. ``devices`` are a node's GPUs in the order in which
    its ranks take them. ``preload`` is a library, such as mpitrace's, loaded into every rank.
    ``environment`` holds for the ranks of every point.
    """

    name: Name
    description: Line = ""
    scheduler: str = "none"
    launcher: str = AUTO
    launcher_options: tuple[Line, ...] = ()
    host_file: Line | None = None
    nodes: int = Field(1, ge=1)
    cores_per_node: int | None = Field(None, ge=1)
    gpus_per_node: int = Field(0, ge=0)
    devices: tuple[int, ...] = ()
    binding: Literal[BINDINGS] = "default"  # type: ignore[valid-type]
    oversubscribe: bool = False
    module_paths: tuple[Word, ...] = ()
    modules: tuple[Word, ...] = ()
    virtual_environment: Line | None = ".venv"
    preload: Word | None = None
    environment: dict[EnvironmentName, Line] = Field(default_factory=dict)
    job: JobSettings = JobSettings()

    @field_validator("scheduler")
    @classmethod
    def _scheduler(cls, value: str) -> str:
        return known(value, ["none", *SCHEDULERS])

    @field_validator("launcher")
    @classmethod
    def _launcher(cls, value: str) -> str:
        return known(value, [AUTO, *LAUNCHERS])

    @property
    def cores(self) -> int:
        """Cores of a node; where the configuration does not say, those of this one."""
        return self.cores_per_node or len(os.sched_getaffinity(0))


def known(value: str, names: list[str]) -> str:
    """The value if it is one of ``names``; raises `ValueError` with a suggestion otherwise."""
    if value not in names:
        raise ValueError(f"unknown {value!r}{suggestion(value, names)}")
    return value

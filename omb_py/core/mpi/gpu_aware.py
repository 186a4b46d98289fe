"""Support of this MPI library for memory on a device, asked before it gets such an address.

A library without that support reads a device's address as its own and crashes (or, worse, hangs),
so omb-py makes no trial call.
"""

from __future__ import annotations

import ctypes
import os

from mpi4py import MPI

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import MissingError, UnsupportedError

NUMBERS = {"cuda": 0, "level_zero": 1, "rocm": 2}
"""By kind of memory, MPICH's number for MPIX_GPU_query_support (mpi.h)."""

WORDS = {"cuda": ["cuda"], "level_zero": ["ze"], "rocm": ["hip", "rocm"]}
"""By kind of memory, MPICH's and Open MPI's word in the names of functions that tell."""

RUNTIMES = {"cuda": "CUDA", "level_zero": "Level Zero", "rocm": "ROCm (Open MPI: UCX with ROCm)"}
"""By kind of memory, what an MPI library has to be built with."""

SWITCHES = (
    ("CRAY MPICH", "MPICH_GPU_SUPPORT_ENABLED", ("cuda", "rocm", "level_zero")),
    ("MVAPICH2", "MV2_USE_CUDA", ("cuda",)),
    ("MVAPICH2", "MV2_USE_ROCM", ("rocm",)),
    ("MVAPICH-Plus", "MVP_USE_CUDA", ("cuda",)),
    ("Intel(R) MPI", "I_MPI_OFFLOAD", ("cuda", "level_zero")),
)
"""Libraries, by a part of what they say of themselves, that a variable makes aware of memory of
these kinds."""

REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan")
UNSAFE = {
    "Intel MPI": frozenset(
        "allgather_init gather_init scatter_init mprobe psend_init precv_init rput".split()
    ),
    "Open MPI": frozenset(
        [f"i{name}" for name in REDUCTIONS]
        + [f"{name}_init" for name in REDUCTIONS]
        + ["accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"]
        + ["raccumulate", "rget_accumulate"]
    ),
}
"""Functions that crash on a device's memory, or move wrong data, in a library that reports support.

Open MPI's processor adds there, in place. `docs/gpu.md` reports how each was found.
"""


@dataclass(frozen=True)
class Awareness:
    """The answer, and who gave it; ``unsafe`` are the functions that it does not hold for.

    ``runtime`` is what a library that says yes is built with.
    """

    aware: bool
    source: str
    unsafe: frozenset[str] = frozenset()
    runtime: str = RUNTIMES["cuda"]

    def check(self, functions: tuple[str, ...]) -> None:
        """Raise an `UnsupportedError` when one of these functions cannot take device memory."""
        if not self.aware:
            raise MissingError(
                f"this MPI library does not take memory on a device ({self.source}): use one built "
                f"with {self.runtime}, copy through the host with --staging, or insist with "
                "--gpu-aware yes"
            )
        crashing = next((name for name in functions if name in self.unsafe), None)
        if crashing is not None:
            raise UnsupportedError(
                f"{MPI.get_vendor()[0]} takes memory on a device, but MPI_{crashing.capitalize()} "
                "crashes there or moves wrong data: copy through the host with --staging, or "
                "insist with --gpu-aware yes"
            )


def awareness(wish: str, comm: MPI.Intracomm, kind: str) -> Awareness:
    """Return ``--gpu-aware``'s value, or for ``auto`` the answer of the library and ``comm``.

    ``kind`` is that of the memory (`Memory.kind`).
    """
    if wish != "auto":
        return Awareness(wish == "yes", f"--gpu-aware {wish}")
    aware, source = _ask(ctypes.CDLL(MPI.__file__), comm, kind)
    unsafe = UNSAFE.get(MPI.get_vendor()[0], frozenset())
    return Awareness(aware, source, unsafe, RUNTIMES.get(kind, kind))


def _ask(library: ctypes.CDLL, comm: MPI.Intracomm, kind: str) -> tuple[bool, str]:
    """Return the library's answer: by its functions, its variables, or its memory kinds."""
    said = []
    if kind in NUMBERS and hasattr(library, "MPIX_GPU_query_support"):
        answer, number = ctypes.c_int(0), ctypes.c_int(NUMBERS[kind])
        failed = library.MPIX_GPU_query_support(number, ctypes.byref(answer))
        if answer.value and not failed:
            return True, "MPIX_GPU_query_support says yes"
        said.append("MPIX_GPU_query_support says no")
    for function in (f"MPIX_Query_{word}_support" for word in WORDS.get(kind, ())):
        if hasattr(library, function):
            if getattr(library, function)():
                return True, f"{function} says yes"
            said.append(f"{function} says no")
    version = MPI.Get_library_version()
    for name, variable, kinds in SWITCHES:
        if name.lower() in version.lower() and kind in kinds:
            if os.environ.get(variable) != "1":
                said.append(f"{variable} is not 1")
            elif not said:
                return True, f"{variable}=1"
    known = _memory_kinds(comm)
    if any(one.partition(":")[0] == kind for one in known):
        return True, f"its memory kinds include {kind}"
    if not said and known:
        said.append(f"it has no function that tells, and of memory kinds only {', '.join(known)}")
    return False, " and ".join(said) or "it does not say that it does"


def _memory_kinds(comm: MPI.Intracomm) -> list[str]:
    """Return MPI 4.1's ``mpi_memory_alloc_kinds`` of a communicator; none after the end of MPI.

    With the standard's ABI this is the only source: it has no functions of the library's own.
    """
    if MPI.Is_finalized():
        return []
    info = comm.Get_info()
    kinds = info.Get("mpi_memory_alloc_kinds") or ""
    info.Free()
    return [kind for kind in kinds.split(",") if kind]

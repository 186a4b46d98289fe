"""Where the compiled loop comes from: a file of an earlier run, or Numba; and how it is loaded.

Rank 0 alone reads, compiles and writes, and broadcasts the code to all others: ranks cannot race,
and thousands of them open no file and need no Numba. Only llvmlite, which links the code into a
process, is loaded everywhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite
from llvmlite import binding as llvm

from omb_py.core.cache import cache_directory
from omb_py.core.errors import SharedError
from omb_py.core.text import files

if TYPE_CHECKING:
    from mpi4py import MPI

SYMBOLS = ("omb_py_run", "omb_py_compute", "omb_py_lap", "omb_py_reset")
SOURCES = ("compiled.py", "prototypes.py", "../../core/mpi/clock.py")
DIGEST_BYTES = 32
SECONDS_BETWEEN_LOOKS = 0.001

_LOADED: list[tuple[Any, dict[str, int]]] = []
"""The code is in this process once, as a module is."""


def target_machine() -> Any:
    """The plainest processor of this machine's kind: nodes of a job may differ."""
    llvm.initialize_native_target()
    return llvm.Target.from_default_triple().create_target_machine(opt=3, reloc="pic")


def load(code: bytes) -> tuple[Any, dict[str, int]]:
    """Link an object file into this process; its owner, to be kept alive, and its addresses."""
    llvm.initialize_native_asmprinter()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, {symbol: engine.get_function_address(symbol) for symbol in SYMBOLS}


def loaded(comm: MPI.Intracomm) -> dict[str, int]:
    """The addresses of the functions, linked into this process once; collective.

    Raises `SharedError` as `shared_code` does.
    """
    if not _LOADED:
        _LOADED.append(load(shared_code(comm)))
    return _LOADED[0][1]


def shared_code(comm: MPI.Intracomm) -> bytes:
    """The machine code, from rank 0; collective.

    Raises `SharedError` on all ranks when rank 0 has to compile it and cannot.
    """
    code, fault = b"", b""
    if comm.rank == 0:
        try:
            code = cached_code(cache_directory())
        except ImportError as error:
            fault = (
                "binding native needs Numba to compile its loop: install it with "
                f"pip install 'omb-py[native]' ({error})"
            ).encode()
    length = bytearray(len(code or fault).to_bytes(8, "little") + bytes([not fault]))
    _broadcast(comm, length)
    data = bytearray((code or fault).ljust(int.from_bytes(length[:8], "little"), b"\0"))
    _broadcast(comm, data)
    if not length[8]:
        raise SharedError(data.decode())
    return bytes(data)


def _broadcast(comm: MPI.Intracomm, data: bytearray) -> None:
    """Rank 0's data; those that wait sleep, and leave their cores to rank 0's compiler."""
    from mpi4py import MPI

    request = comm.Ibcast([data, len(data), MPI.BYTE], 0)
    while not request.Test():
        time.sleep(SECONDS_BETWEEN_LOOKS)


def cached_code(directory: Path) -> bytes:
    """The code that ``directory`` holds, or newly compiled code, which is left there if it can be.

    A file is used only if it is whole and nobody else can have written it.
    """
    path = directory / f"loop-{fingerprint()}.o"
    code = _read(path)
    if code is None:
        from omb_py.bindings.machine.compiled import machine_code

        llvm.initialize_native_asmprinter()
        code = machine_code(target_machine())
        with contextlib.suppress(OSError):  # a read-only home: compile again next time
            _write(path, code)
    return code


def fingerprint() -> str:
    """What the code depends on: its source, the compiler and the kind of processor."""
    digest = hashlib.sha256(f"{llvmlite.__version__} {platform.machine()}".encode())
    for name in SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()[:16]


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read()
    except OSError:
        return None
    ours = status.st_uid == os.getuid() and not status.st_mode & 0o022
    digest, code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return code if ours and hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Put the file there whole or not at all, also while other jobs do the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with files.replacing(path, mode=0o600) as file:
        file.write(hashlib.sha256(code).digest() + code)

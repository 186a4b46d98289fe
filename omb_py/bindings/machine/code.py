"""Where the compiled loop comes from: a file of an earlier run, or Numba; and how it is loaded.

Rank 0 alone reads, compiles and writes, and broadcasts the code to all others: ranks cannot race,
and thousands of them open no file and need no Numba. Nor do they need llvmlite, whose files are as
many as NumPy's, where `linking` has made an image of what it compiled.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from typing import TYPE_CHECKING, Any

from omb_py.bindings.machine import linking
from omb_py.core.cache import cache_directory
from omb_py.core.errors import MissingPackageError, SharedError, installing

if TYPE_CHECKING:
    from mpi4py import MPI

SYMBOLS = ("omb_py_run", "omb_py_compute", "omb_py_lap", "omb_py_reset")
SOURCES = ("compiled.py", "linking.py", "prototypes.py", "../../core/mpi/clock.py")
CHECKSUM_BYTES = 4
SECONDS_BETWEEN_LOOKS = 0.001

_LOADED: list[tuple[Any, dict[str, int]]] = []
"""The code is in this process once, as a module is."""


def target_machine() -> Any:
    """The plainest processor of this machine's kind: nodes of a job may differ."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    return llvm.Target.from_default_triple().create_target_machine(opt=3, reloc="pic")


def load(code: bytes) -> tuple[Any, dict[str, int]]:
    """Put code into this process; its owner, to be kept alive, and the functions' addresses."""
    if code.startswith(linking.MAGIC):
        owner, addresses = linking.load(code)
        return owner, dict(zip(SYMBOLS, addresses, strict=True))
    from llvmlite import binding as llvm

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
            fault = f"{missing()} ({error})".encode()
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


def missing() -> MissingPackageError:
    """What is wrong where there is neither code of an earlier run nor what compiles it."""
    what = "binding native, which compiles its loop once,"
    return MissingPackageError(what, "numba", installing("native"))


def code_path(directory: str) -> str:
    """Where the code of this version is kept."""
    return os.path.join(directory, f"loop-{fingerprint()}.code")


def cached_code(directory: str) -> bytes:
    """The code that ``directory`` holds, or newly compiled code, which is left there if it can be.

    A file is used only if it is whole and nobody else can have written it.
    """
    path = code_path(directory)
    code = read_code(path)
    if code is None:
        from omb_py.bindings.machine.compiled import machine_code

        code = machine_code(target_machine())
        code = linking.link(code, SYMBOLS) or code
        with contextlib.suppress(OSError):  # a read-only home: compile again next time
            _write(path, code)
    return code


def fingerprint() -> str:
    """What the code depends on: its source and the kind of processor."""
    content = os.uname().machine.encode()
    for name in SOURCES:
        with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
            content += file.read()
    return f"{zlib.crc32(content):08x}{zlib.adler32(content):08x}"


def read_code(path: str) -> bytes | None:
    """The code in a file; None where there is none that is whole and this user's alone."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            content = file.read()
    except OSError:
        return None
    ours = status.st_uid == os.getuid() and not status.st_mode & 0o022
    checksum, code = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    return code if ours and checksum == _checksum(code) else None


def _write(path: str, code: bytes) -> None:
    """Put the file there whole or not at all, also while other jobs do the same."""
    from pathlib import Path

    from omb_py.core.text import files

    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with files.replacing(Path(path), mode=0o600) as file:
        file.write(_checksum(code) + code)


def _checksum(code: bytes) -> bytes:
    return zlib.crc32(code).to_bytes(CHECKSUM_BYTES, "little")

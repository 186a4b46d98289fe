"""NumPy's memory is what native OMB's is: aligned to pages, which are ordinary ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omb_py.buffers import PAGE
from omb_py.buffers.numpy import BUFFER
from omb_py.core.datatypes import find_types
from omb_py.core.errors import OutOfMemoryError
from tests.helpers.refusals import refuses

(INT,) = find_types(["mpi_int"])
MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) .*?\nVmFlags: ([a-z ]+)\n", re.DOTALL)


def flags_of(address: int) -> set[str]:
    """What the kernel was told of the memory at an address."""
    for begin, end, flags in MAPPING.findall(Path("/proc/self/smaps").read_text()):
        if int(begin, 16) <= address < int(end, 16):
            return set(flags.split())
    raise AssertionError(f"{address:x} is not mapped")


@pytest.mark.parametrize("nbytes", [0, 4, 8 << 20])
def test_memory_begins_at_an_ordinary_page(nbytes: int) -> None:
    memory = BUFFER.allocate(nbytes, INT)
    assert (memory.nbytes, memory.array.dtype) == (nbytes, "int32")
    assert memory.array.ctypes.data % PAGE == 0
    assert "hg" not in flags_of(memory.array.ctypes.data)  # advised to be huge, as NumPy does
    memory.array[:] = 1


def test_more_than_there_is_refused() -> None:
    for nbytes in (1 << 60, 1 << 70):
        with refuses(OutOfMemoryError, f"numpy cannot allocate {nbytes} bytes: lower -m"):
            BUFFER.allocate(nbytes, INT)

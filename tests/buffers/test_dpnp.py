"""Buffer dpnp on SYCL's processor device: real dpnp and dpctl, skipped where they are not.

`pip install dpnp intel-opencl-rt` brings them; the runtime of a virtual environment is only found
by OCL_ICD_FILENAMES.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.buffers import Buffer
from omb_py.buffers.dpnp import BUFFER
from omb_py.core.datatypes import find_types
from omb_py.core.errors import OutOfMemoryError, UnsupportedError
from omb_py.core.memory import Place
from tests.conftest import Run, succeeded
from tests.helpers.refusals import assert_refused, refuses

pytest.importorskip("dpnp")

RUNTIME = Path(sys.prefix) / "lib" / "libintelocl.so"
PROCESSOR = {"OCL_ICD_FILENAMES": str(RUNTIME), "ONEAPI_DEVICE_SELECTOR": "*:cpu"}
CHAR, FLOAT, LONG = find_types(["mpi_char", "float32", "longdouble"])

if not RUNTIME.exists():
    pytest.skip("no OpenCL runtime for processors", allow_module_level=True)


@pytest.fixture(scope="module")
def opened() -> Iterator[Buffer]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PROCESSOR.items():
            patch.setenv(name, value)
        yield BUFFER.prepare(local_rank=0)


@pytest.mark.parametrize("place", [Place.DEVICE, Place.MANAGED, Place.MANAGED_DEVICE])
@pytest.mark.parametrize("nbytes", [0, 4, 5000, 100_000])
def test_tile_is_repeated_and_a_wrong_byte_found(opened: Buffer, place: Place, nbytes: int) -> None:
    memory = opened.at(place).allocate(nbytes, FLOAT)
    memory.fill(b"abcde")
    assert memory.read(0, nbytes) == (b"abcde" * nbytes)[:nbytes]
    assert memory.first_difference(b"abcde") is None
    if nbytes:
        content = bytearray(memory.read(0, nbytes))
        content[-1] ^= 1
        memory.write(content)
        assert memory.first_difference(b"abcde") == nbytes - 1


def test_memory_is_aligned_and_sliced_in_place(opened: Buffer) -> None:
    """dpnp's own view of a slice begins where the sliced array does (dpnp#3036)."""
    from mpi4py import MPI

    memory = opened.allocate(5000, FLOAT)
    assert memory.address % 4096 == 0
    part = memory.slice(12, 40)
    part.fill(b"-")
    assert memory.read(11, 42)[1:41] == b"-" * 40
    found = MPI.memory(part.array)
    assert (found.address, found.nbytes) == (memory.address + 12, 40)


def test_processor_s_device_needs_no_support_of_mpi(opened: Buffer) -> None:
    memory = opened.allocate(64, CHAR)
    assert not memory.on_device
    assert memory.staged() is None
    assert opened.device is not None
    assert (opened.device.kind, opened.device.accelerator) == ("", "SYCL")
    assert {"dpnp", "dpctl", "sycl_backend", "sycl_driver"} <= {*opened.describe()}


def test_page_locked_memory_is_copied_both_ways(opened: Buffer) -> None:
    driver = opened.driver  # type: ignore[attr-defined]
    memory, address = opened.allocate(16, CHAR), driver.pinned(16)
    memory.fill(b"0123456789abcdef")
    driver.copying(address, memory.address, 16).run()
    memory.fill(b"-")
    driver.copying(memory.address + 4, address + 4, 4).run()
    assert memory.read(0, 16) == b"----4567--------"
    driver.free_pinned(address)


def test_caches_are_flushed_by_a_block_larger_than_they_are(opened: Buffer) -> None:
    write, wait = opened.flush()
    write.run()
    wait.run()
    assert set(write.kept.read(0, 100)) == {1}


def test_impossible_memory_or_work_refused(opened: Buffer) -> None:
    with refuses(OutOfMemoryError, "dpnp cannot allocate on device 0: lower -m"):
        opened.allocate(1 << 44, CHAR)
    with refuses(UnsupportedError, "dpnp no elements longdouble"):
        opened.allocate(32, LONG)
    with refuses(UnsupportedError, "-r gpu NVIDIA devices use -r cpu"):
        opened.compute(1)
    with refuses(UnsupportedError, "dpnp arrays cannot be pickled --binding buffer"):
        opened.allocate(8, CHAR).payload()
    with refuses(UnsupportedError, "applications do not compute with buffer dpnp"):
        opened.array_module()
    with refuses(UnsupportedError, "SYCL keeps no pages on the host"):
        opened.at(Place.MANAGED_HOST).allocate(8, CHAR).fill(b"a")


def test_arrays_are_added_by_dpnp(opened: Buffer) -> None:
    first, second = (opened.allocate(16, FLOAT) for _ in range(2))
    one, two = (FLOAT.pack([value]) for value in (1, 2))
    first.fill(one)
    second.fill(two)
    total, addend = (memory.ndarray("float32") for memory in (first, second))
    opened.module().add(total, addend, total)  # type: ignore[attr-defined]
    assert first.read(0, 4) == FLOAT.pack([3])


@pytest.mark.parametrize(
    "words",
    [
        "latency --binding array",
        "latency MD MD --binding native",
        "latency D H",
        "allreduce --binding prebound",
        "allreduce -T complex64",
        "put_latency -w create",
        "alltoallv --binding array",
        "latency --binding tcp",
    ],
)
def test_ranks_exchange_the_right_data(mpiexec: Run, words: str) -> None:
    checked = "--buffer dpnp -c -i 3 -x 1 -u 1 --sizes 8,4096".split()
    done = succeeded(mpiexec(2, *words.split(), *checked, **PROCESSOR))
    assert "MPI-SYCL" in done.out
    assert [row[-1] for row in done.rows] == ["Pass", "Pass"]


def test_without_a_device_the_fix_is_named(mpiexec: Run) -> None:
    nothing = {"OCL_ICD_FILENAMES": "/dev/null", "ONEAPI_DEVICE_SELECTOR": "*:gpu"}
    done = mpiexec(2, "latency", "--buffer", "dpnp", **nothing)
    assert_refused(done, 8, "SYCL finds no GPU intel-opencl-rt ONEAPI_DEVICE_SELECTOR=*:cpu numpy")


def test_processor_is_no_device_unless_it_is_selected() -> None:
    environment = {**os.environ, "OCL_ICD_FILENAMES": str(RUNTIME)}
    environment.pop("ONEAPI_DEVICE_SELECTOR", None)
    program = "from omb_py.buffers.dpnp import chosen_devices as found; print(len(found()))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"

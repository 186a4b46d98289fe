"""Memory on a device, without MPI: filled, compared and copied where it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omb_py.buffers import Buffer
from omb_py.buffers.device.drivers import Cuda, Hip, load
from omb_py.core.datatypes import find_types
from omb_py.core.errors import OutOfMemoryError, UnsupportedError
from omb_py.core.job import Node
from omb_py.core.memory import Place
from omb_py.measure.devices import sharing
from tests.helpers.refusals import assert_names, refuses

(CHAR,) = find_types(["mpi_char"])
TILES = st.binary(min_size=1, max_size=40)


@pytest.fixture(scope="module", params=[Cuda, Hip])
def runtime(
    request: pytest.FixtureRequest, driver: Path, hip: Path
) -> Iterator[tuple[type[Cuda], Path]]:
    """The stand-in for CUDA's driver, or that for HIP where CUDA has none, in this process."""
    libraries = {Cuda: driver, Hip: hip}
    with pytest.MonkeyPatch.context() as patch:
        for one in libraries:
            patch.setattr(one, "libraries", ("libno-such-driver.so.1",))
        patch.setattr(request.param, "libraries", (str(libraries[request.param]),))
        yield request.param, libraries[request.param]


@pytest.fixture(scope="module")
def opened(runtime: tuple[type[Cuda], Path]) -> Iterator[Buffer]:
    """A buffer of the test's own library on the stand-in, in this process."""
    import ctypes
    import sys

    from tests.conftest import PLUGIN

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(PLUGIN)])
        from omb_test_device import RAW, Raw

        patch.setattr(Raw, "start", lambda self, number: None)
        patch.setattr(Raw, "_library", ctypes.CDLL(str(runtime[1])), raising=False)
        yield RAW.prepare(local_rank=0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tile=TILES, nbytes=st.integers(0, 300))
def test_fill_repeats_the_tile(opened: Buffer, tile: bytes, nbytes: int) -> None:
    memory = opened.allocate(nbytes, CHAR)
    memory.fill(tile)
    assert memory.read(0, nbytes) == (tile * nbytes)[:nbytes]
    assert memory.first_difference(tile) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tile=TILES, nbytes=st.integers(1, 300), data=st.data())
def test_first_difference_found(
    opened: Buffer, tile: bytes, nbytes: int, data: st.DataObject
) -> None:
    memory = opened.allocate(nbytes, CHAR)
    memory.fill(tile)
    content = bytearray(memory.read(0, nbytes))
    wrong = data.draw(st.sets(st.integers(0, nbytes - 1), min_size=1))
    for offset in wrong:
        content[offset] ^= 1
    memory.write(content)
    assert memory.first_difference(tile) == min(wrong)


def test_memory_is_aligned_and_sliced_in_place(opened: Buffer) -> None:
    memory = opened.allocate(5000, CHAR)
    assert memory.address % 4096 == 0
    memory.fill(b"abcde")
    part = memory.slice(7, 10)
    assert part.read(0, 10) == b"cdeabcdeab"
    part.fill(b"-")
    assert memory.read(5, 14) == b"ab----------cd"
    assert part.array.__cuda_array_interface__["data"][0] == memory.address + 7


def test_a_payload_of_another_length_is_no_payload(opened: Buffer) -> None:
    memory = opened.allocate(8, CHAR)
    memory.write(opened.allocate(8, CHAR).array)
    with pytest.raises(ValueError, match="9 bytes arrived instead of 8"):
        memory.write(bytes(9))


@pytest.mark.slow
def test_staged_memory_carries_bytes_both_ways(opened: Buffer) -> None:
    memory = opened.allocate(16, CHAR)
    memory.fill(b"0123456789abcdef")
    host = memory.staged()
    assert host is not None
    host.fill(b"-")
    host.download(4, 6).run()
    assert host.read(0, 16) == b"----456789------"
    host.upload().run()
    assert memory.read(0, 16) == b"----456789------"
    assert opened.at(Place.HOST).allocate(16, CHAR).staged() is None


def test_closing_restores_the_context(
    opened: Buffer, runtime: tuple[type[Cuda], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from omb_test_device import RAW

    monkeypatch.setenv("OMB_FAKE_DEVICES", "2")
    driver = runtime[0].load()
    driver.activate(1)
    before = driver.context()
    other = RAW.prepare(local_rank=0)
    assert before is not None
    assert driver.context() != before
    other.close()
    assert driver.context() == before
    driver.activate(0)


def test_more_than_the_device_has_refused(opened: Buffer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMB_FAKE_MEMORY", "100000")
    with refuses(OutOfMemoryError, "on device 0: lower -m"):
        opened.allocate(1_000_000, CHAR)


def test_missing_driver_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in (Cuda, Hip):
        monkeypatch.setattr(one, "libraries", ("libno-such-driver.so.1",))
    with refuses(UnsupportedError, "no CUDA driver here (libno-such-driver"):
        load((Cuda,))
    with refuses(UnsupportedError, "no CUDA driver HIP runtime node with a GPU numpy"):
        load((Cuda, Hip))


def test_device_of_each_runtime_is_described_in_its_words(
    opened: Buffer, runtime: tuple[type[Cuda], Path]
) -> None:
    found = opened.describe()
    device = opened.device
    assert device is not None
    assert opened.allocate(8, CHAR).kind == device.kind
    if runtime[0] is Hip:
        assert (device.kind, device.accelerator) == ("rocm", "ROCM")
        assert found["hip_runtime"] == "7.0.51831"
    else:
        assert (device.kind, device.accelerator) == ("cuda", "CUDA")
        assert found["cuda_driver"] == "13.0"


def test_what_only_cuda_computes_is_refused(
    opened: Buffer, runtime: tuple[type[Cuda], Path]
) -> None:
    if runtime[0] is Cuda:
        launch, wait = opened.compute(10)
        launch.run()
        wait.run()
    else:
        with refuses(UnsupportedError, "-r gpu and -r both compute on NVIDIA devices only: use"):
            opened.compute(10)


def test_caches_are_flushed_by_a_block_larger_than_they_are(opened: Buffer) -> None:
    write, wait = opened.flush()
    write.run()
    wait.run()
    assert write.kept.nbytes == 2 << 20
    assert set(write.kept.read(0, 100)) == {1}


@pytest.mark.parametrize("place", [Place.MANAGED, Place.MANAGED_DEVICE, Place.MANAGED_HOST])
def test_managed_memory_is_filled_and_moved_to_its_place(opened: Buffer, place: Place) -> None:
    memory = opened.at(place).allocate(100, CHAR)
    memory.fill(b"abc")
    assert memory.read(0, 4) == b"abca"
    assert not memory.on_device


def test_memory_that_the_host_reaches_is_left_to_mpi(opened: Buffer) -> None:
    for place in (Place.HOST, Place.MANAGED):
        memory = opened.at(place).allocate(8, CHAR)
        assert memory.add(memory) is None


def test_long_doubles_are_not_added_on_a_device(opened: Buffer) -> None:
    (wide,) = find_types(["longdouble"])
    memory = opened.allocate(32, wide)
    with refuses(UnsupportedError, "no device adds longdouble: choose"):
        memory.add(memory)


def test_ranks_that_share_a_device_are_noted() -> None:
    assert sharing([Node("a", ("0=aa", "1=bb")), Node("b", ("0=cc", "0=dd"))]) is None
    shared = sharing([Node("a", ("0=aa", "1=bb")), Node("b", ("0=cc", "1=cc", "0=cc"))])
    assert shared is not None
    assert_names(shared, "3 ranks one device of b")
    assert sharing([Node("a", ("-", "-"))]) is None

"""On a real GPU: memory filled, checked and added up, and jobs between two ranks.

Skipped where there is none. `make gpu-check` measures what these only check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from omb_py.buffers import BUFFERS, Buffer
from omb_py.buffers.device import NVIDIA_OR_AMD
from omb_py.buffers.device.drivers import load
from omb_py.core.datatypes import TYPES, Datatype, find_types
from omb_py.core.errors import OmbError, UnsupportedError
from omb_py.core.memory import Place
from perf.launchers import Launcher, aware_launchers, on_two_ranks
from tests.apps.on_ranks.test_applications import SMALL, problems
from tests.conftest import Finished, Run, run, succeeded
from tests.helpers.refusals import refuses

NAMES = ("cupy", "numba", "pycuda", "torch")
SIZED = [benchmark.name for benchmark in on_two_ranks()]
QUICK = ("-i", "3", "-x", "1", "-u", "1")
LAUNCHERS: Sequence[object] = aware_launchers() or [
    pytest.param(None, marks=pytest.mark.skip("no MPI library here takes memory on a device"))
]
(CHAR,) = find_types(["mpi_char"])


def why_not() -> str:
    """Why there is no real device here; empty where there is."""
    try:
        driver = load(NVIDIA_OR_AMD)
    except OmbError as error:
        return str(error)
    return "a stand-in" if driver.activate(0).name.startswith("Fake") else ""


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_not()), reason=why_not() or "a GPU")]


@pytest.fixture(scope="module", params=NAMES)
def opened(request: pytest.FixtureRequest) -> Iterator[Buffer]:
    try:
        buffer: Buffer = BUFFERS.load(request.param).prepare(0)
    except OmbError as error:
        pytest.skip(str(error))
    yield buffer
    buffer.close()


@pytest.mark.parametrize("nbytes", [0, 1, 255, 256, 257, 4096, 1_000_003, 64 << 20])
@pytest.mark.parametrize("tile", [b"\xff", bytes(range(251)), bytes(1009 * 4 - 1)])
def test_what_is_written_is_found(opened: Buffer, nbytes: int, tile: bytes) -> None:
    memory = opened.allocate(nbytes, CHAR)
    memory.fill(tile)
    assert memory.first_difference(tile) is None
    assert memory.read(0, min(nbytes, 5000)) == (tile * 5000)[: min(nbytes, 5000)]
    for offset in {0, nbytes // 2, nbytes - 1} & set(range(nbytes)):
        part = memory.slice(offset, 1)
        kept = part.read(0, 1)
        part.write(bytes([kept[0] ^ 1]))
        assert memory.first_difference(tile) == offset
        part.write(kept)


@pytest.mark.parametrize("datatype", TYPES, ids=lambda datatype: datatype.name)
def test_memory_of_every_type_but_longdouble_is_tiled(opened: Buffer, datatype: object) -> None:
    try:
        memory = opened.allocate(960, datatype)  # type: ignore[arg-type]
    except UnsupportedError:
        assert "longdouble" in datatype.dtype  # type: ignore[attr-defined]
        return
    memory.fill(b"abc")
    assert memory.slice(480, 480).first_difference(b"abc") is None


@pytest.mark.parametrize("count", [1, 255, 256, 257, 1_000_003, 4 << 20])
@pytest.mark.parametrize("datatype", TYPES, ids=lambda datatype: datatype.name)
def test_elements_are_added_where_they_are(opened: Buffer, datatype: Datatype, count: int) -> None:
    try:
        total, other = (opened.allocate(count * datatype.itemsize, datatype) for _ in range(2))
        steps = total.add(other)
    except UnsupportedError:
        assert "longdouble" in datatype.dtype
        return
    total.fill(datatype.pack([1, 2, 3, 4, 5]))
    other.fill(datatype.pack([50, 40, 30]))
    assert steps is not None
    for _ in range(2):
        for step in steps:
            step.run()
    several = [a + 2 * b for a, b in zip([1, 2, 3, 4, 5] * 3, [50, 40, 30] * 5, strict=True)]
    assert total.first_difference(datatype.pack(several)) is None
    assert other.first_difference(datatype.pack([50, 40, 30])) is None


@pytest.mark.parametrize("place", [Place.MANAGED, Place.MANAGED_DEVICE, Place.MANAGED_HOST])
def test_managed_memory(opened: Buffer, place: Place) -> None:
    if opened.name == "torch":
        pytest.skip("torch has none")
    memory = opened.at(place).allocate(100_000, CHAR)
    memory.fill(b"abc")
    assert memory.first_difference(b"abc") is None


def test_staging(opened: Buffer) -> None:
    memory = opened.allocate(1_000_003, CHAR)
    memory.fill(b"abc")
    host = memory.staged()
    assert host is not None
    host.download(0, memory.nbytes).run()
    assert host.first_difference(b"abc") is None
    host.fill(b"de")
    host.upload().run()
    assert memory.first_difference(b"de") is None


def test_more_than_there_is(opened: Buffer) -> None:
    with refuses(OmbError, "lower -m"):
        opened.allocate(1 << 44, CHAR)


@pytest.fixture(params=LAUNCHERS, ids=lambda launcher: launcher.name if launcher else "none")
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    launcher: Launcher = request.param

    def start(ranks: int, *arguments: str) -> Finished:
        command = launcher.run(ranks, *arguments)
        return run(command, launcher.with_libraries(), tmp_path, timeout=120)

    return start


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("binding", ["buffer", "prebound", "native"])
def test_every_benchmark(job: Run, name: str, binding: str) -> None:
    arguments = ("--buffer", "cupy", "--binding", binding, "-c", "--sizes", "8,65536,4194304")
    done = succeeded(job(2, name, *arguments, *QUICK))
    assert [row[-1] for row in done.rows] == ["Pass"] * 3


@pytest.mark.parametrize("problem", [one for name in SMALL for one in problems(name)])
@pytest.mark.parametrize("form", [(), ("--staging",)], ids=["handed over", "staged"])
def test_every_application(job: Run, problem: str, form: tuple[str, ...]) -> None:
    for ranks in (1, 2):
        succeeded(job(ranks, *problem.split(), "--buffer", "cupy", "-i", "2", *form))

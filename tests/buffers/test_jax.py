"""Buffer jax: arrays that share their bytes with what MPI receives in, where JAX is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from omb_py.core.datatypes import TYPES, Datatype
from omb_py.core.errors import UnsupportedError
from omb_py.measure.validation import prove
from tests.conftest import Run, succeeded
from tests.helpers.refusals import assert_refused

if TYPE_CHECKING:
    from omb_py.buffers import Buffer

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed"),
]

QUICK = ("-i", "4", "-x", "1", "-u", "1")
BY_NAME = {datatype.name: datatype for datatype in TYPES}
SHARED = [datatype for datatype in TYPES if "longdouble" not in datatype.dtype]


@pytest.fixture
def buffer() -> Buffer:
    from omb_py.buffers.jax import BUFFER

    return BUFFER.prepare(0)


@pytest.mark.parametrize("datatype", SHARED, ids=lambda datatype: datatype.name)
def test_array_that_is_sent_shows_what_is_written_below_it(
    buffer: Buffer, datatype: Datatype
) -> None:
    memory = buffer.allocate(4 * datatype.itemsize, datatype)
    sent = memory.sent
    memory.fill(datatype.pack([1, 2, 3, 4]))
    assert bytes(memoryview(sent).cast("B")) == datatype.pack([1, 2, 3, 4])
    assert sent.unsafe_buffer_pointer() == memory.ndarray("uint8").ctypes.data


def test_comparison_finds_a_flipped_byte_in_each_type(buffer: Buffer) -> None:
    for datatype in SHARED:
        prove(buffer, datatype)


def test_array_of_no_elements_can_be_sent(buffer: Buffer) -> None:
    assert len(buffer.allocate(0, BY_NAME["float32"]).sent) == 0


def test_array_at_an_address_that_xla_would_copy_is_refused(buffer: Buffer) -> None:
    part = buffer.allocate(128, BY_NAME["float32"]).slice(4, 64)
    with pytest.raises(UnsupportedError, match="an address that 64 does not divide"):
        part.sent  # noqa: B018


def test_object_that_is_pickled_holds_the_bytes_of_a_part(buffer: Buffer) -> None:
    memory = buffer.allocate(32, BY_NAME["int32"])
    memory.fill(BY_NAME["int32"].pack(range(8)))
    assert memory.slice(4, 8).payload().tolist() == [1, 2]


@pytest.mark.parametrize(
    "binding", ["buffer", "native", "prebound", "persistent", "coroutine", "pickle"]
)
def test_data_arrives_by_each_binding(mpiexec: Run, binding: str) -> None:
    words = ("--buffer", "jax", "--binding", binding, "-c", "-T", "float32")
    for name in ("latency", "bcast", "allgather", "allreduce"):
        done = succeeded(mpiexec(2, name, *words, "--sizes", "8,4096", *QUICK))
        assert [row[-1] for row in done.rows] == ["Pass"] * 2


@pytest.mark.parametrize("name", ["bw", "get_latency", "put_latency", "alltoallv", "reduce"])
def test_data_arrives_in_other_calls(mpiexec: Run, name: str) -> None:
    done = succeeded(mpiexec(2, name, "--buffer", "jax", "-c", "--sizes", "64", *QUICK))
    assert [row[-1] for row in done.rows] == ["Pass"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("--binding array", 5, "mpi4py finds no MPI type --binding buffer"),
        ("-T longdouble", 5, "no elements of type longdouble"),
        ("--offset 4", 5, "an address that 64 does not divide"),
    ],
)
def test_what_jax_lacks_is_refused(mpiexec: Run, words: str, code: int, sentence: str) -> None:
    done = mpiexec(2, "latency", "--buffer", "jax", "--sizes", "16", *words.split(), *QUICK)
    assert_refused(done, code, sentence)


def test_arrays_on_a_device_are_refused(mpiexec: Run) -> None:
    done = mpiexec(2, "latency", "--buffer", "jax", "--sizes", "16", JAX_PLATFORMS="cuda")
    assert_refused(done, 5, "arrays on the host JAX_PLATFORMS is cuda --buffer cupy")


@pytest.mark.parametrize("name", ["latency", "allreduce", "allgather"])
def test_one_flipped_byte_fails_the_job(mpiexec: Run, name: str) -> None:
    words = ("--buffer", "jax", "--binding", "corrupting", "-c", "--sizes", "64", "-i", "2")
    job = mpiexec(2, name, *words, OMB_TEST_RANK="1", OMB_TEST_OFFSET="0")
    assert_refused(job, 1, f"wrong data in {name} rank 1 offset 0")

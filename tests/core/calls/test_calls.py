"""Calls of MPI as benchmarks write them: where data arrives."""

from __future__ import annotations

import pytest

from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import IN_PLACE, Call, Message, Operand
from omb_py.core.datatypes import find_types

(INT,) = find_types(("mpi_int",))


def message() -> Message:
    return Message(BUFFER.allocate(4, INT), INT, (1,))


OUT, IN = message(), message()
ROOT, OTHER = 2, 0


@pytest.mark.parametrize(
    "function",
    "send ssend bsend rsend isend issend send_init ssend_init "
    "put rput accumulate pack file_write_at file_write_at_all".split(),
)
def test_call_that_only_reads_memory_writes_no_message(function: str) -> None:
    call = Call(function, (OUT,), peer=1)
    assert [call.written(rank) for rank in (0, 1)] == [None, None]


@pytest.mark.parametrize(
    "function", "recv irecv recv_init mrecv get rget unpack file_read_at file_read_at_all".split()
)
def test_call_that_receives_writes_its_message(function: str) -> None:
    call = Call(function, (IN,), peer=1)
    assert [call.written(rank) for rank in (0, 1)] == [IN, IN]


@pytest.mark.parametrize(
    ("function", "operands", "written"),
    [
        ("allreduce", (OUT, IN), IN),
        ("iallgatherv", (OUT, IN), IN),
        ("neighbor_alltoall_init", (OUT, IN), IN),
        ("allreduce", (IN_PLACE, IN), IN),
        ("get_accumulate", (OUT, IN), IN),
        ("barrier", (), None),
    ],
)
def test_exchange_writes_its_last_message(
    function: str, operands: tuple[Operand, ...], written: Message | None
) -> None:
    assert Call(function, operands, peer=1).written(0) == written


@pytest.mark.parametrize("form", ["{}", "i{}", "{}_init"])
@pytest.mark.parametrize(
    ("function", "rank", "operands", "written"),
    [
        ("bcast", ROOT, (OUT,), None),
        ("bcast", OTHER, (IN,), IN),
        ("reduce", ROOT, (OUT, IN), IN),
        ("reduce", ROOT, (IN_PLACE, IN), IN),
        ("reduce", OTHER, (OUT, None), None),
        ("gather", ROOT, (OUT, IN), IN),
        ("gather", OTHER, (OUT, None), None),
        ("scatter", ROOT, (OUT, IN), IN),
        ("scatter", ROOT, (OUT, IN_PLACE), None),
        ("scatter", OTHER, (None, IN), IN),
    ],
)
def test_rooted_call_writes_where_data_arrives(
    form: str, function: str, rank: int, operands: tuple[Operand, ...], written: Message | None
) -> None:
    assert Call(form.format(function), operands, root=ROOT).written(rank) == written

"""The table of observed methods against mpi4py's own signatures."""

from __future__ import annotations

import ast
from pathlib import Path

import mpi4py
import pytest

from omb_py.tracing.recorder import methods

STUBS = ast.parse((Path(mpi4py.__file__).parent / "MPI.pyi").read_text())
TABLES = {
    "Comm": methods.COMMUNICATOR | methods.OBJECTS,
    "Intracomm": methods.COMMUNICATOR | methods.OBJECTS,
    "Topocomm": methods.COMMUNICATOR | methods.OBJECTS,
    "Request": methods.REQUEST,
    "Prequest": methods.PERSISTENT,
    "Message": methods.MESSAGE,
    "Win": methods.WINDOW,
    "File": methods.FILE,
}
RENAMED = {"target_rank": "rank"}


def signatures(name: str) -> dict[str, tuple[list[str], bool]]:
    """The parameters of a class's methods, and whether they are the class's own."""
    found = {}
    (body,) = (one.body for one in STUBS.body if isinstance(one, ast.ClassDef) and one.name == name)
    for one in body:
        if isinstance(one, ast.FunctionDef):
            of_class = any(
                isinstance(d, ast.Name) and d.id == "classmethod" for d in one.decorator_list
            )
            found[one.name] = ([arg.arg for arg in one.args.args[1:]], of_class)
    return found


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_as_mpi4py_has_them(name: str) -> None:
    there = signatures(name)
    rows = {row: p.split() for row, p in TABLES[name].items() if row.removesuffix("!") in there}
    assert rows
    for row, parameters in rows.items():
        expected, of_class = there[row.removesuffix("!")]
        renamed = [RENAMED.get(p, p) if "rank" in expected else p for p in parameters]
        assert (renamed, row.endswith("!")) == (expected, of_class), row


@pytest.mark.parametrize(
    ("kind", "method", "routine"),
    [
        ("Comm", "Isend", "MPI_Isend"),
        ("Comm", "isend", "MPI_Isend (pickle)"),
        ("Comm", "barrier", "MPI_Barrier"),
        ("Comm", "Reduce_scatter_block_init", "MPI_Reduce_scatter_block_init"),
        ("Comm", "Dup", "MPI_Comm_dup"),
        ("Cartcomm", "Sub", "MPI_Cart_sub"),
        ("Intercomm", "Merge", "MPI_Intercomm_merge"),
        ("Request", "Waitall!", "MPI_Waitall"),
        ("Prequest", "Free", "MPI_Request_free"),
        ("Message", "recv", "MPI_Mrecv (pickle)"),
        ("Win", "Put", "MPI_Put"),
        ("Win", "Rget_accumulate", "MPI_Rget_accumulate"),
        ("Win", "Fetch_and_op", "MPI_Fetch_and_op"),
        ("Win", "Flush_local", "MPI_Win_flush_local"),
        ("Win", "Free", "MPI_Win_free"),
        ("File", "Write_at_all", "MPI_File_write_at_all"),
    ],
)
def test_a_method_has_the_name_of_its_routine(kind: str, method: str, routine: str) -> None:
    assert methods.routine_of(kind, method) == routine


def test_what_communicates_is_not_forgotten() -> None:
    """Methods of communicators that take a buffer or an object are all in the table."""
    listed = {row.removesuffix("!") for table in TABLES.values() for row in table}
    for name in ("Comm", "Intracomm", "Topocomm"):
        for method, (parameters, _) in signatures(name).items():
            moves = {"buf", "obj", "sendbuf", "sendobj", "recvbuf"} & set(parameters)
            if moves and method not in ("Attach_buffer",):
                assert method in listed, method

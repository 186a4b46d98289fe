"""What omb-py and the stand-in assume of nccl4py, compared with an installed one."""

from __future__ import annotations

import ast
import inspect

import pytest

from omb_py.bindings.nccl import DTYPES, SUM
from tests.helpers.devices import FAKES

STAND_IN = ast.parse((FAKES / "nccl4py" / "nccl" / "bindings" / "nccl.py").read_text())
nccl = pytest.importorskip("nccl.bindings.nccl", reason="nccl4py is not installed")


@pytest.mark.parametrize(
    "function",
    [node for node in STAND_IN.body if isinstance(node, ast.FunctionDef)],
    ids=lambda node: node.name,
)
def test_stand_in_function_has_parameters_of_nccl4py(function: ast.FunctionDef) -> None:
    theirs = inspect.signature(getattr(nccl, function.name)).parameters
    assert [argument.arg for argument in function.args.args] == list(theirs)


def test_unique_id_of_nccl4py_is_made_from_128_writable_bytes() -> None:
    identity = bytes(range(128))
    assert bytes(nccl.UniqueId.from_buffer(bytearray(identity))) == identity


def test_nccl_constants_are_those_of_nccl4py() -> None:
    values = {name.lower(): int(value) for name, value in nccl.DataType.__members__.items()}
    assert [values[name] for name in DTYPES] == list(range(len(DTYPES)))
    assert int(nccl.RedOp.Sum) == SUM


def test_call_without_communicator_raises_error_of_nccl4py() -> None:
    try:
        nccl.get_version()
    except RuntimeError:
        pytest.skip("nccl4py finds no NCCL")
    with pytest.raises(nccl.NCCLError, match="invalid argument"):
        nccl.send(4096, 8, 0, 0, nccl.Comm(0), 0)

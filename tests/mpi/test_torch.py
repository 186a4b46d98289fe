"""PyTorch's tensors, a buffer that comes by an entry point."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.conftest import Run, succeeded
from tests.helpers.battery import Battery, Line, each_line, passes
from tests.helpers.refusals import assert_refused
from tests.mpi.lines import CHECKED, ONE_SIDED, TWO_SIDED, lines

QUICK = ("-i", "4", "-x", "1", "-u", "1")
HERE = find_spec("torch") is not None
TENSORS = f"{CHECKED} --buffer torch_cpu"

pytestmark = pytest.mark.skipif(not HERE, reason="torch is not installed")


@pytest.mark.product
@each_line(
    line
    for binding in ("buffer", "native")
    for line in lines(TWO_SIDED, f"{TENSORS} --binding {binding}")
    + lines(ONE_SIDED, f"{TENSORS} -w create --binding {binding}")
    if HERE
)
def test_tensors_on_the_host(battery: Battery, line: Line) -> None:
    passes(battery(line))


@pytest.mark.parametrize("binding", ["array", "prebound", "pickle", "persistent"])
def test_tensors_in_every_form(mpiexec: Run, binding: str) -> None:
    for name in ("latency", "bw", "allgather"):
        arguments = ("--buffer", "torch_cpu", "--binding", binding, "-c", "-T", "float32")
        done = succeeded(mpiexec(2, name, *arguments, "--sizes", "8,4096", *QUICK))
        assert [row[-1] for row in done.rows] == ["Pass"] * 2


def test_types_that_torch_lacks(mpiexec: Run) -> None:
    done = mpiexec(2, "latency", "--buffer", "torch_cpu", "-T", "longdouble", "--sizes", "16")
    assert_refused(done, 5, "no elements of type longdouble")


def test_tensors_on_a_device_need_one(mpiexec: Run) -> None:
    done = mpiexec(2, "latency", "--buffer", "torch")
    if done.code == 0:
        pytest.skip("this machine has a device")
    assert_refused(done, 8, "no CUDA driver here")

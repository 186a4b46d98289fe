"""Each buffer library of the host, those of entry points too, and libraries that are wrong."""

from __future__ import annotations

import pytest

from omb_py.buffers import BUFFERS
from omb_py.core.errors import OmbError
from tests.conftest import Run, succeeded
from tests.helpers.refusals import assert_refused

QUICK = ("--sizes", "8,64", "-i", "2", "-x", "0", "-c")
FLIPPED = ("allreduce", *QUICK, "--binding", "corrupting")


def works_here(name: str) -> bool:
    """Whether a buffer library is in host memory, and installed."""
    try:
        return not BUFFERS.load(name).prepare(0).accelerators
    except OmbError:
        return False


HOST = [*(name for name in BUFFERS.names() if works_here(name)), "mapped"]
"""All but the last, which is in tests/plugin, are of this environment."""


@pytest.mark.parametrize("name", HOST)
@pytest.mark.parametrize("benchmark", ["bw", "allreduce"])
def test_data_through_a_buffer_pass(mpiexec: Run, name: str, benchmark: str) -> None:
    job = succeeded(mpiexec(2, benchmark, *QUICK, "--buffer", name))
    assert job.out.count("Pass") == 2


@pytest.mark.parametrize("name", HOST)
@pytest.mark.parametrize("offset", ["0", "3", "-1"])
def test_a_flipped_byte_in_a_buffer_fails(mpiexec: Run, name: str, offset: str) -> None:
    job = mpiexec(2, *FLIPPED, "--buffer", name, OMB_TEST_OFFSET=offset)
    assert job.code == 1
    assert f"offset {int(offset) % 8} of 8 bytes" in job.err


@pytest.mark.parametrize(
    ("name", "words"), [("blind", "none byte 0 changed"), ("shifted", "7 bytes after a page")]
)
def test_a_wrong_buffer_is_refused_before_rows(mpiexec: Run, name: str, words: str) -> None:
    job = mpiexec(2, *FLIPPED, "--buffer", name)
    assert_refused(job, 1, f"buffer {name} {words}")
    assert job.out.strip() == ""

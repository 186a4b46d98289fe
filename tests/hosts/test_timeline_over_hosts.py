"""Timelines of ranks on hosts whose clocks differ by a day: on one clock, within a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.tracing.records.reading import NS
from omb_py.tracing.records.run import read_records
from omb_py.tracing.timeline import assembly
from tests.conftest import OMB_PY, run, succeeded
from tests.helpers.pace import slowness
from tests.hosts.fixtures import FAR
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import SECONDS_BETWEEN_CLOCKS, Hosts
from tests.tracing.timeline.rules import written

pytestmark = pytest.mark.usefixtures("can_make_hosts")

TRIPS = 200

PROGRAM = f"""
from mpi4py import MPI
world = MPI.COMM_WORLD
cell = bytearray(8)
world.Barrier()
for trip in range({TRIPS}):
    for one in range(1, world.size):
        if world.rank == 0:
            world.Send(cell, one)
            world.Recv(cell, one)
        elif world.rank == one:
            world.Recv(cell, 0)
            world.Send(cell, 0)
"""


def timeline(hosts: Hosts, ranks: int, per_host: int, folder: Path) -> assembly.Timeline:
    """The timeline of ping-pongs between rank 0 and each other rank."""
    (folder / "program.py").write_text(PROGRAM)
    words = ("profile", "-q", "--events", "100000", "--folder", str(folder / "run"))
    succeeded(job(hosts, ranks, per_host, *words, str(folder / "program.py"), folder=folder))
    shown = succeeded(run([OMB_PY, "timeline", str(folder / "run")], {}, folder, 60))
    assert "read other clocks than rank 0" in shown.err
    return assembly.read(folder / "run")


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("network", ["near", "far"])
def test_arrivals_follow_sends(
    request: pytest.FixtureRequest, tmp_path: Path, network: str
) -> None:
    found = timeline(request.getfixturevalue(network), 4, 2, tmp_path)
    assert found.messages.beyond == 0
    total = 2 * 3 * TRIPS
    assert len(found.messages.arrows) + found.messages.backwards == total
    assert (found.messages.sent, found.messages.received) == (0, 0)
    content = written(found)
    assert len({one.process for one in content.slices}) == 4
    spread = max(one.ended for one in content.slices) * NS
    assert spread < 60, "all ranks are shown in the same minute"


@pytest.mark.any_library
def test_a_round_trip_lies_inside_its_other_half(near: Hosts, tmp_path: Path) -> None:
    """Between its send and its receive rank 0 sees both of the other side, whatever the offset."""
    found = timeline(near, 2, 1, tmp_path)
    first, second = (rank.events for rank in found.ranks)
    bound = found.ranks[1].alignment.error
    assert bound is not None
    assert 0 < bound < 0.1
    for trip in range(1, TRIPS):
        begin = first["began"][1 + 2 * trip] * NS
        end = first["ended"][2 + 2 * trip] * NS
        left = second["began"][2 + 2 * trip] * NS
        arrived = second["ended"][1 + 2 * trip] * NS
        assert begin - bound <= arrived <= left <= end + bound


@pytest.mark.long
@pytest.mark.any_library
def test_clocks_of_a_host_share_an_offset(far: Hosts, tmp_path: Path) -> None:
    found = timeline(far, 4, 2, tmp_path)
    alignments = [rank.alignment for rank in found.ranks]
    assert [one.error for one in alignments[:2]] == [0, 0]
    assert [one.record.comparisons for one in alignments[:2]] == [(), ()]
    assert alignments[2].record.comparisons == alignments[3].record.comparisons
    offset = alignments[2].record.comparisons[0].offset
    assert abs(abs(offset) - SECONDS_BETWEEN_CLOCKS) < 60
    assert FAR.delay <= (alignments[2].error or 0) < 50 * FAR.delay * slowness()
    compared = read_records(tmp_path / "run")[0][2].comparisons
    assert len(compared) == 2

"""What is simulated is what is sent: the messages of a recorded run beside those of operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.simulation import collectives
from omb_py.simulation.points import BUFFER, RESOURCES
from omb_py.simulation.program import Program, Receive, Send
from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.reading import RankRecord
from omb_py.tracing.records.routines import Role, role
from omb_py.tracing.records.run import open_run
from tests.conftest import OMB_PY, run, succeeded
from tests.layers import MANY_RANKS
from tests.mpi.programs.own_messages import RANKS, Made, all_made

pytestmark = pytest.mark.xdist_group(MANY_RANKS)

PROGRAM = Path(__file__).parent / "programs" / "own_messages.py"

Messages: TypeAlias = list[tuple[str, int, float]]
"""A rank's messages in order: to or from whom, and bytes."""


def simulated(program: Program) -> list[Messages]:
    """The messages of each rank in a program."""
    made = [list(program.operations(rank)) for rank in range(program.ranks)]
    sent = defaultdict(list)
    for rank, operations in enumerate(made):
        for one in operations:
            if isinstance(one, Send):
                sent[rank, one.peer].append(one.nbytes)
    arriving = {pair: iter(lengths) for pair, lengths in sent.items()}
    return [
        [
            ("to", one.peer, one.nbytes)
            if isinstance(one, Send)
            else ("from", one.peer, next(arriving[one.peer, rank]))
            for one in operations
            if isinstance(one, Send | Receive)
        ]
        for rank, operations in enumerate(made)
    ]


def recorded(record: RankRecord) -> dict[str, Messages]:
    """The messages of a rank in each phase. Of a call that does both, the arrival is first."""
    found: dict[str, Messages] = {}
    messages: Messages = []
    for event in record.events:
        kind, name = EventKind(event["kind"]), record.name(event["name"])
        peer, nbytes = int(event["peer"]), int(event["nbytes"])
        if kind is EventKind.PHASE:
            found[name], messages = messages, []
        elif peer == record.rank:
            continue
        elif kind is EventKind.ARRIVED:
            messages.insert(len(messages) - 1, ("from", peer, nbytes))
        elif kind is EventKind.CALL and role(name) in (Role.SEND, Role.SENDRECV):
            messages.append(("to", peer, nbytes))
        elif kind is EventKind.CALL and role(name) is Role.RECEIVE:
            messages.append(("from", peer, nbytes))
    return found


@pytest.fixture(scope="module")
def records(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Messages]]:
    """What each rank of one job sent and received."""
    folder = tmp_path_factory.mktemp("messages")
    profile = [OMB_PY, "profile", "-q", "--events", "100000", str(PROGRAM)]
    succeeded(run([mpi, "-n", str(RANKS), *profile], {}, folder, 240))
    return [recorded(record) for record in open_run(folder / "omb-profile").records]


def differences(made: Iterable[Made], records: list[dict[str, Messages]]) -> list[str]:
    """What a rank sent or received otherwise than it does in the simulation."""
    found = []
    for one in made:
        case = partial(one.case, buffer=BUFFER, resources=RESOURCES)
        program = collectives.program(find_benchmark(one.name), case, "")
        for rank, messages in enumerate(simulated(program)):
            if messages != records[rank][one.phase]:
                found.append(f"{one.phase}: rank {rank} {records[rank][one.phase]}, not {messages}")
    return found


@pytest.mark.long
def test_our_algorithms_send_as_in_a_simulation(records: list[dict[str, Messages]]) -> None:
    assert differences(all_made(), records) == []
    assert sum(len(messages) for record in records for messages in record.values()) > 1000

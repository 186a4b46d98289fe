"""Somebody's program that measures in the middle of its own work.

``measuring.py before|after``: whether it starts MPI itself before, or leaves that to `omb_py.run`.
"""

from __future__ import annotations

import sys
from typing import Any

import omb_py
from omb_py import OmbError

if sys.argv[1] == "before":
    from mpi4py import MPI

TOLD = ("bytes", "binding", "validation")
first = omb_py.run("allreduce", sizes=[8, 1024], iterations=20, warmup=2, stats=True)
second = omb_py.run("latency", m="1:4", i=20, binding="native", validation=True)

from mpi4py import MPI  # noqa: E402 - where the program did without until here

comm = MPI.COMM_WORLD
refused = []
MISTAKES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("latency", {"no_such_option": 1}),
    ("latency", {"buffer": "numpi"}),
    ("init", {}),
    ("bw", {"window_size": 0}),
    ("bw", {"size": [8]}),
)
for name, options in MISTAKES:
    try:
        omb_py.run(name, **options)
    except OmbError as error:
        refused.append(str(error))
totals = comm.gather(comm.allreduce(comm.rank))
if comm.rank == 0:
    assert first is not None
    assert second is not None
    ((run, metadata),) = first.runs.items()
    assert run == first.rows[0]["run"]
    print(True, metadata["hosts"].endswith(":2"), metadata["mpi_library"][:2])
    table = first.to_pandas()
    print(table.bytes.tolist(), table.ranks.unique().tolist(), table.hosts.unique().tolist())
    print(*([*dict.fromkeys(row[name] for row in second.rows)] for name in TOLD))
    print(bool((table.sample_p50_us > 0).all()), table.mpi[0].split()[0], table.suite[0])
    for text in refused:
        print("refused:", text)
    for total in totals or ():
        print(f"sum {total} of {comm.size}")
else:
    assert first is None
    assert second is None

"""Tables of applications as omb-py would write them, of any speed-ups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omb_py.results.application import ApplicationRow
from omb_py.results.csv_json import open_csv

ONE_RANK_S = 8.0


def row(ranks: int, speedup: float | None, spread: float = 0.0, **values: Any) -> ApplicationRow:
    """A run whose speed-up is one number, known to a relative ``spread`` on both sides."""
    found: dict[str, Any] = {"run": f"run-{ranks}", "application": "matmul", "ranks": ranks}
    found |= {"nodes": 1, "host_cores": 1024, "buffer": "numpy", "binding": "buffer"}
    found |= {
        "problem": "rows=8",
        "scaling": "strong",
        "threads": 1,
        "cores": ranks,
        "blas": "none",
        "repeats": 3,
    }
    seconds = ONE_RANK_S / (speedup or 1.0)
    found |= {"time_s": seconds, "compute_s": 0.75 * seconds, "wait_s": 0.25 * seconds}
    found |= {"time_low_s": seconds / (1 + spread), "time_high_s": seconds * (1 + spread)}
    if speedup is not None:
        found |= {"speedup": speedup, "efficiency": speedup / ranks}
        found |= {"speedup_low": speedup / (1 + spread), "speedup_high": speedup * (1 + spread)}
    return ApplicationRow(**found | values)


def write(path: Path, *rows: ApplicationRow, mpi: str = "MPICH Version: 5.0.2") -> Path:
    """A table with a run for each row, after what the file has already."""
    for one in rows:
        writer = open_csv(path, ApplicationRow, clear=False)
        writer.start({"run": one.run, "mpi_library": mpi})
        writer.row(one)
    return path

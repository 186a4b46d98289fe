"""Results of a library whose times are known, with noise of launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.guidelines.rules import COLLECTIVES, FORMS, of_blocks
from omb_py.analysis.table import of_rows

RANKS = 4
SIZES = (16, 64, 256, 1024, 4096)
Factors = Mapping[Any, float]
"""By how much a benchmark is slower at a size than in a sane library: keys are both."""


def sane(benchmark: str, size: int | None) -> float:
    """Microseconds that depend on all the data that is moved alone: each guideline just holds."""
    blocking = next((name for name in COLLECTIVES if name in forms_of(benchmark)), benchmark)
    total = (size or 0) * (RANKS if of_blocks(blocking) else 1)
    return 10 + total / 1000


def forms_of(benchmark: str) -> list[str]:
    """The blocking collectives that a name may be a form of."""
    return [
        name
        for name in COLLECTIVES
        if benchmark in (name, *(form.format(name) for form in FORMS.values()))
    ]


def results(
    benchmarks: Iterable[str],
    factors: Factors | None = None,
    launches: int = 10,
    noise: float = 0.03,
    seed: int = 0,
    time: Callable[[str, int | None], float] = sane,
    **columns: Any,
) -> pd.DataFrame:
    """Rows of alternating launches; each is slower or faster as a whole, each size by itself.

    Block sizes are such that they meet those of whole messages: a fourth of `SIZES` and `SIZES`.
    """
    drawn = np.random.default_rng(seed)
    rows = []
    for launch in range(launches):
        for name in benchmarks:
            whole = drawn.normal(0, noise)
            sizes: Iterable[int | None] = (None,) if name == "barrier" else SIZES
            for size in sizes:
                factor = (factors or {}).get((name, size), 1.0)
                value = time(name, size) * factor * np.exp(whole + drawn.normal(0, noise / 3))
                rows.append(
                    {
                        "run": f"{launch:03d}-{name}",
                        "benchmark": name,
                        "bytes": size,
                        "ranks": RANKS,
                        "suite": "omb-py 0.1.0",
                        "mpi": "MPICH 5.0.2",
                        "buffer": "numpy",
                        "binding": "native",
                        "latency_us": value / 2,
                        "sample_p50_us": value / 2,
                        "slowest_p50_us": value,
                    }
                    | columns
                )
    return of_rows(rows, {}).rows

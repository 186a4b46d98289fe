"""Samples whose distribution, drift and noise are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from omb_py.analysis.samples import MEASUREMENT, Numbers, Series
from omb_py.results.samples import DTYPE, SampleFile

GAP = 5e-7
"""Seconds between the end of an iteration and the start of the next."""


def series(samples: Numbers, size: int | None = 8, rank: int = 0) -> Series:
    """Samples in microseconds that were taken one after the other."""
    durations = samples * 1e-6
    starts = np.concatenate([[0.0], np.cumsum(durations + GAP)[:-1]])
    shared: dict[str, Any] = dict.fromkeys(MEASUREMENT) | {"benchmark": "latency", "ranks": 2}
    return Series(shared, size, rank, starts, samples, 1, 0.0)


def lognormal(generator: np.random.Generator, count: int, spread: float = 0.3) -> Numbers:
    """Noise as latencies have it: skewed, above 0, with one mode."""
    return 2.0 * np.exp(spread * generator.standard_normal(count))


def autoregressive(generator: np.random.Generator, count: int, rho: float) -> Numbers:
    """A stationary normal series of which neighbours have this correlation; median 0."""
    noise = generator.standard_normal(count) * np.sqrt(1 - rho**2)
    found = np.empty(count)
    found[0] = generator.standard_normal()
    for place in range(1, count):
        found[place] = rho * found[place - 1] + noise[place]
    return found


def write(path: Path, *members: Series) -> None:
    """A file of samples with these series."""
    file = SampleFile(path, clear=False)
    for one in members:
        rows = np.zeros(len(one.samples), DTYPE)
        rows["run"], rows["benchmark"], rows["binding"] = b"run", b"latency", b"buffer"
        rows["bytes"], rows["ranks"], rows["window"] = one.size, 2, -1
        rows["rank"], rows["every"] = one.rank, one.every
        rows["iteration"] = np.arange(len(one.samples))
        rows["start_us"], rows["sample_us"] = one.starts * 1e6, one.samples
        file.append(rows)
    file.finish()

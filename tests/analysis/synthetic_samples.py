"""Samples whose distribution is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from omb_py.results.samples import DTYPE, SampleFile


def series(samples: np.ndarray, size: int = 8, rank: int = 0) -> pd.DataFrame:
    """Samples in microseconds that a rank took one after the other, as a file has them."""
    same = {"run": "run", "benchmark": "latency", "binding": "buffer", "ranks": 2, "window": -1}
    same |= {"bytes": size, "rank": rank, "every": 1}
    own = {"iteration": np.arange(len(samples)), "sample_us": samples}
    texts = dict.fromkeys(name for name in DTYPE.names or () if DTYPE[name].kind == "S")
    empty = {**dict.fromkeys(DTYPE.names or (), 0), **dict.fromkeys(texts, "")}
    return pd.DataFrame(empty | same | own)


def lognormal(generator: np.random.Generator, count: int, spread: float = 0.3) -> np.ndarray:
    """Noise as latencies have it: skewed, above 0, with one mode."""
    return 2.0 * np.exp(spread * generator.standard_normal(count))


def write(path: Path, *members: pd.DataFrame) -> None:
    """A file of samples with these series."""
    file = SampleFile(path, clear=False)
    for one in members:
        rows = np.zeros(len(one), DTYPE)
        for name in one:
            rows[str(name)] = one[name]
        file.append(rows)
    file.finish()

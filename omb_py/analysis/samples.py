"""Samples: a row for each single iteration, in the order in which they were taken."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from omb_py.analysis.select import where as matching
from omb_py.core.errors import OmbError
from omb_py.results.samples import DTYPE, OF_ROW_AND_RANK, is_samples, not_samples

MEASUREMENT = tuple(name for name in OF_ROW_AND_RANK if name not in ("bytes", "rank"))
"""Columns that all samples of one figure share."""


def sample_files(path: str | Path) -> list[Path]:
    """Return the files of samples that a path stands for: itself, or those in a folder and below
    it."""
    place = Path(path)
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    return [file for file in files if is_samples(file)]


def load(paths: Iterable[str | Path], where: Iterable[str] = ()) -> pd.DataFrame:
    """Return the samples in files and folders, those that match ``COLUMN=VALUE`` texts.

    Raises `OmbError` if a path holds no samples, `UsageError` if no sample matches.
    """
    frames = []
    for path in dict.fromkeys(map(str, paths)):
        files = sample_files(path)
        if not files:
            raise OmbError(f"{path} holds no samples: name what omb-py BENCHMARK --samples wrote")
        frames += [read(file) for file in files]
    return matching(pd.concat(frames, ignore_index=True), where)


def read(path: Path) -> pd.DataFrame:
    """Return the samples of a file, with missing values if a row of results has none.

    Raises `UsageError` for a file of something else.
    """
    if not is_samples(path):
        raise not_samples(path)
    stored, columns = np.load(path, mmap_mode="r"), {}
    for name in DTYPE.names or ():
        values = np.ascontiguousarray(stored[name])
        if DTYPE[name].kind == "S":
            texts, codes = np.unique(values, return_inverse=True)
            values = np.array([text.decode() or None for text in texts.tolist()], object)[codes]
        elif name in ("bytes", "window") and (values == -1).any():
            values = np.where(values == -1, np.nan, values)
        columns[name] = values
    return pd.DataFrame(columns)

"""Series: the samples of one rank at one message size, in the order in which they were taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from omb_py.analysis.select import where as matching
from omb_py.core.errors import OmbError
from omb_py.results.samples import DTYPE, OF_ROW_AND_RANK, is_samples, not_samples

Numbers = NDArray[np.float64]

WITHIN = ("bytes", "rank")
"""Columns in which the series of one figure differ."""

MEASUREMENT = tuple(name for name in OF_ROW_AND_RANK if name not in WITHIN)
"""Columns that all series of one figure share."""


@dataclass(frozen=True)
class Series:
    """Samples in microseconds, in order; ``starts`` are when they began, in seconds.

    ``size`` is the message size, None where there is none. ``shared`` has the values of
    `MEASUREMENT`; ``every`` says of how many iterations one was kept, ``start_error`` by how many
    seconds starts are off at most.
    """

    shared: dict[str, Any]
    size: int | None
    rank: int
    starts: Numbers
    samples: Numbers
    every: int
    start_error: float


def sample_files(path: str | Path) -> list[Path]:
    """The files of samples that a path stands for: itself, or those in a folder and below it."""
    place = Path(path)
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    return [file for file in files if is_samples(file)]


def load(paths: Iterable[str | Path], where: Iterable[str] = ()) -> list[Series]:
    """The series in files and folders, those that match ``COLUMN=VALUE`` texts.

    Raises `OmbError` where a path holds no samples, `UsageError` where no series matches.
    """
    frames = []
    for path in dict.fromkeys(map(str, paths)):
        files = sample_files(path)
        if not files:
            raise OmbError(f"{path} holds no samples: name what omb-py BENCHMARK --samples wrote")
        frames += [read(file) for file in files]
    return list(series_of(matching(pd.concat(frames, ignore_index=True), where)))


def read(path: Path) -> pd.DataFrame:
    """The samples of a file, with missing values where a row of results has none.

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


def series_of(frame: pd.DataFrame) -> Iterator[Series]:
    """The series of a table of samples, in the order of their first samples."""
    groups = frame.groupby(list(OF_ROW_AND_RANK), sort=False, dropna=False, observed=True)
    for key, part in groups:
        values: dict[str, Any] = {
            name: None if pd.isna(value) else value
            for name, value in zip(OF_ROW_AND_RANK, key, strict=True)
        }
        size = values["bytes"]
        yield Series(
            {name: values[name] for name in MEASUREMENT},
            None if size is None else int(size),
            int(values["rank"]),
            part["start_us"].to_numpy(np.float64) / 1e6,
            part["sample_us"].to_numpy(np.float64),
            int(part["every"].iloc[0]),
            float(part["start_error_us"].iloc[0]) / 1e6,
        )


def measurements(series: Iterable[Series]) -> list[dict[int | None, list[Series]]]:
    """Series apart by what was measured, those of one figure together, by their message size."""
    found: dict[tuple[Any, ...], dict[int | None, list[Series]]] = {}
    for one in series:
        sizes = found.setdefault(tuple(one.shared.values()), {})
        sizes.setdefault(one.size, []).append(one)
    return list(found.values())

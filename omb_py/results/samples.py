"""Samples in files: the time of every iteration, as a structured NumPy array.

A row of samples contains the identity of its row of the results.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from omb_py.core.errors import UsageError
from omb_py.core.text.files import failing, make_folder
from omb_py.results.sink import lock

if TYPE_CHECKING:
    from omb_py.results.columns import Row

DTYPE = np.dtype(
    [
        ("run", "S24"),
        ("benchmark", "S48"),
        ("buffer", "S24"),
        ("binding", "S24"),
        ("mpi_type", "S32"),
        ("variant", "S64"),
        ("bytes", "<i8"),
        ("ranks", "<i4"),
        ("window", "<i4"),
        ("round_trips", "<i4"),
        ("every", "<i4"),
        ("rank", "<i4"),
        ("iteration", "<i8"),
        ("sample_us", "<f8"),
    ]
)
"""A sample. The first columns are those of the row of results that it belongs to, -1 or empty if
that has none; docs/statistics.md explains the others."""

OF_ROW = ("run", "benchmark", "buffer", "binding", "mpi_type", "variant", "bytes", "ranks")
"""Columns that tell which row of results a sample is of."""

ADVICE = "; choose another place for --samples"


def description(row: Row, round_trips: int, every: int) -> dict[str, Any]:
    """Return the columns that all samples of a row of results have in common.

    One of ``every`` iterations was kept. Raises `UsageError` for a text that is too long.
    """
    found: dict[str, Any] = {"round_trips": round_trips, "every": every}
    for name in (*OF_ROW, "window"):
        value = getattr(row, name)
        if DTYPE[name].kind != "S":
            found[name] = -1 if value is None else value
            continue
        text = (value or "").encode()
        if len(text) > DTYPE[name].itemsize:
            raise UsageError(
                f"{name} {value!r} has more than the {DTYPE[name].itemsize} bytes that --samples "
                "can hold: choose a shorter one"
            )
        found[name] = text
    return found


def is_samples(path: Path) -> bool:
    """Return whether a file is one of samples; false if it cannot be read."""
    try:
        # opening a pipe without a writer would wait
        if path.suffix != ".npy" or not path.is_file():
            return False
        with path.open("rb") as file:
            return read_header(file) is not None
    except OSError:
        return False


def read_header(file: Any) -> int | None:
    """Return the number of samples in a NumPy file's header; None for another file."""
    try:
        if npy.read_magic(file) != (1, 0):
            return None
        shape, fortran, dtype = npy.read_array_header_1_0(file)
    except ValueError:
        return None
    return int(shape[0]) if dtype == DTYPE and len(shape) == 1 and not fortran else None


def header(count: int) -> bytes:
    """Return the beginning of a NumPy file of ``count`` samples; as long for any number."""
    out = io.BytesIO()
    described = {"descr": npy.dtype_to_descr(DTYPE), "fortran_order": False, "shape": (count,)}
    npy.write_array_header_1_0(out, described)
    return out.getvalue()


HEADER_BYTES = len(header(0))


class SampleFile:
    """The file of ``--samples``, which grows: whole samples are added, then the header counts them.

    What a killed job added without counting is no part of the array, and is overwritten next.
    """

    def __init__(self, path: Path, clear: bool) -> None:
        """Open ``path`` to add to it, or to replace what it holds with ``clear``.

        It is unchanged until something is added. Raises `UsageError` if it holds something else,
        `OmbError` if it cannot be written.
        """
        self.path = path
        self._clear = clear
        with failing("write", path, advice=ADVICE):
            make_folder(path.parent)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            self._file = os.fdopen(descriptor, "r+b", buffering=0)
            try:
                lock(descriptor, seconds=0)
            except BlockingIOError as error:
                self._file.close()
                raise UsageError(
                    f"another job is writing its samples to {path}: choose another name for "
                    "--samples"
                ) from error
            size = 0 if clear else os.fstat(descriptor).st_size
            found = read_header(self._file) if size else 0
            if found is None:
                self._file.close()
                raise not_samples(path)
            self.count = min(found, max(0, size - HEADER_BYTES) // DTYPE.itemsize)

    def append(self, samples: np.ndarray[Any, Any]) -> None:
        """Add samples; raises `OmbError` when they cannot be written."""
        with failing("write", self.path, advice=ADVICE):
            if self._clear:
                self._file.truncate(0)
                self._clear = False
            self._write(samples.tobytes(), HEADER_BYTES + self.count * DTYPE.itemsize)
            self.count += len(samples)
            self._write(header(self.count), 0)

    def finish(self) -> None:
        """Close the file after the last sample."""
        self._file.close()

    def _write(self, content: bytes, place: int) -> None:
        self._file.seek(place)
        rest = memoryview(content)
        while rest:
            rest = rest[self._file.write(rest) :]


def not_samples(path: Path) -> UsageError:
    """Return the error sentence for a file with other content."""
    return UsageError(
        f"{path} is not a file of this version's samples: choose another name for --samples, or "
        "overwrite it with --force"
    )

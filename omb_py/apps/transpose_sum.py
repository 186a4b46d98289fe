"""The sum of an array and its transpose, as arrays of Dask are measured: all blocks go to all.

MPI4Dask (Shafi et al., arXiv 2101.08878) measures ``(x + x.T).sum()``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

from omb_py.apps import (
    Application,
    CheckedResult,
    Kernel,
    Preset,
    Sequential,
    option,
    share,
    shares,
)
from omb_py.apps.runtime.distribution import collect, random_numbers
from omb_py.apps.runtime.team import Team
from omb_py.core.calls import Call, Form
from omb_py.core.errors import UsageError

LARGEST_ELEMENT = 255
"""Elements are whole numbers up to this, so that sums are exact in any order."""

MAX_COMPARED = 1 << 24
"""Elements of an array that rank 0 still compares one by one; of a larger one only the sum."""


@dataclass(frozen=True)
class Square:
    """A square array of ``size`` x ``size`` elements."""

    size: int = option(3000, "Rows and columns of the array.", minimum=1)
    dtype: str = option("float64", "Element type.", choices=("float32", "float64"))
    seed: int = option(1, "Of the generated elements.", minimum=0)

    @property
    def nbytes(self) -> int:
        """The array's size in bytes."""
        return self.size**2 * {"float32": 4, "float64": 8}[self.dtype]


class Transpose:
    """The blocks of a square array whose rows are divided, on their way to two or more ranks.

    Each rank has a block for every other one. A block goes as it is, row by row, so that what
    arrives from all ranks, back to back, is ``columns``, all rows of this rank's columns: its
    ``.T`` are the rows of the transpose. ``exchange`` fills it from what was packed.
    """

    def __init__(self, team: Team, size: int, dtype: str) -> None:
        """Each of the ranks has at least one of ``size`` rows."""
        lengths = shares(size, team.ranks)
        own = lengths[team.rank]
        packed = team.array(own * size, dtype)
        self.columns = team.array((size, own), dtype)
        self._blocks = []
        for rank in range(team.ranks):
            begin, end = share(size, team.ranks, rank)
            block = packed.data[own * begin : own * end].reshape(own, end - begin)
            self._blocks.append((slice(begin, end), block))
        form: Form = "v" if size % team.ranks else ""
        counts = [own * other for other in lengths]
        sides = packed.message(counts, form), self.columns.message(counts, form)
        self.exchange = team.bind(Call(f"alltoall{form}", sides))

    def pack(self, rows: Any) -> None:
        """Put each rank's block of this rank's rows where ``exchange`` takes it."""
        for columns, block in self._blocks:
            block[...] = rows[:, columns]


class TransposeSum(Kernel[Square]):
    """Pack blocks, exchange them between all ranks, add, sum up.

    Rows are divided, and each rank generates its own, so that no rank distributes data.
    """

    def __init__(self, team: Team, problem: Square) -> None:
        super().__init__(team, problem)
        size, dtype = problem.size, problem.dtype
        check_ranks(problem, team.ranks)
        begin, end = share(size, team.ranks, team.rank)
        self._rows = team.filled(generate(problem, begin, end))
        self._sums = team.array((end - begin, size), dtype)
        self._own = team.array(1, "float64")
        self._total = self._own
        self._transpose: Transpose | None = None
        if team.ranks > 1:
            self._transpose = Transpose(team, size, dtype)
            self._total = team.array(1, "float64")
            total = self._total.message() if team.rank == 0 else None
            reduce = Call("reduce", (self._own.message(), total), op="sum", root=0)
            self._reduce = team.bind(reduce)

    def solve(self) -> None:
        team, rows, sums, transpose = self.team, self._rows.data, self._sums.data, self._transpose
        columns = rows
        if transpose is not None:
            with team.computing:
                transpose.pack(rows)
            transpose.exchange()
            columns = transpose.columns.data
        with team.computing:
            team.xp.add(rows, columns.T, out=sums)
            self._own.data[...] = sums.sum(dtype="float64")
        if transpose is not None:
            self._reduce()

    def result(self) -> Any:
        """Return the sum and, of an array that is not too large, x + x.T."""
        whole = None
        if self.problem.size**2 <= MAX_COMPARED:
            whole = collect(self.team, self._sums.data)
        return float(self.team.on_host(self._total.data)[0]), whole


def check_ranks(problem: Square, ranks: int) -> None:
    """Raise `UsageError` if a rank would be without a row."""
    if problem.size < ranks:
        raise UsageError(
            f"--size {problem.size} is less than one for each of {ranks} ranks: choose --size "
            f"{ranks} or more, or start fewer ranks"
        )


def generate(problem: Square, begin: int, end: int) -> Any:
    """Return rows ``begin`` to ``end`` of the array."""
    import numpy as np

    size = problem.size
    numbers = random_numbers((problem.seed,), begin * size, end * size)
    elements = np.floor(numbers * (LARGEST_ELEMENT + 1), out=numbers)
    return elements.astype(problem.dtype).reshape(end - begin, size)


def sequential(problem: Square) -> Sequential:
    """Return NumPy's sum, in double precision, and its array."""
    import numpy as np

    rows = generate(problem, 0, problem.size)

    def solve() -> tuple[float, Any]:
        sums = rows + rows.T
        return float(sums.sum(dtype=np.float64)), sums

    return Sequential("NumPy", solve)


def compare(problem: Square, result: Any, reference: Any) -> CheckedResult:
    """Compare exactly: all values are whole numbers."""
    import numpy as np

    total, parts = result
    expected, sums = reference
    difference = abs(total - expected)
    text = f"the sum is {total:.0f}, NumPy's {expected:.0f}"
    if parts is None:
        text += f"; of more than {isqrt(MAX_COMPARED)} rows no more is compared"
        return CheckedResult(difference == 0, text, difference)
    wrong = int((np.concatenate(parts) != sums.reshape(-1)).sum())
    text += f"; {wrong} of {sums.size} elements differ"
    return CheckedResult(difference == wrong == 0, text, difference)


def weak_scaled(problem: Square, ranks: int) -> Square:
    """Return so many times the elements, as near as an evenly divided size can come."""
    return replace(problem, size=ranks * max(1, round(problem.size / ranks**0.5)))


APPLICATION = Application(
    name="transpose_sum",
    title="Sum of an Array and its Transpose",
    summary="Sum of x + x.T, rows divided over the ranks: all blocks go to all ranks.",
    problem=Square,
    kernel=TransposeSum,
    metric=lambda problem, seconds: problem.nbytes / seconds / 1e9,
    unit="GB/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=weak_scaled,
    presets={"dask-cuda": Preset("its local_cupy benchmark", {"size": 10_000, "repeats": 3})},
    details="GB/s are the array's bytes per second.",
)

"""The two-dimensional Fourier transform by the transpose method, whose cost is the transpose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import Any

from omb_py.apps import Application, CheckedResult, Kernel, Sequential, option, share
from omb_py.apps.runtime.distribution import Transpose, check_shares, collect, random_numbers
from omb_py.apps.runtime.team import Team


@dataclass(frozen=True)
class Plane:
    """A plane of ``rows`` x ``columns`` complex numbers."""

    rows: int = option(2048, "Rows of the plane.", minimum=1)
    columns: int = option(1024, "Columns of the plane.", minimum=1)
    dtype: str = option("complex128", "Element type.", choices=("complex64", "complex128"))
    transposed_out: bool = option(
        False, "Leave the columns divided, as FFTW_MPI_TRANSPOSED_OUT does: one transpose less."
    )
    seed: int = option(1, "Of the generated elements.", minimum=0)

    @property
    def elements(self) -> int:
        """Elements of the plane."""
        return self.rows * self.columns


class Fourier(Kernel[Plane]):
    """Transform rows, exchange blocks, transform columns, exchange blocks back.

    Rows are divided, and each rank generates its own, so that no rank distributes data.
    """

    def __init__(self, team: Team, problem: Plane) -> None:
        super().__init__(team, problem)
        check_shares(team, rows=problem.rows, columns=problem.columns)
        begin, end = share(problem.rows, team.ranks, team.rank)
        self._rows = team.filled(generate(problem, begin, end))
        self._found: Any = None
        self._transpose: Transpose | None = None
        if team.ranks > 1:
            shape = problem.rows, problem.columns
            self._transpose = Transpose(team, shape, problem.dtype)
            if not problem.transposed_out:
                self._found = team.array((end - begin, problem.columns), problem.dtype).data

    def solve(self) -> None:
        team, fft, rows, transpose = self.team, self.team.xp.fft, self._rows.data, self._transpose
        if transpose is None:
            with team.computing:
                self._found = fft.fft2(rows)
            return
        columns = transpose.columns.data
        with team.computing:
            transpose.pack(fft.fft(rows, axis=1))
        transpose.to_columns()
        if self.problem.transposed_out:
            with team.computing:
                self._found = fft.fft(columns, axis=0)
            return
        with team.computing:
            columns[...] = fft.fft(columns, axis=0)
        transpose.to_rows()
        with team.computing:
            transpose.unpack(self._found)

    def result(self) -> Any:
        parts = collect(self.team, self._found)
        if parts is None:
            return None
        import numpy as np

        problem, ranks = self.problem, self.team.ranks
        if problem.transposed_out and ranks > 1:
            blocks = [part.reshape(problem.rows, -1) for part in parts]
            return np.concatenate(blocks, axis=1)
        return np.concatenate(parts).reshape(problem.rows, problem.columns)


def generate(problem: Plane, begin: int, end: int) -> Any:
    """Return rows ``begin`` to ``end`` of the plane, of numbers whose parts are from -1 to 1."""
    row = 2 * problem.columns
    numbers = random_numbers((problem.seed,), begin * row, end * row)
    numbers *= 2
    numbers -= 1
    return numbers.view("complex128").astype(problem.dtype).reshape(end - begin, -1)


def sequential(problem: Plane) -> Sequential:
    """Return NumPy's transform."""
    import numpy as np

    rows = generate(problem, 0, problem.rows)
    return Sequential("NumPy", lambda: np.fft.fft2(rows))


def compare(problem: Plane, plane: Any, reference: Any) -> CheckedResult:
    """Compare; the difference may be epsilon times log2 of the elements, as a fraction of the norm.

    The error of a fast Fourier transform grows no faster (Gentleman and Sande, Fast Fourier
    Transforms: for fun and profit, 1966).
    """
    import numpy as np

    difference = float(np.linalg.norm(plane - reference) / np.linalg.norm(reference))
    limit = float(np.finfo(problem.dtype).eps) * max(1.0, log2(problem.elements))
    text = f"the norm of the difference from NumPy's is {difference:.2g} of it (limit {limit:.2g})"
    return CheckedResult(difference <= limit, text, difference)


APPLICATION = Application(
    name="fft_transpose",
    title="Two-Dimensional Fourier Transform",
    summary="Complex 2-D FFT, rows divided over the ranks, with global transposes.",
    problem=Plane,
    kernel=Fourier,
    metric=lambda problem, seconds: 5 * problem.elements * log2(problem.elements) / seconds / 1e9,
    unit="GFLOP/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=lambda problem, ranks: replace(problem, rows=problem.rows * ranks),
    details="N elements count as 5 N log2 N operations, the convention of FFTW's benchmarks "
    "(fftw.org/speed/method.html), whatever the algorithm does.",
)

"""The sum of an array and its transpose, as MPI4Dask (arXiv 2101.08878) measures ``(x + x.T)``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from omb_py.apps import Application, CheckedResult, Kernel, Sequential, option, share, shares
from omb_py.apps.runtime.distribution import exchange, exchange_option
from omb_py.apps.runtime.team import Team
from omb_py.core.calls import Call


@dataclass(frozen=True)
class Square:
    """An array of ``size`` x ``size`` elements in double precision."""

    size: int = option(3000, "Rows and columns of the array.", minimum=1)
    exchange: str = exchange_option()


class TransposeSum(Kernel[Square]):
    """Copy the tiles of own rows, exchange them, add what came, all rows of own columns; sum."""

    def __init__(self, team: Team, problem: Square) -> None:
        super().__init__(team, problem)
        size, lengths = problem.size, shares(problem.size, team.ranks)
        self._bounds, own = share(size, team.ranks, team.rank), lengths[team.rank]
        self._rows = self._columns = team.filled(elements(self._bounds, (0, size)))
        self._sums = team.array((own, size), "float64")
        self._own = self._total = team.array(1, "float64")
        self._tiles: list[tuple[Any, Any]] = []
        self._exchange = self._reduce = team.bind()
        if team.ranks == 1:
            return
        packed, self._columns = (
            team.array(shape, "float64") for shape in (own * size, (size, own))
        )
        for begin, end in (share(size, team.ranks, to) for to in range(team.ranks)):
            tile = packed.data[own * begin : own * end].reshape(own, end - begin)
            self._tiles.append((tile, self._rows.data[:, begin:end]))
        counts = [own * length for length in lengths]
        sides = (array.message(counts, "v") for array in (packed, self._columns))
        self._exchange = exchange(team, problem.exchange, *sides)
        self._total = team.array(1, "float64")
        total = self._total.message() if team.rank == 0 else None
        self._reduce = team.bind(Call("reduce", (self._own.message(), total), op="sum", root=0))

    def solve(self) -> None:
        team = self.team
        with team.part("partition"), team.computing:
            for tile, part in self._tiles:
                tile[...] = part
        with team.part("exchange"):
            self._exchange()
        with team.part("sum"):
            with team.computing:
                team.xp.add(self._rows.data, self._columns.data.T, out=self._sums.data)
                self._own.data[...] = self._sums.data.sum()
            self._reduce()

    def result(self) -> Any:
        """Return the sum, and the wrong elements of each rank's rows of x + x.T."""
        team, rows, every = self.team, self._bounds, (0, self.problem.size)
        wrong = team.on_host(self._sums.data) != elements(rows, every) + elements(every, rows).T
        total = float(team.on_host(self._total.data)[0])
        return total, team.comm.gather(int(wrong.sum()))


def elements(rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """Return a tile of the array: whole numbers below 251, so that sums are exact in any order."""
    import numpy as np

    return (np.arange(*rows)[:, None] * 17 + np.arange(*columns) * 5) % 251 * 1.0


def sequential(problem: Square) -> Sequential:
    """Return NumPy's sum."""
    x = elements((0, problem.size), (0, problem.size))
    return Sequential("NumPy", lambda: float((x + x.T).sum()))


def compare(problem: Square, found: Any, reference: float) -> CheckedResult:
    """Compare exactly: all values are whole numbers."""
    total, wrong = found[0], sum(found[1])
    text = f"the sum is {total:.0f}, NumPy's {reference:.0f}; {wrong} elements differ"
    return CheckedResult(total == reference and not wrong, text, abs(total - reference))


APPLICATION = Application(
    name="transpose_sum",
    title="Sum of an Array and its Transpose",
    summary="Sum of x + x.T, rows divided over the ranks, which exchange tiles.",
    problem=Square,
    kernel=TransposeSum,
    metric=lambda problem, seconds: problem.size**2 * 8 / seconds / 1e9,
    unit="GB/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=lambda old, n: replace(old, size=n * max(1, round(old.size / n**0.5))),
    details="GB/s are the array's bytes per second.",
)

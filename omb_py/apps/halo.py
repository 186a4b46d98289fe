"""Jacobi's method on a grid divided over a grid of ranks, which exchange their outermost cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from omb_py.apps import (
    Application,
    CheckedResult,
    Detail,
    Kernel,
    Sequential,
    option,
)
from omb_py.apps.numerics.grid import (
    EVERYWHERE,
    Block,
    Columns,
    Ghosts,
    Stencil,
    block_of,
    regions,
)
from omb_py.apps.runtime.distribution import collect, random_numbers
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls.topology import grid
from omb_py.core.errors import UsageError


@dataclass(frozen=True)
class Grid:
    """Laplace's equation on ``rows`` x ``columns`` unknowns, between cells of known values."""

    rows: int = option(1024, "Rows of unknowns.", minimum=1)
    columns: int = option(1024, "Columns of unknowns.", minimum=1)
    steps: int = option(20, "Times that all unknowns are updated.", minimum=1)
    overlap: bool = option(
        False, "Update the cells that need no neighbour's while messages are under way."
    )
    seed: int = option(
        1, "Of the values to begin with, those around the grid among them.", minimum=0
    )


class Jacobi(Kernel[Grid]):
    """Exchange ghost cells, update, and so on, from one of two fields to the other.

    Giving each rank its block is copying the values to begin with, which it has generated.
    """

    def __init__(self, team: Team, problem: Grid) -> None:
        super().__init__(team, problem)
        check_fits(problem, team.ranks)
        block = block_of((problem.rows, problem.columns), team.ranks, team.rank)
        values = generate(problem, block.rows, block.columns)
        self._begin = team.filled(values)
        fields = team.filled(values), team.filled(values)
        columns = Columns(team, block)
        self._fields = fields
        self._steps = [
            Update(team, block, fields[old], fields[1 - old], columns, problem.overlap)
            for old in (0, 1)
        ]

    def distribute(self) -> None:
        self._fields[0].data[...] = self._begin.data

    def solve(self) -> None:
        even, odd = self._steps
        pairs, last = divmod(self.problem.steps, 2)
        for _ in range(pairs):
            even.run()
            odd.run()
        if last:
            even.run()

    def result(self) -> Any:
        """Return the unknowns of the whole grid."""
        problem, ranks = self.problem, self.team.ranks
        found = collect(self.team, self._fields[problem.steps % 2].data[1:-1, 1:-1])
        if found is None:
            return None
        import numpy as np

        whole = np.empty((problem.rows, problem.columns))
        for rank, cells in enumerate(found):
            block = block_of(whole.shape, ranks, rank)
            whole[slice(*block.rows), slice(*block.columns)] = cells.reshape(block.shape)
        return whole

    def parts(self) -> list[Detail]:
        """Return the residual before the last step: four times the change of that step."""
        old, new = (field.data[1:-1, 1:-1] for field in self._fields)
        squares = self.team.xp.square(4 * (new - old)).sum()
        found = collect(self.team, squares)
        if found is None:
            return []
        return [Detail("residual", value=math.sqrt(sum(float(one[0]) for one in found)))]


class Update:
    """One step, from one field to the other."""

    def __init__(
        self,
        team: Team,
        block: Block,
        old: Array,
        new: Array,
        columns: Columns,
        overlap: bool,
    ) -> None:
        self._team = team
        self._ghosts = Ghosts(team, block, old, columns)
        first, later = regions(block) if overlap else ([], [EVERYWHERE])
        self._while_waiting, self._after = (
            [Stencil(team, old.data, new.data, rows, cells) for rows, cells in some]
            for some in (first, later)
        )

    def run(self) -> None:
        """Do it."""
        team, xp, exchange = self._team, self._team.xp, self._ghosts
        with team.computing:
            exchange.pack()
        exchange.start()
        if self._while_waiting:
            with team.computing:
                for stencil in self._while_waiting:
                    stencil.update(xp)
        exchange.wait()
        with team.computing:
            exchange.unpack()
            for stencil in self._after:
                stencil.update(xp)


def check_fits(problem: Grid, ranks: int) -> None:
    """Raise `UsageError` if a rank would be without a cell."""
    lengths = grid(ranks, 2)
    for name, cells, parts in zip(
        ("rows", "columns"), (problem.rows, problem.columns), lengths, strict=True
    ):
        if cells < parts:
            raise UsageError(
                f"{ranks} ranks are a grid of {lengths[0]} x {lengths[1]}, for which --{name} "
                f"{cells} is too few: choose --{name} {parts} or more, or start fewer ranks"
            )


def generate(problem: Grid, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """Return the initial values of some unknowns and of the cells around them, from 0 to 1."""
    import numpy as np

    width = problem.columns + 2
    spans = (
        (row * width + columns[0], row * width + columns[1] + 2)
        for row in range(rows[0], rows[1] + 2)
    )
    return np.stack([random_numbers((problem.seed,), *span) for span in spans])


def sequential(problem: Grid) -> Sequential:
    """Return the reference: these steps as a NumPy expression; a solution has no border."""
    begin = generate(problem, (0, problem.rows), (0, problem.columns))

    def solve() -> Any:
        old, new = begin.copy(), begin.copy()
        for _ in range(problem.steps):
            new[1:-1, 1:-1] = 0.25 * (
                old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
            )
            old, new = new, old
        return old[1:-1, 1:-1]

    return Sequential("NumPy", solve)


def compare(problem: Grid, found: Any, reference: Any) -> CheckedResult:
    """Compare exactly: the arithmetic is the same in the same order."""
    import numpy as np

    difference = float(np.abs(found - reference).max())
    text = f"cells differ from NumPy's by {difference:.2g} (limit 0)"
    return CheckedResult(difference == 0, text, difference)


APPLICATION = Application(
    name="halo",
    title="Jacobi Iteration with Halo Exchange",
    summary="Five-point Jacobi steps on a grid divided over a grid of ranks.",
    problem=Grid,
    kernel=Jacobi,
    metric=lambda problem, seconds: problem.rows * problem.columns * problem.steps / seconds / 1e6,
    unit="Mlup/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=lambda problem, ranks: replace(problem, rows=problem.rows * ranks),
    details="Mlup/s are million lattice updates per second: cells times steps.",
)

"""Jacobi's method on a grid divided over a grid of ranks, which exchange their outermost cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from omb_py.apps import (
    Application,
    CheckedResult,
    Detail,
    Kernel,
    Sequential,
    option,
    share,
)
from omb_py.apps.runtime.distribution import random_numbers
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call, Slot
from omb_py.core.calls.topology import coordinates, grid
from omb_py.core.errors import UsageError

Region = tuple[slice, slice]
"""Rows and columns of a block."""

EVERYWHERE: Region = (slice(None), slice(None))

TAG = 0
"""One is enough: two ranks are neighbours on one side only."""


@dataclass(frozen=True)
class Block:
    """A rank's cells of a grid that is divided over a grid of ranks.

    ``rows`` and ``columns`` are where its cells begin and end; its neighbours are ranks, or None at
    the grid's edge.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    north: int | None
    south: int | None
    west: int | None
    east: int | None

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""
        return self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]


def block_of(shape: tuple[int, int], ranks: int, rank: int) -> Block:
    """Return the block of a rank when ranks form a grid that is as square as can be."""
    lengths = grid(ranks, 2)
    row, column = coordinates(rank, lengths)

    def neighbor(down: int, right: int) -> int | None:
        inside = 0 <= row + down < lengths[0] and 0 <= column + right < lengths[1]
        return rank + down * lengths[1] + right if inside else None

    return Block(
        share(shape[0], lengths[0], row),
        share(shape[1], lengths[1], column),
        neighbor(-1, 0),
        neighbor(1, 0),
        neighbor(0, -1),
        neighbor(0, 1),
    )


Column: TypeAlias = tuple[int, Array]
"""Where a column is in a field, and memory for it: columns are not contiguous."""

Columns: TypeAlias = list[tuple[int, Column, Column]]
"""Neighbours, each with the column sent to it and the one received."""


def columns_of(team: Team, block: Block) -> Columns:
    """Return the columns that a rank sends and receives."""
    rows = block.shape[0]
    return [
        (neighbor, (sent, team.array(rows, "float64")), (ghost, team.array(rows, "float64")))
        for neighbor, sent, ghost in ((block.west, 1, 0), (block.east, -2, -1))
        if neighbor is not None
    ]


class Ghosts:
    """The exchange of a field's outermost cells with the neighbours, by non-blocking calls.

    ``start`` and ``wait`` communicate; `pack` and `unpack` copy columns and are computing. Rows go
    from where they are to where they belong.
    """

    def __init__(self, team: Team, block: Block, field: Array, columns: Columns) -> None:
        """``field`` has the rank's cells and one more on each side."""
        self._data = field.data
        self._columns = columns
        rows, length = block.shape
        cells, width = field.shaped(field.data.size), length + 2
        ends = ((block.north, 1, 0), (block.south, rows, rows + 1))
        receives, sends = [], []
        for neighbor, sent, ghost in ends:
            if neighbor is not None:
                outgoing, incoming = (
                    cells.rows(row * width + 1, row * width + 1 + length) for row in (sent, ghost)
                )
                receives.append(_call("irecv", incoming, neighbor))
                sends.append(_call("isend", outgoing, neighbor))
        for neighbor, (_, packed), (_, arrived) in columns:
            receives.append(_call("irecv", arrived, neighbor))
            sends.append(_call("isend", packed, neighbor))
        calls = [*receives, *sends]
        slot = Slot(len(calls))
        placed = (replace(call, slot=slot, index=index) for index, call in enumerate(calls))
        self.start = team.bind(*placed)
        self.wait = team.bind(*[Call("waitall", slot=slot)] * bool(calls))

    def pack(self) -> None:
        """Copy the outermost columns into the memory that they are sent from."""
        for _, (column, packed), _ in self._columns:
            packed.data[...] = self._data[1:-1, column]

    def unpack(self) -> None:
        """Copy the columns that came to the ghost cells."""
        for _, _, (column, arrived) in self._columns:
            self._data[1:-1, column] = arrived.data


def _call(function: str, array: Array, neighbor: int) -> Call:
    return Call(function, (array.message(),), neighbor, TAG)


STRIP_BYTES = 256 << 10
"""Bytes of the sums of a strip: they stay in the second-level cache of most processors."""


class Stencil:
    """Five-point updates of some of a rank's cells: each becomes the mean of its neighbours.

    On the host by strips whose sums stay in the cache; on a device as a whole.
    """

    def __init__(self, team: Team, old: Any, new: Any, rows: slice, columns: slice) -> None:
        """``old`` and ``new`` have a cell more on each side than ``rows`` and ``columns`` count."""
        around = old[:-2, 1:-1], old[2:, 1:-1], old[1:-1, :-2], old[1:-1, 2:]
        views = [view[rows, columns] for view in (*around, new[1:-1, 1:-1])]
        height, width = views[-1].shape
        on_host = team.buffer.device is None
        step = min(height, max(1, STRIP_BYTES // (8 * width))) if on_host else height
        scratch = team.xp.empty((step, width)) if on_host else views[-1]
        self._strips = [
            (*(view[top : top + step] for view in views), scratch[: min(step, height - top)])
            for top in range(0, height, step)
        ]

    def update(self, xp: Any) -> None:
        """Update them."""
        for north, south, west, east, new, sums in self._strips:
            xp.add(north, south, out=sums)
            xp.add(sums, west, out=sums)
            xp.add(sums, east, out=sums)
            xp.multiply(sums, 0.25, out=new)


def regions(block: Block) -> tuple[list[Region], list[Region]]:
    """Return a block's cells that need no ghost cell of a neighbour, and those that do."""
    rows, columns = block.shape
    top, bottom = int(block.north is not None), rows - int(block.south is not None)
    left, right = int(block.west is not None), columns - int(block.east is not None)
    whole = slice(0, columns)
    if top >= bottom or left >= right:
        return [], [(slice(0, rows), whole)]
    middle = slice(top, bottom)
    border = [
        (slice(0, top), whole),
        (slice(bottom, rows), whole),
        (middle, slice(0, left)),
        (middle, slice(right, columns)),
    ]
    inner = [(middle, slice(left, right))]
    return inner, [region for region in border if all(one.start < one.stop for one in region)]


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
        columns = columns_of(team, block)
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
        own = self._fields[problem.steps % 2].data[1:-1, 1:-1]
        found = self.team.comm.gather(self.team.on_host(own))
        if found is None:
            return None
        import numpy as np

        whole = np.empty((problem.rows, problem.columns))
        for rank, cells in enumerate(found):
            block = block_of(whole.shape, ranks, rank)
            whole[slice(*block.rows), slice(*block.columns)] = cells
        return whole

    def parts(self) -> list[Detail]:
        """Return the residual before the last step: four times the change of that step."""
        old, new = (field.data[1:-1, 1:-1] for field in self._fields)
        squares = self.team.xp.square(4 * (new - old)).sum()
        found = self.team.comm.gather(float(squares))
        return [] if found is None else [Detail("residual", value=math.sqrt(sum(found)))]


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
        """Make one step: exchange the ghosts, and compute the block."""
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

"""A block of a grid with a border of ghost cells, which the ranks beside it fill."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omb_py.apps import share
from omb_py.calls import Call, Cell
from omb_py.measure.team import Array, Team
from omb_py.topology import coordinates, grid

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
    """The block of a rank when ranks form a grid that is as square as can be."""
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


class Columns:
    """Memory for the columns that a rank sends and receives, which are not contiguous."""

    def __init__(self, team: Team, block: Block) -> None:
        """``sides`` has the neighbour, the column sent and the one received, with their memory."""
        rows = block.shape[0]
        places = ((block.west, 1, 0), (block.east, -2, -1))
        self.sides = [
            (neighbor, (sent, team.array(rows, "float64")), (ghost, team.array(rows, "float64")))
            for neighbor, sent, ghost in places
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
        for neighbor, (_, packed), (_, arrived) in columns.sides:
            receives.append(_call("irecv", arrived, neighbor))
            sends.append(_call("isend", packed, neighbor))
        calls = [*receives, *sends]
        cell = Cell(len(calls))
        placed = (replace(call, cell=cell, index=index) for index, call in enumerate(calls))
        self.start = team.bind(*placed)
        self.wait = team.bind(*[Call("waitall", cell=cell)] * bool(calls))

    def pack(self) -> None:
        """Copy the outermost columns to where they are sent from."""
        for _, (column, packed), _ in self._columns.sides:
            packed.data[...] = self._data[1:-1, column]

    def unpack(self) -> None:
        """Copy the columns that came to the ghost cells."""
        for _, _, (column, arrived) in self._columns.sides:
            self._data[1:-1, column] = arrived.data


def _call(function: str, array: Array, neighbor: int) -> Call:
    return Call(function, (array.message(),), neighbor, TAG)

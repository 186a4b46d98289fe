"""A grid divided over ranks: the cells that neighbours need, and the five-point update."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from omb_py.apps import share
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call, Slot
from omb_py.core.calls.topology import coordinates, grid

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
        slot = Slot(len(calls))
        placed = (replace(call, slot=slot, index=index) for index, call in enumerate(calls))
        self.start = team.bind(*placed)
        self.wait = team.bind(*[Call("waitall", slot=slot)] * bool(calls))

    def pack(self) -> None:
        """Copy the outermost columns into the memory that they are sent from."""
        for _, (column, packed), _ in self._columns.sides:
            packed.data[...] = self._data[1:-1, column]

    def unpack(self) -> None:
        """Copy the columns that came to the ghost cells."""
        for _, _, (column, arrived) in self._columns.sides:
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

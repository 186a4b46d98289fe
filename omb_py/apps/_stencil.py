"""Five-point updates of a block of a grid, and which cells need a neighbour's before that."""

from __future__ import annotations

from typing import Any

from omb_py.apps._ghosts import Block
from omb_py.measure.team import Team

STRIP_BYTES = 256 << 10
"""Of the sums of a strip: they stay in the second-level cache of most processors."""

Region = tuple[slice, slice]
"""Rows and columns of a block."""

EVERYWHERE: Region = (slice(None), slice(None))


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
    """A block's cells that need no ghost cell of a neighbour, and those that do."""
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

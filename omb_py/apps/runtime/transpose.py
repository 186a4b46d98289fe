"""The global transpose: from a matrix whose rows are divided to one whose columns are, and back.

Each rank has a block for every other one. A block goes as it is, row by row, so that what arrives
from all ranks, back to back, is all rows of this rank's columns: its ``.T`` are the rows of the
transpose.
"""

from __future__ import annotations

from typing import Any

from omb_py.apps import share, shares
from omb_py.apps.runtime.pairs import ALLTOALL, Divided, all_to_all
from omb_py.apps.runtime.team import Team
from omb_py.core.errors import UsageError


class Transpose:
    """The exchange of blocks between all ranks of a team, two or more.

    ``columns`` has all rows of this rank's columns. ``to_columns`` fills it from what was packed;
    ``to_rows`` takes it back to what can be unpacked. All ranks call each together.
    """

    def __init__(
        self, team: Team, shape: tuple[int, int], dtype: str, exchange: str = ALLTOALL
    ) -> None:
        """``shape`` is the whole matrix's; each rank has at least a row and a column of it.

        ``exchange`` is one of `EXCHANGES`.
        """
        rows, columns = shape
        row_shares, column_shares = shares(rows, team.ranks), shares(columns, team.ranks)
        own_rows, own_columns = row_shares[team.rank], column_shares[team.rank]
        packed = team.array(own_rows * columns, dtype)
        self.columns = team.array((rows, own_columns), dtype)
        self._blocks = []
        for rank in range(team.ranks):
            begin, end = share(columns, team.ranks, rank)
            block = packed.data[own_rows * begin : own_rows * end]
            self._blocks.append((slice(begin, end), block.reshape(own_rows, end - begin)))
        even = rows % team.ranks == columns % team.ranks == 0
        by_rows = Divided(packed, tuple(own_rows * other for other in column_shares))
        flat = self.columns.shaped(rows * own_columns)
        by_columns = Divided(flat, tuple(other * own_columns for other in row_shares))
        self.to_columns = all_to_all(team, by_rows, by_columns, exchange, even)
        self.to_rows = all_to_all(team, by_columns, by_rows, exchange, even)

    def pack(self, rows: Any) -> None:
        """Put each rank's block of this rank's rows where ``to_columns`` takes it."""
        for columns, block in self._blocks:
            block[...] = rows[:, columns]

    def unpack(self, rows: Any) -> None:
        """Put the blocks that ``to_rows`` has brought into this rank's rows."""
        for columns, block in self._blocks:
            rows[:, columns] = block


def check_shares(team: Team, **lengths: int) -> None:
    """Raise `UsageError` if an option is less than one row or column for each rank."""
    for name, length in lengths.items():
        if length < team.ranks:
            raise UsageError(
                f"--{name} {length} is less than one for each of {team.ranks} ranks: choose "
                f"--{name} {team.ranks} or more, or start fewer ranks"
            )

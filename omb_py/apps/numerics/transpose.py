"""The global transpose: from a matrix whose rows are divided to one whose columns are, and back.

Each rank has a block for every other one. A block goes as it is, row by row, so that what arrives
from all ranks, back to back, is all rows of this rank's columns: its ``.T`` are the rows of the
transpose.
"""

from __future__ import annotations

from typing import Any

from omb_py.apps import share, shares
from omb_py.apps.runtime.team import Team
from omb_py.core.calls import Call, Form
from omb_py.core.errors import UsageError


class Transpose:
    """The exchange of blocks between all ranks of a team, two or more.

    ``columns`` has all rows of this rank's columns. ``to_columns`` fills it from what was packed;
    ``to_rows`` takes it back to what can be unpacked. All ranks call each together.
    """

    def __init__(self, team: Team, shape: tuple[int, int], dtype: str) -> None:
        """``shape`` is the whole matrix's; each rank has at least a row and a column of it."""
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
        form: Form = "" if rows % team.ranks == columns % team.ranks == 0 else "v"
        by_rows = packed.message([own_rows * other for other in column_shares], form)
        by_columns = self.columns.message([other * own_columns for other in row_shares], form)
        self.to_columns = team.bind(Call(f"alltoall{form}", (by_rows, by_columns)))
        self.to_rows = team.bind(Call(f"alltoall{form}", (by_columns, by_rows)))

    def pack(self, rows: Any) -> None:
        """Put each rank's block of this rank's rows where ``to_columns`` takes it."""
        for columns, block in self._blocks:
            block[...] = rows[:, columns]

    def unpack(self, rows: Any) -> None:
        """Put the blocks that ``to_rows`` has brought into this rank's rows."""
        for columns, block in self._blocks:
            rows[:, columns] = block


def check_shares(team: Team, **lengths: int) -> None:
    """Raise `UsageError` where an option is less than one row or column for each rank."""
    for name, length in lengths.items():
        if length < team.ranks:
            raise UsageError(
                f"--{name} {length} is less than one for each of {team.ranks} ranks: choose "
                f"--{name} {team.ranks} or more, or start fewer ranks"
            )

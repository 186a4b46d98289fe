"""The join of two tables, rows divided by the hash of their keys: MPI4Dask (arXiv 2101.08878)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from omb_py.apps import Application, CheckedResult, Kernel, Sequential, option, share
from omb_py.apps.runtime.distribution import exchange, exchange_option, random_numbers
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call
from omb_py.core.mpi.launcher import unrecorded


@dataclass(frozen=True)
class Tables:
    """Two tables of ``rows`` rows: a key and ``payload`` values, all int64."""

    rows: int = option(500_000, "Rows of each table.", minimum=1)
    keys: int = option(500_000, "Different keys: the fewer, the more rows match.", minimum=1)
    payload: int = option(1, "Columns of each table next to the key.", minimum=1)
    seed: int = option(1, "Of the generated keys and values.", minimum=0)
    exchange: str = exchange_option()


class Merge(Kernel[Tables]):
    """Sort rows by rank, exchange counts, exchange rows, join; the result stays where it is.

    Counts are the same in all repeats, so that buffers are bound once, by counts from mpi4py.
    """

    def __init__(self, team: Team, problem: Tables) -> None:
        import numpy as np

        super().__init__(team, problem)
        rows = [generate(problem, side, team.ranks, team.rank) for side in (0, 1)]
        self._tables = self._parts = [team.filled(table).data for table in rows]
        self._packed: list[Array] = []
        self._exchanges: list[Any] = []
        self._joined: Any = None
        self._arriving = self._expected = np.zeros(0)
        if team.ranks == 1:
            return
        self._packed = [team.array(table.shape, "int64") for table in rows]
        self._leaving, arriving = (team.array((team.ranks, 2), "int64") for _ in range(2))
        sides = [array.message((2,) * team.ranks) for array in (self._leaving, arriving)]
        self._exchanges.append(team.bind(Call("alltoall", tuple(sides))))
        self._partition()
        leaving = team.on_host(self._leaving.data)
        with unrecorded():
            self._expected = np.array(team.comm.alltoall(list(leaving)))
        self._arriving = arriving.data
        width, self._parts = 1 + problem.payload, []
        counts = [rows.T * width for rows in (leaving, self._expected)]
        for packed, given, got in zip(self._packed, *map(list, counts), strict=True):
            received = team.array((int(got.sum()) // width, width), "int64")
            sides = [packed.message(given.tolist(), "v"), received.message(got.tolist(), "v")]
            self._exchanges.append(exchange(team, problem.exchange, *sides))
            self._parts.append(received.data)

    def _partition(self) -> None:
        """Sort the rows of both tables by rank, and count them."""
        xp, ranks = self.team.xp, self.team.ranks
        for side, (table, packed) in enumerate(zip(self._tables, self._packed, strict=False)):
            to = table[:, 0] * 2654435761 % 2**32 * ranks >> 32  # hashed: Knuth, TAOCP 3, 6.4
            packed.data[...] = table[xp.argsort(to.astype("uint16"), kind="stable")]
            self._leaving.data[:, side] = xp.bincount(to, minlength=ranks)

    def solve(self) -> None:
        team = self.team
        with team.part("partition"), team.computing:
            self._partition()
        with team.part("exchange"):
            for move in self._exchanges:
                move()
        with team.part("join"), team.computing:
            self._joined = join(team.xp, *self._parts)

    def result(self) -> Any:
        """Return the checksums of each rank's rows, and its wrong counts of rows."""
        import numpy as np

        sums = checksums(*map(self.team.on_host, self._joined))
        wrong = self.team.on_host(self._arriving) != self._expected
        return self.team.comm.gather(np.append(sums, np.uint64(wrong.sum())))


def join(xp: Any, left: Any, right: Any) -> tuple[Any, Any]:
    """Return the left and the right row of each pair of rows with one key."""
    left, right = (table[xp.argsort(table[:, 0])] for table in (left, right))
    first, last = (xp.searchsorted(right[:, 0], left[:, 0], side=end) for end in ("left", "right"))
    matched = xp.flatnonzero(last - first)
    ends = xp.cumsum((last - first)[matched])
    pairs = int(ends[-1]) if ends.size else 0
    # CuPy cannot repeat by an array of lengths: count the matched rows that begin
    begins = xp.zeros(pairs, "int64")
    begins[ends[:-1]] = 1
    run = xp.cumsum(begins)
    row = matched[run]
    return left[row], right[xp.arange(pairs) - ends[run] + last[row]]


def generate(problem: Tables, side: int, ranks: int = 1, rank: int = 0) -> Any:
    """Return a rank's rows of the left (0) or right (1) table."""
    width = 1 + problem.payload
    begin, end = (width * row for row in share(problem.rows, ranks, rank))
    numbers = random_numbers((problem.seed, side), begin, end).reshape(-1, width)
    return (numbers * ([problem.keys] + [2**31] * problem.payload)).astype("int64")


def checksums(left: Any, right: Any) -> Any:
    """Return the number of pairs, and sums modulo 2^64 that tell their rows and columns apart."""
    import numpy as np

    weights = 2 * np.arange(left.shape[1], dtype="uint64") + 1
    left, right = ((rows.astype("uint64") * weights).sum(axis=1) for rows in (left, right))
    return np.array([left.size, left.sum(), right.sum(), (left * right).sum()], "uint64")


def sequential(problem: Tables) -> Sequential:
    """Return this join of both tables by NumPy."""
    import numpy as np

    tables = [generate(problem, side) for side in (0, 1)]
    return Sequential("NumPy", lambda: join(np, *tables))


def compare(problem: Tables, found: Any, reference: Any) -> CheckedResult:
    """Compare exactly with NumPy's rows, and with those of pandas if it is installed."""
    expected = {"NumPy": checksums(*reference)}
    with suppress(ModuleNotFoundError):
        import pandas as pd

        frames = [pd.DataFrame(generate(problem, side)).add_prefix(f"{side}_") for side in (0, 1)]
        both = frames[0].merge(frames[1], left_on="0_0", right_on="1_0").to_numpy()
        expected["pandas"] = checksums(*both.reshape(-1, 2, 1 + problem.payload).swapaxes(0, 1))
    total = sum(found[1:], found[0])
    sums, wrong = total[:4], int(total[4:].sum())
    wrong += sum(int((sums != other).sum()) for other in expected.values())
    text = f"{sums[0]} rows; {wrong} checksums differ from those of {' and '.join(expected)}"
    return CheckedResult(wrong == 0, text, float(wrong))


APPLICATION = Application(
    name="merge",
    title="Merge of Two Tables",
    summary="Join of two tables, whose rows go to the ranks that the hashes of their keys name.",
    problem=Tables,
    kernel=Merge,
    metric=lambda problem, seconds: 2 * problem.rows / seconds,
    unit="rows/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=lambda old, n: replace(old, rows=old.rows * n, keys=old.keys * n),
    details="Rows per second are those of both tables, not of the result.",
)

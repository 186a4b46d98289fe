"""The join of two tables whose rows are first brought together by the hash of their keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from omb_py.apps import (
    Application,
    CheckedResult,
    Kernel,
    Preset,
    Sequential,
    option,
    share,
)
from omb_py.apps.runtime.distribution import collect, random_numbers
from omb_py.apps.runtime.team import Team
from omb_py.core.calls import Call
from omb_py.core.errors import UsageError

DIGIT_BITS = 16
"""Bits of a digit of the radix sort: NumPy sorts numbers so short by counting them."""


def join(
    xp: Any, left_key: Any, left_value: Any, right_key: Any, right_value: Any
) -> tuple[Any, Any, Any]:
    """Return key, left value and right value of each pair of rows with one key, in key order.

    The inner join of two tables in columns. Keys are whole numbers, not negative; each may stand
    in many rows of both tables.
    """
    left_key, order = sorted_keys(xp, left_key)
    left_value = left_value[order]
    right_key, order = sorted_keys(xp, right_key)
    right_value = right_value[order]
    first = xp.searchsorted(right_key, left_key, side="left")
    matches = xp.searchsorted(right_key, left_key, side="right") - first
    left, right = pairs(xp, first, matches)
    return left_key[left], left_value[left], right_value[right]


def sorted_keys(xp: Any, keys: Any) -> tuple[Any, Any]:
    """Return the keys in order, and their old places: a radix sort from the last digit on."""
    rest = int(keys.max()) if keys.size else 0
    order = xp.argsort(keys.astype("uint16"), kind="stable")
    keys = keys[order]
    shift = DIGIT_BITS
    while rest >> shift:
        step = xp.argsort((keys >> shift).astype("uint16"), kind="stable")
        keys, order = keys[step], order[step]
        shift += DIGIT_BITS
    return keys, order


def pairs(xp: Any, first: Any, matches: Any) -> tuple[Any, Any]:
    """Return the left and right row of each pair; a left row has ``matches`` from ``first``."""
    left = xp.flatnonzero(matches)
    lengths = matches[left]
    return runs(xp, left, lengths, 0), runs(xp, first[left], lengths, 1)


def runs(xp: Any, starts: Any, lengths: Any, step: int) -> Any:
    """Return runs of whole numbers: from each start on so many, ``step`` apart.

    The sum over what each adds to the one before; CuPy cannot repeat by an array of lengths.
    """
    ends = xp.cumsum(lengths)
    added = xp.full(int(ends[-1]) if ends.size else 0, step, "int64")
    added[:1] = starts[:1]
    last = starts[:-1] + step * (lengths[:-1] - 1)
    added[ends[:-1]] = starts[1:] - last
    return xp.cumsum(added, out=added)


LEFT, RIGHT = 0, 1
LARGEST_VALUE = 2**31
OTHER = 2
"""Index of the row of random numbers that chooses the right rows which cannot match."""

GOLDEN = 1.618033988749895
MULTIPLIER = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, for multiplicative hashing (Knuth, TAOCP 3, 6.4)."""


@dataclass(frozen=True)
class Tables:
    """Two tables of a key and a value, both int64.

    A part ``matching`` of the right rows have keys that the left table may have. These are equally
    likely, so that ``matching * rows_left * rows_right / keys`` pairs are expected; or, with
    ``keys`` 0, each row of a table has a key of its own, and ``matching * rows_right`` of the right
    rows one of the left table's.
    """

    rows_left: int = option(500_000, "Rows of the left table.", minimum=0)
    rows_right: int = option(500_000, "Rows of the right table.", minimum=0)
    keys: int = option(
        500_000,
        "Different keys: the fewer, the more rows match; 0: each row of a table has its own.",
        minimum=0,
    )
    matching: float = option(
        1.0, "Part of the right rows whose keys the left table may have, up to 1.", minimum=0
    )
    seed: int = option(1, "Of the generated keys and values.", minimum=0)

    def __post_init__(self) -> None:
        if self.matching > 1:
            raise UsageError(f"--matching {self.matching:g} is more than all: choose 1 or less")
        if self.keys == 0 and self.matching_rows > self.rows_left:
            raise UsageError(
                f"{self.matching_rows} right rows with keys of their own cannot match "
                f"{self.rows_left} left ones: choose a smaller --matching, or more --rows-left"
            )

    @property
    def matching_rows(self) -> int:
        """Right rows whose keys the left table may have."""
        return round(self.matching * self.rows_right)

    @property
    def rows(self) -> int:
        """Rows of both tables."""
        return self.rows_left + self.rows_right


class Shuffle:
    """One table's way to the ranks that the hashes of its keys name.

    ``counts`` are the rows for each rank. A row is sent as its key and its value.
    """

    def __init__(self, team: Team, key: Any, value: Any) -> None:
        self._team = team
        self._key, self._value = key, value
        self._sent = team.array((key.size, 2), "int64")
        self.counts = team.xp.zeros(team.ranks, "int64")
        self.pack()

    def pack(self) -> None:
        """Put the rows in the order of the ranks that they go to."""
        xp, ranks = self._team.xp, self._team.ranks
        hashed = (self._key.astype("uint64") * xp.uint64(MULTIPLIER)) >> xp.uint64(32)
        ranks_of_rows = (hashed % xp.uint64(ranks)).astype("uint16")
        order = xp.argsort(ranks_of_rows, kind="stable")
        self.counts = xp.bincount(ranks_of_rows, minlength=ranks)
        self._sent.data[:, 0] = self._key[order]
        self._sent.data[:, 1] = self._value[order]

    def bind(self, arriving: list[int]) -> None:
        """Make ready to receive so many rows from each rank."""
        team = self._team
        leaving = [int(count) for count in team.on_host(self.counts)]
        self.received = team.array((sum(arriving), 2), "int64")
        sent, received = (
            array.message([2 * count for count in counts], "v")
            for array, counts in ((self._sent, leaving), (self.received, arriving))
        )
        self.exchange = team.bind(Call("alltoallv", (sent, received)))


class Join(Kernel[Tables]):
    """Sort rows by rank, exchange counts, exchange rows, join.

    Each rank generates its own rows, so that no rank distributes data. The exchange of counts is
    made and timed in every repeat. The exchange of rows is bound once, since the counts of all
    repeats are the same: the time includes neither the allocation of received rows nor the look at
    the counts. The result stays on the rank that made it.
    """

    def __init__(self, team: Team, problem: Tables) -> None:
        super().__init__(team, problem)
        tables = [
            [team.filled(column).data for column in generate(problem, side, team.ranks, team.rank)]
            for side in (LEFT, RIGHT)
        ]
        self._columns = [column for table in tables for column in table]
        self._joined: tuple[Any, Any, Any] | None = None
        self._shuffles: list[Shuffle] = []
        if team.ranks == 1:
            return
        self._shuffles = [Shuffle(team, *table) for table in tables]
        self._leaving = team.array((team.ranks, 2), "int64")
        self._arriving = team.array((team.ranks, 2), "int64")
        two = (2,) * team.ranks
        counts = Call("alltoall", (self._leaving.message(two), self._arriving.message(two)))
        self._exchange_counts = team.bind(counts)
        self._tell_counts()
        self._exchange_counts()
        arriving = team.on_host(self._arriving.data).T.tolist()
        for shuffle, counts_of_table in zip(self._shuffles, arriving, strict=True):
            shuffle.bind(counts_of_table)
        received = [shuffle.received.data for shuffle in self._shuffles]
        self._columns = [table[:, column] for table in received for column in (0, 1)]

    def solve(self) -> None:
        team = self.team
        if self._shuffles:
            with team.computing:
                for shuffle in self._shuffles:
                    shuffle.pack()
                self._tell_counts()
            self._exchange_counts()
            for shuffle in self._shuffles:
                shuffle.exchange()
        with team.computing:
            self._joined = join(team.xp, *self._columns)

    def result(self) -> Any:
        """Return the checksums of all ranks' rows together."""
        assert self._joined is not None
        parts = collect(self.team, checksums(self.team.xp, *self._joined))
        return None if parts is None else sum(parts[1:], parts[0])

    def _tell_counts(self) -> None:
        for table, shuffle in enumerate(self._shuffles):
            self._leaving.data[:, table] = shuffle.counts


def generate(problem: Tables, side: int, ranks: int = 1, rank: int = 0) -> tuple[Any, Any]:
    """Return keys and values of a rank's rows of the left or the right table, or of all rows."""
    total = problem.rows_left if side == LEFT else problem.rows_right
    begin, end = share(total, ranks, rank)
    keys, values = (
        (random_numbers((problem.seed, side, column), begin, end) * different).astype("int64")
        for column, different in enumerate((problem.keys, LARGEST_VALUE))
    )
    if problem.keys == 0:
        keys = shuffled(problem.seed + side, total, begin, end)
        keys[keys >= problem.matching_rows] += problem.rows_left * side
    elif side == RIGHT and problem.matching < 1:
        other = random_numbers((problem.seed, side, OTHER), begin, end) >= problem.matching
        keys[other] += problem.keys
    return keys, values


def shuffled(seed: int, total: int, begin: int, end: int) -> Any:
    """Return numbers ``begin`` to ``end`` of a permutation of those below ``total``, int64.

    They are multiples of a number near its golden section, without a common divisor with ``total``.
    """
    import numpy as np

    step = int(total / GOLDEN) + 1
    while gcd(step, total) > 1:
        step += 1
    return (np.arange(begin, end, dtype="int64") * step + seed) % max(1, total)


def checksums(xp: Any, key: Any, left: Any, right: Any) -> Any:
    """Return the number of rows, and sums modulo 2^64 of keys, values and products.

    The sums are of keys, both values, their products, and those with the key. They do not depend on
    the order of the rows, but on the values that share a row.
    """
    key, left, right = (column.astype("uint64") for column in (key, left, right))
    sums = [column.sum() for column in (key, left, right, left * right, key * left * right)]
    return xp.asarray([key.size, *map(int, sums)], dtype="uint64")


def sequential(problem: Tables) -> Sequential:
    """Return the merge of pandas; without pandas, this module's join on NumPy."""
    import numpy as np

    try:
        import pandas as pd
    except ModuleNotFoundError:
        columns = [column for side in (LEFT, RIGHT) for column in generate(problem, side)]
        return Sequential("NumPy", lambda: join(np, *columns))
    left, right = (frame(0, problem, side) for side in (LEFT, RIGHT))
    return Sequential("pandas", lambda: pd.merge(left, right, on="key"))


def frame(rank: int, problem: Tables, side: int, ranks: int = 1) -> Any:
    """Return a rank's rows of a table, or all, for pandas."""
    import pandas as pd

    key, value = generate(problem, side, ranks, rank)
    return pd.DataFrame({"key": key, ("left", "right")[side]: value}, copy=False)


def checksums_of_frame(joined: Any) -> Any:
    """Return the checksums of a joined table of pandas."""
    import numpy as np

    return checksums(np, *(joined[name].to_numpy() for name in ("key", "left", "right")))


def compare(problem: Tables, found: Any, reference: Any) -> CheckedResult:
    """Compare exactly: rows and checksums are whole numbers."""
    import numpy as np

    if isinstance(reference, tuple):
        expected = checksums(np, *reference)
    else:
        expected = checksums_of_frame(reference)
    wrong = int((found != expected).sum())
    text = f"{found[0]} rows, {expected[0]} of the sequential program; {wrong} checksums differ"
    return CheckedResult(wrong == 0, text, float(wrong))


def weak_scaled(problem: Tables, ranks: int) -> Tables:
    """Return so many times the rows, and the keys too, so that each row matches as many."""
    return replace(
        problem,
        rows_left=problem.rows_left * ranks,
        rows_right=problem.rows_right * ranks,
        keys=problem.keys * ranks,
    )


APPLICATION = Application(
    name="merge",
    title="Merge of Two Tables",
    summary="Join of two tables whose rows go to the ranks that the hashes of their keys name.",
    problem=Tables,
    kernel=Join,
    metric=lambda problem, seconds: problem.rows / seconds,
    unit="rows/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=weak_scaled,
    presets={
        "dask-cuda": Preset(
            "its local_cudf_merge benchmark, a million rows of each table for each rank",
            {
                "rows_left": 1_000_000,
                "rows_right": 1_000_000,
                "keys": 0,
                "matching": 0.3,
                "scaling": "weak",
                "repeats": 3,
            },
        )
    },
    details="Rows per second are those of both tables, not of the result.",
)

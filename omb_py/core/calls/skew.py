"""Unequal blocks of collectives with a count for each rank, described without MPI."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import basename

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError
from omb_py.core.text.units import parse_decimal, parse_whole

STEPS = 60
"""Bisections for Zipf's exponent: beyond the digits of a float."""


@dataclass(frozen=True)
class Skew:
    """The shares of blocks: of each rank by its popularity, or of each pair of ranks by a matrix.

    With ``factor``, the ranks' shares follow Zipf's law (share ~ 1/place^a), with the exponent for
    which the busiest rank has ``factor`` times the mean; ``seed`` chooses the ranks' places. All
    ranks send each rank its share, as a router of a mixture of experts does. ``matrix`` has the
    bytes that each rank (row) sends to each rank (column). ``text`` is the option's spelling.
    """

    text: str
    factor: float = 1.0
    seed: int = 0
    matrix: tuple[tuple[int, ...], ...] = ()

    def check(self, ranks: int) -> None:
        """Raise `UsageError` when this many ranks cannot have these shares."""
        if self.matrix and len(self.matrix) != ranks:
            raise UsageError(
                f"--matrix {self.text} is of {len(self.matrix)} ranks, and this job has {ranks}"
            )
        if self.factor > ranks:
            raise UsageError(
                f"--skew {self.text}: the busiest of {ranks} ranks has at most {ranks} times the "
                "mean"
            )

    @property
    def mean(self) -> int:
        """Bytes of the matrix's mean block, rounded."""
        ranks = len(self.matrix)
        return round(sum(map(sum, self.matrix)) / ranks / ranks)

    def shares(self, ranks: int) -> tuple[float, ...]:
        """Return the share of each rank, in means."""
        if self.matrix:
            return scaled([sum(row) for row in self.matrix])
        from random import Random

        shares = list(scaled(zipf(self.factor, ranks)))
        Random(self.seed).shuffle(shares)
        return tuple(shares)

    def of_ranks(self, elements: int, ranks: int) -> tuple[int, ...]:
        """Return the elements of each rank's block, whose mean is ``elements``."""
        return whole(self.shares(ranks), elements * ranks)

    def sent(self, rank: int, elements: int, ranks: int) -> tuple[int, ...]:
        """Return the elements that ``rank`` sends to each rank, rounded down from a matrix."""
        if not self.matrix:
            return self.of_ranks(elements, ranks)
        mean = elements * ranks * ranks / sum(map(sum, self.matrix))
        return tuple(int(mean * nbytes) for nbytes in self.matrix[rank])

    def received(self, rank: int, elements: int, ranks: int) -> tuple[int, ...]:
        """Return the elements that ``rank`` receives from each rank."""
        if not self.matrix:
            return (self.of_ranks(elements, ranks)[rank],) * ranks
        return tuple(self.sent(source, elements, ranks)[rank] for source in range(ranks))

    def busiest(self, ranks: int) -> float:
        """Return the most that one rank sends to, or receives from, all others of an alltoallv.

        In means of a block: ``ranks - 1`` for equal blocks.
        """
        if not self.matrix:
            shares = self.shares(ranks)
            return max(ranks - min(shares), (ranks - 1) * max(shares))
        others = [[n * (i != j) for j, n in enumerate(row)] for i, row in enumerate(self.matrix)]
        sums = [*map(sum, others), *(sum(column) for column in zip(*others, strict=True))]
        return float(max(sums) * ranks * ranks / sum(map(sum, self.matrix)))

    def largest(self, ranks: int) -> float:
        """Return the most that one rank holds of an alltoallv's blocks, in means of a rank."""
        if not self.matrix:
            return max(self.shares(ranks))
        sums = [*map(sum, self.matrix), *map(sum, zip(*self.matrix, strict=True))]
        return max(sums) * ranks / sum(map(sum, self.matrix))


def zipf(factor: float, ranks: int) -> list[float]:
    """Return weights 1/place^a whose largest is ``factor`` times their mean."""
    if factor >= ranks:
        return [1.0] + [0.0] * (ranks - 1)
    low, high = 0.0, 64.0
    for _ in range(STEPS):
        exponent = (low + high) / 2
        weights = [place**-exponent for place in range(1, ranks + 1)]
        if ranks / sum(weights) < factor:
            low = exponent
        else:
            high = exponent
    return weights


def scaled(weights: Sequence[float]) -> tuple[float, ...]:
    """Return weights scaled to a mean of 1."""
    mean = sum(weights) / len(weights) or 1.0
    return tuple(weight / mean for weight in weights)


def whole(shares: Sequence[float], total: int) -> tuple[int, ...]:
    """Return whole parts of ``total`` by shares; the largest fractions get what rounding leaves."""
    exact = [share * total / len(shares) for share in shares]
    parts = [int(part) for part in exact]
    order = sorted(range(len(parts)), key=lambda place: parts[place] - exact[place])
    for place in order[: total - sum(parts)]:
        parts[place] += 1
    return tuple(parts)


def parse_skew(text: str) -> Skew:
    """Return the skew that ``FACTOR`` or ``FACTOR:SEED`` names; raise `ValueError` for others."""
    factor, colon, seed = text.partition(":")
    found = Skew(text, parse_decimal(factor), parse_whole(seed) if colon else 0)
    if found.factor < 1:
        raise ValueError(f"the busiest rank has at least the mean: {factor} is below 1")
    return found


def read_matrix(path: str) -> Skew:
    """Return the skew of a file: a line for each rank, with the bytes that it sends to each.

    Numbers are separated by commas or blanks; empty lines and what follows ``#`` are skipped.
    Raises `UsageError` when the file is not like that.
    """
    from omb_py.core.text import files

    lines = files.read_text(path, UsageError).splitlines()
    rows = []
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if words:
            try:
                rows.append(tuple(map(parse_whole, words)))
            except ValueError as error:
                raise UsageError(f"{path}, line {number}: {error}") from error
    if not rows or any(len(row) != len(rows) for row in rows):
        raise UsageError(
            f"{path} is no square of bytes: write a line for each rank, with a number for each rank"
        )
    if min(map(min, rows)) < 0:
        raise UsageError(f"{path} has a number below 0")
    if not any(map(any, rows)):
        raise UsageError(f"in {path} no rank sends a byte: write a number above 0")
    return Skew(basename(path), matrix=tuple(rows))

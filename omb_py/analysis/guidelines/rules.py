"""The guidelines as a table: a call is not slower than other calls that do the same or more.

The idea and the kinds are those of J. L. Träff, W. D. Gropp and R. Thakur, *Self-consistent MPI
performance guidelines*, IEEE Transactions on Parallel and Distributed Systems 21(5), 2010; most
rows of `EMULATED` are checked by PGMPI: S. Hunold, A. Carpen-Amarie, F. D. Lübbe and J. L. Träff,
*Automatic verification of self-consistent MPI performance guidelines*, Euro-Par 2016.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omb_py.benchmarks.collective import EACH, TABLE
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError

COLLECTIVES = {row.name: row for row in TABLE}

EMULATED = {
    "allgather": ("gather bcast", "alltoall", "allreduce", "allgatherv"),
    "allreduce": ("reduce bcast", "reduce_scatter allgatherv", "reduce_scatter_block allgather"),
    "alltoall": ("alltoallv",),
    "alltoallv": ("alltoallw",),
    "barrier": ("allreduce",),
    "bcast": ("scatter allgather", "allreduce"),
    "gather": ("allgather", "gatherv", "reduce"),
    "gatherv": ("allgatherv",),
    "reduce": ("allreduce", "reduce_scatter_block gather"),
    "reduce_scatter": ("allreduce", "reduce scatterv"),
    "reduce_scatter_block": ("reduce scatter", "reduce_scatter"),
    "scan": ("exscan reduce",),
    "scatter": ("bcast", "scatterv"),
}
"""Collectives, and other collectives that together do the same or more.

A scan is an exclusive one and a local reduction; that takes less than a reduction over all ranks,
which stands for it, because no benchmark measures a local reduction separately. An irregular
collective can do what the regular one does; a broadcast is an allreduce to which all ranks but one
give zeros.
"""

FORMS = {"non-blocking": "i{}", "persistent": "{}_persistent"}
"""Other forms of a collective, which are not slower than its blocking form."""

WITH_SIZES = (*(name for name in COLLECTIVES if name != "barrier"), "latency")
"""Benchmarks whose times grow with the message size, and not faster than it."""

SMALLEST = 16
"""Bytes up to which an allreduce is one of hardly any data, which a barrier is compared with."""

PADDING = 2
"""A size that was not measured is replaced by the next larger one up to this factor: sending more
does it, too, so that the right side is rather too slow than too fast."""

KINDS = ("emulation", *FORMS, "monotony", "splitting")


@dataclass(frozen=True)
class Guideline:
    """``left`` takes at most as long as all of ``right`` together.

    Of the ``kind`` ``monotony`` right is the same benchmark with the next larger size, of
    ``splitting`` the same several times with the next smaller one.
    """

    kind: str
    left: str
    right: tuple[str, ...]

    @property
    def name(self) -> str:
        """The guideline as it is written.

        >>> Guideline("emulation", "allreduce", ("reduce", "bcast")).name
        'allreduce <= reduce + bcast'
        """
        right = " + ".join(self.right)
        if self.kind == "monotony":
            return f"{self.left}(n) <= {right}(m), n < m"
        if self.kind == "splitting":
            return f"{self.left}(k n) <= k {right}(n)"
        return f"{self.left} <= {right}"


def guidelines() -> Iterator[Guideline]:
    """Yield every guideline: emulations, other forms, monotony and splitting of collectives."""
    for left, others in EMULATED.items():
        yield from (Guideline("emulation", left, tuple(right.split())) for right in others)
    for kind, name in FORMS.items():
        for blocking in COLLECTIVES:
            yield Guideline(kind, name.format(blocking), (blocking,))
    for kind in ("monotony", "splitting"):
        for name in WITH_SIZES:
            yield Guideline(kind, name, (name,))


def chosen(words: Sequence[str] | None = None) -> tuple[Guideline, ...]:
    """Return the guidelines of these kinds and about these benchmarks (their left side); all by
    default.

    Raises `UsageError` for a word that is neither.
    """
    every = tuple(guidelines())
    if words is None:
        return every
    known = {*KINDS, *(rule.left for rule in every)}
    if unknown := [word for word in words if word not in known]:
        raise UsageError(
            f"--only {unknown[0]}: choose from {', '.join(KINDS)} and collective benchmarks"
        )
    kinds = {word for word in words if word in KINDS} or set(KINDS)
    names = {word for word in words if word not in KINDS} or known
    return tuple(rule for rule in every if rule.kind in kinds and rule.left in names)


def of_blocks(benchmark: str) -> bool:
    """Return whether a benchmark's message size is that of one rank's block, not of all data.

    >>> of_blocks("gather"), of_blocks("reduce_scatter"), of_blocks("bcast")
    (True, False, False)
    """
    row = COLLECTIVES.get(benchmark)
    return row is not None and not row.divided and EACH in (row.send, row.recv)


def size_beside(left: str, right: str, size: int, ranks: int) -> int:
    """Return the message size in bytes at which ``right`` moves the same data as ``left`` at
    ``size``.

    >>> size_beside("bcast", "scatter", 1000, 3), size_beside("gather", "reduce", 8, 4)
    (334, 32)
    """
    if of_blocks(left) == of_blocks(right):
        return size
    return size * ranks if of_blocks(left) else -(-size // ranks)

"""Which algorithms send what was seen: messages of one collective call beside all that are known.

Other than `omb_py.algorithms.comparison`, which makes sure of one algorithm, this looks for the one
that fits best, without knowing the root, the datatype, or into which pieces messages are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from omb_py.algorithms import MODULES, library
from omb_py.algorithms.patterns import Pattern, Shape, messages
from omb_py.core.text.units import size_text
from omb_py.tracing.records.layout import NOBODY
from omb_py.tracing.records.routines import Dependence, dependence

Edges: TypeAlias = Mapping[tuple[int, int], tuple[int, float]]
"""Messages and bytes from a rank to another one, by both ranks; only where there are messages."""

LARGEST_ELEMENT = 16
"""Bytes of the largest element that blocks may be rounded to."""

NOT_KNOWN = "none known"
NO_MESSAGES = "no messages: by shared memory, or by hardware"


@dataclass(frozen=True)
class Call:
    """One collective call: what all its ranks sent, by their ranks in its communicator.

    ``nbytes`` is as in a record; ``root`` is `NOBODY` where it is not known.
    """

    routine: str
    ranks: int
    nbytes: int
    sent: Edges
    root: int = NOBODY


@dataclass(frozen=True)
class Match:
    """An algorithm that fits: its ``word``, and how far it is from its definition.

    ``piece`` is about how many bytes a message had, where messages are cut otherwise than defined,
    else 0; ``difference`` is how many bytes less or more were sent.
    """

    word: str
    piece: int
    difference: float

    @property
    def text(self) -> str:
        """In words."""
        cut = f" in pieces of {size_text(self.piece)}" if self.piece else ""
        return f"{self.word.replace('_', ' ')}{cut}"


def matching_algorithms(vendor: str, call: Call) -> tuple[str, ...]:
    """The algorithms of a library (mpi4py's name) that send this, the best fits in words.

    Several send the same messages, in other orders or because ranks are few. None fits: empty.
    """
    found = list(matches(vendor, call))
    for cut in (False, True):
        group = [fit for fit in found if bool(fit.piece) == cut]
        if group:
            minimum = min(fit.difference for fit in group)
            return tuple(dict.fromkeys(fit.text for fit in group if fit.difference == minimum))
    return ()


def matches(vendor: str, call: Call) -> Iterator[Match]:
    """All algorithms of a library by which these messages may have been sent."""
    if vendor not in MODULES:
        return
    shape = shape_of(call)
    for algorithm in library(vendor).table.get(call.routine, ()):
        if algorithm.refusal(shape) is not None:
            continue
        try:
            wanted = edges(algorithm.rounds, shape)
        except NotImplementedError:
            continue
        for root in roots(call):
            fit = compare(rotated(wanted, root, call.ranks), call.sent, bool(algorithm.settings))
            if fit is not None:
                yield Match(algorithm.word, *fit)


def shape_of(call: Call) -> Shape:
    """A call as algorithms see it: reduce_scatter_block has the whole vector there."""
    whole = call.nbytes * (call.ranks if call.routine == "reduce_scatter_block" else 1)
    return Shape(call.ranks, whole)


def roots(call: Call) -> Iterable[int]:
    """The ranks that may have been the root."""
    if dependence(call.routine) not in (Dependence.ROOT, Dependence.AT_ROOT):
        return (0,)
    return range(call.ranks) if call.root == NOBODY else (call.root,)


def edges(pattern: Pattern, shape: Shape) -> dict[tuple[int, int], tuple[int, float]]:
    """What each rank sends to each other one by an algorithm's definition, from root 0."""
    found: dict[tuple[int, int], tuple[int, float]] = {}
    for source, target, nbytes in messages(pattern, shape):
        number, before = found.get((source, target), (0, 0.0))
        found[source, target] = number + 1, before + nbytes
    return found


def rotated(wanted: Edges, root: int, ranks: int) -> Edges:
    """Messages with ranks counted from another root."""
    if root == 0:
        return wanted
    return {
        ((source + root) % ranks, (target + root) % ranks): value
        for (source, target), value in wanted.items()
    }


def compare(wanted: Edges, sent: Edges, segmented: bool) -> tuple[int, float] | None:
    """The bytes of a piece, if messages are cut otherwise, and the difference; None: no fit.

    Where an algorithm lives by segments (``segmented``), messages may be fewer as well as more.
    Blocks are whole elements: so far may bytes differ.
    """
    if wanted.keys() != sent.keys():
        return None
    piece, difference = 0, 0.0
    for edge, (number, nbytes) in wanted.items():
        seen, length = sent[edge]
        off = abs(length - nbytes)
        if off > (LARGEST_ELEMENT * number if nbytes else 0) or (seen < number and not segmented):
            return None
        if seen != number:
            piece = max(piece, round(length / seen), 1)
        difference += off
    return piece, difference

"""Injects the faults of a range of seeds: ``python -m tests.chaos --seeds 0:100``.

Prints a line for each fault, then a table by kind; the exit code is 1 when anything was lost.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.faults import Kind, draw
from tests.chaos.injection import CannotInjectError, Outcome, inject
from tests.hosts.jobs import OPEN_MPI
from tests.hosts.virtual_hosts import CannotMakeHostsError

LIBRARY = "Open MPI" if OPEN_MPI else "MPICH"
HEADINGS = ("kind", "faults", "late", "ended", "lost", "went on", "longest")


def seeds_of(text: str) -> range:
    """Seeds from ``FIRST:END``, the last one left out."""
    first, _, end = text.partition(":")
    return range(int(first), int(end or int(first) + 1))


def tried(seed: int) -> Outcome | str:
    """What came of the fault of a seed, said at once; why it cannot be where it cannot."""
    fault = draw(seed)
    try:
        outcome = inject(fault)
    except (CannotInjectError, CannotMakeHostsError) as error:
        print(f"{seed:4} {fault.program:10} {fault}: skipped, {error}", flush=True)
        return str(error)
    print(line(outcome), flush=True)
    return outcome


def line(outcome: Outcome) -> str:
    """An outcome in words."""
    fault = outcome.fault
    after = " > ".join(map(str, outcome.rows))
    when = "too late" if outcome.late else f"{outcome.seconds:.1f} s"
    ended = f"{when}, exit code {outcome.code}, rows {after}, next {outcome.next_code}"
    said = f"{outcome.who}: {outcome.says[:90]}"
    losses = "".join(f"\n       LOST: {loss}" for loss in outcome.losses)
    return f"{fault.seed:4} {fault.program:10} {fault}: {ended}; {said}{losses}"


def table(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """A line for each kind that there was: how many, and what came of them."""
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'---|' * len(HEADINGS)}"
    for kind in Kind:
        if of_kind := [one for one in outcomes if one.fault.kind is kind]:
            yield row(kind.value, of_kind)
    yield row(f"all, {LIBRARY}", outcomes)


def row(name: str, outcomes: Sequence[Outcome]) -> str:
    """A line of the table."""
    cells = (
        name,
        str(len(outcomes)),
        str(sum(one.late for one in outcomes)),
        str(sum(one.code is not None for one in outcomes)),
        str(sum(bool(one.losses) for one in outcomes)),
        str(sum(one.next_code == 0 for one in outcomes)),
        f"{max((one.seconds for one in outcomes), default=0):.1f} s",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Inject all faults that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=seeds_of, default=range(100), metavar="FIRST:END")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="runs at the same time")
    given = parser.parse_args()
    with ThreadPoolExecutor(given.jobs) as pool:
        found = list(pool.map(tried, given.seeds))
    outcomes = [one for one in found if isinstance(one, Outcome)]
    print("", *table(outcomes), sep="\n")
    return int(any(one.losses for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())

"""Injects the faults of a range of seeds: ``python -m tests.chaos --seeds 0:100``.

Prints a line for each fault; the exit code is 1 when anything was lost.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.faults import draw
from tests.chaos.injection import CannotInjectError, inject
from tests.hosts.virtual_hosts import CannotMakeHostsError


def seeds_of(text: str) -> range:
    """Seeds from ``FIRST:END``, the last one left out."""
    first, _, end = text.partition(":")
    return range(int(first), int(end or int(first) + 1))


def loses(seed: int) -> bool:
    """Whether the fault of a seed loses anything, after printing what came of it."""
    fault = draw(seed)
    try:
        outcome = inject(fault)
    except (CannotInjectError, CannotMakeHostsError) as error:
        print(f"{fault}: skipped, {error}", flush=True)
        return False
    print(outcome, flush=True)
    return bool(outcome.losses)


def main() -> int:
    """Inject all faults that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=seeds_of, default=range(100), metavar="FIRST:END")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="runs at the same time")
    given = parser.parse_args()
    with ThreadPoolExecutor(given.jobs) as pool:
        lost = sum(pool.map(loses, given.seeds))
    print(f"{len(given.seeds)} faults, {lost} with losses")
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())

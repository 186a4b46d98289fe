"""Simulations in processes of their own: SimGrid has one network a process, and may end it."""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context
from typing import Any

from omb_py.core.errors import OmbError
from omb_py.simulation.engine import Engine, Run
from omb_py.simulation.network import Network


@dataclass(frozen=True)
class Simulation:
    """A simulation on a network and with the node of each rank.

    ``task`` is a function that can be pickled, whose argument runs a program.
    """

    network: Network
    nodes: tuple[int, ...]
    task: Callable[[Run], Any]


def run_all(
    simulations: Sequence[Simulation],
    processes: int,
    done: Callable[[int], object] = lambda number: None,
) -> list[Any]:
    """Return the results of simulations, with at most ``processes`` at a time.

    ``done`` is given the number of those that are over, now and then.

    Those with the same nodes of a network share an engine in each process. Raises a task's
    exception, and `OmbError` if a process ends.
    """
    alike: dict[tuple[Network, tuple[int, ...]], list[int]] = {}
    for place, one in enumerate(simulations):
        alike.setdefault((one.network, one.nodes), []).append(place)
    largest_first = sorted(alike.items(), key=lambda item: -len(item[0][1]))
    shares = [
        places[first::processes]
        for _, places in largest_first
        for first in range(min(processes, len(places)))
    ]
    jobs = [[simulations[place] for place in places] for places in shares]
    context = get_context("spawn")
    at_once = min(processes, len(jobs))
    with ProcessPoolExecutor(at_once, context, begin, max_tasks_per_child=1) as pool:
        try:
            results = []
            for found_in_one in pool.map(work, jobs):
                results.append(found_in_one)
                done(sum(map(len, results)))
        except BrokenProcessPool:
            why = "the process of a simulation was ended: is there enough memory?"
            raise OmbError(why) from None
    order = chain.from_iterable(shares)
    found = dict(zip(order, chain.from_iterable(results), strict=True))
    return [found[place] for place in range(len(simulations))]


def begin() -> None:
    """Make this process end at Ctrl-C, which SimGrid does not notice, and without its messages."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def work(simulations: Sequence[Simulation]) -> list[Any]:
    """Return the results of simulations with the same nodes of a network, run in this process."""
    atexit.register(os._exit, 0)  # SimGrid's own end takes as long as its network is large
    results: list[Any] = []
    engine = Engine(simulations[0].network, simulations[0].nodes)
    engine.run(lambda run: results.extend(one.task(run) for one in simulations))
    return results

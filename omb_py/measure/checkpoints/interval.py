"""The best interval between checkpoints, and what part of the time computes: Young and Daly.

Times are in any one unit. Failures are random, at a constant rate: ``mtbf`` is the mean time
between them in the whole job. ``cost`` is what a checkpoint adds to the program's time.
"""

from __future__ import annotations

from math import exp, expm1, sqrt

HOUR = 3600.0
"""Seconds."""


def young(cost: float, mtbf: float) -> float:
    """Young's interval of computing between two checkpoints: sqrt(2 cost mtbf).

    Source: J. W. Young, A first order approximation to the optimum checkpoint interval, CACM 17(9),
    1974.
    """
    return sqrt(2 * cost * mtbf)


def daly(cost: float, mtbf: float) -> float:
    """Daly's higher-order interval of computing between two checkpoints.

    Source: J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart
    dumps, Future Generation Computer Systems 22, 2006. From a cost of twice ``mtbf`` on it is
    ``mtbf``.
    """
    if cost >= 2 * mtbf:
        return mtbf
    share = cost / (2 * mtbf)
    return young(cost, mtbf) * (1 + sqrt(share) / 3 + share / 9) - cost


def efficiency(interval: float, cost: float, restart: float, mtbf: float) -> float:
    """The program's time without checkpoints and failures over the time expected with both.

    ``interval`` is the computing between two checkpoints, ``restart`` the time from a failure to
    computing again. Daly's complete model (2006): lost work is done again, and failures
    happen while checkpoints are written and read, too.
    """
    try:
        expected = mtbf * exp(restart / mtbf) * expm1((interval + cost) / mtbf)
    except OverflowError:
        return 0.0
    return interval / expected

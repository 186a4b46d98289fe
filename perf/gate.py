"""How often `omb-py gate` names a slow host, and accuses a healthy one, on made fleets.

Usage: python -m perf.gate [--fleets 200] [--hosts 2000] [--seed 1]

A fleet is measured at 4 points, in 1, 3 or 5 launches of each host. A time has a lognormal noise of
3 %, and a launch of a host one of 2 %, which all of its points share. ``heavy`` noise is Student's
with 4 degrees of freedom instead, ``skewed`` is lognormal with an exponential tail above.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from omb_py.analysis.gate.judging import Judgement, judge
from omb_py.analysis.gate.limits import Point

NOISE, LAUNCHES, POINTS = 0.03, 0.02, 4
Random = np.random.Generator

NOISES: Mapping[str, Callable[[Random, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda random, shape: random.normal(size=shape),
    "heavy": lambda random, shape: random.standard_t(4, size=shape),
    "skewed": lambda random, shape: random.normal(size=shape) + random.exponential(size=shape),
}


def fleet(
    random: Random,
    hosts: int,
    launches: int,
    slow: Mapping[int, float] | None = None,
    noise: str = "normal",
    points: int = POINTS,
) -> list[Point]:
    """The points of a fleet in which some hosts, by number, take a factor as long."""
    names = tuple(f"node{number:04}" for number in range(hosts))
    of_launch = random.normal(0, LAUNCHES, (hosts, launches))
    for host, factor in (slow or {}).items():
        of_launch[host] += np.log(factor)
    costs = NOISES[noise](random, (points, hosts, launches)) * NOISE + of_launch
    return [Point(f"point {number}", names, one) for number, one in enumerate(costs)]


def named(found: Judgement) -> list[str]:
    """The hosts that a judgement accuses."""
    accused = {name for one in found.classes for name in one.slower}
    return sorted({one.hosts[0] for one in found.slow} | accused)


def rates(random: Random, hosts: int, launches: int, noise: str, fleets: int) -> list[float]:
    """The share of clean fleets with an accused host, those in which only the slow host is named,
    and the factor from which on a host is named."""
    clean = [judge(fleet(random, hosts, launches, noise=noise)) for _ in range(fleets)]
    shares = [float(np.mean([bool(named(one)) for one in clean]))]
    for factor in (1.3, 1.1):
        told = [
            named(judge(fleet(random, hosts, launches, {hosts // 3: factor}, noise)))
            for _ in range(max(1, fleets // 2))
        ]
        shares.append(float(np.mean([one == [f"node{hosts // 3:04}"] for one in told])))
    return [
        *shares,
        float(np.median([one.needed[0][0] if one.needed else np.inf for one in clean])),
    ]


def table(random: Random, cases: Sequence[tuple[int, int, str, int]]) -> None:
    """Print the rates of some cases: hosts, launches, noise, fleets."""
    print("hosts  launches  noise    fleets  clean accused  1.3 named  1.1 named  named from")
    for hosts, launches, noise, fleets in cases:
        clean, much, little, needed = rates(random, hosts, launches, noise, fleets)
        print(
            f"{hosts:5}  {launches:8}  {noise:7}  {fleets:6}  {clean:13.1%}  {much:9.0%}  "
            f"{little:9.0%}  {needed:10.2f}",
            flush=True,
        )


def main() -> None:
    """Print the rates of large fleets, then of small ones, then what is said of two generations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    large = [
        (asked.hosts, launches, noise, asked.fleets) for noise in NOISES for launches in (1, 3, 5)
    ]
    table(random, large)
    small = [(hosts, 4, noise, 2 * asked.fleets) for noise in NOISES for hosts in (3, 4, 8, 12, 24)]
    print()
    table(random, small)
    half = dict.fromkeys(range(asked.hosts // 2), 1.4)
    for launches in (1, 3):
        told = judge(fleet(random, asked.hosts, launches, half | {asked.hosts - 1: 1.5}))
        words = ", ".join(one.hosts[0] for one in told.slow) or "none"
        print(f"\n{launches} launches; half of the hosts take 1.4, one other 1.5: slow: {words}")
        print("\n".join(one.text for one in told.classes))


if __name__ == "__main__":
    main()

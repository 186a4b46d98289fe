"""Two tiers of pairs, as within and between switches or sockets, which are no fault of a link.

Tiers are told apart where the times fall into two classes such that the fast pairs form groups and
the slow ones are between groups.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from omb_py.analysis.pairs.matrix import Mask, Matrix, Numbers
from omb_py.analysis.pairs.noise import FEWEST_PARTNERS, at_least, fewest_partners, polish, scale
from omb_py.core.text.ranks import some_ranks
from omb_py.core.text.words import count, first_of

FEWEST_VALUES = 4
"""Values from which on classes are looked for."""

FACTOR = 1.1
OVER_NOISE = 4.0
PURITY = 0.9
"""Two tiers are so far apart at least, as a factor and in units of the noise within them; and this
share of the fast pairs is within groups, of the slow ones between them."""

CLIPPED = (2.5, 97.5)
"""Percentiles at which times are clipped before they are divided: one slow link is no tier."""

NAMED = 8
"""Groups, and hosts of a group, that are named."""

Labels = NDArray[np.int64]


def without_tiers(matrix: Matrix, costs: Numbers, inside: bool) -> tuple[Numbers, str | None]:
    """Take each tier's median out of ``costs``, and describe the tiers.

    ``costs`` are those of the pairs within hosts (``inside``) or between them. Where there are no
    tiers they come back as they are, with None.
    """
    group = groups_of(costs, np.array(matrix.hosts), inside)
    if group is None:
        return costs, None
    between = group[:, None] != group[None, :]
    near, far = (float(np.nanmedian(costs[tier])) for tier in (~between, between))
    text = described(matrix, group, inside, float(np.exp(far - near)))
    return costs - np.where(between, far, near), text


def groups_of(costs: Numbers, names: NDArray[np.str_], inside: bool) -> Labels | None:
    """Return the group of each unit; None where the pairs are not of two tiers.

    Between hosts, a group has whole hosts.
    """
    tried = [costs]
    if fewest_partners(np.isfinite(costs)) >= FEWEST_PARTNERS:  # without slow senders and receivers
        senders, receivers, _ = polish(costs)
        tried.append(costs - senders[:, None] - receivers[None, :])
    for one in tried:
        symmetric = np.nanmean([one, one.T], axis=0)
        if not inside:
            symmetric = over_hosts(symmetric, names)
        there = np.isfinite(symmetric)
        limit = two_classes(symmetric[there])
        if limit is None:
            continue
        group = components(symmetric < limit)
        members = np.arange(len(names)) if inside else names
        several = np.array([len({*members[group == label]}) > 1 for label in group])
        between = there & (group[:, None] != group[None, :])
        within, slow = there & ~between, symmetric >= limit
        proper = between & several[:, None] & several[None, :]
        fast_within, slow_between = (within & ~slow).sum(), (proper & slow).sum()
        pure = fast_within >= PURITY * within.sum() and slow_between >= PURITY * slow.sum()
        if within.any() and proper.any() and pure:
            return group
    return None


def over_hosts(costs: Numbers, names: NDArray[np.str_]) -> Numbers:
    """Replace each pair's value by the median of all pairs of its two hosts."""
    places = [np.flatnonzero(names == host) for host in np.unique(names)]
    if len(places) == len(names):
        return costs
    found = costs.copy()
    for block in (np.ix_(*pair) for pair in permutations(places, 2)):
        found[block] = np.where(np.isfinite(costs[block]), np.nanmedian(costs[block]), np.nan)
    return found


def two_classes(values: Numbers) -> float | None:
    """Return the value that divides two classes which are clearly apart; None where there is one.

    They are parted where the variance within the classes is smallest, and between them largest
    (N. Otsu, A threshold selection method from gray-level histograms, IEEE Transactions on Systems,
    Man, and Cybernetics 9, 1979).
    """
    if len(values) < FEWEST_VALUES:
        return None
    ordered = np.sort(np.clip(values, *np.percentile(values, CLIPPED)))
    number = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    variance = sums[:-1] ** 2 / number + (sums[-1] - sums[:-1]) ** 2 / (len(ordered) - number)
    cut = int(variance.argmax()) + 1
    fast, slow = ordered[:cut], ordered[cut:]
    noise = at_least(scale(np.concatenate([fast - np.median(fast), slow - np.median(slow)])))
    gap = np.median(slow) - np.median(fast)
    return None if gap < max(np.log(FACTOR), OVER_NOISE * noise) else float(fast[-1] + slow[0]) / 2


def components(linked: Mask) -> Labels:
    """Return the group of each unit: the first unit that links lead to, directly or not."""
    group = np.arange(len(linked))
    linked = linked | linked.T | np.eye(len(linked), dtype=bool)
    while True:
        first = np.where(linked, group, len(group)).min(axis=1)
        if (first == group).all():
            return group
        group = first


def described(matrix: Matrix, group: Labels, inside: bool, factor: float) -> str:
    """Describe two tiers in a sentence; a unit by itself is no group."""

    def name(members: list[int]) -> str:
        if inside:
            return some_ranks(matrix.ranks[unit] for unit in members)
        return first_of(list(dict.fromkeys(matrix.hosts[unit] for unit in members)), NAMED)

    units = [np.flatnonzero(group == label).tolist() for label in np.unique(group)]
    groups = [members for members in units if len(members) > 1]
    named = "; ".join(map(name, groups[:NAMED]))
    more = f"; and {len(groups) - NAMED} more" if len(groups) > NAMED else ""
    return (
        f"two tiers: pairs between {count(len(groups), 'group')} take {factor:.2f} times as long "
        f"as those within them ({named}{more})"
    )

"""What the gate says of hosts whose truth is known: the verdict, the hosts to drain, the words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest

from omb_py.analysis.conclusion import FAILED, PASSED, UNDECIDED
from omb_py.analysis.gate.judging import judge
from omb_py.analysis.gate.points import Record
from omb_py.analysis.gate.verdicts import gated
from omb_py.measure import gate_turns
from perf.gate import fleet, named

Factors = Mapping[str, float]

NOISE = 0.01

RACKS = tuple(f"r{rack}n{number}" for rack in (1, 2, 3, 4) for number in (1, 2, 3))
RACK_1 = dict.fromkeys(RACKS[:3], 2.0)
OF_RACKS = {host: host[:2] for host in RACKS}


def hosts(number: int) -> tuple[str, ...]:
    return tuple(f"node{one:02}" for one in range(1, number + 1))


def noise(names: Sequence[str]) -> float:
    """A small number that depends on the names alone."""
    return float(np.random.default_rng([*"".join(names).encode()]).normal(0, NOISE))


def alone(names: Sequence[str], slow: Factors, again: Sequence[Factors] = ()) -> Iterator[Record]:
    """Three turns of each host by itself, and turns that measured again, each with its factors."""
    for turn, factors in enumerate([slow] * 3 + [*again]):
        for one in names:
            cost = math.log(factors.get(one, 1.0)) + noise([one, str(turn)])
            yield Record("pack 1 MiB", (one,), cost, again=turn >= 3)


def pairs(
    names: Sequence[str],
    slow: Factors,
    links: Mapping[tuple[str, str], float] | None = None,
    partners: int = 100,
    inside: float | None = None,
    turn: str = "1",
) -> Iterator[Record]:
    """Pairs of hosts, each as slow as its slower end or its link.

    Two slow ones take ``inside`` times as long, or are no pair if that is 0.
    """
    for a, b in combinations(names, 2):
        distance = (names.index(b) - names.index(a)) % len(names)
        if min(distance, len(names) - distance) > partners:
            continue
        factor = (links or {}).get((a, b), max(slow.get(a, 1.0), slow.get(b, 1.0)))
        if inside is not None and {a, b} <= {*slow}:
            factor = inside
        if factor:
            yield Record("latency 8 B in pairs", (a, b), math.log(factor) + noise([a, b, turn]))


def halves(names: Sequence[str], slow: Factors) -> Iterator[Record]:
    """Halves of all hosts, each as slow as its slowest host."""
    for sides in gate_turns.halves(range(len(names))):
        for side in sides:
            own = [names[place] for place in side]
            cost = math.log(max(slow.get(one, 1.0) for one in own)) + noise(own)
            yield Record("allreduce 8 B in halves", tuple(own), cost, split="halves")


def halves_of_several_slow_hosts(names: Sequence[str], healthy: str) -> Iterator[Record]:
    """Halves that are slow with a healthy host by chance, by as much as slow ones meet in each."""
    splits = gate_turns.halves(range(len(names)))
    for sides, factor in zip(splits, (1.24, 1.25, 1.27, 3.0), strict=True):
        for side in sides:
            own = [names[place] for place in side]
            cost = math.log(factor if healthy in own else 1.0)
            yield Record("allreduce 8 B in halves", tuple(own), cost, split="halves")


class Case(NamedTuple):
    """Records, how they are judged, and the verdict: exit code, hosts to drain, words."""

    records: Sequence[Record]
    code: int
    drained: str = ""
    words: Sequence[str] = ()
    options: Mapping[str, Any] = {}


TWELVE = hosts(12)
TWO_GENERATIONS = dict.fromkeys(TWELVE[:6], 1.5)
OF_GENERATIONS = {host: "old" if host in TWO_GENERATIONS else "new" for host in TWELVE}
TWICE = {"node03": 2.0}

CASES = {
    "healthy_hosts_pass": Case(
        [*alone(TWELVE, {}), *pairs(TWELVE, {}), *halves(TWELVE, {})],
        PASSED,
        words=["PASS: 12 of 12 hosts fine"],
    ),
    "slow_host_by_itself_is_named": Case(
        [*alone(TWELVE, TWICE)], FAILED, "node03", ["node03  pack 1 MiB: 2.0", "of 11 others"]
    ),
    "slow_host_of_three_in_pairs_is_named": Case(
        [*pairs(hosts(3), TWICE), *pairs(hosts(3), TWICE, turn="2")], FAILED, "node03"
    ),
    "three_pairs_do_not_show_their_noise": Case(
        [*pairs(hosts(3), TWICE)], UNDECIDED, words=["latency 8 B in pairs: too noisy"]
    ),
    "slow_host_of_four_in_pairs_is_named": Case([*pairs(hosts(4), TWICE)], FAILED, "node03"),
    "slow_host_of_twelve_in_pairs_is_named": Case([*pairs(TWELVE, TWICE)], FAILED, "node03"),
    "slow_host_of_forty_with_four_partners_is_named": Case(
        [*pairs(hosts(40), TWICE, partners=2)], FAILED, "node03", ["39 of 40 hosts fine"]
    ),
    "slow_host_in_halves_is_named": Case(
        [*halves(hosts(8), TWICE)], FAILED, "node03", ["allreduce 8 B in halves: 2."]
    ),
    "unlike_halves_of_several_slow_hosts_accuse_no_healthy_one": Case(
        [*halves_of_several_slow_hosts(TWELVE, "node09")], UNDECIDED
    ),
    "two_slow_hosts_are_both_named": Case(
        [*alone(TWELVE, TWICE), *pairs(TWELVE, {"node03": 2.0, "node08": 3.0})],
        FAILED,
        "node03 node08",
        ["slow at 2 points", "10 of 12 hosts fine"],
    ),
    "slow_link_accuses_no_host": Case(
        [*pairs(hosts(8), {}, {("node02", "node05"): 3.0})],
        FAILED,
        words=["node02 - node05  latency 8 B in pairs: 3.0", "which of the two ends cannot be"],
    ),
    "slow_switch_is_told_by_pairs_inside_it": Case(
        [*pairs(RACKS, RACK_1, inside=1.0)],
        FAILED,
        "r1n1 r1n2 r1n3",
        ["group r1n: 3 of its 3 hosts are slow", "what they share is slow, as a switch"],
    ),
    "slow_switch_is_told_by_its_group": Case(
        [*pairs(RACKS, RACK_1, inside=1.0)],
        FAILED,
        "r1n1 r1n2 r1n3",
        ["group r1: 3 of its 3 hosts are slow"],
        {"groups": OF_RACKS},
    ),
    "group_without_pairs_inside_is_hardware_or_switch": Case(
        [*pairs(RACKS, RACK_1, inside=0)],
        UNDECIDED,
        words=["two groups of hosts at latency 8 B in pairs: 3 (r1n1, r1n2, r1n3)"],
    ),
    "two_generations_are_two_groups": Case(
        [*alone(TWELVE, TWO_GENERATIONS)],
        UNDECIDED,
        words=["two groups of hosts at pack 1 MiB: 6 (node01, node02", "take 1.5"],
    ),
    "slow_host_of_a_generation_is_named": Case(
        [*alone(TWELVE, TWO_GENERATIONS | {"node02": 3.0})],
        FAILED,
        "node02",
        ["two groups of hosts at pack 1 MiB: 6"],
    ),
    "generations_apart_pass": Case(
        [*alone(TWELVE, TWO_GENERATIONS), *pairs(TWELVE, TWO_GENERATIONS)],
        PASSED,
        options={"groups": OF_GENERATIONS, "apart": True},
    ),
    "slow_host_of_a_generation_apart_is_named": Case(
        [*alone(TWELVE, TWO_GENERATIONS | {"node02": 3.0})],
        FAILED,
        "node02",
        ["node02  pack 1 MiB, old: 1.98", "of 5 others"],
        {"groups": OF_GENERATIONS, "apart": True},
    ),
    "second_node_of_a_name_is_told_apart": Case(
        [*alone(("node1", "node1#2", "node2", "node3"), {"node1#2": 2.0})], FAILED, "node1#2"
    ),
    "two_of_three_confirm": Case(
        [*alone(TWELVE, TWICE, [TWICE, {}, TWICE])], FAILED, "node03", ["confirmed 2 of 3"]
    ),
    "one_of_three_does_not_confirm": Case(
        [*alone(TWELVE, TWICE, [TWICE, {}, {}])], PASSED, words=["1 of 3: not confirmed"]
    ),
    "suspect_never_measured_again_is_named": Case(
        [*alone(TWELVE, TWICE)], FAILED, "node03", options={"unknown": ["raise --time"]}
    ),
    "turns_without_an_answer_are_no_pass": Case(
        [*alone(TWELVE, {})],
        UNDECIDED,
        words=["raise --time"],
        options={"unknown": ["raise --time"]},
    ),
    "noise_that_hides_everything_is_no_pass": Case(
        [Record("pack", (host,), float(place)) for place, host in enumerate(TWELVE)],
        UNDECIDED,
        words=["pack: too noisy"],
    ),
    "missing_host_is_no_pass": Case(
        [*alone(TWELVE, {})],
        UNDECIDED,
        words=["1 not measured (node99)"],
        options={"hosts": ["node99"]},
    ),
    "two_hosts_cannot_be_compared": Case(
        [*alone(hosts(2), TWICE)],
        UNDECIDED,
        words=["fewer than 3 hosts: which is slow cannot be told"],
    ),
    "absent_host_is_to_be_drained": Case(
        [*alone(TWELVE[1:], {})],
        FAILED,
        "node01",
        ["node01  does not answer"],
        {"absent": {"node01": "does not answer"}, "hosts": TWELVE},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_verdict_of_known_hosts(case: Case) -> None:
    found = gated(case.records, **case.options)
    said = "\n".join([*found.lines(), *found.remarks])
    assert (found.conclusion.exit_code, " ".join(found.drained)) == (case.code, case.drained), said
    assert [words for words in case.words if words not in said] == [], said


@pytest.mark.parametrize("noise", ["normal", "heavy", "skewed"])
def test_clean_fleets_are_not_accused_and_a_slow_host_is_named(noise: str) -> None:
    """A small version of perf/gate.py, whose fleets have 2,000 hosts."""
    random = np.random.default_rng(1)
    clean = [judge(fleet(random, 400, 3, noise=noise)) for _ in range(40)]
    assert sum(bool(named(one)) for one in clean) <= 1
    told = [named(judge(fleet(random, 400, 3, {7: 1.4}, noise))) for _ in range(20)]
    assert told.count(["node0007"]) >= 19


def test_two_generations_of_many_hosts_are_told_by_one_launch() -> None:
    half = dict.fromkeys(range(500), 1.4)
    found = judge(fleet(np.random.default_rng(1), 1000, 1, half))
    assert {len(one.slower) for one in found.classes} == {500}
    assert not found.slow

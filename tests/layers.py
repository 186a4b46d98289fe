"""Layers of tests: what a test needs, from the fixtures that it uses, and samples of products.

`make check` runs what is quick and needs no ranks, hosts, scheduler or browser; `make test` what is
not long, and of each product a sample; `make test-long` what is long; `make test-all` every case.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import OmbError
from omb_py.core.text.words import count
from tests.helpers.battery import Line

NEEDS = {
    "mpi": "ranks",
    "can_make_hosts": "hosts",
    "two_nodes": "scheduler",
    "browser": "browser",
    "driver": "stand_in",
    "aware_mpi": "aware",
    "simgrid": "slow",
    "long_time": "long",
}
"""The marker of tests that use a fixture, themselves or through others."""

MANY_RANKS = "many ranks"
GROUPS = {"hosts": MANY_RANKS, "scheduler": "scheduler", "browser": "browser"}
"""What is made once, and so belongs to one of several pytest workers, by marker.

Jobs of many ranks also share a worker: two of them at a time keep each other from the cores.
"""

Case = frozenset[tuple[str, str]]
"""A case of a product: the value of each factor."""


def mark_by_need(item: pytest.Item) -> None:
    """Add a marker for each need of a test."""
    for fixture in getattr(item, "fixturenames", ()):
        if fixture in NEEDS:
            item.add_marker(NEEDS[fixture])
    groups = [group for need, group in GROUPS.items() if item.get_closest_marker(need)]
    groups += [MANY_RANKS] if lines_of(item) else []
    if groups:
        item.add_marker(pytest.mark.xdist_group(groups[0]))


def parameters_of(item: pytest.Item) -> dict[str, Any]:
    """The parameters of a test."""
    call = getattr(item, "callspec", None)
    return dict(call.params) if call else {}


def lines_of(item: pytest.Item) -> list[Line]:
    """The command lines among the parameters of a test."""
    return [value for value in parameters_of(item).values() if isinstance(value, Line)]


def factors(parameters: dict[str, Any]) -> dict[str, str]:
    """The factors of a case of a product that has these parameters, and its value of each.

    A command line has several: its ranks, its benchmark, the family of that, and each option.
    """
    found: dict[str, str] = {}
    for name, value in parameters.items():
        if not isinstance(value, Line):
            found[name] = str(value)
            continue
        benchmark, *words = value.arguments
        found |= {"ranks": str(value.ranks), "benchmark": benchmark, "family": family(benchmark)}
        option = ""
        for word in words:
            if word.startswith("-"):
                option = word
                found[option] = ""
            else:
                found[option] = f"{found.get(option, '')} {word}"
        found |= dict(value.environment)
    return found


def cases_of(products: Iterable[dict[str, Any]]) -> list[Case]:
    """The cases of a product from the parameters of each; a factor may be absent from some."""
    found = [factors(parameters) for parameters in products]
    names = sorted(set().union(*found))
    return [frozenset((name, one.get(name, "absent")) for name in names) for one in found]


@cache
def family(name: str) -> str:
    """The family of a benchmark; an application is one of its own."""
    try:
        return find_benchmark(name).family
    except OmbError:
        return name


def covered(case: Case, strength: int) -> Iterator[tuple[tuple[str, str], ...]]:
    """The combinations of ``strength`` values that a case covers, and each value by itself.

    A benchmark counts by itself alone: its family stands for it in combinations. With a strength
    of 0 one case is as good as another.
    """
    if strength == 0:
        yield ()
        return
    for value in sorted(case):
        yield (value,)
    if strength > 1:
        combined = sorted(value for value in case if value[0] != "benchmark")
        yield from combinations(combined, strength)


def sample(cases: Iterable[Case], strength: int, seed: int) -> set[int]:
    """Numbers of cases that together cover what all of them cover, drawn by ``seed``.

    The greedy covering array: again and again the case that covers most of what is left.
    """
    shuffled = [(number, set(covered(case, strength))) for number, case in enumerate(cases)]
    random.Random(seed).shuffle(shuffled)
    left = set().union(*(covers for _, covers in shuffled))
    heap = [(-len(covers), place) for place, (_, covers) in enumerate(shuffled)]
    heapq.heapify(heap)
    chosen = set()
    while left:
        _, place = heapq.heappop(heap)
        number, covers = shuffled[place]
        covers &= left
        if heap and len(covers) < -heap[0][0]:
            heapq.heappush(heap, (-len(covers), place))
            continue
        chosen.add(number)
        left -= covers
    return chosen


def mark_samples(items: list[pytest.Item], seed: int) -> None:
    """Mark the cases of products that are not in the sample ``exhaustive``."""
    products: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("product"):
            products.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for members in products.values():
        members.sort(key=lambda item: item.nodeid)  # not in the random order of a run
        marker = members[0].get_closest_marker("product")
        strength = marker.kwargs.get("strength", 2) if marker else 2
        chosen = sample(cases_of(map(parameters_of, members)), strength, seed)
        for number, item in enumerate(members):
            if number not in chosen:
                item.add_marker("exhaustive")


class Layers:
    """Marks tests, says which one fails as soon as it does, and what was not tested.

    Tests with a marker among those ``required`` fail where they would be skipped.
    """

    def __init__(self, seed: int, required: frozenset[str], reporter: Any) -> None:
        self.seed = seed
        self.required = required
        self.reporter = reporter

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            mark_by_need(item)
        mark_samples(items, self.seed)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give the seed to a worker of pytest-xdist."""
        node.workerinput["sample_seed"] = self.seed

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report = yield
        needed = [name for name in self.required if item.get_closest_marker(name)]
        if report.skipped and needed:
            report.outcome = "failed"
            report.longrepr = f"--require {needed[0]}: {reason_of(report)}"
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.reporter is not None:
            self.reporter.ensure_newline()
            self.reporter.write_line(f"FAILED {report.nodeid}", red=True)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        stats = terminalreporter.stats
        reasons = Counter(map(reason_of, stats.get("skipped", ())))
        for reason, number in reasons.most_common():
            terminalreporter.write_line(f"not tested, {count(number, 'case')}: {reason}")
        if stats.keys() & {"failed", "error"}:
            terminalreporter.write_line(f"samples of products: --sample-seed {self.seed}")


def reason_of(report: Any) -> str:
    """Why a test was skipped."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(text).removeprefix("Skipped: ")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample-seed", type=int, default=0, help="seed of the samples of products")
    parser.addoption(
        "--require",
        default="",
        help="markers, as in hosts,scheduler,browser, whose tests fail where they would be skipped",
    )


@pytest.hookimpl(trylast=True)  # after pytest's own plugin that writes on the terminal
def pytest_configure(config: pytest.Config) -> None:
    """Register this plugin, with the seed of the command line or of the controller."""
    seed = getattr(config, "workerinput", {}).get("sample_seed", config.option.sample_seed)
    required = frozenset(filter(None, config.option.require.split(",")))
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    config.pluginmanager.register(Layers(seed, required, reporter))

"""Applications describe themselves by dataclasses: their options, their shares of the work."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps import (
    APPLICATIONS,
    Application,
    ApplicationRequest,
    RunSettings,
    option,
    share,
    shares,
)
from omb_py.benchmarks import all_benchmarks
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.options.application import application_parameters, parse_application
from omb_py.options.table import parameters
from tests.helpers.refusals import refuses

KNOWN = {
    "--file": "the file that replay reads",
    "--samples": "rows of an application's data; a benchmark's are its iterations, kept in a file",
}
"""Options that mean something else to a benchmark."""

ALL = [APPLICATIONS.load(name) for name in APPLICATIONS.builtin()]


@given(st.integers(0, 10_000), st.integers(1, 300))
def test_shares_are_even_and_complete(total: int, ranks: int) -> None:
    found = shares(total, ranks)
    assert sum(found) == total
    assert len(found) == ranks
    assert max(found) - min(found) <= 1
    assert list(found) == sorted(found, reverse=True)


@given(st.integers(0, 1000), st.integers(1, 50))
def test_one_share_begins_where_another_ends(total: int, ranks: int) -> None:
    bounds = [share(total, ranks, rank) for rank in range(ranks)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == total
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(bounds))


@pytest.mark.parametrize("application", ALL, ids=lambda one: one.name)
def test_application_has_its_module_name_and_help(application: Application[Any]) -> None:
    assert APPLICATIONS.load(application.name) is application
    assert application.summary.endswith(".")
    for one in fields(application.problem):
        assert one.metadata["help"], one.name
    names = [parameter.name for parameter in application_parameters(application)]
    assert len(set(names)) == len(names)
    assert {"scaling", "threads", "repeats", "output", "buffer", "binding"} <= set(names)


@pytest.mark.parametrize("application", ALL, ids=lambda one: one.name)
def test_weak_scaling_leaves_one_rank_s_problem_alone(application: Application[Any]) -> None:
    problem = application.problem()
    asked = ApplicationRequest(application, problem, RunSettings(scaling="weak"), Options())
    if application.weak_scaled is None:
        with refuses(UsageError, "no weak scaling"):
            asked.problem_for(2)
        return
    assert asked.problem_for(1) == problem
    grown = [asked.problem_for(ranks) for ranks in (2, 4, 8)]
    assert len({*grown, problem}) == 4


@dataclass(frozen=True)
class Every:
    """A problem with an option of every kind."""

    number: int = option(3, "A number.", minimum=2)
    real: float = option(0.5, "A real number.", minimum=0)
    word: str = option("a", "A word.", choices=("a", "b"))
    flag: bool = option(False, "A flag.")
    some_bytes: int = option(1024, "A number of bytes.", kind="bytes")


EVERY = Application(
    name="every",
    title="Every",
    summary="Every kind of option.",
    problem=Every,
    kernel=lambda team, problem: pytest.fail("is not run"),
    metric=lambda problem, seconds: 0.0,
    unit="",
    compare=lambda problem, result, reference: None,
)


def asked_for(*arguments: str) -> ApplicationRequest:
    """What a command line asks for."""
    return parse_application(EVERY, arguments)


def test_options_have_the_types_of_their_defaults() -> None:
    assert asked_for().problem == Every()
    words = "--number 4 --real 2 --word b --flag --some-bytes 64K --threads 2 --no-check"
    asked = asked_for(*words.split(), "--buffer", "bytearray")
    assert asked.problem == Every(4, 2.0, "b", True, 65536)
    assert asked.settings == RunSettings(threads=2, check=False)
    assert asked.options.buffer == "bytearray"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--number 1", "--number 1 x>=2"),
        ("--real -1", "--real -1.0 range"),
        ("--word c", "--word 'c' one of"),
        ("--some-bytes much", "--some-bytes 'much' bytes"),
        ("--rows 3", "No such option --rows"),
        ("-i 3", "-i --iterations --repeats for every"),
        ("--iterations=3", "-i --iterations --repeats for every"),
        ("-x0", "-x --warmup --warmup-repeats for every"),
        ("--warmup 2", "-x --warmup --warmup-repeats for every"),
    ],
)
def test_impossible_application_option_refused(arguments: str, words: str) -> None:
    with refuses(UsageError, words):
        asked_for(*arguments.split())


@pytest.mark.parametrize("application", ALL, ids=lambda one: one.name)
def test_options_mean_the_same_in_all_applications(application: Application[Any]) -> None:
    of_benchmarks = {
        name
        for benchmark in all_benchmarks()
        for one in parameters(benchmark)
        for name in (*one.opts, *one.secondary_opts)
    }
    own = {f"--{one.name.replace('_', '-')}" for one in fields(application.problem)}
    own |= {f"--{one.name.replace('_', '-')}" for one in fields(RunSettings)}
    assert not own & of_benchmarks - KNOWN.keys()


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("kmeans", ("--iterations", "3"), "--repeats --lloyd-iterations kmeans"),
        ("dispatch", ("--exchange", "nowhere"), "--exchange 'nowhere' one of"),
    ],
)
def test_other_application_value_refused(name: str, arguments: tuple[str, ...], words: str) -> None:
    with refuses(UsageError, words):
        parse_application(APPLICATIONS.load(name), list(arguments))

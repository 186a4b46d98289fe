"""The target of a point: a benchmark, or an application as one that has no message sizes."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import click

from omb_py.apps import APPLICATIONS, REPEATS, WARMUP_REPEATS
from omb_py.benchmarks import Benchmark, Case, Defaults, Plan, by_family, find_benchmark
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.options.application import application_parameters, parse_application
from omb_py.options.parse import parse
from omb_py.options.table import parameters

APPLICATION = "application"
"""The family of all applications, which ``all`` benchmarks do not include."""


@cache
def target(name: str) -> Benchmark:
    """Return the benchmark or application called ``name``; raises `UsageError` if there is none."""
    try:
        return find_benchmark(name)
    except UsageError:
        if APPLICATIONS.has(name):
            return as_benchmark(APPLICATIONS.load(name))
        find_benchmark(name, APPLICATIONS.names())
        raise


@cache
def families() -> dict[str, tuple[Benchmark, ...]]:
    """Return all families of benchmarks, and the applications that need no argument."""
    found = {name: tuple(members) for name, members in by_family().items()}
    applications = map(target, APPLICATIONS.names())
    return found | {APPLICATION: tuple(filter(_needs_no_argument, applications))}


@cache
def parameters_of(name: str) -> tuple[click.Parameter, ...]:
    """Return the parameters that a subject takes as words."""
    found = target(name)
    if found.family == APPLICATION:
        return tuple(application_parameters(APPLICATIONS.load(name)))
    return tuple(parameters(found))


def parse_target(name: str, words: list[str]) -> Options:
    """Return the options of words after a subject's name; raises `UsageError` for others."""
    found = target(name)
    if found.family == APPLICATION:
        return parse_application(APPLICATIONS.load(name), words).options
    return parse(found, words)


def as_benchmark(application: Any) -> Benchmark:
    """Return an application in a benchmark's terms, for a sweep."""
    return Benchmark(
        name=application.name,
        title=application.title,
        family=APPLICATION,
        plan=partial(_no_plan, application.name),
        defaults=Defaults(REPEATS, WARMUP_REPEATS, REPEATS, WARMUP_REPEATS, smallest=0, largest=0),
        summary=application.summary,
        sized=False,
        native=False,
    )


def _no_plan(name: str, case: Case) -> Plan:
    raise NotImplementedError(f"{name} is an application")


def _needs_no_argument(found: Benchmark) -> bool:
    return not any(isinstance(one, click.Argument) for one in parameters_of(found.name))

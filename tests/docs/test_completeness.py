"""Documents have all that there is: exit codes with their errors, bindings, benchmarks, figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generate import benchmarks, read_record
from omb_py.analysis import conclusion, judging
from omb_py.benchmarks import all_benchmarks, own_benchmarks
from omb_py.core import errors
from omb_py.core.errors import OmbError
from omb_py.sweeps import jobs
from tests.docs.pages import DOCS

ROW = re.compile(r"^\| (\d+) \|.*\|([^|]*)\|$", re.MULTILINE)
WITHOUT_ERROR = {
    *(0, conclusion.FAILED, conclusion.UNDECIDED, errors.INTERRUPTED, jobs.ChainEndError.exit_code)
}


def documented() -> dict[int, list[str]]:
    """The names of the errors of each exit code in the table."""
    text = (DOCS / "using.md").read_text(encoding="utf-8")
    return {int(code): re.findall(r"`(\w+)`", names) for code, names in ROW.findall(text)}


def classes(base: type[OmbError]) -> Iterator[type[OmbError]]:
    """A kind of error of omb-py, and all kinds of it."""
    if base.__module__.startswith("omb_py."):
        yield base
    for kind in base.__subclasses__():
        yield from classes(kind)


def test_every_exit_code_is_documented_and_no_other() -> None:
    assert set(documented()) == {kind.exit_code for kind in classes(OmbError)} | WITHOUT_ERROR


def test_errors_stand_beside_their_exit_code() -> None:
    known = {kind.__name__: kind.exit_code for kind in classes(OmbError)}
    named = {name: code for code, names in documented().items() for name in names}
    assert named.items() <= known.items()
    assert named[judging.WrongDataError.__name__] == conclusion.FAILED
    assert set(named) >= {kind for kind in known if kind in vars(errors)}


@pytest.mark.parametrize("page", sorted(DOCS.glob("howto/*.md")), ids=lambda page: page.stem)
def test_a_how_to_has_a_figure(page: Path) -> None:
    figures = re.findall(r"^!\[[^\]]+\]\((\S+)\)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert figures
    assert all((page.parent / figure).is_file() for figure in figures)


def test_every_binding_is_documented() -> None:
    from omb_py.bindings import BINDINGS

    pages = ("overhead.md", "gpu.md", "beyond-mpi.md")
    text = "".join((DOCS / page).read_text() for page in pages)
    assert all(f"`{name}`" in text for name in BINDINGS.builtin())


def test_every_benchmark_was_tried_on_both_libraries() -> None:
    tried = {(found.benchmark, found.mpi.split()[0]) for found in read_record()}
    names = {benchmark.name for benchmark in own_benchmarks()}
    assert tried >= {(name, library) for name in names for library in ("MPICH", "Open")}
    assert {name for name, _ in tried} <= {benchmark.name for benchmark in all_benchmarks()}


def test_a_reason_is_given_once_and_referred_to() -> None:
    text = benchmarks()
    reasons = [line for line in text.splitlines() if line.startswith("1. ")]
    assert len(reasons) == 1
    assert "(1)" in text

"""docs/using.md has the exit codes that there are, with the errors that stand for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from omb_py.analysis import conclusion, judging
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

"""WHAT programs do: the terms in which an application describes itself.

A module of this folder (or an entry point of group ``omb_py.applications``) defines
``APPLICATION``, an `Application` whose name is the module's. Its kernel computes with the arrays of
a team and lets the team's bound calls move them, so that it runs on every buffer through every
binding that has these calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.core.registry import Registry

if TYPE_CHECKING:
    from omb_py.apps.runtime.team import Team

REPEATS = 5
WARMUP_REPEATS = 1
"""Default numbers of timed repeats, and of warm-up repeats before them."""

P = TypeVar("P")
"""A problem: a frozen dataclass whose fields, made by `option`, are the application's options."""


def option(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    choices: Sequence[str] = (),
    kind: str = "",
    metavar: str = "",
) -> Any:
    """Return a field of a problem, and the command line's option of its name.

    Its type is that of ``default``; a tuple is an option that can be given again. ``minimum`` is
    the smallest number allowed. ``kind`` is ``bytes`` for a number of bytes such as 64M,
    ``argument`` for a file or folder that is not an option but the command's argument.
    """
    metadata = {"help": help, "minimum": minimum, "choices": tuple(choices)}
    metadata |= {"kind": kind, "metavar": metavar}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class CheckedResult:
    """The verdict on a result: its distance from the reference, in words."""

    passed: bool
    text: str
    difference: float | None = None


@dataclass(frozen=True)
class Detail:
    """A part of an application that is reported in addition to the whole: an epoch, a stage.

    ``value`` is in ``unit``; ``calls`` are so many MPI calls of ``nbytes`` each.
    """

    name: str
    seconds: float | None = None
    value: float | None = None
    unit: str = ""
    calls: int | None = None
    nbytes: float | None = None


class Kernel(ABC, Generic[P]):
    """A problem distributed over a team, ready to be solved again and again.

    It is made on all ranks together: there it allocates, generates its input and binds its calls.
    This is not timed. Raises `OmbError` when the problem cannot be solved on these ranks.
    """

    def __init__(self, team: Team, problem: P) -> None:
        self.team = team
        self.problem = problem

    def distribute(self) -> None:
        """Give each rank its part of the data; timed as a phase of its own."""

    @abstractmethod
    def solve(self) -> None:
        """Solve the problem, from the data distributed; timed.

        What is not inside ``team.computing`` or a bound call counts as neither.
        """

    @abstractmethod
    def result(self) -> Any:
        """Return the result that rank 0 compares with the reference; collective and not timed.

        It comes by mpi4py, not by the binding, which must not carry what it is judged by.
        """

    def parts(self) -> list[Detail]:
        """Return details of the last `solve`, by default what ``team.part`` timed; collective."""
        return [Detail(name, seconds) for name, seconds in self.team.phases.parts.items()]


@dataclass(frozen=True)
class Sequential:
    """The program that a user would write for one process: its name, and its run."""

    name: str
    solve: Callable[[], Any]


@dataclass(frozen=True)
class Application(Generic[P]):
    """An application, described for the rest of the suite.

    ``problem`` is the dataclass of its options. ``weak_scaled`` gives the problem whose work is so
    many times as much for so many ranks; None if the work cannot grow like that. ``metric`` gives
    the number that its users expect, in ``unit``, from the problem and the seconds it took.
    ``sequential`` prepares the program to compare with, on the host, or is None; ``compare`` checks
    a kernel's result against that program's, or is None. ``applies`` returns whether an option
    means anything in a problem. ``settings`` leaves out the `RunSettings` that have no meaning for
    a problem. ``split_wait`` is the default of that setting: False if the application stands for a
    program that has no barrier before its calls.
    """

    name: str
    title: str
    summary: str
    problem: type[P]
    kernel: Callable[[Team, P], Kernel[P]]
    metric: Callable[[P, float], float]
    unit: str
    compare: Callable[[P, Any, Any], CheckedResult | None]
    sequential: Callable[[P], Sequential | None] = lambda problem: None
    weak_scaled: Callable[[P, int], P] | None = None
    settings: Callable[[P, RunSettings], RunSettings] = lambda problem, settings: settings
    applies: Callable[[P, str], bool] = lambda problem, name: True
    split_wait: bool = True
    details: str = ""


@dataclass(frozen=True)
class RunSettings:
    """Settings of the measurement of any application.

    ``references`` times one rank and the sequential program too, ``check`` compares the results,
    ``split_wait`` puts a barrier before each collective call, so that waiting is timed separately.
    """

    scaling: str = "strong"
    threads: int = 1
    repeats: int = REPEATS
    warmup_repeats: int = WARMUP_REPEATS
    references: bool = True
    check: bool = True
    split_wait: bool = True


@dataclass(frozen=True)
class ApplicationRequest:
    """An application and what the user wants of it; ``problem`` is that of one rank."""

    application: Application[Any]
    problem: Any
    settings: RunSettings
    options: Options

    def problem_for(self, ranks: int) -> Any:
        """Return the problem that so many ranks solve; raise `UsageError` if it cannot grow."""
        if self.settings.scaling == "strong":
            return self.problem
        if self.application.weak_scaled is None:
            name = self.application.name
            raise UsageError(f"{name} has no weak scaling: leave out --scaling weak")
        return self.application.weak_scaled(self.problem, ranks)


def shares(total: int, ranks: int) -> tuple[int, ...]:
    """Return ``total`` items divided over ranks, as evenly as can be; the first ranks get more."""
    part, rest = divmod(total, ranks)
    return tuple(part + (rank < rest) for rank in range(ranks))


def share(total: int, ranks: int, rank: int) -> tuple[int, int]:
    """Return the first item of ``rank`` and the one after its last."""
    before = sum(shares(total, ranks)[:rank])
    return before, before + shares(total, ranks)[rank]


APPLICATIONS = Registry(
    kind="application",
    package="omb_py.apps",
    attribute="APPLICATION",
    group="omb_py.applications",
)


def divides_work(application: str) -> bool:
    """Return whether several ranks divide the work of one; true also if that is unknown."""
    if not APPLICATIONS.has(application):
        return True
    found: Application[Any] = APPLICATIONS.load(application)
    return found.settings(found.problem(), RunSettings()).references

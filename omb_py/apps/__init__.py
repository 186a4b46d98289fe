"""WHAT programs do: the terms in which an application describes itself.

A module of this folder (or an entry point of group ``omb_py.applications``) defines
``APPLICATION``, an `Application` whose name is the module's. Its kernel computes with the arrays of
a team and lets the team's bound calls move them, so that it runs on every buffer through every
binding that has these calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.core.registry import Registry

if TYPE_CHECKING:
    from omb_py.apps.runtime.team import Team

REPEATS = 5
WARMUP_REPEATS = 1
"""How often a problem is solved unless told otherwise, timed and before that."""

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
    """A field of a problem, and the command line's option of its name.

    Its type is that of ``default``; a tuple is an option that can be given again. ``minimum`` is
    the smallest number allowed. ``kind`` is ``bytes`` for a number of bytes such as 64M,
    ``argument`` for a file or folder that is not an option but the command's argument.
    """
    metadata = {"help": help, "minimum": minimum, "choices": tuple(choices)}
    metadata |= {"kind": kind, "metavar": metavar}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class CheckedResult:
    """Whether a result is right: how far it is from what it was compared with, in words."""

    passed: bool
    text: str
    difference: float | None = None


@dataclass(frozen=True)
class Detail:
    """Something that an application tells of beside its time as a whole: an epoch, a stage.

    ``value`` is in ``unit``; ``calls`` are so many MPI calls of ``nbytes`` each. Where ``value`` is
    the median of several, ``spread`` has the minimum, 25th and 75th percentile and the maximum.
    """

    name: str
    seconds: float | None = None
    value: float | None = None
    unit: str = ""
    calls: int | None = None
    nbytes: float | None = None
    spread: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Transfer:
    """A message of ``nbytes`` from one rank to another, and the seconds until it had arrived."""

    sender: int
    receiver: int
    nbytes: int
    seconds: float


class Kernel(ABC, Generic[P]):
    """A problem distributed over a team, ready to be solved again and again.

    It is made on all ranks together: there it allocates, generates its input and binds its calls.
    None of that is timed. Raises `OmbError` when the problem cannot be solved on these ranks.
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
        """What rank 0 compares with the reference, on the host; collective and not timed."""

    def parts(self) -> list[Detail]:
        """What there is to tell of the last `solve` beside its time; collective."""
        return []

    def transfers(self) -> list[Transfer]:
        """What this rank received in the last `solve`, where that was timed by itself."""
        return []


@dataclass(frozen=True)
class Sequential:
    """The program that somebody would write for one process: what it is, and its run."""

    name: str
    solve: Callable[[], Any]


@dataclass(frozen=True)
class Alternative(Generic[P]):
    """Another way to solve a problem on the same ranks: its name, and the problem it solves."""

    name: str
    problem: P


@dataclass(frozen=True)
class Preset:
    """Values of an application's options that belong together, by the names of their fields.

    ``source`` is where they are from.
    """

    source: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Application(Generic[P]):
    """An application and all that the rest of the suite needs to know of it.

    ``problem`` is the dataclass of its options. ``weak_scaled`` gives the problem whose work is so
    many times as much for so many ranks; None where there is no such thing.
    ``metric`` gives the number that its users expect, in ``unit``, from the problem and the seconds
    it took. ``sequential`` prepares the program to compare with, on the host, where there is one;
    ``compare`` checks a kernel's result against its (None where there is none).
    ``alternative`` is what to compare with on the same ranks, where there is something;
    ``applies`` tells whether an option means anything in a problem.
    ``settings`` leaves out the `RunSettings` that have no meaning for a problem.
    ``presets`` are by the names that ``--preset`` has for them.
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
    alternative: Callable[[P], Alternative[P] | None] = lambda problem: None
    presets: Mapping[str, Preset] = field(default_factory=dict, hash=False)
    details: str = ""


@dataclass(frozen=True)
class RunSettings:
    """How any application is measured.

    ``references`` times one rank and the sequential program too, ``check`` compares the results,
    ``split_wait`` puts a barrier before each collective call, so that waiting is told apart.
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
        """The problem that so many ranks solve; raises `UsageError` where it cannot grow."""
        if self.settings.scaling == "strong":
            return self.problem
        if self.application.weak_scaled is None:
            name = self.application.name
            raise UsageError(f"{name} has no weak scaling: leave out --scaling weak")
        return self.application.weak_scaled(self.problem, ranks)


def shares(total: int, ranks: int) -> tuple[int, ...]:
    """How ``total`` things are divided over ranks: as evenly as can be, the first ones get more."""
    part, rest = divmod(total, ranks)
    return tuple(part + (rank < rest) for rank in range(ranks))


def share(total: int, ranks: int, rank: int) -> tuple[int, int]:
    """Where the things of ``rank`` begin and end."""
    before = sum(shares(total, ranks)[:rank])
    return before, before + shares(total, ranks)[rank]


APPLICATIONS = Registry(
    kind="application",
    package="omb_py.apps",
    attribute="APPLICATION",
    group="omb_py.applications",
)


def divides_work(application: str) -> bool:
    """Whether several ranks do together what one would do; so does all that is not known here."""
    if not APPLICATIONS.has(application):
        return True
    found: Application[Any] = APPLICATIONS.load(application)
    return found.settings(found.problem(), RunSettings()).references

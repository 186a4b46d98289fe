"""The configuration of a sweep: experiments, each a product of lists."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from omb_py.algorithms import DEFAULT, library, without_segment
from omb_py.algorithms import MODULES as ALGORITHMS
from omb_py.bindings import BINDINGS
from omb_py.buffers import BUFFERS
from omb_py.core.errors import UsageError
from omb_py.core.registry import Registry
from omb_py.options.types import size_list, size_range
from omb_py.sweeps.field_types import (
    Duration,
    EnvironmentName,
    Line,
    Name,
    Several,
    distinct,
)
from omb_py.sweeps.targets import families, target
from omb_py.sweeps.toml import Strict, known

EVERYTHING = "all"


def benchmark(name: str) -> str:
    """Check a benchmark or application, a family of them, or ``all`` benchmarks."""
    if name == EVERYTHING or name in families():
        return name
    try:
        return target(name).name
    except UsageError as error:
        raise ValueError(f"{error} (or a family: {', '.join(families())}; or all)") from error


def member(registry: Registry, name: str) -> str:
    """Return a member of an axis, under the name the suite knows it by."""
    spelt = {one.replace("_", "-") for one in registry.names()} & {name}
    return known(name, [*registry.names(), *spelt], registry.kind)


def join(value: object) -> object:
    """Return a list of message sizes, or one, as text."""
    values = value if isinstance(value, list | tuple) else [value]
    whole = all(isinstance(item, str | int) and not isinstance(item, bool) for item in values)
    return ",".join(str(item) for item in values) if whole else value


def sizes(text: str) -> str:
    """Return message sizes unchanged; raise `ValueError` if neither -m nor --sizes takes them."""
    try:
        _ = size_range(text) if ":" in text else size_list(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: write MIN:MAX, doubled, MIN:MAX:xF, or a list") from error
    return text


def algorithm(word: str) -> str:
    """Check a word that some library knows an algorithm by, or ``default``."""
    words = {one for name in ALGORITHMS for one in words_of(name)} | {DEFAULT}
    known(without_segment(word), sorted(words), "algorithm")
    return word


def words_of(name: str, function: str | None = None) -> set[str]:
    """Return the words that a library has for a function's algorithms, or for those of all."""
    found = library(name)
    return {word for each in found.table if function in (None, each) for word in found.words(each)}


BenchmarkName = Annotated[str, AfterValidator(benchmark)]
BufferName = Annotated[str, AfterValidator(lambda name: member(BUFFERS, name))]
BindingName = Annotated[str, AfterValidator(lambda name: member(BINDINGS, name))]
Sizes = Annotated[str, BeforeValidator(join), AfterValidator(sizes)]
AlgorithmWord = Annotated[str, AfterValidator(algorithm)]
Positive = Annotated[int, Field(ge=1)]
Scalar = bool | int | float | Line


class Experiment(Strict):
    """A product of benchmarks, buffers, bindings, places and settings."""

    benchmarks: Several[BenchmarkName]
    """Benchmarks and applications by name, families of them, or `all` benchmarks."""
    without: tuple[BenchmarkName, ...] = ()
    """Benchmarks that `benchmarks` stands for and that are not measured."""
    buffers: Several[BufferName] = ("numpy",)
    """The memory in which message buffers live."""
    bindings: Several[BindingName] = ("native", "buffer")
    """The way to call MPI."""
    ranks: Several[Positive] | None = None
    """Ranks in all, shared out over the nodes; or name `ranks_per_node`."""
    nodes: Several[Positive | Literal["all"]] = (1,)
    """Numbers of nodes; `all` is the largest number that the machine, or the queue, has for one
    job."""
    ranks_per_node: Several[Positive | Literal["gpus", "cores", "nics"]] | None = None
    """Ranks on each node; `gpus`, `cores` and `nics` are the numbers of a node of the machine."""
    oversubscribe: bool = True
    """False: leave out points with more ranks on a node than cores, also where the machine allows
    them."""
    part: Several[Literal["all", "near", "far", "odd"]] = ("all",)
    """Ranks that measure while the others of the launch sleep: all; the first two (`near`); the
    first and the last (`far`); without the last of an even number (`odd`)."""
    sizes: Sizes | None = None
    """Message sizes in bytes: `MIN:MAX`, doubled from one to the other, `MIN:MAX:x1.5`, or a list;
    by default each benchmark's own."""
    coll_algorithms: Several[AlgorithmWord] | None = None
    """Algorithms of the library, by the words of docs/algorithms.md."""
    options: dict[Line, Several[Scalar]] = Field(default_factory=dict)
    """Options of the benchmarks by their long names; lists are axes too."""
    environment: dict[EnvironmentName, Several[Line]] = Field(default_factory=dict)
    """Environment variables of the ranks; lists are axes too."""
    libraries: Several[Name] | None = None
    """MPI libraries by the names of the machine's tables `[library.NAME]`, or `all` of them, whose
    launches take turns; by default the one that is there. Rows have the name as their label."""
    title: Line = ""
    """Heading of its rows in a table of the sweep, printed at its end and kept as `table.csv`;
    without a title its rows are not in it."""

    @model_validator(mode="after")
    def _places(self) -> Experiment:
        if (self.ranks is None) is (self.ranks_per_node is None):
            raise ValueError("name either ranks or ranks_per_node (next to nodes)")
        return self


class Sweep(Strict):
    """Experiments, and how their points are run."""

    name: Name
    """Name of the sweep; the folder of results is named after it."""
    description: Line = ""
    """One line about the sweep, for job scripts."""
    time_limit: Duration = 600.0
    """Limit of the time of one point."""
    retries: int = Field(default=1, ge=0, le=10)
    """Number of immediate retries of a point that failed."""
    launches: int = Field(default=1, ge=1, le=1000)
    """Number of launches of each point: in rounds, each of which measures all points."""
    order: Literal["shuffled", "as written"] = "shuffled"
    """Order of the points in each round: `shuffled`, another one in each, or `as written` here."""
    seed: int = Field(default=0, ge=0)
    """Chooses the shuffled orders; the same seed gives the same ones, after an interruption too."""
    experiments: Annotated[tuple[Experiment, ...], AfterValidator(distinct)]
    """Experiments: a table `[[experiments]]` for each."""

"""The configuration of a sweep: experiments, each a product of lists."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from omb_py.algorithms import DEFAULT, library
from omb_py.algorithms import MODULES as ALGORITHMS
from omb_py.apps import APPLICATIONS
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
    Suggested,
    distinct,
)
from omb_py.sweeps.targets import APPLICATION, families, target
from omb_py.sweeps.toml import Strict, known

EVERYTHING = "all"


def benchmark(name: str) -> str:
    """A benchmark or application, a family of them, or ``all`` benchmarks."""
    if name == EVERYTHING or name in families():
        return name
    try:
        return target(name).name
    except UsageError as error:
        raise ValueError(f"{error} (or a family: {', '.join(families())}; or all)") from error


def member(registry: Registry, name: str) -> str:
    """A member of an axis, under the name the suite knows it by."""
    spelt = {one.replace("_", "-") for one in registry.names()} & {name}
    return known(name, [*registry.names(), *spelt], registry.kind)


def join(value: object) -> object:
    """A list of message sizes, or one, as text."""
    values = value if isinstance(value, list | tuple) else [value]
    whole = all(isinstance(item, str | int) and not isinstance(item, bool) for item in values)
    return ",".join(str(item) for item in values) if whole else value


def sizes(text: str) -> str:
    """Message sizes as ``-m`` or ``--sizes`` take them."""
    try:
        _ = size_range(text) if ":" in text else size_list(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: write MIN:MAX, doubled, MIN:MAX:xF, or a list") from error
    return text


def algorithm(word: str) -> str:
    """A word that some library knows an algorithm by, or ``default``."""
    return known(word, sorted(all_words()), "algorithm")


def words_of(name: str, function: str | None = None) -> set[str]:
    """The words that a library has for a function's algorithms, or for those of all."""
    found = library(name)
    return {word for each in found.table if function in (None, each) for word in found.words(each)}


def names_of_benchmarks() -> list[str]:
    """Return all words for ``benchmarks``: families, applications and benchmarks."""
    found = {name: [one.name for one in members] for name, members in families().items()}
    found[APPLICATION] = APPLICATIONS.builtin()
    return [EVERYTHING, *found, *(name for names in found.values() for name in names)]


def all_words() -> set[str]:
    """Return all words for ``coll_algorithms``, of every MPI library."""
    return {word for found in ALGORITHMS for word in words_of(found)} | {DEFAULT}


BenchmarkName = Annotated[str, AfterValidator(benchmark), Suggested(names_of_benchmarks)]
BufferName = Annotated[
    str, AfterValidator(lambda name: member(BUFFERS, name)), Suggested(BUFFERS.builtin)
]
BindingName = Annotated[
    str, AfterValidator(lambda name: member(BINDINGS, name)), Suggested(BINDINGS.builtin)
]
Sizes = Annotated[
    str,
    BeforeValidator(join),
    AfterValidator(sizes),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": ["string", "integer"]},
                {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1},
            ]
        }
    ),
]
AlgorithmWord = Annotated[str, AfterValidator(algorithm), Suggested(all_words)]
Positive = Annotated[int, Field(ge=1)]
Scalar = bool | int | float | Line


class Experiment(Strict):
    """A product of benchmarks, buffers, bindings, places and settings."""

    benchmarks: Several[BenchmarkName] = Field(examples=[["latency", "allreduce"]])
    """Benchmarks and applications by name, families of them, or `all` benchmarks."""
    without: tuple[BenchmarkName, ...] = Field(default=(), examples=[["put_bw"]])
    """Benchmarks that `benchmarks` stands for and that are not measured."""
    buffers: Several[BufferName] = Field(default=("numpy",), examples=[["numpy", "cupy"]])
    """The memory in which message buffers live."""
    bindings: Several[BindingName] = Field(
        default=("native", "buffer"), examples=[["native", "pickle"]]
    )
    """The way to call MPI."""
    ranks: Several[Positive] | None = Field(default=None, examples=[[2, 4]])
    """Ranks in all, shared out over the nodes; or name `ranks_per_node`."""
    nodes: Several[Positive | Literal["all"]] = Field(default=(1,), examples=[[1, 2, "all"]])
    """Numbers of nodes; `all` is the largest number that the machine, or the queue, has for one
    job."""
    ranks_per_node: Several[Positive | Literal["gpus", "cores", "nics"]] | None = Field(
        default=None, examples=[[1, "cores"]]
    )
    """Ranks on each node; `gpus`, `cores` and `nics` are the numbers of a node of the machine."""
    part: Several[Literal["all", "near", "far", "odd"]] = Field(
        default=("all",), examples=[["near", "far"]]
    )
    """Ranks that measure while the others of the launch sleep: all; the first two (`near`); the
    first and the last (`far`); without the last of an even number (`odd`)."""
    sizes: Sizes | None = Field(default=None, examples=["1:1M"])
    """Message sizes in bytes: `MIN:MAX`, doubled from one to the other, `MIN:MAX:x1.5`, or a list;
    by default each benchmark's own."""
    coll_algorithms: Several[AlgorithmWord] | None = Field(default=None, examples=[["ring"]])
    """Algorithms of the MPI library, by the words of docs/algorithms.md."""
    options: dict[Line, Several[Scalar]] = Field(
        default_factory=dict, examples=[{"window_size": [1, 64]}]
    )
    """Options of the benchmarks by their long names; lists are axes too."""
    environment: dict[EnvironmentName, Several[Line]] = Field(
        default_factory=dict, examples=[{"UCX_TLS": ["tcp", "sm,self"]}]
    )
    """Environment variables of the ranks; lists are axes too."""
    title: Line = Field(default="", examples=["acceptance, point to point"])
    """Heading of its rows in a table of the sweep, printed at its end and kept as `table.csv`;
    without a title its rows are not in it."""

    @model_validator(mode="after")
    def _places(self) -> Experiment:
        if (self.ranks is None) is (self.ranks_per_node is None):
            raise ValueError("name either ranks or ranks_per_node (beside nodes)")
        return self


class Sweep(Strict):
    """Experiments, and how their points are run."""

    name: Name = Field(examples=["mine"])
    """Name of the sweep; the folder of results is named after it."""
    description: Line = Field(default="", examples=["two collectives on two nodes"])
    """One line about the sweep, for job scripts."""
    time_limit: Duration = Field(default=600.0, examples=["5m"])
    """Limit of the time of one point."""
    retries: int = Field(default=1, ge=0, le=10, examples=[0])
    """Number of immediate retries of a point that failed."""
    launches: int = Field(default=1, ge=1, le=1000, examples=[5])
    """Number of launches of each point: in rounds, each of which measures all points."""
    order: Literal["shuffled", "as written"] = Field(default="shuffled", examples=["as written"])
    """Order of the points in each round: `shuffled`, another one in each, or `as written` here."""
    seed: int = Field(default=0, ge=0, examples=[1])
    """Chooses the shuffled orders; the same seed gives the same ones, after an interruption too."""
    experiments: Annotated[tuple[Experiment, ...], AfterValidator(distinct)]
    """Experiments: a table `[[experiments]]` for each."""

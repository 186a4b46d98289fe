"""What a sweep measures: experiments, each a product of lists."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from omb_py.algorithms import DEFAULT, library
from omb_py.algorithms import MODULES as ALGORITHMS
from omb_py.bindings import BINDINGS
from omb_py.buffers import BUFFERS
from omb_py.errors import UsageError
from omb_py.numerals import parse_bytes
from omb_py.registry import Registry
from omb_py.sweeps.subjects import families, subject
from omb_py.sweeps.toml import Strict, suggestion
from omb_py.sweeps.values import Duration, EnvironmentName, Line, Name, Several, distinct

EVERYTHING = "all"


def benchmark(name: str) -> str:
    """A benchmark or application, a family of them, or ``all`` benchmarks."""
    if name == EVERYTHING or name in families():
        return name
    try:
        return subject(name).name
    except UsageError as error:
        raise ValueError(f"{error} (or a family: {', '.join(families())}; or all)") from error


def member(registry: Registry, name: str) -> str:
    """A member of an axis, under the name the suite knows it by."""
    names = registry.names()
    if name.replace("-", "_") not in names:
        raise ValueError(f"unknown {registry.kind} {name!r}{suggestion(name, names)}")
    return name


def joined(value: object) -> object:
    """A list of message sizes, or one, as text."""
    values = value if isinstance(value, list | tuple) else [value]
    whole = all(isinstance(item, str | int) and not isinstance(item, bool) for item in values)
    return ",".join(str(item) for item in values) if whole else value


def sizes(text: str) -> str:
    """Message sizes as ``-m`` or ``--sizes`` take them."""
    for part in text.replace(":", ",").split(","):
        if part:
            parse_bytes(part)
    if text.count(":") > 1 or ("," in text and ":" in text) or not text.strip(":, "):
        raise ValueError(f"{text!r}: write MIN:MAX, doubled from one to the other, or a list")
    return text


def algorithm(word: str) -> str:
    """A word that some library knows an algorithm by, or ``default``."""
    words = sorted({known for found in ALGORITHMS for known in words_of(found)} | {DEFAULT})
    if word not in words:
        raise ValueError(f"unknown algorithm {word!r}{suggestion(word, words)}")
    return word


def words_of(name: str, function: str | None = None) -> set[str]:
    """The words that a library has for a function's algorithms, or for those of all."""
    found = library(name)
    return {word for each in found.table if function in (None, each) for word in found.words(each)}


BenchmarkName = Annotated[str, AfterValidator(benchmark)]
BufferName = Annotated[str, AfterValidator(lambda name: member(BUFFERS, name))]
BindingName = Annotated[str, AfterValidator(lambda name: member(BINDINGS, name))]
Sizes = Annotated[str, BeforeValidator(joined), AfterValidator(sizes)]
AlgorithmWord = Annotated[str, AfterValidator(algorithm)]
Positive = Annotated[int, Field(ge=1)]
Scalar = bool | int | float | Line


class Experiment(Strict):
    """A product of benchmarks, buffers, bindings, places and settings.

    Of ``ranks``, ``nodes`` and ``ranks_per_node``, name ``nodes`` and one of the others; ``gpus``
    and ``cores`` are what a node of the machine has. ``sizes`` is ``MIN:MAX`` or a list. Values of
    ``options`` (long names of a benchmark's options) and of ``environment`` may be lists, which
    are axes too. ``library_algorithms`` are words of `docs/algorithms.md`.
    """

    benchmarks: Several[BenchmarkName]
    without: tuple[BenchmarkName, ...] = ()
    buffers: Several[BufferName] = ("numpy",)
    bindings: Several[BindingName] = ("native", "buffer")
    ranks: Several[Positive] | None = None
    nodes: Several[Positive | Literal["all"]] = (1,)
    ranks_per_node: Several[Positive | Literal["gpus", "cores"]] | None = None
    sizes: Sizes | None = None
    library_algorithms: Several[AlgorithmWord] | None = None
    options: dict[Line, Several[Scalar]] = Field(default_factory=dict)
    environment: dict[EnvironmentName, Several[Line]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _places(self) -> Experiment:
        if (self.ranks is None) is (self.ranks_per_node is None):
            raise ValueError("name either ranks or ranks_per_node (beside nodes)")
        return self


class Sweep(Strict):
    """Experiments, and how their points are run.

    ``time_limit`` is the seconds that one point may take, ``retries`` how often a failed one is
    tried again at once, ``repetitions`` how often all is measured, one round after the other.
    """

    name: Name
    description: Line = ""
    time_limit: Duration = 600.0
    retries: int = Field(1, ge=0, le=10)
    repetitions: int = Field(1, ge=1, le=1000)
    experiments: Annotated[tuple[Experiment, ...], AfterValidator(distinct)]

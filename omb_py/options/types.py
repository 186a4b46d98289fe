"""Types of option values: numbers in one notation, and values as native OMB writes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from omb_py.core.calls.skew import parse_skew, read_matrix
from omb_py.core.calls.topology import parse_topology
from omb_py.core.datatypes import parse_layout
from omb_py.core.errors import UsageError
from omb_py.core.options import GROWTH, NODE
from omb_py.core.text.units import parse_bytes, parse_count, parse_decimal, parse_whole

if TYPE_CHECKING:
    Parameter = click.ParamType[Any, Any]
else:
    Parameter = click.ParamType

MAX_SECONDS = 1e9
"""Some 30 years: beyond that, the system's waits overflow."""


def value_of(
    kind: click.ParamType[Any, Any], parse: Callable[[str], Any], value: Any, *where: Any
) -> Any:
    """Return a text as ``parse`` reads it, or a value of ``kind`` as it is; fail as click does."""
    try:
        return parse(value) if isinstance(value, str) else value
    except (ValueError, UsageError) as error:
        kind.fail(str(error), *where)


class Shown:
    """A type with the ``metavar`` that the help shows for a value."""

    metavar: str

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        return self.metavar


class WholeNumber(Shown, click.IntRange):
    """A whole number in a range."""

    metavar = "N"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        number = value_of(self, parse_whole, value, param, ctx)
        return int(super().convert(number, param, ctx))


class Number(Shown, click.FloatRange):
    """A finite number in a range."""

    metavar = "X"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = value_of(self, parse_decimal, value, param, ctx)
        return float(super().convert(number, param, ctx))


class Seconds(Number):
    """A duration in seconds, in a range."""

    metavar = "SECONDS"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds = super().convert(value, param, ctx)
        if seconds > MAX_SECONDS:
            self.fail(f"{seconds:g} is too long: use up to {MAX_SECONDS:g} s", param, ctx)
        return seconds


class File(Shown, click.Path):
    """The name of a file, which shells complete."""

    metavar = "FILE"


class TextType(Shown, Parameter):
    """A type whose texts ``parse`` reads; a value that is no text is one already.

    ``parse`` raises `ValueError` or `UsageError` for a text that is no value.
    """

    def __init__(self, metavar: str, parse: Callable[[str], Any]) -> None:
        self.name = self.metavar = metavar
        self.parse = parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return value_of(self, self.parse, value, param, ctx)


def size_range(text: str) -> tuple[int | None, int | None, float]:
    """Return ``MAX``, ``MIN:MAX``, ``MIN:`` or ``:MAX``, and the factor of ``:xF`` after them.

    None is the default.
    """
    before, times, factor = text.rpartition(":x")
    text = before if times else text
    growth = parse_decimal(factor) if times else GROWTH
    if growth <= 1:
        raise ValueError(f"x{factor}: the factor from one size to the next is above 1")
    smallest, colon, largest = text.rpartition(":")
    low = parse_bytes(smallest) if smallest else None
    high = parse_bytes(largest) if largest or not colon else None
    if low is None and high is None:
        raise ValueError("name the smallest message, the largest or both, as in 1:65536")
    if low is not None and high is not None and low > high:
        raise ValueError(f"the smallest message ({low}) is larger than the largest ({high})")
    return low, high, growth


def size_list(text: str) -> tuple[int, ...]:
    """Return numbers of bytes separated by commas, each once."""
    return tuple(dict.fromkeys(parse_bytes(part) for part in text.split(",")))


def device_list(text: str) -> tuple[int, ...]:
    """Return numbers of devices separated by commas."""
    return counts(text.split(","), f"{text!r} is not a list of device numbers, as in 0 or 0,2")


def percentiles(text: str) -> tuple[float, ...]:
    """Return percentages separated by commas, fractions allowed."""
    try:
        percents = tuple(dict.fromkeys(map(parse_decimal, text.split(","))))
    except ValueError:
        raise ValueError(f"{text!r} is not a list of percentages, as in 50,90,99.9") from None
    for percent in percents:
        if not 0 <= percent <= 100:
            raise ValueError(f"{percent:g} is not a percentage from 0 to 100")
    return percents


def warmup(text: str) -> int | str:
    """Parse a number of warm-up iterations, or ``auto``."""
    if text == "auto":
        return text
    return counts([text], f"{text!r} is neither a whole number from 0 on nor auto")[0]


def factor(text: str) -> float:
    """Return by which factor values differ that differ by ``5%`` or, which is the same, ``1.05x``.

    The unit is not left out: 0.05 may be a fraction or a percentage.

    >>> factor("5%"), factor("1.05x")
    (1.05, 1.05)
    """
    try:
        number = parse_decimal(text[:-1])
    except ValueError:
        number = math.nan
    found = {"%": 1 + number / 100, "x": number}.get(text[-1:], math.nan)
    if not found >= 1:
        raise ValueError(f"{text}: write 5% or 1.05x, which mean the same, from 0% on")
    return found


def percentage(text: str) -> float:
    """Return a difference of less than 100 %, as `factor` reads it, as a fraction."""
    found = round(factor(text) - 1, 12)
    if not 0 < found < 1:
        raise ValueError(f"{text} is not between 0% and 100%, as 5% is")
    return found


def victims(text: str) -> tuple[int, ...] | str:
    """Return ranks separated by commas, as in 2 or 1,3; or ``node``."""
    if text == NODE:
        return text
    found = counts(text.split(","), f"{text!r} is neither ranks, as in 2 or 1,3, nor {NODE}")
    if 0 in found:
        raise ValueError("rank 0 writes the results: choose others")
    return tuple(sorted(set(found)))


def root(text: str) -> int | None:
    """Return the rank of ``fixed:RANK``, or None for ``rotate``."""
    if text == "rotate":
        return None
    kind, _, rank = text.partition(":")
    return counts([rank] * (kind == "fixed"), f"{text!r} is neither fixed:RANK nor rotate")[0]


def validation_log(text: str) -> str:
    """Return the folder that ``log`` or ``log:DIR`` names; empty for no log."""
    kind, _, directory = text.partition(":")
    if text and kind != "log":
        raise ValueError(f"{text!r} is not log or log:DIRECTORY")
    return directory or ("validation_output" if kind else "")


def thread_counts(text: str) -> tuple[int, int]:
    """Return ``SENDERS`` or ``SENDERS:RECEIVERS`` as a pair; one number is for both."""
    parts = text.split(":")
    refusal = f"{text!r} is not SENDERS or SENDERS:RECEIVERS, as in 2:4"
    numbers = counts(parts if len(parts) <= 2 else (), refusal)
    if 0 in numbers:
        raise ValueError("each side needs at least 1")
    return numbers[0], numbers[-1]


def label(text: str) -> str:
    """Return a name of the user's own: any text of one line."""
    text = text.strip()
    if not text:
        raise ValueError("it is empty: name what was chosen, as in UCX_TLS=tcp")
    if not text.isprintable():
        raise ValueError(f"{text!r} has characters that cannot be printed: use plain text")
    return text


def node_map(text: str) -> tuple[int, ...] | int:
    """Return a number of ranks for each node, or the node of each rank separated by commas."""
    numbers = counts(text.split(","), f"{text!r} is neither a number nor a list such as 0,0,1,1")
    if numbers == (0,):
        raise ValueError("a node has at least 1 rank")
    return numbers if len(numbers) > 1 else numbers[0]


def split(text: str) -> str:
    """Check a division of ranks into groups, as `omb_py.core.job.groups` reads it; return it."""
    from omb_py.core.job.groups import parse_split

    parse_split(text)
    return text


CONGESTOR_BYTES = 64 << 10
"""Bytes of a congestor's messages, unless its name has others with it."""


def congestor(text: str) -> tuple[str, int]:
    """Return a benchmark that groups of ranks can run, and its message size in bytes."""
    from omb_py.benchmarks import find_benchmark

    name, colon, size = text.partition(":")
    benchmark = find_benchmark(name)
    if "split" not in benchmark.options:
        raise ValueError(f"{benchmark.name} does not run on groups of ranks: name a collective")
    if not benchmark.sized:
        return benchmark.name, 0
    return benchmark.name, parse_bytes(size) if colon else CONGESTOR_BYTES


FIGURES = ("tty", "png", "svg", "pdf")


def figures(text: str) -> tuple[str, ...]:
    """Return kinds of figures, separated by commas as in native OMB."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word not in FIGURES:
            raise ValueError(f"{word}: choose from {', '.join(FIGURES)}")
    return words


class OwnAlgorithmType(Parameter):
    """An algorithm of `omb_py.benchmarks.algorithms`, loaded only if one is named."""

    name = "name"

    def get_metavar(self, param: Any, ctx: Any = None) -> str | None:
        return "NAME" if ctx is None else "|".join(self._names(ctx))

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        names = self._names(ctx)
        if value not in names:
            self.fail(f"{value!r} is not one of {', '.join(names)}", param, ctx)
        return str(value)

    def _names(self, ctx: Any) -> tuple[str, ...]:
        from omb_py.benchmarks.algorithms import words

        return words(ctx.command.name)


def counts(texts: Sequence[str], refusal: str) -> tuple[int, ...]:
    """Return whole numbers from 0 on; raise `ValueError` with ``refusal`` for other texts."""
    try:
        numbers = tuple(map(parse_count, texts))
    except ValueError:
        numbers = ()
    if not numbers:
        raise ValueError(refusal)
    return numbers


BYTES = TextType("BYTES", parse_bytes)
CONGESTOR = TextType("BENCHMARK[:SIZE]", congestor)
DEVICES = TextType("N,N,…", device_list)
GRAPHS = TextType(",".join(FIGURES), figures)
LABEL = TextType("TEXT", label)
LAYOUT = TextType("LAYOUT", parse_layout)
MEMBER_NAME = TextType("NAME", lambda text: text.replace("-", "_"))
NODE_MAP = TextType("N|N,N,…", node_map)
PERCENTILES = TextType("[P,P,…]", percentiles)
FACTOR = TextType("P%|Fx", factor)
PERCENTAGE = TextType("P%", percentage)
ROOT = TextType("ROOT", root)
SIZE_LIST = TextType("SIZE,SIZE,…", size_list)
SIZE_RANGE = TextType("[MIN:]MAX[:xF]", size_range)
SPLIT = TextType("N|mod:N|node|RANKS,…", split)
THREADS = TextType("SENDERS[:RECEIVERS]", thread_counts)
TOPOLOGY = TextType("TOPOLOGY", parse_topology)
SKEW = TextType("S[:SEED]", parse_skew)
MATRIX = TextType("FILE", read_matrix)
VALIDATION_LOG = TextType("[log[:DIR]]", validation_log)
VICTIMS = TextType("RANK,…|node", victims)
WARMUP = TextType("N|auto", warmup)

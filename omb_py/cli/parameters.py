"""Values of options as native OMB writes them, and what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from omb_py.core.calls.topology import Topology, parse_topology
from omb_py.core.datatypes.layout import Layout, parse_layout
from omb_py.core.errors import UsageError
from omb_py.core.text.numbers import parse_bytes, parse_count, parse_decimal

if TYPE_CHECKING:
    Parameter = click.ParamType[Any, Any]
else:
    Parameter = click.ParamType


class MemberName(Parameter):
    """The name of a buffer library or a binding; hyphens stand for underscores."""

    name = "name"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        return str(value).replace("-", "_")


class Bytes(Parameter):
    """One number of bytes."""

    name = "bytes"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        try:
            return value if isinstance(value, int) else parse_bytes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SizeRange(Parameter):
    """``MAX``, ``MIN:MAX``, ``MIN:`` or ``:MAX``, as a pair in which None is the default."""

    name = "[min:]max"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int | None, int | None]:
        if isinstance(value, tuple):
            return value
        smallest, colon, largest = value.rpartition(":")
        try:
            low = parse_bytes(smallest) if smallest else None
            high = parse_bytes(largest) if largest or not colon else None
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if low is None and high is None:
            self.fail("name the smallest message, the largest or both, as in 1:65536", param, ctx)
        if low is not None and high is not None and low > high:
            self.fail(
                f"the smallest message ({low}) is larger than the largest ({high})", param, ctx
            )
        return low, high


class SizeList(Parameter):
    """Numbers of bytes separated by commas."""

    name = "size,size,…"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(dict.fromkeys(parse_bytes(part) for part in value.split(",")))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Devices(Parameter):
    """Numbers of devices separated by commas."""

    name = "n,n,…"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        numbers = counts(value.split(","))
        if numbers is None:
            self.fail(f"{value!r} is not a list of device numbers, as in 0 or 0,2", param, ctx)
        return numbers


class Percentiles(Parameter):
    """Percentages separated by commas, fractions allowed."""

    name = "p,p,…"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            percents = tuple(dict.fromkeys(map(parse_decimal, value.split(","))))
        except ValueError:
            self.fail(f"{value!r} is not a list of percentages, as in 50,90,99.9", param, ctx)
        for percent in percents:
            if not 0 <= percent <= 100:
                self.fail(f"{percent:g} is not a percentage from 0 to 100", param, ctx)
        return percents


class Warmup(Parameter):
    """A whole number, or ``auto``."""

    name = "n|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | str:
        if isinstance(value, int) or value == "auto":
            return value  # type: ignore[no-any-return]
        numbers = counts([value])
        if numbers is None:
            self.fail(f"{value!r} is neither a whole number from 0 on nor auto", param, ctx)
        return numbers[0]


class Precision(Parameter):
    """A percentage, as in ``2%``, kept as a fraction."""

    name = "p%"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, float):
            return value
        try:
            percent = parse_decimal(value.removesuffix("%"))
        except ValueError:
            percent = 0.0
        if not 0 < percent < 100:
            self.fail(f"{value!r} is not a percentage between 0 and 100, as in 2%", param, ctx)
        return percent / 100


class Root(Parameter):
    """``fixed:RANK`` or ``rotate``; None stands for the latter."""

    name = "fixed:rank|rotate"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | None:
        if value is None or isinstance(value, int):
            return value
        kind, colon, rank = value.partition(":")
        if kind == "rotate" and not colon:
            return None
        numbers = counts([rank]) if kind == "fixed" else None
        if numbers is None:
            self.fail(f"{value!r} is neither fixed:RANK nor rotate", param, ctx)
        return numbers[0]


class LayoutType(Parameter):
    """``cont``, ``vect:STRIDE:BLOCK`` or ``indx:FILE``."""

    name = "layout"

    def convert(self, value: Any, param: Any, ctx: Any) -> Layout:
        try:
            return value if isinstance(value, Layout) else parse_layout(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


class ValidationLog(Parameter):
    """``log`` or ``log:DIR``; empty for no log."""

    name = "log[:dir]"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        kind, _, directory = value.partition(":")
        if value == "" or kind == "log":
            return directory or ("validation_output" if kind else "")
        self.fail(f"{value!r} is not log or log:DIRECTORY", param, ctx)


class TopologyType(Parameter):
    """``cart:DIMENSIONS:RADIUS`` or ``graph:FILE``."""

    name = "topology"

    def convert(self, value: Any, param: Any, ctx: Any) -> Topology:
        try:
            return value if isinstance(value, Topology) else parse_topology(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


class Threads(Parameter):
    """``SENDERS`` or ``SENDERS:RECEIVERS``, as a pair; one number is for both."""

    name = "n[:n]"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        numbers = counts(value.split(":"))
        if numbers is None or len(numbers) > 2:
            self.fail(f"{value!r} is not SENDERS or SENDERS:RECEIVERS, as in 2:4", param, ctx)
        if 0 in numbers:
            self.fail("each side needs at least 1", param, ctx)
        return numbers[0], numbers[-1]


class Variant(Parameter):
    """A name of the user's own: any text of one line."""

    name = "text"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        text = str(value).strip()
        if not text:
            self.fail("it is empty: name what was chosen, as in UCX_TLS=tcp", param, ctx)
        if not text.isprintable():
            self.fail(f"{text!r} has characters that cannot be printed: use plain text", param, ctx)
        return text


class OwnAlgorithm(Parameter):
    """A word of `omb_py.benchmarks.algorithms`, which only who asks for one loads."""

    name = "word"

    def get_metavar(self, param: Any, ctx: Any = None) -> str | None:
        return "WORD" if ctx is None else "|".join(self._words(ctx))

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        words = self._words(ctx)
        if value not in words:
            self.fail(f"{value!r} is none of {', '.join(words)}", param, ctx)
        return str(value)

    def _words(self, ctx: Any) -> tuple[str, ...]:
        from omb_py.benchmarks.algorithms import words

        return words(ctx.command.name)


class NodeMap(Parameter):
    """A number of ranks for each node, or the node of each rank separated by commas."""

    name = "n|n,n,…"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...] | int:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        numbers = counts(value.split(","))
        if numbers is None:
            self.fail(f"{value!r} is neither a number nor a list such as 0,0,1,1", param, ctx)
        if len(numbers) > 1:
            return numbers
        if numbers[0] == 0:
            self.fail("a node has at least 1 rank", param, ctx)
        return numbers[0]


def counts(texts: list[str]) -> tuple[int, ...] | None:
    """Whole numbers from 0 on; None where a text is none."""
    try:
        return tuple(map(parse_count, texts))
    except ValueError:
        return None

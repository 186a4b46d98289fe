"""The message sizes that a run measures, and the reasons why others are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil

from omb_py.benchmarks import Benchmark
from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import UsageError
from omb_py.core.options import GROWTH, Options


@dataclass(frozen=True)
class Sizes:
    """Message sizes in bytes, words for each group of others that is left out, and a note."""

    sizes: tuple[int, ...]
    left_out: tuple[str, ...] = ()
    note: str | None = None

    @property
    def refusal(self) -> str:
        """The error if there is no size."""
        return f"no message size to measure of {self.left_out[-1]}; choose others by -m or --sizes"


def message_sizes(benchmark: Benchmark, options: Options, datatype: Datatype, ranks: int) -> Sizes:
    """Return the sizes asked for that hold whole elements and fit the memory limit.

    Sizes that are not whole elements are left out; so are those with fewer elements than the
    benchmark or the layout needs. A range begins with the first that has enough elements, as in
    native OMB: of default sizes without a word, else with a note. Over the memory limit, sizes that
    were asked for are an error (`UsageError`) and default ones are left out. If no size is left,
    the only words state that.
    """
    if not benchmark.sized:
        return Sizes((0,))
    if benchmark.elements is not None:
        return Sizes((benchmark.elements * datatype.itemsize,))
    asked = tuple(asked_sizes(benchmark, options, datatype.itemsize))
    whole = [size for size in asked if size % datatype.itemsize == 0]
    usable = [size for size in whole if _moves_data(benchmark, options, datatype, ranks, size)]
    left_out, note = [], None
    begin = 0 if options.sizes is not None else min(usable, default=0)
    if options.smallest is not None and options.smallest < begin:
        note = f"sizes of {benchmark.name} ({datatype.name}) begin with {begin} bytes"
    ragged = [size for size in asked if size % datatype.itemsize and size >= begin]
    if ragged:
        left_out.append(f"{_list(ragged)} bytes: not whole elements of {datatype.name}")
    idle = [size for size in whole if size not in usable and size >= begin]
    if idle:
        why = _needs(benchmark, options, ranks)
        left_out.append(f"{_list(idle)} bytes of {datatype.name}: {why}")
    fitting = [
        size for size in usable if benchmark.memory(options, size, ranks) <= options.memory_limit
    ]
    larger = [size for size in usable if size not in fitting]
    if larger:
        too_large = (
            f"{_list(larger)} bytes on {ranks} ranks need more than the memory limit of "
            f"{options.memory_limit} bytes per process"
        )
        if options.largest is not None or options.sizes is not None or not fitting:
            raise UsageError(f"{too_large}: raise -M or measure smaller messages")
        left_out.append(f"{too_large} (-M)")
    if not fitting:
        left_out = [
            f"type {datatype.name}: none of {_list(asked)} bytes holds whole elements for {ranks} "
            "ranks and this layout"
        ]
    return Sizes(tuple(fitting), tuple(left_out), note)


def sizes_by_type(
    benchmark: Benchmark, options: Options, datatypes: Iterable[Datatype], ranks: int
) -> dict[Datatype, Sizes]:
    """Return the message sizes of each element type; a type without any has words on it.

    Raises `UsageError` when no type has a size to measure.
    """
    found = {datatype: message_sizes(benchmark, options, datatype, ranks) for datatype in datatypes}
    if not any(sizes.sizes for sizes in found.values()):
        raise UsageError(next(iter(found.values())).refusal)
    return found


def asked_sizes(benchmark: Benchmark, options: Options, whole: int = 1) -> Iterator[int]:
    """Yield the sizes in bytes that options ask for, whether they can be measured or not.

    Sizes that grow by another factor than 2 are rounded up to multiples of ``whole`` bytes. Raises
    `UsageError` when the smallest is larger than the largest.
    """
    if options.sizes is not None:
        yield from options.sizes
        return
    defaults = benchmark.defaults
    size = defaults.smallest if options.smallest is None else options.smallest
    largest = defaults.largest if options.largest is None else options.largest
    if size > largest:
        raise UsageError(
            f"-m: the smallest message ({size} bytes) is larger than the largest ({largest} bytes)"
        )
    while size <= largest:
        yield size
        if options.growth == GROWTH:
            size = size * 2 or 1
        else:
            size = max(ceil(size * options.growth), size + 1)
            size += -size % whole


def _moves_data(
    benchmark: Benchmark, options: Options, datatype: Datatype, ranks: int, size: int
) -> bool:
    elements = size // datatype.itemsize
    if elements < benchmark.smallest_elements(ranks) or elements % benchmark.parts(options):
        return False
    return size == 0 or options.layout.transmitted(elements) > 0


def _needs(benchmark: Benchmark, options: Options, ranks: int) -> str:
    """Return the requirement that a size refused by `_moves_data` does not meet."""
    minimum, parts = benchmark.smallest_elements(ranks), benchmark.parts(options)
    if minimum > 1:
        return f"{benchmark.name} on {ranks} ranks needs at least {minimum} elements"
    if parts > 1:
        return f"{benchmark.name} has {parts} parts of whole elements"
    return f"layout {options.layout.text} sends nothing of them"


def _list(sizes: list[int] | tuple[int, ...]) -> str:
    shown = [str(size) for size in sizes[:3]]
    return ", ".join(shown) + (f" … {sizes[-1]}" if len(sizes) > 3 else "")

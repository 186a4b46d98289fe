"""Values as fractions of the limits of their host, if a limit is known.

`omb-py machine bounds` measures the bounds (`omb_py.measure.bounds`); `RULES` assigns bounds to
benchmarks, with reasons.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from omb_py.core.errors import UsageError
from omb_py.core.text import files

NAME = "bounds.json"
"""Name of the file of bounds that is found next to results."""

VERSION: Literal[3] = 3

Share = Annotated[float, Field(ge=0, le=1)]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

BUSY = 0.05
"""Share of the cores' time that other programs may take before rates are likely to show it."""


class Part(BaseModel):
    """A part of a file: its values have exactly the types that are named, and no others."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class CopyRate(Part):
    """MB/s of copies of ``bytes`` bytes, measured on one core and on all cores at once."""

    bytes: Annotated[int, Field(gt=0)]
    one_core: Positive
    all_cores: Positive


class OtherLoad(Part):
    """Shares between 0 and 1 of the cores' time that others took during the measurement of bounds.

    ``others`` are other processes, ``stolen`` is the hypervisor's share.
    """

    others: Share
    stolen: Share


class Bounds(Part):
    """Limits of a host. Rates are in MB/s, ``caches`` in bytes.

    ``load`` is None if the system has no counters of it. ``links`` are of network interfaces and
    InfiniBand ports in one direction, ``gpus`` of the links of each GPU and of copies to and from
    it.
    """

    omb_py_bounds: Literal[3]
    host: str
    measured: str
    processor: str
    cores: Annotated[int, Field(gt=0)]
    load: OtherLoad | None
    copies: tuple[CopyRate, ...]
    caches: dict[str, int]
    links: dict[str, Positive]
    gpus: dict[str, dict[str, Positive]]

    @property
    def busy(self) -> str | None:
        """Return a warning if other programs ran during the measurement, else None."""
        if self.load is None or self.load.others + self.load.stolen < BUSY:
            return None
        return (
            f"other processes took {self.load.others:.0%} of the {self.cores} cores of {self.host} "
            f"and the hypervisor {self.load.stolen:.0%} while its bounds were measured: they may "
            "be too low, measure them again on a quiet node"
        )

    @property
    def all_links(self) -> float:
        """The rate of all network links together; 0 if none is known."""
        return sum(self.links.values())

    def copy_rate(self, nbytes: float, all_cores: bool = False) -> float | None:
        """Return the higher rate of the sizes measured next to ``nbytes``; None below the smallest.

        All cores can do at least what one can, even if a busy host measured less.
        """
        sizes = [copy.bytes for copy in self.copies]
        if not sizes or nbytes < sizes[0]:
            return None
        place = bisect_left(sizes, nbytes)
        near = self.copies[max(0, place - 1) : place + 1]
        return max(max(copy.one_core, all_cores * copy.all_cores) for copy in near)


def two_copies(bounds: Bounds, nbytes: float) -> float | None:
    """Return the rate of two copies at once, by two cores, and no more than all cores can."""
    one, every = (bounds.copy_rate(nbytes, all_cores) for all_cores in (False, True))
    return None if one is None or every is None else min(2 * one, every)


ONE_SIDE = ("bw", "put_bw", "get_bw", "partitioned_bw")
BOTH_SIDES = ("bibw", "put_bibw")

RULES: tuple[tuple[tuple[str, ...], int, str, Callable[[Bounds, float], float | None]], ...] = (
    # MPI copies a message at least once, on one core: straight from one process's memory to the
    # other's (CMA, XPMEM), or through shared memory, where two cores copy in turn
    (ONE_SIDE, 1, "one copy", lambda bounds, size: bounds.copy_rate(size)),
    # each direction takes a copy of its own, on a core of its own
    (BOTH_SIDES, 1, "two copies at once", two_copies),
    # each pair copies on a core of its own, and all share the memory
    (("mbw_mr",), 1, "copies by all cores", lambda bounds, size: bounds.copy_rate(size, True)),
    # all bytes leave by the links of one host; several rails add up; links are full duplex
    ((*ONE_SIDE, "mbw_mr"), 2, "the host's links", lambda bounds, _: bounds.all_links),
    (BOTH_SIDES, 2, "the host's links in both directions", lambda bounds, _: 2 * bounds.all_links),
)
"""Benchmarks, on how many hosts, the bound's name, and its function of the message size in MB/s.
The function returns 0 or None if the bound is unknown. Collectives have no bound: their bus
bandwidth may exceed a link if switches reduce, and time within a host depends on the rank that
copies."""


class Known(NamedTuple):
    """A row's bound in MB/s and in words, and the row's own value as a part of it."""

    value: float
    words: str
    part: float

    @property
    def text(self) -> str:
        """Percentage of the bound that the row reaches, and the bound's name."""
        return f"{100 * self.part:.0f} % of {self.words}"


def bound_of(bounds: Bounds, row: Mapping[str, Any]) -> Known | None:
    """Return the bound that holds for a row of results; None if none is known.

    Messages have to be in host memory, and the row has to have its number of hosts.
    """
    needed = [row.get(name) for name in ("hosts", "bytes", "bandwidth_MBps")]
    if row.get("placement") not in ("H", "H H") or pd.isna(needed).any():
        return None
    for benchmarks, hosts, words, rate in RULES:
        if row["benchmark"] in benchmarks and hosts == int(row["hosts"]):
            value = rate(bounds, row["bytes"])
            return Known(value, words, float(row["bandwidth_MBps"]) / value) if value else None
    return None


def parts_of_bounds(rows: pd.DataFrame, bounds: Bounds) -> list[str]:
    """Return each row's value as a fraction of its bound; an empty text without a known bound."""
    known = (bound_of(bounds, row) for row in rows.to_dict("records"))
    return ["" if one is None else one.text for one in known]


def of_comparison(points: pd.DataFrame, bounds: Bounds) -> list[str]:
    """Return the compared value of each point (`omb_py.analysis.compare`) as a part of its
    bound."""
    rates = points["value"].where(points["unit"] == "MB/s")
    own = {"placement": points["other_placement"], "bandwidth_MBps": rates}
    return parts_of_bounds(points.assign(**own), bounds)


def find(named: str | None, paths: Iterable[str]) -> Bounds | None:
    """Return the bounds in the file named, or in the first folder of results that has some.

    Raises `UsageError` as `read` does.
    """
    beside = (Path(path) / NAME for path in paths)
    found = named or next(filter(Path.is_file, beside), None)
    return None if found is None else read(found)


def read(path: str | Path) -> Bounds:
    """Return the bounds in a file; raises `UsageError` if it holds none or cannot be read."""
    try:
        return Bounds.model_validate_json(files.read(path, UsageError))
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        raise UsageError(
            f"{path} holds no bounds: {where}: {fault['msg']}; make one with omb-py machine bounds "
            f"--output {path}"
        ) from error

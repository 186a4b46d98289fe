"""A network: the costs of messages and the connections of nodes, and its file.

The file is TOML with the fields of `Network`; comments name the source of each number. ``omb-py
simulate --check`` appends the errors of its simulations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from dataclasses import replace as changed
from math import inf
from pathlib import Path as FilePath
from typing import Annotated, Any

from annotated_types import Ge, Gt, Lt

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.simulation.topologies import parse

STRICT = {"extra": "forbid", "allow_inf_nan": True, "hide_input_in_errors": True}

NotNegative = Annotated[float, Ge(0), Lt(inf)]
Positive = Annotated[float, Gt(0), Lt(inf)]
Limit = Annotated[float, Gt(0)]
"""May be infinite, which for SimGrid latencies and bandwidths must not be."""

CHECKED = "# What simulations were beside measurements (omb-py simulate --check):\n"
"""The heading of the errors in a file: each check rewrites the file from here on."""


@dataclass(frozen=True)
class Protocol:
    """Costs of messages of up to ``up_to`` bytes.

    A message keeps its sender, and then its receiver, busy for ``overhead_us``. Between them it
    takes ``handshake_us``, and ``us_per_byte`` for each byte, more than its links do, without
    keeping links or ranks busy.
    """

    __pydantic_config__ = STRICT

    up_to: Limit = inf
    overhead_us: NotNegative = 0.0
    handshake_us: NotNegative = 0.0
    us_per_byte: NotNegative = 0.0

    def delay_us(self, nbytes: float) -> float:
        """Return the time of a message without its links and overheads."""
        return self.handshake_us + self.us_per_byte * nbytes


@dataclass(frozen=True)
class Path:
    """A path of messages: between nodes, or through the memory of one.

    ``latency_us`` is of all links of a route together for ranks on different nodes next to each
    other, ``bandwidth_MBps`` of one link, or of one pair of ranks in memory. ``eager`` is the
    maximum message in bytes that is sent whether or not its receiver is there.
    """

    __pydantic_config__ = STRICT

    latency_us: NotNegative
    bandwidth_MBps: Positive
    eager: Annotated[float, Ge(0)] = 16384.0
    protocols: tuple[Protocol, ...] = (Protocol(),)

    def protocol(self, nbytes: float) -> Protocol:
        """Return the costs of a message of ``nbytes`` bytes."""
        for protocol in self.protocols:
            if nbytes <= protocol.up_to:
                return protocol
        return self.protocols[-1]


@dataclass(frozen=True)
class Checked:
    """The errors of simulations of a benchmark, on some numbers of ranks, against measurements.

    ``regime`` is the bottleneck; errors are fractions of the measured values: 0.1 for 10 %.
    """

    __pydantic_config__ = STRICT

    benchmark: str
    regime: str
    first_ranks: int
    last_ranks: int
    points: int
    median_error: float
    worst_error: float


@dataclass(frozen=True)
class Network:
    """A machine: the costs of its messages, and the connections of its nodes.

    ``topology`` is as ``--network`` spells it. ``memory_MBps`` is the bandwidth that all messages
    through a node's memory share, ``add_us_per_byte`` the time of a rank to add up a byte.
    ``origin`` is the source of its numbers.
    """

    __pydantic_config__ = STRICT

    topology: str
    between: Path
    within: Path = Path(0.4, 10_000.0)
    memory_MBps: Limit = inf
    add_us_per_byte: NotNegative = 1e-4
    origin: str = ""
    checked: tuple[Checked, ...] = ()

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return parse(self.topology).nodes

    @property
    def description(self) -> str:
        """The topology and the source of the numbers, in a sentence."""
        return f"Network: {self.topology}; costs: {self.origin}."


ROUND_FIGURES = Network(
    "star",
    Path(1.5, 12_500.0, protocols=(Protocol(overhead_us=0.2),)),
    Path(0.4, 10_000.0, protocols=(Protocol(overhead_us=0.1),)),
    memory_MBps=100_000.0,
    origin="round figures of a fast network, nothing was measured",
)


def find(text: str, topology: str | None = None) -> Network:
    """Return the network of a file, or of a topology with round figures.

    ``topology`` replaces the file's, whose errors are then left out. Raises `UsageError` for an
    unknown name and if the file is not a network, `OmbError` if it cannot be read.
    """
    if FilePath(text).is_file():
        found = read(FilePath(text))
        if topology is None:
            return found
        parse(topology)
        return changed(found, topology=topology, checked=())
    if topology is not None:
        raise UsageError(f"--topology replaces that of a network's file, not of {text!r}")
    parse(text)
    return changed(ROUND_FIGURES, topology=text)


def read(path: FilePath) -> Network:
    """Read the network of a file.

    Raises `OmbError` if it cannot be read, `UsageError` with file and key if it is not TOML
    or not a network.
    """
    import tomllib

    from pydantic import TypeAdapter, ValidationError

    document = files.parsed(files.read_text(path), tomllib.loads, path, "TOML", UsageError)
    try:
        found = TypeAdapter(Network).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path}, {key}: {first['msg']}") from error
    for name, one in (("between", found.between), ("within", found.within)):
        limits = [protocol.up_to for protocol in one.protocols]
        if not limits or limits != sorted(set(limits)):
            raise UsageError(f"{path}, {name}.protocols: up_to has to grow from one to the next")
    parse(found.topology)
    origin = f"{path.name}, {found.origin}" if found.origin else path.name
    return changed(found, origin=origin)


def text_of(network: Network, comments: Mapping[str, str]) -> str:
    """Return the file of a network; ``comments`` are by key, as in ``between.latency_us``."""
    lines = list(entries(network, "", comments))
    for name, path in (("between", network.between), ("within", network.within)):
        lines += ["", f"[{name}]", *entries(path, f"{name}.", comments)]
        for number, protocol in enumerate(path.protocols):
            key = f"{name}.protocols.{number}."
            lines += ["", f"[[{name}.protocols]]", *entries(protocol, key, comments)]
    return "\n".join(lines) + "\n"


def entries(record: Any, prefix: str, comments: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a record's numbers and texts, each with its comment."""
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, str | float | int) and value != "":
            comment = comments.get(prefix + field.name)
            text = (
                json.dumps(value, ensure_ascii=False)
                if isinstance(value, str)
                else number_text(value)
            )
            yield f"{field.name} = {text}" + (f"  # {comment}" if comment else "")


def number_text(value: float) -> str:
    """Return a number in six digits, a whole number in all its digits."""
    return format(value, ".0f" if value % 1 == 0 else ".6g")


def write_checked(path: FilePath, checked: tuple[Checked, ...]) -> None:
    """Replace the errors at the end of a network's file; all else stays as it is.

    Raises `OmbError` if the file cannot be written.
    """
    before, _, _ = files.read_text(path).partition(CHECKED)
    lines = [before.rstrip("\n"), "", CHECKED.rstrip("\n")]
    for one in checked:
        lines += ["[[checked]]", *entries(one, "", {}), ""]
    files.write(path, "\n".join(lines))

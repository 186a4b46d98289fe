"""The file of NCCL's example tuner plugin: a row of CSV for each rule (``plugin.c`` of 2.30.7).

A row has a collective, the first and the last size, an algorithm, a protocol, and the numbers of
channels, nodes, ranks, pipelined operations and registered buffers, where -1 means any. The plugin
makes the first row that fits the cheapest choice, and passes over a row whose algorithm NCCL cannot
use for the call. It refuses no file: it ignores short rows and has defaults for unknown words.

The size is that of the larger buffer (``ncclFuncMaxSendRecvCount``): for allgather and
reduce_scatter that of all ranks together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from omb_py.algorithms import Algorithm, nccl
from omb_py.algorithms.rules import Choice, LibraryBuild, Rule, RulesFormat, by_ranks
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError

FILE = "NCCL_TUNER_CONFIG_FILE"
PLUGIN = {"NCCL_TUNER_PLUGIN": "example"}

COLLECTIVES = {
    "allgather": "allgather",
    "allreduce": "allreduce",
    "bcast": "broadcast",
    "reduce": "reduce",
    "reduce_scatter": "reducescatter",
    "reduce_scatter_block": "reducescatter",
}
"""The plugin's names of functions; the last two are one function of NCCL."""

COLUMNS = (
    "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
    "regBuff"
)
NECESSARY_COLUMNS = 8
MAX_COLUMNS = 10

LINE = 255
"""Characters that the plugin reads as one line: the rest of a longer one is a line of its own."""

COMMENT = 98
"""Characters of a comment at most."""

NOTES = (
    "omb-py did not try this file: it was written without two GPUs.",
    "It is for NCCL's example tuner plugin, which you have to build: make in plugins/tuner/example "
    "of NCCL's sources. Put its folder into LD_LIBRARY_PATH, and set NCCL_TUNER_PLUGIN=example.",
    "The plugin of NCCL 2.30.7 gives each call one channel, unless a row has a number of channels: "
    "before you build it, set *nChannels = 0 in its function pluginGetCollInfo.",
)


def size_of(function: str, ranks: int, nbytes: int) -> int:
    """Return what the plugin compares, for a benchmark's message size.

    The message of reduce_scatter is that of all ranks already.
    """
    return nbytes * ranks if function == "allgather" else nbytes


def write(rules: Sequence[Rule], about: Sequence[str], build: LibraryBuild) -> tuple[str, ...]:
    """Return the file of some rules; everywhere else NCCL chooses.

    Raises `UsageError` for an algorithm whose protocol is left to NCCL.
    """
    lines = [f"# {line}" for text in (*about, *NOTES) for line in wrap(text, COMMENT)]
    lines.append(f"# {COLUMNS}")
    for function, of_ranks in by_ranks(rules).items():
        for ranks, some in of_ranks.items():
            for rule in some:
                sizes = (size_of(function, ranks, nbytes) for nbytes in (rule.first, rule.last))
                name, protocol = names_of(rule.algorithm)
                row = (COLLECTIVES[function], *sizes, name, protocol, -1, -1, ranks, -1, -1)
                lines.append(",".join(map(str, row)))
    return ("\n".join(lines) + "\n",)


def names_of(algorithm: Algorithm) -> tuple[str, str]:
    """Return the plugin's names of an algorithm and its protocol.

    Raises `UsageError` for an algorithm whose protocol is left to NCCL.
    """
    value, _, protocol = algorithm.value.partition(" ")
    if not protocol:
        words = ", ".join(f"{algorithm.word}_{end}" for end in nccl.PROTOCOLS)
        raise UsageError(
            f"a rule of NCCL has a protocol, which {algorithm.word} leaves to NCCL: measure {words}"
        )
    algorithms = {name: word for word, name in nccl.ALGORITHMS.items()}
    protocols = {name: word for word, name in nccl.PROTOCOLS.items()}
    return algorithms[value], protocols[protocol]


@dataclass(frozen=True)
class TunerRow:
    """A row of the file, with the plugin's defaults; ``value`` is that of an `Algorithm`."""

    collective: str
    first: int
    last: int
    value: str
    nodes: int
    ranks: int
    operations: int
    registered: int

    def fits(self, collective: str, ranks: int, size: int) -> bool:
        """Return whether it is for a plain call: one at a time, of buffers not registered.

        A row for a number of nodes is not, as that number is not known here.
        """
        return (
            self.collective == collective
            and self.first <= size <= self.last
            and self.nodes == -1
            and self.ranks in (-1, ranks)
            and self.operations in (-1, 1)
            and self.registered in (-1, 0)
        )


def read(texts: Sequence[str]) -> Choice:
    """Return what a file makes the plugin choose for plain calls (`TunerRow.fits`)."""
    (text,) = texts
    rows = list(rows_of(text))

    def choice(function: str, ranks: int, nbytes: int) -> str | None:
        usable = {algorithm.value for algorithm in nccl.TABLE.get(function, ())}
        collective, size = COLLECTIVES.get(function, ""), size_of(function, ranks, nbytes)
        return next(
            (
                row.value
                for row in rows
                if row.fits(collective, ranks, size) and row.value in usable
            ),
            None,
        )

    return choice


def rows_of(text: str) -> Iterator[TunerRow]:
    """Yield the rows of a file that the plugin does not ignore."""
    lines = (line[at : at + LINE] for line in text.split("\n") for at in range(0, len(line), LINE))
    for line in lines:
        cells = [cell.strip(" \t") for cell in line.split(",") if cell][:MAX_COLUMNS]
        if line.startswith("#") or len(cells) < NECESSARY_COLUMNS:
            continue
        collective, first, last, algorithm, protocol, _, nodes, ranks, *further = cells
        operations, registered = (*further, "-1", "-1")[:2]
        name = nccl.ALGORITHMS.get(algorithm, "Ring")
        yield TunerRow(
            collective if collective in COLLECTIVES.values() else "allreduce",
            number(first),
            number(last),
            f"{name} {nccl.PROTOCOLS.get(protocol, 'Simple')}",
            *map(number, (nodes, ranks, operations, registered)),
        )


def number(cell: str) -> int:
    """Return the number that a cell begins with; 0 for none, as in C."""
    found = re.match(r"\s*([+-]?\d+)", cell)
    return int(found[1]) if found else 0


def environment(files: Sequence[Path]) -> dict[str, str]:
    """Return the variables that make NCCL load the plugin, and the plugin take a file."""
    return {FILE: str(files[0])} | PLUGIN


def unforced(function: str) -> dict[str, str]:
    """Return the variables that force algorithms of all functions, without a choice.

    Rules choose among what the variables allow. Empty ones allow everything from NCCL 2.24 on.
    """
    return {nccl.ALGORITHM: "", nccl.PROTOCOL: ""}


FORMAT = RulesFormat(
    "NCCL",
    ("nccl_tuner.conf",),
    frozenset(COLLECTIVES),
    write,
    read,
    environment,
    unforced,
)

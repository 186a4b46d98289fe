"""The file of NCCL's example of a tuner plugin: comma-separated values, the first line that fits.

NCCL itself reads no file: its user builds the plugin from NCCL's ``plugins/tuner/example``. Bytes
are of all ranks together where a rank has a block for each (``ncclFuncMaxSendRecvCount``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omb_py.algorithms import nccl
from omb_py.algorithms.rules import Choice, LibraryBuild, Rule, RulesFormat
from omb_py.core.errors import UsageError

COLLECTIVES = {
    "allgather": "allgather",
    "allreduce": "allreduce",
    "bcast": "broadcast",
    "reduce": "reduce",
    "reduce_scatter": "reducescatter",
    "reduce_scatter_block": "reducescatter",
}

COLUMNS = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks"

ABOUT = (
    "omb-py did not try this file: it was written without two GPUs",
    "build plugins/tuner/example of NCCL, and set NCCL_TUNER_PLUGIN to it",
    COLUMNS,
)

ANY = "-1"


def size_of(function: str, ranks: int, nbytes: int) -> int:
    """Return the bytes that NCCL's tuner sees, for a benchmark's message size."""
    return nbytes * ranks if function == "allgather" else nbytes


def write(rules: Sequence[Rule], about: Sequence[str], build: LibraryBuild) -> tuple[str, ...]:
    """Return the file of some rules; raise `UsageError` for one without a protocol."""
    lines = [f"# {line}" for line in (*about, *ABOUT)]
    for rule in rules:
        protocol = rule.algorithm.settings.get("NCCL_PROTO")
        if protocol is None:
            raise UsageError(
                f"NCCL's tuner needs a protocol beside {rule.algorithm.word}: measure "
                f"{', '.join(f'{rule.algorithm.word}_{one}' for one in nccl.PROTOCOLS)}"
            )
        word = next(word for word, name in nccl.NAMES.items() if name == rule.algorithm.value)
        ends = (size_of(rule.function, rule.ranks, size) for size in (rule.first, rule.last))
        cells = [COLLECTIVES[rule.function], *map(str, ends), word, protocol.lower()]
        lines.append(",".join([*cells, ANY, ANY, str(rule.ranks)]))
    return ("\n".join(lines) + "\n",)


def read(texts: Sequence[str]) -> Choice:
    """Return what a file makes the plugin choose; raise `UsageError` for a line that it skips."""
    (text,) = texts
    found: list[tuple[str, int, int, str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fits = len(cells) >= 8 and cells[0] in COLLECTIVES.values() and cells[3] in nccl.NAMES
        if not (fits and cells[1].isdigit() and cells[2].isdigit()):
            raise UsageError(f"NCCL's tuner skips line {number} of this file: {line.strip()}")
        found.append((cells[0], int(cells[1]), int(cells[2]), cells[3], cells[7]))

    def choice(function: str, ranks: int, nbytes: int) -> str | None:
        size = size_of(function, ranks, nbytes)
        for collective, first, last, word, of_ranks in found:
            if collective != COLLECTIVES.get(function) or of_ranks not in (ANY, str(ranks)):
                continue
            if first <= size <= last:
                return nccl.NAMES[word]
        return None

    return choice


def environment(files: Sequence[Path]) -> dict[str, str]:
    """Return the variable that names the file to the plugin."""
    return {"NCCL_TUNER_CONFIG_FILE": str(files[0])}


def unforced(function: str) -> dict[str, str]:
    """Return the variables that force an algorithm, which go before the plugin."""
    return {"NCCL_ALGO": "", "NCCL_PROTO": ""}


FORMAT = RulesFormat(
    "NCCL",
    ("nccl_tuner.conf",),
    frozenset(COLLECTIVES),
    write,
    read,
    environment,
    unforced,
)

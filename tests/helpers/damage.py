"""What happens to files between a job and whoever reads its results, for tests of readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

NOISE = (
    "",
    "--------------------------------------------------------------------------",
    "WARNING: Open MPI accepted a TCP connection from what appears to be another process",
    "  Local host: node17",
    "[node17:03121] 3 more processes have sent help message help-mpi-btl-base.txt",
    "srun: job 4711 queued and waiting for resources",
    "node2:4009:4031 [1] NCCL INFO Channel 00/0 : 9[1] -> 1[1] [receive] via NET/IB/1",
    "slurmstepd: error: *** STEP 4711.0 ON node17 CANCELLED AT 2026-03-01T10:00:00 ***",
    "12",
    "3 4.25",
    "libgcc warning: 0.25 0.50 \N{LATIN SMALL LETTER E WITH ACUTE}",
    "\x1b[33mwarning\x1b[0m: something",
)
"""Lines that launchers and libraries print between others."""

UNRELATED = bytes(set(range(256)) - set(b"0123456789. #-"))
"""Bytes that are part of no number and of no heading's frame."""

Row = Mapping[str, Any]


def without_place(rows: Iterable[Row], also: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Rows without what tells where they stood."""
    dropped = ("line", "run", *also)
    return [{name: value for name, value in row.items() if name not in dropped} for row in rows]


@st.composite
def noisy(draw: Callable[..., Any], text: str) -> str:
    """A text with a few lines of noise between its own."""
    lines = text.splitlines()
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(lines)))
        lines.insert(place, draw(st.sampled_from(NOISE)))
    return "".join(f"{line}\n" for line in lines)


@st.composite
def damaged(draw: Callable[..., Any], content: bytes, most: int = 150) -> bytes:
    """A file that lost some bytes, has others instead, or a part of it twice.

    A loss is shorter than what stands between two tables, and a wrong byte is none of a number:
    a digit for another one in its place is what nobody can notice.
    """
    first = draw(st.integers(0, len(content) - 1))
    length = draw(st.integers(1, most))
    kind = draw(st.sampled_from(("lost", "wrong", "twice")))
    if kind == "lost":
        return content[:first] + content[first + length :]
    if kind == "twice":
        return content[: first + length] + content[first:]
    wrong = bytes(draw(st.lists(st.sampled_from(list(UNRELATED)), min_size=1, max_size=8)))
    return content[:first] + wrong + content[first + len(wrong) :]

"""What the MPI standard's ABI costs: one MPI library through its own ABI and the standard's.

    python -m perf.abi .venv-own/bin/python .venv-abi/bin/python [--launches 20] [--rounds 25]
        [--output results/abi.csv] [--figure docs/figures/abi.svg]

A job uses one ABI, so two jobs of two ranks live at the same time on the same two cores and take
turns: while one measures for some milliseconds, the other sleeps. Who begins changes with every
round. Of the rounds of a pair of jobs medians count, of the pairs the median and its 95 % interval,
since two jobs of the same program can differ by where their memory lies. The first Python beside
itself shows what the comparison finds where there is nothing to find.
"""

from __future__ import annotations

import argparse
import csv
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from omb_py.measure.turns import with_interval
from perf.abi_rank import END, NAMES
from perf.jobs import ENVIRONMENT, HERE

RANKS = 2
SECONDS_TO_ANSWER = 30.0
TITLES = {
    "comm_rank": "MPI_Comm_rank",
    "type_size": "MPI_Type_size",
    "get_count": "MPI_Get_count",
    "isend_wait": "MPI_Isend to nobody, MPI_Wait",
    "send_first": "MPI_Send to nobody, first datatype",
    "send_last": "MPI_Send to nobody, last datatype",
    "send_own": "MPI_Send to nobody, datatype of one's own",
    "waitall": "MPI_Waitall of 64, each request",
    "latency": "latency, 8 B",
    "bw": "message of a window, 8 B",
    "allreduce": "allreduce, 8 B",
}
COMPILE = "from perf.jobs import compile_c; import sys; compile_c(*sys.argv[1:])"


class Job:
    """Ranks that are running, and measure when they are asked to."""

    def __init__(self, ranks: Sequence[socket.socket]) -> None:
        self._ranks = ranks

    def measure(self, number: int) -> float:
        """The nanoseconds of what has this number."""
        for rank in self._ranks:
            rank.sendall(bytes([number]))
        (found,) = struct.unpack("d", self._ranks[0].recv(8))
        return float(found)

    def end(self) -> None:
        """Let the ranks go."""
        for rank in self._ranks:
            rank.sendall(bytes([END]))


@contextmanager
def job(python: str, libraries: Path, place: Path) -> Iterator[Job]:
    """A job of two ranks of a Python and its mpiexec."""
    address = str(place / "socket")
    command = [str(Path(python).parent / "mpiexec"), "-n", str(RANKS), python]
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen()
        listener.settimeout(SECONDS_TO_ANSWER)
        words = [*command, "-m", "perf.abi_rank", address, str(libraries)]
        environment = ENVIRONMENT | {"OMB_PY_REFERENCE": str(libraries / "reference.so")}
        ranks = subprocess.Popen(words, env=environment)
        stack.callback(ranks.wait)
        found = {}
        for _ in range(RANKS):
            connection = stack.enter_context(listener.accept()[0])
            connection.settimeout(SECONDS_TO_ANSWER)
            found[connection.recv(1)[0]] = connection
        running = Job([found[rank] for rank in range(RANKS)])
        stack.callback(running.end)
        yield running


def compiled(python: str, folder: Path) -> Path:
    """The loops in C for a Python's MPI library and ABI."""
    folder.mkdir()
    for source, library in (("abi.c", "abi.so"), ("reference.c", "reference.so")):
        words = [python, "-c", COMPILE, str(HERE / source), str(folder / library)]
        subprocess.run([*words, "-shared", "-fPIC"], env=ENVIRONMENT, check=True)
    return folder


@dataclass(frozen=True)
class Pair:
    """What two jobs side by side found of one thing: the nanoseconds of each round, in each job."""

    times: tuple[list[float], list[float]]

    @property
    def medians(self) -> tuple[float, float]:
        """The median of each job's rounds."""
        return median(self.times[0]), median(self.times[1])

    @property
    def added(self) -> float:
        """The median over rounds of what the second job's time is longer by."""
        return median(b - a for a, b in zip(*self.times, strict=True))

    @property
    def ratio(self) -> float:
        """The median over rounds of the second job's time over the first's."""
        return median(b / a for a, b in zip(*self.times, strict=True))


def side_by_side(
    pythons: Sequence[str], libraries: Sequence[Path], rounds: int, launch: int
) -> dict[str, Pair]:
    """Two jobs that take turns; which of them starts first changes with every launch."""
    order = [launch % 2, 1 - launch % 2]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        jobs: dict[int, Job] = {}
        for which in order:
            (place := Path(folder, str(which))).mkdir()
            jobs[which] = stack.enter_context(job(pythons[which], libraries[which], place))
        found = {name: Pair(([], [])) for name in NAMES}
        for number in range(-1, rounds):
            for what, name in enumerate(NAMES):
                for which in (0, 1) if (number + what) % 2 else (1, 0):
                    nanoseconds = jobs[which].measure(what)
                    if number >= 0:
                        found[name].times[which].append(nanoseconds)
    return found


def compare(
    comparisons: dict[str, tuple[str, str]], launches: int, rounds: int
) -> dict[str, dict[str, list[Pair]]]:
    """The pairs of jobs of every comparison, alternately; by comparison, then by measurement."""
    found: dict[str, dict[str, list[Pair]]] = {
        comparison: {name: [] for name in NAMES} for comparison in comparisons
    }
    with tempfile.TemporaryDirectory() as folder:
        made = {
            python: compiled(python, Path(folder, str(number)))
            for number, python in enumerate(set().union(*comparisons.values()))
        }
        for launch in range(launches):
            for comparison, pythons in comparisons.items():
                libraries = [made[python] for python in pythons]
                for name, pair in side_by_side(pythons, libraries, rounds, launch).items():
                    found[comparison][name].append(pair)
    return found


@dataclass(frozen=True)
class Line:
    """One row of the table: nanoseconds, and the ratio with its 95 % interval."""

    what: str
    through: str
    own_ns: float
    other_ns: float
    added_ns: float
    added_low: float | None
    added_high: float | None
    ratio: float
    ratio_low: float | None
    ratio_high: float | None


def line(name: str, pairs: Sequence[Pair]) -> Line:
    """The medians over launches."""
    what, _, through = name.partition(" ")
    own, other = (median(pair.medians[which] for pair in pairs) for which in (0, 1))
    added = with_interval([pair.added for pair in pairs])
    ratio = with_interval([pair.ratio for pair in pairs])
    return Line(TITLES[what], through or "C", own, other, *added, *ratio)


def printed(lines: Sequence[Line]) -> None:
    """The table as text."""
    print(f"{'':<42}{'':<9}{'own, ns':>9}{'other':>9}{'added':>10}{'':<20}{'ratio':>8}")
    for one in lines:
        added = interval(one.added_low, one.added_high, ".1f")
        ratio = interval(one.ratio_low, one.ratio_high, ".3f")
        print(
            f"{one.what:<42}{one.through:<9}{one.own_ns:9.1f}{one.other_ns:9.1f}"
            f"{one.added_ns:+10.1f} {added:<19}{one.ratio:8.3f} {ratio}"
        )


def interval(low: float | None, high: float | None, form: str) -> str:
    """An interval in words, nothing where there were too few launches for one."""
    return "" if low is None or high is None else f"{low:{form}} to {high:{form}}"


def write(path: Path, comparisons: dict[str, Sequence[Line]]) -> None:
    """All lines as CSV, with the comparison that each belongs to."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["comparison", *Line.__dataclass_fields__])
        for name, lines in comparisons.items():
            for one in lines:
                cells = (getattr(one, field) for field in Line.__dataclass_fields__)
                writer.writerow([name, *(f"{c:.4f}" if isinstance(c, float) else c for c in cells)])


def draw(path: Path, comparisons: dict[str, Sequence[Line]], facts: str) -> None:
    """The ratios with their intervals, one comparison below the other."""
    import altair as alt
    import pandas as pd

    from omb_py.analysis.charts.spec import Chart, ChartLayout, Page, inline, own, styled

    styles = {name: number for number, name in enumerate(comparisons)}
    rows = [
        {"call": f"{one.what}, {one.through}", "line": name, "style": styles[name]}
        | {"ratio": one.ratio, "low": one.ratio_low, "high": one.ratio_high}
        for name, lines in comparisons.items()
        for one in lines
    ]

    def layout(page: Page) -> ChartLayout:
        side = alt.Axis(title=None, minExtent=110, maxExtent=110)
        y = alt.Y("call:N", sort=None, axis=side)
        apart = alt.YOffset("line:N", sort=list(styles), scale=alt.Scale(paddingOuter=0.3))
        color = own(alt.Color, "color")
        ends = alt.Scale(zero=False, nice=True)
        axis = alt.Axis(title="Time over the time through the library's own ABI")
        shown = inline(styled(pd.DataFrame(rows), page))
        base = alt.Chart(shown, width=page.room - 120, height=18 * len(rows) / 2)
        base = base.encode(y, yOffset=apart, color=color)
        points = base.mark_point(filled=True, size=14, opacity=1)
        points = points.encode(shape=own(alt.Shape, "shape"))
        one = alt.Chart(inline([{}])).mark_rule(color=page.color(-1), strokeWidth=0.8)
        layers = [
            one.encode(x=alt.XDatum(1)),
            base.mark_rule(strokeWidth=1.1).encode(alt.X("low:Q", scale=ends), x2="high:Q"),
            points.encode(alt.X("ratio:Q", scale=ends, axis=axis)),
        ]
        return ChartLayout([alt.layer(*layers)], left=110, legend=styles)

    title = "What the MPI standard's ABI costs"
    chart = Chart("abi", title, (facts,), pd.DataFrame(rows), layout)
    path.write_bytes(chart.image(path.suffix.removeprefix(".")))


def main() -> None:
    """The two ABIs, then the first one beside itself."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("own", help="a Python whose mpi4py uses the library's own ABI")
    parser.add_argument("abi", help="a Python whose mpi4py uses the standard's")
    parser.add_argument("--launches", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    beside = {"standard ABI": (asked.own, asked.abi), "own ABI again": (asked.own, asked.own)}
    comparisons: dict[str, Sequence[Line]] = {}
    for name, found in compare(beside, asked.launches, asked.rounds).items():
        comparisons[name] = [line(one, pairs) for one, pairs in found.items()]
        print(f"{name} beside own ABI, {asked.launches} pairs of jobs, {asked.rounds} rounds each")
        printed(comparisons[name])
    if asked.output is not None:
        write(asked.output, comparisons)
    if asked.figure is not None:
        facts = f"Medians of {asked.launches} pairs of jobs with 95 % intervals; {RANKS} ranks"
        draw(asked.figure, comparisons, facts)


if __name__ == "__main__":
    main()

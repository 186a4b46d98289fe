"""The tables of pages that follow from the files of results/, for `docs.generate`."""

from __future__ import annotations

from pathlib import Path
from statistics import geometric_mean, median

from omb_py.benchmarks import own_benchmarks
from omb_py.core.text.units import digits, size_text, value_text
from perf.jobs import parsed

RESULTS = Path(__file__).parent.parent / "results"
LIBRARIES = {"MPICH": "mpich", "Open MPI": "openmpi"}
"""Names of libraries, and what the names of their files end with."""

LAYERS = (
    ("the MPI library, from C", "native", "native"),
    ("+ mpi4py's call, and Python's loop", "prebound", "native"),
    ("+ looking the array up", "buffer", "prebound"),
    ("+ finding count and type", "array", "buffer"),
    ("pickling instead of a buffer", "pickle", "buffer"),
    ("keeping data out of the pickle", "pkl5", "pickle"),
    ("starting a persistent request instead of a call", "persistent", "buffer"),
)
"""What a layer does, its binding, and the binding that it is measured against."""

CALLS = {
    "sendrecv": "Sendrecv",
    "mprobe": "Send, Mprobe, Message.Recv (half of both sides)",
    "iallreduce": "Iallreduce, Wait",
    "allreduce_persistent": "Start, Wait",
    "put_latency": "Put, Flush",
    "put_bw": "Put",
    "comm_dup": "Dup",
    "file_write": "Write_at",
}
"""Benchmarks, and what their loops call from Python."""

COMPARED = (
    ("MPI_Comm_rank", "C"),
    ("MPI_Send to nobody, first datatype", "C"),
    ("MPI_Waitall of 64, each request", "C"),
    ("latency, 8 B", "native"),
    ("latency, 8 B", "buffer"),
    ("allreduce, 8 B", "native"),
    ("allreduce, 8 B", "buffer"),
)
"""Rows of abi.csv that the page shows; the figure has all."""

OTHERS = "others"
SERIES = (
    "ratio of 0.90 to 1.10",
    "outside, within the extremes of native OMB's own runs",
    "[differences](programs.md#differences): computing of non-blocking collectives, and overall "
    "times of 8 bytes",
    "the clock in one-sided latencies",
    "`allgatherv` and its persistent form, whose memory native OMB does not write",
    "`ineighbor_…`: three ranks on two cores",
    OTHERS,
)
"""Where a ratio to native OMB's number lies, or why it lies elsewhere, in the order of the page."""


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of results/, without its metadata."""
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return parsed(file)


def beside_native() -> str:
    """Ratios to native OMB by benchmark and column, that of native OMB to itself in parentheses."""
    measured: dict[tuple[str, str], dict[tuple[str, int], str]] = {}
    for library, name in LIBRARIES.items():
        for row in rows_of(f"native-{name}.csv"):
            cell = f"{row['ratio']} ({row['c_over_c']})"
            place = library, int(row["bytes"] or 0)
            measured.setdefault((row["benchmark"], row["column"]), {})[place] = cell
    sizes = sorted({size for cells in measured.values() for _, size in cells if size})
    heads = [f"{library}, {size_text(size)}" for library in LIBRARIES for size in sizes]
    lines = [f"| benchmark | column | {' | '.join(heads)} |", "|---|---|" + "---|" * len(heads)]
    for (benchmark, column), cells in measured.items():
        texts = [
            cells.get((library, size), cells.get((library, 0), ""))
            for library in LIBRARIES
            for size in sizes
        ]
        lines.append(f"| `{benchmark}` | {column} | {' | '.join(texts)} |")
    return "\n".join(lines)


def one_sided_latency(benchmark: str, family: str) -> bool:
    """Whether native OMB's latency contains readings of the clock."""
    return family == "one-sided" and benchmark.endswith("latency")


def series_of(row: dict[str, str], families: dict[str, str]) -> str:
    """The line of SERIES that a ratio of native-*.csv belongs to."""
    inside, noise, differences, clock, unwritten, neighbors, others = SERIES
    benchmark, column, family = row["benchmark"], row["column"], families[row["benchmark"]]
    if 0.9 <= float(row["ratio"]) <= 1.1:
        return inside
    if not row["beyond"]:
        return noise
    if family == "non-blocking neighborhood collective":
        return neighbors
    of_overall = column != "mean" and row["bytes"] in ("", "8")
    if family == "non-blocking collective" and (column == "compute" or of_overall):
        return differences
    if one_sided_latency(benchmark, family):
        return clock
    return unwritten if benchmark.startswith("allgatherv") else others


def native_series() -> str:
    """Ratios to native OMB counted by their causes, the span of others, and the mean ratio."""
    families = {benchmark.name: benchmark.family for benchmark in own_benchmarks()}
    cells: dict[str, list[str]] = {name: [] for name in SERIES}
    means: list[str] = []
    others: list[float] = []
    for name in LIBRARIES.values():
        rows = rows_of(f"native-{name}.csv")
        ratios = [(series_of(row, families), float(row["ratio"])) for row in rows]
        for what, counts in cells.items():
            counts.append(str(sum(series == what for series, _ in ratios)))
        others += [ratio for series, ratio in ratios if series == OTHERS]
        main = [
            float(row["ratio"])
            for row in rows
            if row["column"] in ("mean", "MB/s")
            and not one_sided_latency(row["benchmark"], families[row["benchmark"]])
        ]
        means.append(f"{geometric_mean(main):.3f} of {len(main)}")
    if others:
        cells[f"{OTHERS}: {min(others):.2f} to {max(others):.2f}"] = cells.pop(OTHERS)
    cells["geometric mean of latencies and bandwidths, without one-sided latencies"] = means
    lines = [f"| series (a column at a size) | {' | '.join(LIBRARIES)} |", "|---|---|---|"]
    lines += [f"| {what} | {' | '.join(texts)} |" for what, texts in cells.items()]
    return "\n".join(lines)


def layers() -> str:
    """Nanoseconds of a message of 8 bytes that each layer takes, or adds to another one."""
    added: dict[tuple[str, str, str], float] = {}
    for library, name in LIBRARIES.items():
        for row in rows_of(f"overhead-{name}.csv"):
            if row["bytes"] == "8":
                value = row["added_us"] if row["binding"] != row["base"] else row["median_us"]
                added[library, row["binding"], row["base"]] = float(value) * 1e3
    lines = [f"| layer | measured as | {' | '.join(LIBRARIES)} |", "|---|---|" + "---:|" * 2]
    for what, binding, base in LAYERS:
        alone = binding == base
        sign, name = ("", binding) if alone else ("+", f"{binding} - {base}")
        texts = [f"{added[library, binding, base]:{sign}.0f}" for library in LIBRARIES]
        lines.append(f"| {what} | `{name}` | {' | '.join(texts)} |")
    return "\n".join(lines)


def families() -> str:
    """Microseconds of a call of other families from C, and what Python adds."""
    heads = " | ".join(f"{library} native | added" for library in LIBRARIES)
    lines = [f"| | {heads} | calls from Python |", "|---|" + "---:|" * 4 + "---|"]
    added = {
        (name, row["benchmark"]): f"{float(row['base_us']):.2f} | {float(row['added_us']):.2f}"
        for name in LIBRARIES.values()
        for row in rows_of(f"overhead-families-{name}.csv")
        if (row["binding"], row["base"], row["split"]) == ("buffer", "native", "")
    }
    for benchmark, calls in CALLS.items():
        cells = [added[name, benchmark] for name in LIBRARIES.values()]
        lines.append(f"| `{benchmark}` | {' | '.join(cells)} | {calls} |")
    return "\n".join(lines)


def transports() -> str:
    """Latency through each binding at three sizes, and its ratio to MPI: medians of the rounds."""
    times: dict[tuple[str, str], list[float]] = {}
    for row in rows_of("transports.csv"):
        place = row["binding"], row["bytes"]
        times.setdefault(place, []).append(float(row["sample_p50_us"] or row["latency_us"]))
    sizes = ("1", "65536", "4194304")
    heads = " | | ".join(size_text(int(size)) for size in sizes)
    lines = [f"| latency, 2 ranks | {heads} | |", "|---|" + "---:|" * 2 * len(sizes)]
    for binding in dict.fromkeys(binding for binding, _ in times):
        found = {size: median(times[binding, size]) for size in sizes}
        cells = [
            f"{value_text(time, 'us')} | {digits(time / median(times['buffer', size]))}x"
            for size, time in found.items()
        ]
        lines.append(f"| `{binding}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def abi() -> str:
    """Nanoseconds of calls through MPICH's own ABI and the standard's."""
    found = {
        (row["what"], row["through"]): row
        for row in rows_of("abi.csv")
        if row["comparison"] == "standard ABI"
    }
    lines = ["| | through | own ABI, ns | standard's, ns | ratio |", "|---|---|---:|---:|---|"]
    for what, through in COMPARED:
        row = found[what, through]
        own, other = float(row["own_ns"]), float(row["other_ns"])
        digits = 1 if own < 100 else 0
        ratio, low, high = (float(row[name]) for name in ("ratio", "ratio_low", "ratio_high"))
        binding = f"`{through}`" if through != "C" else through
        lines.append(
            f"| {what} | {binding} | {own:.{digits}f} | {other:.{digits}f} "
            f"| {ratio:.3f} [{low:.3f}, {high:.3f}] |"
        )
    return "\n".join(lines)

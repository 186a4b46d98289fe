"""The figure of docs/overhead.md, from what `omb-py overhead` wrote.

Usage: python perf/overhead_figure.py OUTPUT.svg FILE.csv…   (needs pandas and matplotlib)

Above: what a message of 8 bytes costs in each binding that hands over memory. Below: what each
binding adds to the native call over the message sizes, with 95 % intervals.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib import pyplot as plt

SIZE = 8
COLORS = {  # Okabe and Ito's, distinct also for the colour-blind
    "native": "#000000",
    "prebound": "#56B4E9",
    "buffer": "#0072B2",
    "array": "#009E73",
    "persistent": "#CC79A7",
    "pickle": "#D55E00",
    "pkl5": "#E69F00",
}
PICKLING = ("pickle", "pkl5")
MARKERS = dict(zip(COLORS, "os^Dv*X", strict=True))


def library(path: Path) -> str:
    """The MPI library of the file's last run, from its metadata."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("# mpi_library: ")]
    words = lines[-1].replace(",", " ").split()[2:]
    return f"MPICH {words[2]}" if words[0] == "MPICH" else f"Open MPI {words[2].lstrip('v')}"


def bars(axes: plt.Axes, table: pd.DataFrame, title: str) -> None:
    """One bar for each binding that does not pickle: the native call, and what is added to it."""
    rows = table[(table.bytes == SIZE) & table.split.isna()].iloc[::-1]
    rows = rows[~rows.binding.isin(PICKLING)]
    native = rows[rows.binding == "native"].median_us.iloc[0] * 1e3
    for place, row in enumerate(rows.itertuples()):
        added = row.added_us * 1e3
        axes.barh(place, native, color=COLORS["native"], alpha=0.75)
        axes.barh(place, added, left=native, color=COLORS[row.binding])
        text = f" {native + added:,.0f} ns"
        if row.binding != "native":
            text += f" ({added:+,.0f}; x {row.ratio:.2f})"
        axes.text(native + max(added, 0), place, text, va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), list(rows.binding))
    axes.set_xlim(0, rows.median_us.max() * 1e3 * 1.5)
    axes.set_xlabel("8-byte latency, ns (dark: the native call)")
    axes.set_title(title)


def lines(axes: plt.Axes, table: pd.DataFrame) -> None:
    """Added time over message size."""
    rows = table[table.split.isna()]
    native = rows[rows.binding == "native"]
    axes.plot(native.bytes, native.median_us, color="#888888", ls="--", lw=1, label="native itself")
    for binding, found in rows.groupby("binding", sort=False):
        if binding == "native":
            continue
        axes.plot(
            found.bytes,
            found.added_us,
            color=COLORS[binding],
            marker=MARKERS[binding],
            ms=3.5,
            lw=1.2,
            label=binding,
        )
        axes.fill_between(
            found.bytes, found.added_low_us, found.added_high_us, color=COLORS[binding], alpha=0.2
        )
    axes.set_xscale("log", base=2)
    axes.set_xlim(left=rows.bytes.min())
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.05)
    axes.xaxis.set_major_formatter(lambda size, _: binary(int(size)))
    axes.set_xlabel("message size")
    axes.set_ylabel("added to the native call, us")
    axes.grid(alpha=0.25)


def binary(size: int) -> str:
    """A size with a binary unit."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def main() -> None:
    """A column for each file."""
    mpl.rcParams |= {"svg.hashsalt": "omb-py", "svg.fonttype": "none", "font.size": 9}
    output, *names = sys.argv[1:]
    figure, axes = plt.subplots(
        2,
        len(names),
        figsize=(5.6 * len(names), 6.8),
        height_ratios=(2, 3),
        squeeze=False,
        layout="constrained",
    )
    for column, name in enumerate(names):
        table = pd.read_csv(name, comment="#")
        bars(axes[0][column], table, library(Path(name)))
        lines(axes[1][column], table)
    axes[1][0].legend(fontsize=8, ncols=2)
    figure.savefig(output, metadata={"Date": None})


if __name__ == "__main__":
    main()

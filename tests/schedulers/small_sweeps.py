"""Sweeps small enough for tests, in the place of a shipped one, and the rows they should end with.

The scripts in ``jobs/`` name the sweep `scaling`. Jobs of these tests run the suite from a folder
in which the package is ours and the configurations are too, but for that sweep.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests import ROOT
from tests.conftest import PLUGIN, points_of, rows_in_text

TEXT = """\
name = "scaling"
time_limit = "30s"
retries = 2

[[experiments]]
benchmarks = ["allreduce"]
bindings = "buffer"
ranks = {ranks}
nodes = [1, 2]
sizes = [{sizes}]
options = {{ {options} }}
"""
Row = tuple[str, str]
"""Nodes and ranks on each, as in 2x4, and bytes."""


@dataclass(frozen=True)
class SmallSweep:
    """What takes the place of the sweep `scaling`: an allreduce of few sizes, briefly."""

    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    options: str = "iterations = 5, warmup = 1"

    def install(self, folder: Path) -> dict[str, str]:
        """Make a folder from which jobs run the suite; the variables that make them do so."""
        site = folder / "site"
        if not site.exists():
            shutil.copytree(ROOT / "configs", site / "configs")
            (site / "omb_py").symlink_to(ROOT / "omb_py")
        sizes = ", ".join(f'"{size}"' for size in self.sizes)
        text = TEXT.format(ranks=list(self.ranks), sizes=sizes, options=self.options)
        (site / "configs/sweeps/scaling.toml").write_text(text)
        return {"PYTHONPATH": f"{site}:{PLUGIN}"}

    @property
    def planned(self) -> Counter[Row]:
        """Each row, once."""
        places = (
            f"{nodes}x{ranks // nodes}"
            for ranks, nodes in product(self.ranks, (1, 2))
            if ranks % nodes == 0
        )
        return Counter(product(places, map(str, self.sizes)))


def rows_in(folder: Path) -> Counter[Row]:
    """The rows in the folder of a sweep, and how often each is there."""
    found: Counter[Row] = Counter()
    for name, text in points_of(folder).items():
        place = re.search(r"-(\d+x\d+)-", name)
        assert place is not None
        found.update((place[1], row["bytes"]) for row in rows_in_text(text))
    return found


def lines_in(folder: Path) -> dict[str, list[str]]:
    """The whole lines of each file of rows in the folder of a sweep."""
    return {
        name: [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        for name, text in points_of(folder).items()
    }

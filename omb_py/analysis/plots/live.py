"""``-G``: figures of what was measured, drawn on rank 0 when all ranks have finished."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from omb_py.core.errors import MissingPackageError, OmbError, installing
from omb_py.core.mpi import launcher
from omb_py.results.row import Row
from omb_py.results.writer import Collector

PACKAGES = {"tty": ("pandas", "matplotlib", "plotext"), "png": ("pandas", "matplotlib")}


class GraphWriter(Collector):
    """Draws at the end; nothing of what draws is loaded before, for it must not be measured."""

    def __init__(self, graphs: tuple[str, ...]) -> None:
        """Raises `MissingPackageError` where what draws ``graphs`` is not installed."""
        super().__init__()
        self._record: type[Any] = Row
        self._graphs = graphs
        for graph in graphs:
            for package in PACKAGES.get(graph, PACKAGES["png"]):
                if find_spec(package) is None:
                    raise MissingPackageError("-G", package, installing("analysis"))

    def row(self, row: Any) -> None:
        self._record = type(row)
        super().row(row)

    def finish(self) -> None:
        from omb_py.analysis.plots import figures
        from omb_py.analysis.plots import files as figure_files
        from omb_py.analysis.table import of_rows

        results = of_rows(self.rows, self.runs, self._record)
        try:
            pictures = figures.pictures(results, figures.Request())
            if "tty" in self._graphs:
                from omb_py.analysis.plots import terminal as terminal_plot

                # some launchers give ranks a terminal of their own, whatever the user has
                size = (terminal_plot.WIDTH, terminal_plot.HEIGHT)
                for picture in pictures.values():
                    print(f"\n{terminal_plot.text(picture, *size)}", flush=True)
            images = [graph for graph in self._graphs if graph != "tty"]
            if images:
                files = figure_files.targets(list(pictures), None, images)
                for path in figure_files.write(pictures, files):
                    launcher.note(f"drew {path}", rank=0)
        except OmbError as error:  # no reason to call what was measured a failure
            launcher.note(f"-G: {error}", rank=0)

"""``-G``: figures of the measured rows, drawn on rank 0 after all ranks have finished."""

from __future__ import annotations

from importlib.util import find_spec

from omb_py.core.errors import MissingPackageError, OmbError, installing
from omb_py.core.mpi import launcher
from omb_py.results.writer import Collector

PACKAGES = ("pandas", "altair", "vl_convert", "plotext")


class GraphWriter(Collector):
    """Drawing of figures at the end; drawing libraries are loaded only then, to measure without
    them."""

    def __init__(self, graphs: tuple[str, ...], force: bool = False) -> None:
        """Raise `MissingPackageError` if a package that draws ``graphs`` is not installed."""
        super().__init__()
        self._graphs, self._force = graphs, force
        for package in PACKAGES:
            if find_spec(package) is None:
                raise MissingPackageError("-G", package, installing("analysis"))

    def finish(self) -> None:
        from omb_py.analysis.charts import figures, terminal
        from omb_py.analysis.table import of_rows

        results = of_rows(self.rows, self.runs)
        try:
            charts = figures.charts(results, figures.requested())
            images = [graph for graph in self._graphs if graph != "tty"]
            for path in figures.write(charts, None, images, force=self._force) if images else ():
                launcher.note(f"drew {path}", rank=0)
            for chart in charts.values() if "tty" in self._graphs else ():
                # some launchers give ranks a terminal of their own, whatever the user has
                print(f"\n{terminal.text(chart, terminal.WIDTH, terminal.HEIGHT)}", flush=True)
        except OmbError as error:  # no reason to call what was measured a failure
            launcher.note(f"-G: {error}", rank=0)

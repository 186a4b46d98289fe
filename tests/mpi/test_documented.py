"""What the documentation says to do works as it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests import ROOT
from tests.conftest import Finished

DOCS = ROOT / "docs"
IMPORTS = """
from omb_py.benchmarks import Benchmark, Case, Content, Defaults, CheckedIteration, Plan, Ranks
from omb_py.core.calls import Call
"""


def test_the_example_benchmark_runs_from_another_distribution(
    mpiexec: Callable[..., Finished], tmp_path: Path
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "extending.md").read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "BENCHMARKS = (" in block]
    (tmp_path / "example.py").write_text(IMPORTS + example)
    folder = tmp_path / "example-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[omb_py.benchmarks]\nexample = example:BENCHMARKS\n")
    job = mpiexec(2, "ping", "-c", "-m", "1:64", "-i", "3", PYTHONPATH=str(tmp_path))
    assert job.code == 0, job.err
    assert len(job.rows) == 7
    assert all(row[2] == "Pass" for row in job.rows)


def test_every_column_is_documented() -> None:
    from omb_py.results.row import COLUMNS, OverheadRow, columns

    documented = re.findall(r"`(\w+)`", (DOCS / "results.md").read_text())
    assert set(COLUMNS) <= set(documented)
    assert set(columns(OverheadRow)) <= set(documented)


def test_every_binding_is_documented() -> None:
    from omb_py.bindings import BINDINGS

    pages = ("overhead.md", "gpu.md", "beyond-mpi.md")
    text = "".join((DOCS / page).read_text() for page in pages)
    assert all(f"`{name}`" in text for name in BINDINGS.builtin())

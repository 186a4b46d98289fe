"""The notebook of docs/ runs as it is, and stays small."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests import ROOT
from tests.helpers.pace import is_over, slowness

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOK = ROOT / "docs" / "results.ipynb"
LARGEST = 100_000
LONGEST = 60.0
"""Bytes of the notebook with its pictures, and seconds that its cells may take together."""


def test_a_notebook_is_small_and_shows_no_error() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert "error" not in {output.output_type for output in outputs}
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert NOTEBOOK.stat().st_size < LARGEST
    assert str(ROOT) not in NOTEBOOK.read_text()


@pytest.mark.usefixtures("long_time")
@pytest.mark.parametrize("folder", ["docs", "."])
def test_notebook_runs(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("MPI4PY_LIBMPI", "/nowhere/libmpi.so")  # none of it needs MPI
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(ROOT / folder)}}
    began = time.monotonic()
    nbclient.NotebookClient(
        notebook, timeout=round(LONGEST * slowness()), kernel_name="python3", resources=where
    ).execute()
    assert not is_over(began, LONGEST)

"""The examples of docs/extending.md are whole modules, short, and run as the page says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.benchmarks.algorithms import TABLE, OwnAlgorithm, bcast
from omb_py.core.options import Options
from tests import ROOT
from tests.benchmarks import test_outputs, test_own_algorithms
from tests.conftest import BIN, PLUGIN, run

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
MODULE = re.compile(r"^```python\n# (?P<place>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = {found["place"]: found["text"] for found in MODULE.finditer(PAGE)}
ENTRIES = """\
[omb_py.benchmarks]
handover = handover:BENCHMARKS
[omb_py.buffers]
hugepages = hugepages:BUFFER
mycupy = mycupy:BUFFER
"""


def installed(folder: Path) -> dict[str, str]:
    """The examples as modules of a distribution; the environment in which it is installed."""
    for place, text in EXAMPLES.items():
        (folder / Path(place).name).write_text(text)
    (folder / "examples-1.0.dist-info").mkdir()
    (folder / "examples-1.0.dist-info" / "METADATA").write_text("Name: examples\nVersion: 1.0\n")
    (folder / "examples-1.0.dist-info" / "entry_points.txt").write_text(ENTRIES)
    return {"PYTHONPATH": f"{folder}:{PLUGIN}"}


def test_the_examples_are_whole_modules_of_at_most_thirty_lines() -> None:
    assert [Path(place).stem for place in EXAMPLES] == [*("handover", "hugepages", "mycupy")]
    for place, text in EXAMPLES.items():
        code = [line for line in text.splitlines() if line.strip()]
        assert len(code) <= 30, place
        compile(text, place, "exec")


def test_the_benchmark_tells_the_memory_that_it_allocates() -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES["omb_py/benchmarks/handover.py"], names)
    test_outputs.test_no_rank_allocates_more_than_the_estimate(names["HANDOVER"])


def test_the_algorithm_gives_every_rank_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = re.findall(r"^def linear.*?(?=^```)", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = vars(bcast).copy()
    exec(text, names)
    row = OwnAlgorithm("linear", names["linear"], "the page")
    monkeypatch.setitem(TABLE, "bcast", replace(TABLE["bcast"], algorithms=(row,)))
    for ranks in (1, 2, 5):
        test_own_algorithms.simulate("bcast", Options(algorithm="linear"), ranks, elements=3)


@pytest.mark.long
def test_the_examples_are_as_clean_as_the_package(tmp_path: Path) -> None:
    installed(tmp_path)
    for command in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy", "--strict"]):
        tool, *words = command
        settings = ["--config", str(ROOT / "pyproject.toml")] if tool == "ruff" else []
        files = [str(tmp_path / Path(place).name) for place in EXAMPLES]
        done = subprocess.run(
            [BIN / tool, *words, *settings, *files],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


RUNS = {
    "handover -m 1:1024 -i 20 -x 2 -c": (0, "OMB-Py MPI Handover Test"),
    "handover -m 8 -i 20 -x 2 -c --binding native": (0, "Pass"),
    "handover -m 8 -i 20 -x 2 -c --binding corrupting": (1, "Fail"),
    "latency --buffer hugepages -m 8 -i 20 -x 2 -c": (0, "Pass"),
    "allreduce --buffer hugepages -m 8 -i 20 -x 2 -c": (0, "Pass"),
}


@pytest.mark.any_library
@pytest.mark.parametrize("words", RUNS)
def test_the_examples_run(mpi: str, tmp_path: Path, words: str) -> None:
    environment = installed(tmp_path)
    code, says = RUNS[words]
    job = run([mpi, "-n", "2", f"{BIN}/omb-py", *words.split()], environment, tmp_path, timeout=60)
    assert job.code == code, job.err
    assert says in job.out


@pytest.mark.any_library
@pytest.mark.parametrize("binding", ["buffer", "native"])
def test_function_without_a_row_is_named(mpi: str, tmp_path: Path, binding: str) -> None:
    environment = installed(tmp_path)
    module = tmp_path / "handover.py"
    module.write_text(module.read_text().replace('"send"', '"sendrecv_replace"'))
    words = ["handover", "-m", "8", "-i", "2", "--binding", binding]
    job = run([mpi, "-n", "2", f"{BIN}/omb-py", *words], environment, tmp_path, timeout=60)
    (sentence,) = job.sentences
    assert "sendrecv_replace" in sentence
    assert "omb_py/bindings/compiled/prototypes.py" in sentence
    assert job.code == 5


def test_missing_device_library_is_named(omb_py: Callable[..., object], tmp_path: Path) -> None:
    environment = installed(tmp_path)
    job = run([f"{BIN}/omb-py", "info"], environment, tmp_path, timeout=60)
    (line,) = [line for line in job.out.splitlines() if "mycupy" in line]
    assert "needs the Python package cupy" in line or "ready" in line or "no CUDA" in line

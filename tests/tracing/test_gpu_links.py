"""NVLink and PCIe, asked for from a stand-in for NVIDIA's library: no GPU took part."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.tracing.counters import gpu_links
from tests import ROOT

pynvml = pytest.importorskip("pynvml")

SOURCE = ROOT / "tests" / "fakes" / "nvml.c"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    built = tmp_path / "libnvml.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(built), str(SOURCE)], check=True)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(built)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})


@pytest.mark.usefixtures("library")
def test_gpus_have_the_links_that_the_library_knows(tmp_path: Path) -> None:
    for _ in range(2):  # the library is opened and closed each time
        links, bus = gpu_links(tmp_path)
        assert (links.name, links.sent, links.received) == (
            "GPU 0 NVLink",
            138 * 1024,
            139 * 1024,
        )
        # of a field of 32 bits no more are read
        assert (bus.name, bus.sent, bus.received, bus.bits) == ("GPU 0 PCIe", 197, 198, 32)


def test_missing_library_has_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", missing)
    assert gpu_links(tmp_path) == []


@pytest.mark.usefixtures("library")
def test_missing_package_has_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu_links(tmp_path) == []

"""Files that a user names: read to their end, or refused in one sentence, at once."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omb_py.analysis import references, speedup
from omb_py.analysis.table import load
from omb_py.core.calls.skew import read_matrix
from omb_py.core.datatypes import number_pairs
from omb_py.core.errors import OmbError
from omb_py.core.text import files
from omb_py.simulation import network
from omb_py.sweeps import toml
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.toml import read as read_toml
from omb_py.tracing import efficiency
from omb_py.tracing.profile import store
from omb_py.tracing.records import reading
from omb_py.tracing.traffic import read as read_traffic
from tests import RESULTS, ROOT
from tests.conftest import Run
from tests.helpers.refusals import assert_refused, missing, refuses

REFERENCE = RESULTS / "two-core-vm.csv"
VARIANTS = ROOT / "tests" / "data" / "omb"

READERS: dict[str, Callable[[Path], Any]] = {
    "results": load,
    "applications": speedup.load,
    "a profile": lambda path: store.load([str(path)]),
    "efficiency": lambda path: efficiency.load([str(path)]),
    "a record": reading.read,
    "traffic": read_traffic,
    "a sweep": lambda path: read_toml(path, Sweep),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["device", "pipe", "loop", "missing"])
def test_endless_or_empty_input_refused_at_once(reader: str, kind: str, tmp_path: Path) -> None:
    """None of these hangs: a hang here is the fault."""
    path = Path("/dev/zero") if kind == "device" else tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "loop":
        path.symlink_to(path)
    with pytest.raises(OmbError) as error:
        READERS[reader](path)
    sentence = {"device": "it is a device", "pipe": "it is a pipe", "loop": "symbolic links"}
    assert sentence.get(kind, "No such file") in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.long
def test_standard_input_and_pipes_of_a_shell_are_read() -> None:
    code = "import sys; from omb_py.analysis.table import load; print(len(load(sys.argv[1]).rows))"
    script = (
        f'cat {REFERENCE} | "$@" /dev/stdin; "$@" <(cat {REFERENCE}); "$@" /dev/stdin < {REFERENCE}'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == [str(len(load(REFERENCE).rows))] * 3


def test_more_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", files.LARGEST + 1)  # it takes no room
    with refuses(OmbError, "larger than 1024 MiB"):
        load(tmp_path / "large")


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_an_empty_file_is_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(content)
    for reader in (load, speedup.load):
        with refuses(OmbError, "run.txt is empty"):
            reader(path)
    (tmp_path / "latency.csv").write_bytes(REFERENCE.read_bytes())
    (problem,) = load(tmp_path).problems
    assert "is empty" in problem.text


def test_an_empty_profile_is_empty(tmp_path: Path) -> None:
    (tmp_path / "mpi_profile.4711.0").touch()
    with refuses(OmbError, "is empty"):
        store.load([str(tmp_path / "mpi_profile.4711.0")])


USAGE = """Invalid option [-f]

Usage: osu_latency [options]
Options:
  -h, --help                print this help
  -m, --message-size        [MIN:]MAX - set the minimum and/or the maximum message size
"""
"""What native OMB 7.4 prints for an option that it does not have."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"$ mpiexec -n 2 osu_latency -f\n{USAGE}",
            "no results osu_latency usage 'Invalid option [-f]'",
        ),
        (USAGE.partition("\n\n")[2], "osu_latency usage message"),
    ],
)
def test_usage_message_of_native_omb_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "osu_latency.txt"
    path.write_text(text)
    with refuses(OmbError, f"{path} {words}"):
        load(path)


class TestFolders:
    """Nothing of one that looks like results is left out without a word."""

    def said(self, folder: Path) -> dict[str, str]:
        return {Path(problem.path).name: problem.text for problem in load(folder).problems}

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        (tmp_path / "latency.csv").write_bytes(REFERENCE.read_bytes())

    def test_links_that_lead_back_are_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "back").symlink_to(tmp_path)
        assert not missing("link folder not followed", self.said(tmp_path)["back"])

    @pytest.mark.slow
    def test_pipes_and_links_to_nothing_are_named(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.csv")
        (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere")
        said = self.said(tmp_path)
        assert not missing("left out regular file", said["pipe.csv"])
        assert said["gone.csv"] == "left out: a link to nothing"

    @pytest.mark.slow
    def test_results_whose_name_ends_otherwise_are_named(self, tmp_path: Path) -> None:
        text = (VARIANTS / "osu_latency.txt").read_text()
        (tmp_path / "job.o1234").write_text(text)
        (tmp_path / "figure.png").write_bytes(b"\x89PNG")
        (tmp_path / "README").write_text("notes\n")
        assert list(self.said(tmp_path)) == ["job.o1234"]
        assert not missing("holds results .csv", self.said(tmp_path)["job.o1234"])


CONTENTS = {
    "binary": (bytes(range(256)), "it is not UTF-8 text"),
    "gzip": (gzip.compress(b"name = 1"), "it is not UTF-8 text"),
    "deep": (b"a = " + b"[" * 100_000, ""),
    "utf-16": ("name = 1".encode("utf-16"), ""),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_what_no_reader_can_read_is_one_sentence(
    tmp_path: Path, in_process: Run, kind: str
) -> None:
    content, words = CONTENTS[kind]
    for name in ("one.toml", "one.json", "one.csv"):
        (tmp_path / name).write_bytes(content.removeprefix(b"a = " if "json" in name else b""))
    path = tmp_path / "one.toml"
    readers: list[Callable[[], object]] = [
        lambda: toml.read(path, Machine),
        lambda: network.read(path),
        lambda: references.load(str(tmp_path / "one.json")),
        lambda: references.load(str(tmp_path / "one.csv")),
        lambda: number_pairs(str(path), "--node-map", "N,N"),
        lambda: read_matrix(str(path)),
    ]
    for read in readers:
        with refuses(OmbError, words):
            read()
    if words:
        assert_refused(in_process("machine", "show", "./one.toml"), 1, words)

"""Examples in the help of commands run, each as it stands but for what this machine lacks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from omb_py.cli.programs import command as programs
from tests import RESULTS
from tests.conftest import BIN, run
from tests.helpers.examples import examples

pytestmark = pytest.mark.any_library

IN_PLACE = {
    "-n N ": "-n 2 ",
    "-n 64 ": "-n 4 ",
    "-n 4096 ": "-n 4 ",
    "--by node": "--by rank",  # of which pairs needs two
    "/scratch --size 1G": ". --size 64K",
    "/opt/omb": "osu",
    "omb-py job submit scaling": "omb-py job render scaling --one-job --output job.sh",
    " PROJECT": " project",
    "profile/": "omb-profile",
    "kmeans.csv": "applications.csv",
    "results/ --across binding": "results/ --across mpi",
    "sweeps/guidelines-local": "results",
    "launches/ --update site": "launches/ --force --update own",
    "nightly/": "results",
    "osu_latency.txt -o": "before.csv --force -o",
    " PROFILE": " omb-profile",
    "omb-py profile train.py": "omb-py profile --force train.py",
}
"""Words of examples, and those that run here."""

QUICKLY = {
    "pairs ": " -m 8:8 -i 10",
    "overhead ": " --rounds 2 -i 10",
    "gate --": " --time 5s --timeout 60",
    "--native": " -i 10 --rounds 2",
    "sweep guidelines": " --dry-run",
    "omb-py tune": " --dry-run",
    "omb-py train": " --samples 128 --epochs 2",
}
"""What is appended to an example that would take long."""

VERDICTS = dict.fromkeys(("--fail-above", "--expected", "omb-py gate"), (0, 4, 7))
"""Exit codes of examples whose verdict depends on results."""

TRAIN = """
from mpi4py import MPI

MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, bytearray(64))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, mpi: str) -> Path:
    """A folder with the files that examples name."""
    made = tmp_path_factory.mktemp("examples")
    (made / "results").mkdir()
    for name in ("results/a.csv", "before.csv", "after.csv"):
        shutil.copyfile(RESULTS / "two-core-vm.csv", made / name)
    shutil.copyfile(RESULTS / "applications-mpich.csv", made / "applications.csv")
    (made / "train.py").write_text(TRAIN)
    (made / "site.csv").write_text("benchmark,bytes,value,unit\nlatency,8,2,us\n")
    (made / "launches").mkdir()
    once = (RESULTS / "two-core-vm.csv").read_text()
    for name in ("a", "b"):
        (made / "launches" / f"{name}.csv").write_text(once.replace("2026", f"2026{name}"))
    programs.main([str(made / "osu")], standalone_mode=False)
    command = [mpi, "-n", "2", str(BIN / "omb-py"), "profile", "train.py"]
    assert run(command, {}, made, timeout=60).code == 0
    return made


@pytest.mark.long
def test_examples_are_found() -> None:
    found = examples()
    assert len(found) > 25
    assert "omb-py sweep quick --machine local" in found


@pytest.mark.long
@pytest.mark.parametrize("example", [one for one in examples() if "omb-py simulate" not in one])
def test_example_in_a_help_runs(folder: Path, example: str) -> None:
    words = example
    for before, after in IN_PLACE.items():
        words = words.replace(before, after)
    words += "".join(more for part, more in QUICKLY.items() if part in words)
    path = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = run(["bash", "-c", words], path, folder, timeout=300)
    codes = next((codes for word, codes in VERDICTS.items() if word in words), (0,))
    assert done.code in codes, f"{words}\n{done.err}"

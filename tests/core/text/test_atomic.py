"""A file holds its old content or the new one: on a full disk, after a kill, for every reader."""

from __future__ import annotations

import ast
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.core.errors import OmbError
from omb_py.core.text import files
from omb_py.core.text.files import make_folder
from tests import RESULTS, ROOT
from tests.conftest import Run, succeeded
from tests.helpers.refusals import refuses

REFERENCE = RESULTS / "two-core-vm.csv"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_take_the_place_of_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    files.write(path, "old ä")
    files.write(path, b"\x00new")
    assert path.read_bytes() == b"\x00new"
    assert names_in(path.parent) == ["file"]


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def half() -> None:
        with files.replacing(path) as file:
            file.write(b"half of the n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["file"]


def test_a_kill_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    code = (
        "import sys, time; from pathlib import Path; from omb_py.core.text import files\n"
        "with files.replacing(Path(sys.argv[1])) as file:\n"
        "    file.write(b'new'); file.flush(); print(flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert path.read_text() == "old"


def test_unwritable_path_refused_with_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refuses(OmbError, "cannot write file/new: directory; name another"):
        files.write(tmp_path / "file" / "new", "text", "; name another")


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    files.write(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_of_any(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    files.write(tmp_path / "new", "")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_device_or_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    files.write("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with refuses(OmbError, "cannot write /dev/full: No space left on device"):
        files.write("/dev/full", "text")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write(pipe, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)


WRITERS = {
    "report.html": ["report", REFERENCE, "--force", "-o"],
    "compared.csv": [
        *("compare", REFERENCE, REFERENCE, "--where", "benchmark=latency"),
        "--force",
        "-o",
    ],
    "model.json": ["model", REFERENCE, "--where", "benchmark=latency", "--force", "-o"],
    "figure.png": ["plot", REFERENCE, "--where", "benchmark=latency", "--force", "--output"],
}
"""Commands that write a file, by the name of the file."""

ON_A_FULL_DISK = """
import json, sys
from pathlib import Path
from click.testing import CliRunner
from omb_py.cli import command

folder, writers = Path(sys.argv[1]), json.loads(sys.argv[2])
for name in writers:
    (folder / name).write_text("<svg old" if name.endswith("svg") else "old")
(folder / "figure.png").write_bytes(b"\\x89PNG old")
try:
    with open(folder / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
except OSError:
    pass
said = {}
for name, words in writers.items():
    result = CliRunner().invoke(command, [*words, str(folder / name)])
    said[name] = [str(result.exception), (folder / name).read_bytes().decode(errors="replace")]
print(json.dumps([said, sorted(path.name for path in folder.iterdir())]))
"""


@pytest.mark.long
def test_a_full_disk_leaves_the_good_files_of_before(tmp_path: Path) -> None:
    writers = json.dumps({name: list(map(str, words)) for name, words in WRITERS.items()})
    script = tmp_path / "script.py"
    script.write_text(ON_A_FULL_DISK)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = f'mount -t tmpfs -o size=64k none {disk} && exec "$@"'
    program = [sys.executable, str(script), str(disk), writers]
    command = ["unshare", "-m", "sh", "-c", mounted, "sh", *program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip("no file system can be mounted here")
    said, names = json.loads(done.stdout.splitlines()[-1])
    assert names == sorted([*WRITERS, "filler"])
    for name, (error, content) in said.items():
        assert error.startswith(f"cannot write {disk / name}: No space left on device"), error
        assert content.endswith("old")


PACKAGES = (
    *("analysis/model", "analysis/charts", "analysis/report"),
    *("tracing/efficiency.py", "tracing/profile", "tracing/timeline", "tracing/traffic.py"),
)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_of_results_writes_files_in_place(package: str) -> None:
    """They write by `omb_py.core.text.files`, so that the next one cannot forget it."""
    found = []
    place = ROOT / "omb_py" / package
    modules = [place] if place.is_file() else list(place.rglob("*.py"))
    assert modules
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            words = [a.value for a in node.args if isinstance(a, ast.Constant)]
            opened = name == "open" and any("w" in str(word) for word in words[-1:])
            if opened or name in ("write_text", "write_bytes"):
                found.append(f"{path.name}:{node.lineno}")
    assert found == []


@pytest.mark.parametrize("name", ["new", "new/", "./new", "there", "", "new/est/of/all"])
def test_folder_is_made_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    make_folder(name)
    make_folder(name)
    assert Path(name).is_dir()


@pytest.mark.parametrize(
    ("name", "words"),
    [("taken", "Not a directory"), ("taken/below", "Not a directory")],
)
def test_impossible_folder_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "taken").touch()
    with refuses(OSError, words):
        make_folder(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


WRITING = (
    f"compare {REFERENCE} {REFERENCE} --output no/such/table.csv",
    f"show {REFERENCE} --output no/such/table.csv",
    f"plot {REFERENCE} --where benchmark=bw --output no/such/figure.svg",
    f"report {REFERENCE} --where benchmark=bw --output no/such/page.html",
    "programs no/such",
    "job render quick --machine generic-slurm --one-job --output no/such/job.sh",
)


@pytest.mark.slow
@pytest.mark.parametrize("line", WRITING, ids=lambda line: line.split()[0])
def test_command_makes_all_missing_folders(in_process: Run, tmp_path: Path, line: str) -> None:
    succeeded(in_process(*line.split()))
    assert list((tmp_path / "no" / "such").iterdir())


@pytest.mark.parametrize(
    "line",
    [
        "barrier --output no/such/rows.csv",
        "barrier --samples no/such/rows.npy",
        "profile --folder no/such program.py",
    ],
)
def test_job_makes_all_missing_folders(mpi: str, omb_py: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "program.py").write_text("from mpi4py import MPI")
    succeeded(omb_py(*line.split()))
    assert list((tmp_path / "no" / "such").iterdir())

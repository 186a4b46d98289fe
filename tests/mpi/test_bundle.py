"""Jobs that start from a bundle."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.conftest import MPIEXEC, OMB_PY, Finished, own_temporary_folder, run
from tests.mpi.sweeping import MACHINE, SmallSweep, experiment

pytestmark = pytest.mark.xdist_group("bundle")
FEW = ("-i", "3", "-x", "1", "--sizes", "8")

OPENED = """\
import atexit, os, sys
def write():
    maps = open("/proc/self/maps").read()
    files = {str(getattr(module, "__file__", "")) for module in list(sys.modules.values())}
    files |= {line.split(maxsplit=5)[5] for line in maps.splitlines() if "/" in line}
    open(f"{os.environ['OPENED']}/{os.getpid()}", "w").write("\\n".join(sorted(files)))
atexit.register(write)
"""
"""Has a rank write down which files it holds at its end."""

Start = Callable[..., Finished]


@pytest.fixture(scope="module")
def large() -> Iterator[Path]:
    """A folder for images, which pytest would keep."""
    with TemporaryDirectory(prefix="for bundles ") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def script(mpi: str, large: Path) -> Path:
    """The script of a bundle of this environment, in which omb-py is editable."""
    made = run([OMB_PY, "bundle", "shared"], {}, large, timeout=60)
    assert made.code == 0, made.err
    return large / "shared" / "omb-py"


@pytest.fixture(scope="module")
def node(large: Path) -> Path:
    """A folder for the node's storage."""
    (large / "node").mkdir()
    return large / "node"


@pytest.fixture
def bundled(script: Path, node: Path, tmp_path: Path) -> Start:
    """``bundled(ranks, *arguments)`` runs omb-py from the bundle."""

    def start(ranks: int, *arguments: str, **environment: str) -> Finished:
        command = [MPIEXEC, "-n", str(ranks), str(script), *arguments]
        settings = {"OMB_PY_NODE_DIR": str(node), "PYTHONPATH": ""} | environment
        return run(command, settings, tmp_path, timeout=60)

    return start


def test_ranks_start_from_the_nodes_storage_alone(
    bundled: Start, script: Path, node: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(OPENED)
    own = {"PYTHONPATH": str(tmp_path), "OPENED": str(tmp_path / "opened")}
    (tmp_path / "opened").mkdir()
    job = bundled(4, "allreduce", "--buffer", "numpy", *FEW, **own)
    assert (job.code, len(job.rows)) == (0, 1), job.err
    lists = [path.read_text().splitlines() for path in (tmp_path / "opened").iterdir()]
    assert len(lists) == 4
    local = ("/usr/", "/lib", "/etc/", "/dev/", "/tmp/", "[")
    for files in lists:
        elsewhere = [
            name
            for name in files
            if name.startswith("/") and not name.startswith((f"{node}/", *local))
        ]
        assert elsewhere == []
        assert any(name.startswith(f"{node}/") and "libmpi" in name for name in files)
        assert not any(name.startswith(f"{script.parent}/") for name in files)


def test_native_runs_without_numba_and_a_home(bundled: Start, node: Path) -> None:
    job = bundled(2, "latency", "--binding", "native", *FEW, "-c", XDG_CACHE_HOME="/proc/none")
    assert job.code == 0, job.err
    assert job.rows[0][-1] == "Pass"


def test_a_sweep_starts_its_ranks_from_the_bundle(script: Path, node: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys; open(f'{os.environ[\"OPENED\"]}/{os.getpid()}', 'w').write(sys.prefix)"
    )
    (tmp_path / "opened").mkdir()
    own = {"PYTHONPATH": str(tmp_path), "OPENED": str(tmp_path / "opened")}
    text = 'name = "mine"\n' + experiment(bindings="buffer", ranks=2)
    machine = f'{MACHINE}bundle = "{script.parent}"\n'
    settings = own | {"OMB_PY_NODE_DIR": str(node)}
    done = SmallSweep(tmp_path / "sweep", text, machine, settings).run()
    assert (done.code, done.err) == (0, "")
    prefixes = [path.read_text() for path in (tmp_path / "opened").iterdir()]
    assert sum(prefix.startswith(f"{node}/") for prefix in prefixes) == 2
    missing = machine.replace(str(script.parent), "/no/such")
    done = SmallSweep(tmp_path / "other", text, missing, settings).run()
    assert done.code != 0
    assert "the bundle of machine here is not there: omb-py bundle /no/such writes it" in done.err


def test_ranks_spawn_others_from_the_image(bundled: Start) -> None:
    job = bundled(1, "spawn", "-i", "1", "-x", "0")
    assert (job.code, len(job.rows)) == (0, 1), job.err


def test_two_jobs_at_once_extract_one_image(script: Path, large: Path) -> None:
    node = large / "another node"
    node.mkdir()
    command = [MPIEXEC, "-n", "2", str(script), "init"]
    with own_temporary_folder() as first, own_temporary_folder() as second:
        jobs = [
            subprocess.Popen(
                command, env=own | {"OMB_PY_NODE_DIR": str(node)}, stdout=subprocess.PIPE
            )
            for own in (first, second)
        ]
        printed = [job.communicate(timeout=60)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0]
    assert all(b"nprocs: 2, " in out for out in printed)
    (folder,) = node.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["image", "lock"]


@pytest.mark.parametrize(
    ("before", "words", "code"),
    [
        ("export OMB_PY_BUNDLE=/proc/none", "cannot read /proc/none", 1),
        ("trap '' XFSZ; ulimit -f 100", "cannot extract", 1),  # as on a full disk
        ("export OMB_PY_NODE_DIR=/proc/none", "cannot make /proc/none", 1),
        ("chmod 777 {folder}", "not a folder of yours alone", 2),
    ],
)
def test_what_fails_ends_the_job_in_one_sentence(
    script: Path, tmp_path: Path, before: str, words: str, code: int
) -> None:
    (line,) = [line for line in script.read_text().splitlines() if line.startswith("hash=")]
    folder = tmp_path / f"omb-py-{os.getuid()}-{line.partition('=')[2]}"
    folder.mkdir(mode=0o700)
    shell = f'{before.format(folder=folder)}; exec "$0" "$@"'
    command = [MPIEXEC, "-n", "4", "sh", "-c", shell, str(script), "init"]
    job = run(command, {"OMB_PY_NODE_DIR": str(tmp_path)}, tmp_path, timeout=60)
    assert (job.code, job.out) == (code, "")
    (sentence,) = job.sentences
    assert words in sentence

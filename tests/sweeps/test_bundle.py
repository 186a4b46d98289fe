"""Bundles: what is in an image, and what the script does with any image."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER
from pathlib import Path, PurePosixPath

import pytest

from omb_py.core import DISTRIBUTION
from omb_py.core.archive import Archive
from omb_py.core.errors import UsageError
from omb_py.sweeps import bundle
from tests.conftest import Finished

ECHO = """\
#!/bin/sh
printf '%s\\n' "$@"
printf '%s=%s\\n' PYTHONNOUSERSITE "$PYTHONNOUSERSITE" PYTHONHOME "${PYTHONHOME-unset}" \\
    LD_LIBRARY_PATH "$LD_LIBRARY_PATH" OMB_PY_CACHE_DIR "${OMB_PY_CACHE_DIR-unset}" MINE "$MINE"
"""
"""A stand-in for Python."""


@pytest.fixture(scope="module")
def parts() -> list[bundle.Part]:
    """What an image of this environment is made of."""
    return bundle.gather(["native"])


def test_an_image_holds_what_a_benchmark_needs_and_no_more(parts: list[bundle.Part]) -> None:
    names = {part.title.split()[0] for part in parts}
    needed = {"Python", DISTRIBUTION, "mpi4py", "numpy", "click", "numba", "llvmlite", "compiled"}
    assert needed <= names <= needed | {*bundle.MPI_LIBRARIES}
    places = {place for part in parts for place in part.content}
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = f"lib/{version}/site-packages"
    assert {
        f"bin/{version}",
        f"lib/{version}/os.py",
        f"{site}/omb_py/__init__.py",
        f"{site}/omb_py/configs/machines/local.toml",
        f"{site}/omb_py/tracing/recorder/recorder.c",
        f"{site}/mpi4py/__init__.py",
    } <= places
    assert any(place.startswith(f"{site}/omb_python-") for place in places)  # its entry points
    assert any(place.startswith(f"lib/{version}/lib-dynload/") for place in places)
    for place in places:
        found = PurePosixPath(place)
        assert not found.is_absolute()
        assert not {"..", "tests", "test", "idlelib", "tkinter", "__pycache__"} & {*found.parts}
        assert found.suffix not in (".pyc", ".pth")
        assert found.name != "direct_url.json"


def test_an_mpi_library_keeps_its_place_beside_mpi4py(parts: list[bundle.Part]) -> None:
    for part in parts:
        if part.title.split()[0] in bundle.MPI_LIBRARIES:
            assert any(place.startswith("lib/libmpi.so.") for place in part.content)
            assert "bin/mpiexec" in part.content
            return
    pytest.skip("the MPI library is no distribution")


def test_every_module_in_an_image_has_its_bytecode(
    parts: list[bundle.Part], tmp_path: Path
) -> None:
    small = [part for part in parts if part.title.startswith(("Python", "click", DISTRIBUTION))]
    written = bundle.write(tmp_path, small)
    with tarfile.open(tmp_path / "omb-py.tar") as archive:
        members = {member.name: member for member in archive}
        modules = [name for name in members if name.endswith(".py")]
        assert len(modules) > 500
        for name in modules:
            cached = bundle.cached(PurePosixPath(name))
            file = archive.extractfile(str(cached))
            assert file is not None
            header, module = file.read(16), members[name]
            assert header[:4] == MAGIC_NUMBER
            assert int.from_bytes(header[8:12], "little") == module.mtime
            assert int.from_bytes(header[12:16], "little") == module.size
        site = bundle.site_packages()
        (place,) = [name for name in members if name.endswith(".archive")]
        assert PurePosixPath(place).parent == PurePosixPath(f"{site}/omb_py/__pycache__")
        archive.extract(place, tmp_path)
        found = Archive(str(tmp_path / place))
        assert "omb_py.core" in found.index
        file = archive.extractfile(str(bundle.cached(PurePosixPath(site, "omb_py/core/errors.py"))))
        assert file is not None
        assert found.compiled("omb_py.core.errors") == file.read()
    assert sum(one.files for one in written) == len(members) - 1  # and the mark of its end
    assert sum(one.nbytes for one in written) == sum(one.size for one in members.values())


def test_a_module_without_bytecode_is_compiled(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("answer = 42\n")
    status = module.stat()
    made = bundle.bytecode(module, int(status.st_mtime), status.st_size, tmp_path)
    assert made is not None
    assert made.startswith(MAGIC_NUMBER)
    assert not (tmp_path / "__pycache__").exists()
    module.write_text("no Python of this version")
    assert bundle.bytecode(module, int(status.st_mtime), status.st_size, tmp_path) is None


@pytest.mark.parametrize(
    ("text", "name", "extras"),
    [
        ("numpy>=1.24", "numpy", set()),
        ("llvmlite<0.51,>=0.50.0dev0", "llvmlite", set()),
        ("cupy-cuda13x[ctk]>=14.0.1,!=14.1.0; extra == 'cu13'", "cupy-cuda13x", {"ctk"}),
        ("tomli>=2; python_version < '3.11' and extra == \"sweep\"", "tomli", set()),
        ("some.name [a, b] @ https://example.org/x.whl", "some.name", {"a", "b"}),
    ],
)
def test_requirements_are_read(text: str, name: str, extras: set[str]) -> None:
    assert bundle.requirement(text)[:2] == (name, extras)


def test_what_cannot_be_bundled_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"cannot bundle no-such: no distribution .* native"):
        bundle.distributions(["no-such"])
    with pytest.raises(UsageError, match="is not the name of a distribution"):
        bundle.distributions(["../x"])
    folder = tmp_path / "edited-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: edited\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"cannot bundle edited: .* its RECORD is not there"):
        bundle.gather(["edited"])
    (folder / "RECORD").write_text("edited-1.0.dist-info/METADATA,,\n")
    (folder / "direct_url.json").write_text(json.dumps({"dir_info": {"editable": True}}))
    with pytest.raises(UsageError, match=r"cannot bundle edited: .* in its source folder"):
        bundle.gather(["edited"])


def made(folder: Path, content: bundle.Content | None = None) -> Path:
    """The script of a small bundle in a folder, with a stand-in for Python."""
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "stand-in"
    python.write_text(ECHO)
    python.chmod(0o755)
    os.utime(python, (1e9, 1e9))
    files: bundle.Content = {f"bin/{bundle.python_name()}": python, "bin/omb-py": b""}
    bundle.write(folder, [bundle.Part("small", files | (content or {}))], force=True)
    return folder / "omb-py"


def start(script: Path, node: Path, *arguments: str, **environment: str) -> Finished:
    """What the script does, with a folder for the node's storage; no launcher is there."""
    began = time.monotonic()
    done = subprocess.run(
        [script, *arguments],
        env=os.environ | {"OMB_PY_NODE_DIR": str(node)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def test_the_same_files_give_the_same_image(tmp_path: Path) -> None:
    first, second = made(tmp_path / "first"), made(tmp_path / "second")
    assert first.read_text() == second.read_text()
    images = [script.with_name("omb-py.tar").read_bytes() for script in (first, second)]
    assert images[0] == images[1]
    assert made(tmp_path / "third", {"more": b"of it"}).read_text() != first.read_text()


def test_a_bundle_starts_python_from_the_nodes_storage(tmp_path: Path) -> None:
    node = tmp_path / "node local: 'storage'"
    node.mkdir()
    script = made(tmp_path / "a bundle", {"cache/loop-x.o": b"code"})
    words = ["allreduce", "two words", "*", "$HOME", "--label=a'b\"c"]
    for _ in range(2):
        job = start(script, node, *words, PYTHONHOME="/usr", LD_LIBRARY_PATH="/a:/b c", MINE="kept")
        (folder,) = node.iterdir()
        assert folder.name.startswith(f"omb-py-{os.getuid()}-")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (job.code, job.err) == (0, "")
        assert job.out.splitlines() == [
            f"{folder}/image/bin/omb-py",
            *words,
            "PYTHONNOUSERSITE=1",
            "PYTHONHOME=unset",
            f"LD_LIBRARY_PATH={folder}/image/lib:/a:/b c",
            f"OMB_PY_CACHE_DIR={folder}/image/cache",
            "MINE=kept",
        ]
    script.with_name("omb-py.tar").unlink()  # no longer needed on this node
    job = start(script, node, OMB_PY_CACHE_DIR="/mine")
    assert "OMB_PY_CACHE_DIR=/mine\n" in job.out
    own = tmp_path / "own"
    own.mkdir()
    moved = made(tmp_path / "a bundle").with_name("omb-py.tar").rename(tmp_path / "moved.tar")
    job = start(script, own, OMB_PY_BUNDLE=str(moved), LD_LIBRARY_PATH="")
    (folder,) = own.iterdir()
    assert f"LD_LIBRARY_PATH={folder}/image/lib\n" in job.out
    assert "OMB_PY_CACHE_DIR=unset\n" in job.out


def test_what_open_mpis_launcher_says_of_its_libraries_is_not_searched(tmp_path: Path) -> None:
    script = made(tmp_path, {"lib/openmpi/libpmix.so.2": b""})
    said = {"OPAL_PREFIX": "/in/stalled", "LD_LIBRARY_PATH": "/in/stalled/lib:/in/stalled/lib:/b"}
    job = start(script, tmp_path, **said)
    (image,) = tmp_path.glob("omb-py-*/image")
    assert f"LD_LIBRARY_PATH={image}/lib:/b\n" in job.out


def test_ranks_that_start_at_once_extract_an_image_once(tmp_path: Path) -> None:
    large = {f"file-{number}": os.urandom(1000) for number in range(500)}
    script = made(tmp_path, {**large})
    node = {"OMB_PY_NODE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([script], env=os.environ | node, stdout=subprocess.PIPE) for _ in range(16)
    ]
    assert [one.communicate(timeout=60)[0][:1] for one in started] == [b"/"] * 16
    assert [one.returncode for one in started] == [0] * 16
    (folder,) = tmp_path.glob("omb-py-*-*")
    assert sorted(path.name for path in folder.iterdir()) == ["image", "lock"]


def test_an_extraction_that_was_killed_is_made_again(tmp_path: Path) -> None:
    script = made(tmp_path, {"more": bytes(100_000)})
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # an image that is never read to its end
    environment = os.environ | {"OMB_PY_NODE_DIR": str(tmp_path), "OMB_PY_BUNDLE": str(pipe)}
    waiting = subprocess.Popen([script], env=environment, start_new_session=True)
    image = script.with_name("omb-py.tar").read_bytes()
    with pipe.open("wb", buffering=0) as end:
        end.write(image[: len(image) // 2])
        while not list(tmp_path.glob("omb-py-*/new/bin")):
            time.sleep(0.01)
        os.killpg(waiting.pid, signal.SIGKILL)
        waiting.wait()
    (folder,) = tmp_path.glob("omb-py-*-*")
    assert not (folder / "image").exists()
    job = start(script, tmp_path)
    assert (job.code, job.err) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == ["image", "lock"]


def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    script = made(tmp_path)
    start(script, tmp_path)
    (folder,) = tmp_path.glob("omb-py-*-*")

    def refused() -> None:
        job = start(script, tmp_path)
        assert (job.code, job.out) == (2, "")
        assert job.err.endswith(
            f"{folder} is not a folder of yours alone; OMB_PY_NODE_DIR names another place\n"
        )
        assert len(job.sentences) == 1

    folder.chmod(0o770)
    refused()
    folder.chmod(0o700)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    refused()
    folder.unlink()
    folder.touch()
    refused()
    if os.getuid() == 0:
        folder.unlink()
        (tmp_path / "elsewhere").rename(folder)
        os.chown(folder, 65534, 65534)
        refused()


def test_what_keeps_a_bundle_from_starting_is_said(tmp_path: Path) -> None:
    script = made(tmp_path)
    image = script.with_name("omb-py.tar")

    def failed(*words: str, node: Path = tmp_path) -> None:
        job = start(script, node)
        assert (job.code, job.out) == (1, "")
        (sentence,) = job.sentences
        assert all(word in sentence for word in words)
        assert len(job.err.splitlines()) == 1

    failed("cannot make", "No such file or directory", node=tmp_path / "missing")
    whole = image.read_bytes()
    image.write_bytes(whole[:1000])
    failed("cannot extract", str(image), "OMB_PY_NODE_DIR")
    made(tmp_path / "other", {"more": b""}).with_name("omb-py.tar").replace(image)
    failed("is not the image of", "omb-py bundle")
    image.unlink()
    failed(f"cannot read {image}", "OMB_PY_BUNDLE")
    (folder,) = tmp_path.glob("omb-py-*-*")
    assert not (folder / "image").exists()
    assert not (folder / "new").exists()
    image.write_bytes(whole)
    assert start(script, tmp_path).code == 0


def test_a_bundle_is_replaced_only_by_force(
    in_process: Callable[..., Finished], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "gather", lambda include: [bundle.Part("small", {"a": b"b" * 10})])
    job = in_process("bundle", "folder")
    assert job.code == 0
    assert [line.split() for line in job.out.splitlines()] == [
        ["files", "MB"],
        ["small", "1", "0.0"],
        ["folder/omb-py.tar", "1", "0.0"],
    ]
    assert job.err == f"next: mpiexec -n 8 {tmp_path}/folder/omb-py allreduce\n"
    again = in_process("bundle", "folder")
    assert again.code == 2
    (sentence,) = again.sentences
    assert "folder/omb-py.tar is there already: replace it by --force" in sentence
    assert in_process("bundle", "folder", "--force").code == 0
    assert {path.name for path in (tmp_path / "folder").iterdir()} == {"omb-py", "omb-py.tar"}
    job = in_process("bundle", "/proc/none")
    assert job.code == 1
    assert "cannot write /proc/none/omb-py.tar" in job.sentences[0]


def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    try:
        done = subprocess.run(
            ["shellcheck", made(tmp_path)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("no shellcheck")
    assert done.stdout == ""

"""The source distribution and the wheel: complete, the same each time, and installed as a tool."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from hatch_build import LOOP, absolute, platform_of_loop
from tests import ROOT
from tests.conftest import BIN, run, succeeded

pytestmark = [
    pytest.mark.xdist_group("distributions"),  # one build for all
    pytest.mark.slow,
]

ADDRESS = "https://example.org/owner/omb-py"


@dataclass(frozen=True)
class Built:
    """The two distributions of one build."""

    source: Path
    wheel: Path

    @property
    def source_files(self) -> set[str]:
        """Files of the source distribution, below its folder."""
        with tarfile.open(self.source) as archive:
            return {name.partition("/")[2] for name in archive.getnames()}

    @property
    def wheel_files(self) -> set[str]:
        """Files of the wheel."""
        return set(zipfile.ZipFile(self.wheel).namelist())


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """Files that git has, or will have: those of a build must not depend on what else is there."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def build(tracked: list[str], folder: Path, umask: int) -> Built:
    """Build both from a copy of the files, made with a umask of its own, for `ADDRESS`."""
    before = os.umask(umask)
    try:
        for name in tracked:
            (folder / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "copy" / name)
            if os.access(ROOT / name, os.X_OK):
                (folder / "copy" / name).chmod(0o777 & ~umask)
    finally:
        os.umask(before)
    words = ["-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder / "dist")]
    variables = {"SOURCE_DATE_EPOCH": "1700000000", "OMB_PY_REPOSITORY": ADDRESS}
    succeeded(run([sys.executable, *words], variables, folder / "copy", timeout=120))
    (source,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return Built(source, wheel)


@pytest.fixture(scope="module")
def built(tracked: list[str], tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tracked, tmp_path_factory.mktemp("built"), umask=0o022)


@pytest.mark.long
def test_the_source_distribution_has_what_git_has(built: Built, tracked: list[str]) -> None:
    assert built.source_files == {*tracked, "PKG-INFO"}


def test_the_wheel_has_the_package_and_the_configurations(built: Built, tracked: list[str]) -> None:
    wanted = {name for name in tracked if name.startswith("omb_py/")}
    wanted |= {f"omb_py/{name}" for name in tracked if name.startswith("configs/")}
    wanted.add(LOOP)
    assert {name for name in built.wheel_files if ".dist-info/" not in name} == wanted


def test_the_wheel_runs_wherever_its_name_says(built: Built) -> None:
    """PEP 599: manylinux_2_17 has glibc 2.17 or later."""
    assert re.search(r"-py3-none-manylinux_2_17_(x86_64|aarch64)\.whl$", built.wheel.name)
    loop = zipfile.ZipFile(built.wheel).read(LOOP)
    needed = [tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", loop)]
    assert needed
    assert max(needed) <= (2, 17)


@pytest.mark.parametrize(
    ("system", "machine", "library", "tag"),
    [
        ("Linux", "x86_64", "glibc", "manylinux_2_17_x86_64"),
        ("Linux", "aarch64", "glibc", "manylinux_2_17_aarch64"),
        ("Linux", "x86_64", "", "linux_x86_64"),
        ("Linux", "ppc64le", "glibc", "linux_ppc64le"),
        ("Darwin", "arm64", "", None),
        ("Darwin", "x86_64", "", None),
    ],
)
def test_the_loop_is_for_linux_only(
    system: str, machine: str, library: str, tag: str | None
) -> None:
    assert platform_of_loop(system, machine, library) == tag


@pytest.mark.parametrize(
    ("text", "there", "without"),
    [
        ("[a](docs/a.md#b)", f"[a]({ADDRESS}/blob/v1.0.0/docs/a.md#b)", "a"),
        ("![a](docs/a.svg)", f"![a]({ADDRESS}/raw/v1.0.0/docs/a.svg)", ""),
        ("[a](https://b.org)", "[a](https://b.org)", "[a](https://b.org)"),
        ("[![a](../../b.svg)](../../b)", f"[![a]({ADDRESS}/b.svg)]({ADDRESS}/b)", ""),
    ],
)
def test_links_are_absolute_beyond_the_repository(text: str, there: str, without: str) -> None:
    assert absolute(text, ADDRESS, "1.0.0") == there
    assert absolute(text, "", "1.0.0") == without


def test_the_wheel_s_description_has_no_relative_link(built: Built) -> None:
    (name,) = (name for name in built.wheel_files if name.endswith(".dist-info/METADATA"))
    metadata = zipfile.ZipFile(built.wheel).read(name).decode()
    assert f"Project-URL: Source, {ADDRESS}\n" in metadata
    targets = re.findall(r"\]\(([^)]*)\)", metadata)
    assert targets
    assert [target for target in targets if not target.startswith("https://")] == []


@pytest.mark.long
def test_without_a_c_compiler_the_wheel_lacks_the_loop_alone(
    built: Built, tracked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    without = build(tracked, tmp_path, umask=0o022)
    assert without.wheel.name.endswith("-py3-none-any.whl")
    assert without.wheel_files == built.wheel_files - {LOOP}


@pytest.mark.long
def test_next_build_has_the_same_bytes(built: Built, tracked: list[str], tmp_path: Path) -> None:
    again = build(tracked, tmp_path, umask=0o077)
    assert again.source.read_bytes() == built.source.read_bytes()
    assert again.wheel.read_bytes() == built.wheel.read_bytes()


def test_the_source_distribution_builds_the_same_wheel(built: Built, tmp_path: Path) -> None:
    shutil.unpack_archive(built.source, tmp_path)  # tarfile's filters came with Python 3.11.4
    (folder,) = tmp_path.iterdir()
    words = ["-m", "hatchling", "build", "-t", "wheel"]
    epoch = {"SOURCE_DATE_EPOCH": "1700000000"}
    succeeded(run([sys.executable, *words], epoch, folder, timeout=120))
    assert (folder / "dist" / built.wheel.name).read_bytes() == built.wheel.read_bytes()


@pytest.mark.long
def test_their_metadata_is_what_an_index_asks_for(built: Built, tmp_path: Path) -> None:
    words = ["-m", "twine", "--no-color", "check", "--strict"]
    done = run([sys.executable, *words, str(built.source), str(built.wheel)], {}, tmp_path, 120)
    assert done.code == 0, done.out + done.err
    assert done.out.count("PASSED") == 2


@pytest.mark.long
def test_a_wheel_elsewhere_finds_what_it_needs(built: Built, tmp_path: Path) -> None:
    zipfile.ZipFile(built.wheel).extractall(tmp_path / "site")
    environment = {"PYTHONPATH": str(tmp_path / "site")}
    words = "job render scaling --machine generic-slurm --one-job --output jobs/generic-slurm.sh"
    done = run([sys.executable, "-m", "omb_py", *words.split()], environment, tmp_path, timeout=60)
    assert done.code == 0, done.err
    written = tmp_path / "jobs" / "generic-slurm.sh"
    assert written.read_bytes() == (ROOT / "jobs" / "generic-slurm.sh").read_bytes()


@pytest.mark.usefixtures("long_time")
def test_the_documented_tool_is_installed_and_starts_ranks(built: Built, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`(uv tool install [^`]*)`", page)
    words = [str(BIN / "uv"), *shlex.split(line.replace(".[", f"{built.wheel}["))[1:]]
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    here = {"UV_PYTHON": sys.executable, "UV_SYSTEM_CERTS": "1"}
    succeeded(run(words, folders | here, tmp_path, timeout=300))
    path = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}
    job = run(["mpiexec", "-n", "2", "omb-py", "latency", "-m", "8:8"], path, tmp_path, timeout=60)
    assert job.code == 0, job.err
    assert [row[0] for row in job.rows] == ["8"]

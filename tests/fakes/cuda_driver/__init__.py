"""A stand-in for the CUDA driver: builds it, for those tests that need a device."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
WARNINGS = ["-Wall", "-Wno-unused-parameter"]


def compiler() -> str | None:
    """A C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc")


def build(folder: Path) -> Path:
    """Compile the stand-in into ``folder``, as a file that ``LD_LIBRARY_PATH`` finds there."""
    found = compiler()
    assert found is not None
    names = (HERE / "unused.txt").read_text().split()
    stubs = folder / "stubs.c"
    stubs.write_text(
        "int fakecuda_unknown(void);\n"
        + "".join(f"int {name}(void) {{ return fakecuda_unknown(); }}\n" for name in names)
    )
    library = folder / "libcuda.so.1"
    sources = [HERE / "driver.c", stubs]
    command = [found, "-shared", "-fPIC", "-O1", *WARNINGS, "-o", str(library), *map(str, sources)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return library

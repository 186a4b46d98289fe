"""Stand-ins for the CUDA driver and HIP: builds them, for those tests that need a device."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
WARNINGS = ["-Wall", "-Wno-unused-parameter"]


def compiler() -> str | None:
    """A C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc")


def build(folder: Path, name: str = "libcuda.so.1") -> Path:
    """Compile the stand-in into ``folder``, as a file that ``LD_LIBRARY_PATH`` finds there.

    Its functions have CUDA's names, and HIP's, too, if it is to be HIP's library.
    """
    found = compiler()
    assert found is not None
    names = (HERE / "unused.txt").read_text().split()
    stubs = folder / "stubs.c"
    stubs.write_text(
        "int fakecuda_unknown(void);\n"
        + "".join(f"int {name}(void) {{ return fakecuda_unknown(); }}\n" for name in names)
    )
    library = folder / name
    sources = [HERE / "driver.c", *([HERE / "hip.c"] if "hip" in name else []), stubs]
    command = [found, "-shared", "-fPIC", "-O1", *WARNINGS, "-o", str(library), *map(str, sources)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return library

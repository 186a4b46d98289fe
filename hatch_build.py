"""What a build adds to pyproject.toml: the compiled loop of binding native, and links.

The loop goes into a wheel, or into a checkout that is installed editable. Without a C compiler, or
beyond Linux, omb-py is installed all the same: binding native then says what it lacks.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

FOLDER = "omb_py/bindings/compiled"
SOURCE, LOOP = f"{FOLDER}/loop.c", f"{FOLDER}/libloop.so"
FLAGS = ("-std=c99", "-O2", "-g0", "-fPIC", "-shared")

MANYLINUX = ("x86_64", "aarch64")
"""Processors on which the loop needs nothing that glibc 2.17 lacks (PEP 599)."""

REPOSITORY = "OMB_PY_REPOSITORY"
"""The variable with the repository's address on a code host, as mkdocs.yml reads it, too."""

LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:!\[[^\]]*\]\([^)]*\)|[^\]])*)\]\((?P<target>[^)\s]+)\)"
)
"""A Markdown link or picture; the text of a link may be a picture."""


def platform_of_loop(system: str, machine: str, library: str) -> str | None:
    """Return the tag of the platform that the loop is for, or None if it cannot be built there.

    The loop passes each argument as 64 bits. On Apple's processors, the stack holds an int in four
    bytes (Apple, Writing ARM64 code for Apple platforms), so a Mac has no loop.
    """
    if system != "Linux":
        return None
    if library == "glibc" and machine in MANYLINUX:
        return f"manylinux_2_17_{machine}"
    return f"linux_{machine}"


class Loop(BuildHookInterface[Any]):
    """What hatchling calls before it writes a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the loop, and name the platform that it is for."""
        tag = platform_of_loop(platform.system(), platform.machine(), platform.libc_ver()[0])
        if tag is None:
            self.app.display_warning(f"binding native is left out: {platform.system()}, not Linux")
            return
        source, target = Path(self.root, SOURCE), Path(self.root, LOOP)
        new = target.with_suffix(".new")
        compiler = shlex.split(os.environ.get("CC") or "cc")
        try:
            subprocess.run([*compiler, *FLAGS, "-o", str(new), str(source)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"binding native is left out, for its loop: {error}")
            return
        new.replace(target)  # the old one may be in use
        build_data["artifacts"].append(LOOP)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"


def absolute(text: str, repository: str, version: str) -> str:
    """Return Markdown of the repository's top folder as it reads elsewhere, such as on PyPI.

    Relative links and pictures go to the tag of the version. Links to the code host's own pages,
    which begin with ``../../``, go there. Without a repository, links become their text, and
    pictures and links that have no text are left out.
    """

    def replaced(link: re.Match[str]) -> str:
        target, label = link["target"], LINK.sub(replaced, link["text"])
        if "://" in target or target.startswith("#"):
            return f"{link['image']}[{label}]({target})"
        if not repository:
            return "" if link["image"] else label
        if target.startswith("../../"):
            address = f"{repository}/{target.removeprefix('../../')}"
        else:
            address = f"{repository}/{'raw' if link['image'] else 'blob'}/v{version}/{target}"
        return f"{link['image']}[{label}]({address})"

    return LINK.sub(replaced, text)


class Links(MetadataHookInterface):
    """What hatchling calls for the fields that pyproject.toml names as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses, if `REPOSITORY` has one, and README.md with links that hold there."""
        repository = os.environ.get(REPOSITORY, "").rstrip("/")
        version = metadata["version"]
        readme = absolute(Path(self.root, "README.md").read_text("utf-8"), repository, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
        files = f"{repository}/blob/v{version}"
        urls = {
            "Documentation": f"{files}/docs/index.md",
            "Source": repository,
            "Issues": f"{repository}/issues",
            "Changelog": f"{files}/CHANGELOG.md",
        }
        metadata["urls"] = urls if repository else {}

"""Configurations by name for those that come with omb-py, or by path."""

from __future__ import annotations

from pathlib import Path

from omb_py.core.errors import UsageError

KINDS = {"sweeps": "sweep", "machines": "machine"}


def find(kind: str, name: str) -> Path:
    """Return the file of a sweep (``kind`` is ``sweeps``) or a machine (``machines``).

    ``name`` is a path if it has a slash or ends in ``.toml``, else the name of one that comes with
    omb-py. Raises `UsageError` if it does not exist.
    """
    if "/" in name or name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"there is no file {name}: name a {KINDS[kind]}'s .toml")
        return path
    if name not in names(kind):
        from omb_py.sweeps.toml import suggestion

        raise UsageError(f"unknown {KINDS[kind]} {name!r}{suggestion(name, names(kind))}")
    return folder() / kind / f"{name}.toml"


def names(kind: str) -> list[str]:
    """Return the names of the sweeps or machines that come with omb-py."""
    return sorted(path.stem for path in (folder() / kind).glob("*.toml"))


def folder() -> Path:
    """Return their folder: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"

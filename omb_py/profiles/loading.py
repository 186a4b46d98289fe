"""Which files a profile is read from, by what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omb_py import inputs
from omb_py.errors import UsageError
from omb_py.observe.settings import PROTOBUF
from omb_py.profiles import csv, json
from omb_py.profiles.mpitrace import RankFile, read_profile
from omb_py.profiles.profile import Profile
from omb_py.records import layout

RECORD, TEXT = "a record", "a profile of mpitrace"
FILES_OF_MPITRACE = "mpi_profile.*"
TIMELINES_ALONE = (".json.gz", *PROTOBUF)
TIMELINE_BEGINS = b'{"displayTimeUnit"'
RECORDS = f"rank-*{layout.SUFFIX}"


def loaded(paths: Sequence[str]) -> Profile:
    """The profile of one run; see `omb_py.profiles.load`."""
    if not paths:
        raise UsageError("name the folder of a profile, or its files")
    if len(paths) == 1 and Path(paths[0]).is_dir():
        return _of_folder(Path(paths[0]))
    files = [file for path in paths for file in _files(Path(path))]
    kinds = {kind_of(file): str(file) for file in files}
    if len(kinds) > 1:
        (one, first), (other, second), *_ = kinds.items()
        raise UsageError(f"{first} is {one}, {second} is {other}: give files of one kind")
    (kind,) = kinds
    if kind in (csv.KIND, json.KIND):
        if len(files) > 1:
            raise UsageError(f"{files[0]} and {files[1]} are whole profiles: give one of them")
        return csv.read(files[0]) if kind == csv.KIND else json.read(files[0])
    return _of_records(files) if kind == RECORD else _of_mpitrace(files)


def kind_of(path: Path) -> str:
    """What a file holds, from its first bytes; raises `UsageError` where it cannot be read."""
    inputs.check(path, UsageError)
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    if not start:
        raise UsageError(f"{path} is empty: what should have written it wrote nothing")
    if start.startswith(layout.MAGIC) or path.name.endswith(layout.SUFFIX):
        return RECORD
    if path.name.endswith(TIMELINES_ALONE) or start.startswith(TIMELINE_BEGINS):
        raise UsageError(
            f"{path} is a timeline: open it at https://ui.perfetto.dev, or name the run's folder"
        )
    if start.startswith(csv.MARK):
        return csv.KIND
    return json.KIND if start.lstrip().startswith(b"{") else TEXT


def _of_folder(folder: Path) -> Profile:
    from omb_py.profiles import recorded

    if any(folder.glob(RECORDS)):
        return recorded.profile_of(*recorded.folder_records(folder))
    return loaded([str(file) for file in _files(folder)])


def _files(path: Path) -> list[Path]:
    """The file, or a folder's: records, mpitrace's files, or the JSON that has all of it."""
    if not path.is_dir():
        return [path]
    for pattern in (RECORDS, FILES_OF_MPITRACE, json.NAME, csv.NAME):
        if found := sorted(file for file in path.glob(pattern) if file.is_file()):
            return found
    raise UsageError(f"{path} holds no profile: name a folder that omb-py profile made")


def _of_records(files: Sequence[Path]) -> Profile:
    from omb_py.profiles import recorded

    return recorded.profile_of([recorded.record_in(file) for file in files])


def _of_mpitrace(files: Sequence[Path]) -> Profile:
    from omb_py.profiles import traced

    found: list[tuple[str, RankFile]] = [(str(file), read_profile(str(file))) for file in files]
    return traced.profile_of(found)

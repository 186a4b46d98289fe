"""Runs as they are named on a command line: folders of records, profiles in files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.core.errors import UsageError
from omb_py.tracing.efficiency.inputs import MeasuredRun, Processor, measured
from omb_py.tracing.efficiency.metrics import Efficiency, Times, efficiency
from omb_py.tracing.efficiency.phases import RecordedPhase, phases_of
from omb_py.tracing.records.layout import record_paths
from omb_py.tracing.records.run import open_run

if TYPE_CHECKING:
    from omb_py.tracing.profile.profile import Profile, RankProfile

OF_A_RANK = re.compile(r"(.+)\.\d+")
"""Name of a file that has one rank of a run, as mpitrace writes them."""


@dataclass(frozen=True)
class Run:
    """A run with its efficiencies, and what they rest on.

    ``name`` is what it was called on the command line, ``command`` the program that ran and its
    arguments, where that is known, ``phases`` what it named in it.
    """

    name: str
    command: str
    measured: MeasuredRun
    efficiency: Efficiency
    phases: tuple[RecordedPhase, ...] = ()

    @property
    def times(self) -> Times:
        """What the efficiencies are made of."""
        return self.measured.times


def load(paths: Sequence[str]) -> list[Run]:
    """The runs of these folders and files; files of mpitrace that differ in their rank are one.

    Raises `UsageError` where one is no profile, is damaged, or does not tell the ranks' times.
    """
    groups: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        one_of_many = None if Path(path).is_dir() else OF_A_RANK.fullmatch(path)
        groups.setdefault(one_of_many.group(1) if one_of_many else path, []).append(path)
    return [_run(name, members) for name, members in groups.items()]


def _run(name: str, paths: Sequence[str]) -> Run:
    if len(paths) == 1 and record_paths(paths[0]):
        run = open_run(paths[0])
        try:
            found, phases = measured(run), tuple(phases_of(run))
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise UsageError(f"{name} holds a damaged record: {error}") from error
        about: Mapping[str, Any] = run.about
    else:
        from omb_py.tracing.profile.store import load as load_profile

        profile = load_profile(paths)
        found = of_profile(profile, name)
        phases, about = (), profile.about
    try:
        command = str(about.get("command", ""))
        return Run(name, command, found, efficiency(found.times), phases)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def of_profile(profile: Profile, name: str) -> MeasuredRun:
    """What a profile without events tells; raises `UsageError` where it has no rank's times."""
    told = [
        member
        for member in profile.members
        if member.elapsed_s is not None and member.communication_s is not None
    ]
    if not told:
        raise UsageError(f"{name} tells of no rank how long it ran and how long it communicated")
    notes = [
        "serialisation and transfer efficiency need a timeline to replay: "
        "record with omb-py profile --timeline FILE",
        "when ranks began is not known: elapsed is the longest time of a rank",
    ]
    if len(told) < profile.ranks:
        notes.append(
            f"no data for {profile.ranks - len(told)} of {profile.ranks} ranks; they are excluded"
        )
    outside = tuple(
        max(0.0, (one.elapsed_s or 0.0) - (one.communication_s or 0.0) - (one.io_s or 0.0))
        for one in told
    )
    elapsed = max(one.elapsed_s or 0.0 for one in told)
    return MeasuredRun(
        Times(profile.ranks, outside, elapsed),
        sum(one.io_s or 0.0 for one in told),
        _processor(told, outside),
        (*notes, *profile.notes),
    )


def _processor(told: Iterable[RankProfile], outside: Sequence[float]) -> Processor | None:
    """CPU time beside wall time, None where some rank does not tell."""
    told = list(told)
    if all(one.outside_s is not None for one in told):
        return Processor.of([one.outside_s or 0.0 for one in told], sum(outside), True)
    if any(one.user_s is None or one.system_s is None for one in told):
        return None
    used = [(one.user_s or 0.0) + (one.system_s or 0.0) for one in told]
    return Processor.of(used, sum(one.elapsed_s or 0.0 for one in told), False)

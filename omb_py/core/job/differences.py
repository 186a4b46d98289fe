"""The difference between the options of two ranks, in a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from omb_py.core.job import Job, fingerprint

LONGEST = 60
"""Characters of a value that are shown."""


def difference(job: Job, launched: Mapping[str, tuple[Any, ...]]) -> str:
    """Return a sentence on the lowest rank with other values than rank 0; collective.

    ``launched`` are this rank's values by the names of options, on some ranks not the same.
    """
    mine = {name: [_described(value) for value in values] for name, values in launched.items()}
    first: dict[str, list[list[Any]]] = json.loads(job.text_of(json.dumps(mine), 0))
    differing = _differing(mine, first)
    rank = job.first_of(bool(differing))
    names = job.text_of(" and ".join(differing), rank)
    return (
        f"rank {rank} was started with another {names} than rank 0: start all ranks with the same "
        "options"
    )


def _described(value: Any) -> list[Any]:
    """Return a value's fingerprint, and the value as a user writes it."""
    return [fingerprint(repr(value)), _shown(value)]


def _shown(value: Any) -> str:
    if value is None:
        return "the default"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        text = ",".join(map(_shown, value)) or "none"
    else:
        text = str(getattr(value, "text", value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _differing(
    mine: Mapping[str, list[list[Any]]], first: Mapping[str, list[list[Any]]]
) -> list[str]:
    """Return the names of different values, with this rank's and rank 0's.

    Other benchmarks have other options: of those only the first difference is named.
    """
    found = []
    for name in dict.fromkeys([*mine, *first]):
        here, there = mine.get(name, []), first.get(name, [])
        if here == there:
            continue
        if not here or not there:
            found.append(name)
            continue
        pairs = [(a[1], b[1]) for a, b in zip(here, there, strict=True) if a != b]
        own, other = (":".join(one) for one in zip(*pairs, strict=True))
        found.append(f"{name} ({own}, {'of other contents' if own == other else f'not {other}'})")
    return found if mine.keys() == first.keys() else found[:1]

"""Hosts against expected values: which of two ends is worse, or that it cannot be told."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from omb_py.analysis.failures import RESULTS_OF, Failure
from omb_py.analysis.gate.verdicts import Gated
from omb_py.analysis.references import load
from omb_py.analysis.references_check import check
from omb_py.analysis.table import Results

MOST_PAIRS = 0.5
"""The part of a host's pairs that are worse than expected if the host is."""


def compared(judged: Gated, results: Results, expected: str) -> Gated:
    """Return verdicts with the hosts that are worse than ``expected``, and what was not judged.

    A pair of hosts counts for the end of which most pairs are worse; if that is neither or both,
    it fails as a pair.
    """
    asked, rows = load(expected), results.rows
    # what takes another number of hosts is no question to this job
    asked = asked[asked["hosts"].isna() | asked["hosts"].isin(rows["hosts"])]
    if asked.empty:
        nothing = f"{expected} has no value for the number of hosts that were measured"
        return replace(judged, unknown=(*judged.unknown, nothing))
    checked = check(results, asked)
    measured = checked.measured
    beyond: dict[str, str] = {}
    compared: set[str] = set()
    pairs: dict[str, list[tuple[tuple[str, ...], bool, str]]] = defaultdict(list)
    reasons = iter(checked.failures)
    wrong: list[Failure] = [*checked.wrong]
    for row in measured.to_dict("records"):
        failure = next(reasons) if row["fails"] else None
        of = row[RESULTS_OF] if len(judged.hosts) > 1 else " ".join(judged.hosts)
        hosts = tuple(of.split()) if isinstance(of, str) else ()
        compared |= {*hosts} if len(hosts) == 1 else set()
        if len(hosts) == 2:
            for host in hosts:
                pairs[host].append((hosts, failure is not None, failure.reason if failure else ""))
        elif failure is not None and len(hosts) == 1:
            beyond.setdefault(hosts[0], failure.reason)
        elif failure is not None:
            wrong.append(failure._replace(on_top=True))
    worse = {
        host: sum(failed for _, failed, _ in own) / len(own) > MOST_PAIRS and len(own) > 1
        for host, own in pairs.items()
    }
    told: set[tuple[str, ...]] = set()
    for host, own in pairs.items():
        for hosts, failed, reason in own:
            if not failed:
                continue
            if worse[host]:
                beyond.setdefault(host, reason)
            elif not any(worse[one] for one in hosts) and hosts not in told:
                told.add(hosts)
                which = f"{reason}; which of the two cannot be told"
                wrong.append(Failure(f"{' - '.join(hosts)}  {which}", on_top=True))
    conclusion = checked.conclusion
    unknown = (*judged.unknown, *conclusion.undecided, *conclusion.missing)
    return replace(
        judged,
        beyond=beyond,
        compared=frozenset(compared),
        wrong=(*judged.wrong, *wrong),
        unknown=unknown,
        notes=(*judged.notes, f"compared with {Path(expected).name}", *checked.remarks),
    )

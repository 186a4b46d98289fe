"""Tables of a gate's verdicts, and metrics for Prometheus."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import numpy as np

from omb_py.analysis.gate.verdicts import ABSENT, NOT_JUDGED, OK, SLOW, Gated
from omb_py.core.text.tables import Sheet
from omb_py.core.text.words import count


def sheets(found: Gated) -> list[Sheet]:
    """Return the table of points, and that of hosts beyond a limit or without a verdict."""
    rows = []
    for one in found.judgement.costs:
        known = np.isfinite(one.excess)
        ordered = np.argsort(-np.where(known, one.excess, -np.inf))
        worst = int(ordered[0])
        limit = float(np.median(one.limits[known]))
        named_from = "-" if np.isinf(limit) else "too noisy"
        if one.judged.any():
            named_from = f"{np.exp(limit):.2f}"
        rows.append(
            (
                one.point.name,
                str(int(known.sum())),
                f"{one.point.hosts[worst]} {math.exp(float(one.excess[worst])):.2f}",
                named_from,
            )
        )
    title = f"Gate: {count(len(found.hosts), 'host')}"
    columns = ("point", "hosts", "slowest, times the median", "named from")
    return [Sheet(title, columns, tuple(rows), left=1)]


def host_sheet(found: Gated) -> Sheet:
    """Return the table of all hosts: the worst ratio of each, and its verdict."""
    table = found.table()
    rows = []
    for host, members in table.groupby("host", sort=False):
        worst = members.loc[members["ratio"].idxmax()] if members["ratio"].notna().any() else None
        ratio = "-" if worst is None else f"{worst['ratio']:.2f}"
        where = "-" if worst is None else str(worst["point"])
        rows.append((str(host), ratio, where, str(members["verdict"].iloc[0])))
    return Sheet("Hosts", ("host", "times the median", "at", "verdict"), tuple(rows), left=1)


HELP = {
    "omb_py_gate_host_ratio": "Time of the host over the median of all hosts of its class.",
    "omb_py_gate_host_failed": "1 for a host that failed the gate, 0 for one that is fine.",
    "omb_py_gate_hosts": "Hosts of the gate by verdict.",
    "omb_py_gate_exit_code": "0: all judged and fine; 4: some fail; 7: not all could be judged.",
    "omb_py_gate_last_run_timestamp_seconds": "Unix time of the end of the gate.",
}
"""Metrics for Prometheus, by its rules (prometheus.io/docs/practices/naming)."""


def prometheus(found: Gated, now: float | None = None) -> str:
    """Return the verdicts as gauges for node_exporter's textfile collector, and OpenMetrics."""
    table = found.table()
    measured = table[table["ratio"].notna()]
    samples: dict[str, list[tuple[dict[str, str], float]]] = {name: [] for name in HELP}
    for row in measured.to_dict("records"):
        labels = {"host": row["host"], "point": row["point"]}
        samples["omb_py_gate_host_ratio"].append((labels, round(row["ratio"], 6)))
    verdicts = {host: found.verdict(host) for host in found.hosts}
    for host, verdict in verdicts.items():
        if verdict != NOT_JUDGED:
            samples["omb_py_gate_host_failed"].append(({"host": host}, float(verdict != OK)))
    for verdict in (OK, SLOW, ABSENT, NOT_JUDGED):
        number = sum(one == verdict for one in verdicts.values())
        labels = {"verdict": verdict.lower().replace(" ", "_")}
        samples["omb_py_gate_hosts"].append((labels, number))
    samples["omb_py_gate_exit_code"].append(({}, found.conclusion.exit_code))
    moment = time.time() if now is None else now
    samples["omb_py_gate_last_run_timestamp_seconds"].append(({}, round(moment, 3)))
    lines = []
    for name, values in samples.items():
        lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} gauge"]
        lines += [f"{name}{labelled(labels)} {value:.16g}" for labels, value in values]
    return "\n".join([*lines, "# EOF", ""])


def labelled(labels: Mapping[str, str]) -> str:
    """Return labels as Prometheus writes them."""
    if not labels:
        return ""
    escaped = {
        name: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        for name, text in labels.items()
    }
    return "{" + ",".join(f'{name}="{text}"' for name, text in escaped.items()) + "}"

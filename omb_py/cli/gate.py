"""``omb-py gate``: every host of a job, or of files, judged against all others."""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli.analysis_options import (
    input_options,
    note_doubts,
    output_options,
    read,
    refuse_options,
)
from omb_py.cli.check import expected_option
from omb_py.cli.help import GroupedCommand
from omb_py.core import BEGAN
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.errors import OmbError, UsageError, needing
from omb_py.core.mpi import launcher
from omb_py.core.mpi.startup_timer import seconds_before
from omb_py.core.text import files
from omb_py.core.text.words import count, first_of
from omb_py.measure import gate, gate_turns
from omb_py.measure.launch import launch
from omb_py.options.option import Row
from omb_py.options.parse import make_options
from omb_py.options.table import SECONDS, alike, shared_options
from omb_py.options.table import count as whole_number
from omb_py.options.types import PERCENTAGE, SIZE_LIST, TextType

if TYPE_CHECKING:
    from omb_py.analysis.gate.points import Record
    from omb_py.analysis.gate.verdicts import Gated
    from omb_py.core.options import Options
    from omb_py.core.text.tables import Target
    from omb_py.measure.gate import Measured, Measurements, Suspects

FORMATS = ("text", "markdown", "csv", "json", "prom")

LAUNCHED = ("buffer", "binding", "devices", "gpu_aware", "staging", "interface", "backend")
"""Options of benchmarks that a launch has."""

TIME, PARTNERS, TIMEOUT = 30.0, 8, 10.0
"""Defaults: seconds of the whole gate, partners of each host, seconds to answer."""

JUDGING = 20.0
"""Seconds that rank 0 has, once a rank does not go on, to judge what was measured."""

FOR_OUTPUT = 0.9
"""The part of the time by which measuring is over."""

# fmt: off
MEASURED = (
    Row("--time", TextType("TIME", lambda text: seconds_of(text)), TIME, "",
        "Seconds from the start of the program to its end.", show_default="30s"),
    Row("--sizes", SIZE_LIST, None, "", "Message sizes.", show_default="8,16M"),
    Row("--partners", whole_number(1), PARTNERS, "",
        "Other hosts that each host meets, before any is suspected.", show_default="8"),
    Row("--timeout", SECONDS, TIMEOUT, "", "Seconds in which a host has to answer.",
        show_default="5"),
    Row("--results", "FILE", None, "",
        "Write the rows of each turn, when it ends, into this .csv or .json file."),
)
JUDGED = (
    Row("--tolerance", PERCENTAGE, 0.1, "",
        "The difference that does not matter: by how much a host may be slower.",
        show_default="10%"),
    Row("--groups", "FILE", None, "",
        "What hosts share, as a switch or a rack: lines of a host and its group.",
        show_default="by the names of hosts"),
    Row("--apart", bool, None, "",
        "The --groups are different hardware: judge each by itself."),
    Row("--hosts", "FILE", None, "", "Hosts that have to be there, one on each line."),
    Row("--drain", "FILE", None, "", "Write the hosts that fail into this file, one on each line."),
)
# fmt: on


def seconds_of(text: str) -> float:
    """Return a duration in seconds: ``30``, ``30s``, ``2m``.

    >>> seconds_of("2m")
    120.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d*)?)\s*(s|m|min|h)?", text.strip())
    if found is None or not float(found[1]):
        raise ValueError(f"{text!r} is not a time: write one as in 30s or 2m")
    return float(found[1]) * {"m": 60, "min": 60, "h": 3600}.get(found[2] or "s", 1)


@dataclass(frozen=True)
class Request:
    """How hosts are judged, and where the verdicts go."""

    tolerance: float
    groups: Mapping[str, str] | None
    apart: bool
    hosts: tuple[str, ...]
    expected: str | None
    drain: str | None
    to: Target
    groups_file: str | None = None


@click.command(
    "gate",
    cls=GroupedCommand,
    params=[
        click.Argument(["paths"], nargs=-1, metavar="[FILES]…", type=click.Path()),
        *(row.option("What is measured") for row in MEASURED),
        *(one for name in LAUNCHED for one in shared_options(name) if one.name == name),
        *(row.option("How hosts are judged") for row in JUDGED),
    ],
)
@expected_option
@input_options
@output_options(*FORMATS)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: Sequence[str],
    time: float,
    sizes: tuple[int, ...] | None,
    partners: int,
    timeout: float,
    results: str | None,
    tolerance: float,
    groups: str | None,
    apart: bool,
    hosts: str | None,
    drain: str | None,
    expected: str | None,
    where: tuple[str, ...],
    assume: tuple[str, ...],
    statistic: str,
    to: Target,
    **values: Any,
) -> None:
    """Judge every host of a job against all others: which node is slow?

    \b
    mpiexec -n 64 omb-py gate --drain bad-hosts
    omb-py gate results/*.csv

    Under a launcher, omb-py gate measures each host by itself, in pairs, in halves and together,
    then again those that it suspects. With FILES it judges the results in them. Exit code 4: hosts
    fail; 7: none fails, and something could not be judged.
    """
    with needing("analysis"):
        for name in ("pandas", "scipy"):  # missing ones are found before anything is measured
            if find_spec(name) is None:
                raise ModuleNotFoundError(name=name)
    if apart and groups is None:
        raise UsageError("--apart is about --groups: name their file")
    request = Request(
        tolerance,
        read_groups(groups) if groups else None,
        apart,
        tuple(read_hosts(hosts)) if hosts else (),
        expected,
        drain,
        to,
        groups,
    )
    files.refuse_same({"--output": to.path, "--drain": drain, "--results": results})
    if paths:
        refuse_options(
            [*(row.name for row in MEASURED), *LAUNCHED], "is about measuring: leave out FILES"
        )
        ctx.exit(judge_files(paths, where, assume, statistic, request))
    refuse_options(["where", "assume", "statistic"], "is about FILES: name some")
    options = replace(
        make_options(values),
        # rank 0 has to judge what was measured before others end the job
        timeout=timeout if launcher.rank() in (0, None) else timeout + JUDGING,
        output=results,
        debug="--debug" in sys.argv,
    )
    ctx.exit(measure(options, time, sizes, partners, timeout, request))


def read_groups(path: str) -> dict[str, str]:
    """Return the group of each host in a file; raises `UsageError` for other lines."""
    found: dict[str, str] = {}
    for number, line in enumerate(files.read_text(path, UsageError).splitlines(), 1):
        words = re.split(r"[\s,;]+", line.partition("#")[0].strip())
        if words == [""]:
            continue
        if len(words) != 2:
            raise UsageError(f"{path}:{number}: write a host and its group, as in 'node07 rack2'")
        if found.setdefault(words[0], words[1]) != words[1]:
            raise UsageError(f"{path}:{number}: {words[0]} is in two groups: leave out one")
    if not found:
        raise UsageError(f"{path} names no host: write lines of a host and its group")
    return found


def read_hosts(path: str) -> list[str]:
    """Return the hosts of a file: the first word of each line, without number of ranks."""
    lines = files.read_text(path, UsageError).splitlines()
    words = [re.split(r"[\s:,]", line.partition("#")[0].strip())[0] for line in lines]
    if not any(words):
        raise UsageError(f"{path} names no host: write one on each line")
    return list(dict.fromkeys(filter(None, words)))


def judge_files(
    paths: Sequence[str],
    where: Sequence[str],
    assume: Sequence[str],
    statistic: str,
    request: Request,
) -> int:
    """Judge the hosts of results in files; return the exit code."""
    from omb_py.analysis.gate import verdicts

    found = read(paths, where, assume)
    judged = verdicts.gate(
        found,
        tolerance=request.tolerance,
        groups=request.groups,
        apart=request.apart,
        hosts=request.hosts,
        statistic=statistic,
    )
    if not judged.hosts:
        raise UsageError(
            "these results do not say which hosts they are of: add --assume '*.txt:host_names=*' "
            "if files have the names of hosts, or '*node7*:host_names=node7' for each host"
        )
    return conclude(with_doubts(judged, found, request), request)


def with_doubts(judged: Gated, results: Any, request: Request) -> Gated:
    """Return verdicts with what cannot be, and with what is worse than expected."""
    from dataclasses import replace as changed

    from omb_py.analysis.failures import Failure

    doubts = tuple(Failure(text, on_top=True) for text in note_doubts(results))
    judged = changed(judged, wrong=(*judged.wrong, *doubts))
    if request.expected is None:
        return judged
    from omb_py.analysis.gate import expected

    return expected.compared(judged, results, request.expected)


def conclude(judged: Gated, request: Request) -> int:
    """Write the verdicts, and return the exit code."""
    from omb_py.analysis.conclusion import facts
    from omb_py.analysis.gate import output
    from omb_py.core.text import tables

    to = request.to
    conclusion = judged.conclusion
    if request.drain is not None:
        names = dict.fromkeys(host.partition("#")[0] for host in judged.drained)
        files.write(request.drain, "".join(f"{name}\n" for name in names))
    if to.format == "prom":
        tables.write_content(to, output.prometheus(judged))
    else:
        sheets = output.sheets(judged)
        if to.format == "markdown":
            sheets.append(output.host_sheet(judged))
        more = {"hosts": list(judged.hosts), "drain": list(judged.drained)}
        said = more | facts(conclusion, judged.lines(), judged.remarks)
        tables.write(to, sheets, judged.table(), judged.remarks, said)
    apart = to.path is None and to.format in ("csv", "json", "prom")
    click.echo("\n".join(judged.lines()), err=apart)
    return conclusion.exit_code


def measure(
    options: Options,
    seconds: float,
    sizes: tuple[int, ...] | None,
    partners: int,
    patience: float,
    request: Request,
) -> int:
    """Measure the hosts of a job and judge them; return the exit code; collective."""
    given = alike(options) | {
        "--time": (seconds,),
        "--sizes": (sizes,),
        "--partners": (partners,),
    }
    if launcher.rank() in (0, None):  # before the time for measuring is known
        import omb_py.analysis.gate.verdicts  # noqa: F401
    with ExitStack() as at_end:
        if options.output is None and launcher.rank() in (0, None):
            folder = at_end.enter_context(tempfile.TemporaryDirectory(prefix="omb-py-gate-"))
            options = replace(options, output=os.path.join(folder, "gate.csv"))
        rows = options.output or ""
        words = ["/bin/sh", "-c", 'test ! -s "$0" || exec "$@"', rows]  # before the first row
        words += [sys.executable, "-m", "omb_py", "gate", rows, *judging(request)]
        # many ranks may need more than --timeout to start
        starting = max(seconds, patience)
        launched = at_end.enter_context(
            launch("gate", options, given, last_words=words, starting=starting)
        )
        launched.progress("looking at the nodes")
        job = launched.job
        job.check_launcher()
        with job.agreement():  # what cannot be read or written is refused before measuring
            if job.rank == 0:
                files.check_writable(request.drain, "; choose another place for --drain")
                files.check_writable(request.to.path, "; choose another place for --output")
                if request.expected is not None:
                    from omb_py.analysis import references

                    with launched.working("reading expected values"):
                        references.load(request.expected)
        nodes = gate_turns.nodes_of(job)
        before = seconds_before(time.perf_counter(), 0.0) or time.perf_counter() - BEGAN
        end = time.monotonic() + max(0.0, FOR_OUTPUT * seconds - before)
        results = gate.open_results(launched, options)
        if job.rank:
            return gate.Team(launched, options, patience).follow()
        team = gate.Gate(launched, options, patience, nodes, end)
        hosts = results.hosts
        measured = team.lead(sizes, partners, partial(suspects, hosts, request), results)
        code, failure = 1, None
        try:
            results.finish()
            with launched.working("judging what was measured"):
                code = judge_measured(measured, hosts, results, request)
        except OmbError as error:
            failure = error
        team.end(code, failure)
    return code


def judging(request: Request) -> list[str]:
    """Return the options that judge the results of a gate whose rank 0 does not go on."""
    found = [f"--tolerance={100 * request.tolerance:g}%"]
    named = {
        "--groups": request.groups_file,
        "--drain": request.drain,
        "--expected": request.expected,
    }
    found += [f"{name}={value}" for name, value in named.items() if value is not None]
    return [*found, *(["--apart"] if request.apart else [])]


def records_of(measured: Sequence[Measured], hosts: Sequence[str]) -> list[Record]:
    """Return records of what a gate measured on nodes, which are the ``hosts`` of their number."""
    from omb_py.analysis.gate.points import Record
    from omb_py.analysis.gate.records import WHERE
    from omb_py.core.text.units import size_text

    found = []
    sizes = {one.row["ranks"] for one in measured if one.row.get("split") == gate_turns.NODE}
    for one in measured:
        row, split = one.row, one.row.get("split") or ""
        value = row.get("sample_p50_us") or row.get("latency_us") or math.nan
        if value > 0:
            name = f"{row['benchmark']} {size_text(row['bytes'])}{WHERE.get(split, '')}"
            if split == gate_turns.NODE and len(sizes) > 1:
                name += f", {count(row['ranks'], 'rank')}"
            names = tuple(hosts[node] for node in one.nodes)
            fastest = math.log(row.get("sample_min_us") or math.nan)
            cost, group = math.log(value), row["group"]
            found.append(Record(name, names, cost, group, one.again, split, fastest))
    return found


def suspects(hosts: Sequence[str], request: Request, measured: Sequence[Measured]) -> Suspects:
    """Return what seems slow in what was measured so far."""
    import numpy as np

    from omb_py.analysis.gate.judging import judge
    from omb_py.analysis.gate.points import points
    from omb_py.measure.gate import Suspects

    found = judge(
        points(records_of(measured, hosts)), request.tolerance, request.groups, request.apart
    )
    number = {host: node for node, host in enumerate(hosts)}
    sets: dict[str, set[int]] = {"alone": set(), "paired": set(), "halves": set()}
    sharing: list[int] = []
    for one in found.costs:
        kind = "halves" if one.point.halves else "alone" if one.point.partners is None else "paired"
        places = np.flatnonzero(one.slow | ((one.classes == 1) & (kind == "paired")))
        nodes = [number[one.point.hosts[place]] for place in places]
        sets[kind] |= {*nodes}
        sharing += nodes if kind == "paired" else ()
    links = dict.fromkeys((number[one.hosts[0]], number[one.hosts[1]]) for one in found.links)
    return Suspects(
        **{kind: frozenset(members) for kind, members in sets.items()},
        links=tuple(links),
        sharing=tuple(dict.fromkeys(sharing)),
        noisy=any(one.is_noisy and not one.point.halves for one in found.costs),
    )


def judge_measured(
    measured: Measurements, hosts: Sequence[str], results: Any, request: Request
) -> int:
    """Judge what a gate measured, on rank 0; return the exit code."""
    from omb_py.analysis.failures import Failure
    from omb_py.analysis.gate.verdicts import gated
    from omb_py.analysis.table import of_rows

    unknown = [*dict.fromkeys(measured.failed)]
    if any("confirmed" in text for text in measured.left_out):
        unknown.append("the time was over before all suspects were measured again: raise --time")
    notes = [f"measured {', '.join(measured.done)}"] if measured.done else []
    if measured.left_out:
        notes.append(f"--time allowed only {', '.join(measured.left_out)}")
    unclear = {
        first_of([hosts[node] for node in nodes], 6): text
        for nodes, text in measured.unclear.items()
    }
    notes += [f"without {name}: {why}" for name, why in measured.lacking.items()]
    judged = gated(
        records_of(measured.measured, hosts),
        request.tolerance,
        request.groups,
        request.apart,
        dict.fromkeys([*hosts, *request.hosts]),
        wrong=tuple(Failure(f"{names}  {text}", on_top=True) for names, text in unclear.items()),
        unknown=unknown,
        absent={hosts[node]: text for node, text in measured.absent.items()},
        notes=notes,
        confirm=True,
    )
    found = of_rows([one.row | {"run": results.run} for one in measured.measured], results.runs)
    return conclude(with_doubts(judged, found, request), request)

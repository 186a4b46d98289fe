"""``omb-py model``: parameters of communication costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omb_py.cli.analysis_options import (
    input_options,
    note,
    note_others,
    output_options,
    read,
    refuse_options,
)
from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files as outputs
from omb_py.core.text.words import first_of

if TYPE_CHECKING:
    from omb_py.analysis.table import Results
    from omb_py.core.text.tables import Target


@click.command("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@input_options
@click.option(
    "--network",
    "network_file",
    metavar="FILE",
    type=click.Path(),
    help="Also write the network of latency, bw, mbw_mr and pairs, for omb-py simulate.",
)
@click.option(
    "--topology",
    metavar="TOPOLOGY",
    help="How the nodes of --network are connected, as of omb-py simulate.  [default: star]",
)
@output_options("text", "markdown", "csv", "json", "parquet")
def command(
    files: tuple[str, ...],
    where: tuple[str, ...],
    assume: tuple[str, ...],
    statistic: str,
    network_file: str | None,
    topology: str | None,
    to: Target,
) -> None:
    """Fit cost models to results.

    FILE is a file of results or a folder of them. Latency and bandwidth (alpha and beta) of each
    curve, with the sizes at which protocols switch.
    """
    with needing("analysis"):
        from omb_py.analysis.model import fit, parameters

    results = read(files, where, assume)
    if network_file is None:
        note_others(results, "model")
    if topology is not None and network_file is None:
        raise UsageError("--topology is that of --network's file: name one")
    if network_file is not None:
        outputs.refuse_same({"--network": network_file, "--output": to.path})
        outputs.refuse_existing([network_file], click.get_current_context().params["force"])
        if results.rows.empty:
            refuse_options(
                ("kind", "output"),
                "is for models of benchmarks, and only pairs are there: leave it out",
            )
        write_network(results, statistic, topology or "star", network_file)
        if results.rows.empty:
            return
    fitted = fit.model(results.rows, results.runs, statistic)
    parameters.write(fitted, to)


def write_network(results: Results, statistic: str, topology: str, name: str) -> None:
    """Write the file of a network, and report the missing measurements."""
    with needing("simulate"):
        from omb_py.analysis.model import fit
        from omb_py.simulation import calibration, network, topologies

    rows = calibration.with_pairs(results.rows, results.pairs)
    fitted = fit.model(rows, results.runs, statistic)
    topologies.parse(topology)
    benchmarks = sorted({curve.benchmark for curve in fitted.curves})
    found = calibration.calibrate(fitted, topology, f"measured by {first_of(benchmarks)}")
    outputs.write(name, network.text_of(found.network, found.comments))
    for what in found.missing:
        note(f"{name}: a figure is not measured, for want of {what}")

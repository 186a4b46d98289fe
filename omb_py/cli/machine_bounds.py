"""``omb-py machine bounds``: the limits of this host."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omb_py.cli.analysis_options import note
from omb_py.core.errors import needing
from omb_py.core.text import files
from omb_py.core.text.units import size_text, value_text

if TYPE_CHECKING:
    from omb_py.analysis.bounds import Bounds


@click.command("bounds")
@click.option("-o", "--output", metavar="FILE", help="Write the bounds to FILE, as in bounds.json.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def bounds_command(output: str | None, force: bool) -> None:
    """Measure what this host can do at most.

    Copies by one core and by all, cache sizes, rates of network links, links of GPUs and copies to
    and from them. omb-py show --bounds FILE shows results as parts of it.
    """
    files.refuse_existing([output] if output is not None else [], force)
    with needing("analysis"):
        from omb_py.analysis import bounds
    from omb_py.measure import bounds as host
    from omb_py.measure import host_load
    from omb_py.results.metadata import processor

    before = host_load.read(whole=True)
    copies = host.copies()
    links, device_copies = host.gpus(), host.device_copies()
    load = host_load.load_since(before)
    known = bounds.Bounds(
        omb_py_bounds=bounds.VERSION,
        host=os.uname().nodename,
        measured=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        processor=processor(),
        cores=len(host.cores()),
        load=None if load is None else bounds.OtherLoad(others=load.others, stolen=load.stolen),
        copies=tuple(bounds.CopyRate(**vars(one)) for one in copies),
        caches=host.caches(),
        links=host.interfaces() | host.infiniband(),
        gpus={
            name: links.get(name, {}) | device_copies.get(name, {})
            for name in {**links, **device_copies}
        },
    )
    for line in described(known):
        click.echo(line)
    if known.busy:
        note(known.busy)
    if output is not None:
        files.write(output, known.model_dump_json(indent=2).encode() + b"\n")
        click.echo(f"written to {output}")


def described(known: Bounds) -> Iterator[str]:
    """Yield the lines of the text output: host, caches, memory, links, devices."""
    yield f"{known.host}: {known.processor}, {known.cores} usable"
    caches = ", ".join(f"{name} {size_text(size)}" for name, size in known.caches.items())
    yield f"Caches of a core: {caches or 'the system does not say'}"
    if known.load is not None:
        yield (
            f"Load by others: {known.load.others:.1%} of the cores by processes, "
            f"{known.load.stolen:.1%} by the hypervisor"
        )
    yield f"{'Copies of':<14}{'one core':>12}{'all cores':>12}"
    for copy in known.copies:
        one, every = (value_text(rate, "MB/s") for rate in (copy.one_core, copy.all_cores))
        yield f"{size_text(copy.bytes):<14}{one:>12}{every:>12}"
    for name, rate in known.links.items():
        yield f"Link {name}: {value_text(rate, 'MB/s')}"
    if not known.links:
        yield "Network links: none whose rate the system says"
    for name, links in known.gpus.items():
        rates = ", ".join(f"{kind} {value_text(rate, 'MB/s')}" for kind, rate in links.items())
        yield f"GPU {name}: {rates or 'no rate of a link'}"

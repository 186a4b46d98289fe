"""The writers of a run: opened on rank 0, with the facts that their headers need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from omb_py.bindings import Binding
from omb_py.core.job import Job, Node
from omb_py.core.options import Options
from omb_py.measure.launch import Launch
from omb_py.results.writer import Writer


def start_writers(
    launch: Launch,
    options: Options,
    run: str,
    nodes: list[Node],
    opened: Callable[[], Sequence[Writer[Any]]],
    bindings: Sequence[Binding] = (),
    conditions: Mapping[str, str] | None = None,
) -> list[Writer[Any]]:
    """Return the writers that ``opened`` makes on rank 0, started.

    ``run`` is the run's name, ``conditions`` more of its metadata. Collective; raises `SharedError`
    when it cannot be written.
    """
    job, device = launch.job, launch.buffer.device
    writers: list[Writer[Any]] = []
    metadata = {"ranks": str(job.ranks)}
    if device is not None:
        metadata["accelerator"] = "MANAGED" if options.managed else device.accelerator
    with job.agreement():
        if job.rank == 0:
            if takes_metadata(options):
                facts = _metadata(launch, run, nodes, bindings)
                metadata = {**facts, **(conditions or {}), **metadata}
            writers = [*opened()]
            if launch.subset is not None:
                writers = launch.subset.naming(writers)
            for writer in writers:
                writer.start(metadata)
    return writers


def takes_metadata(options: Options) -> bool:
    """Return whether any place that results go to has room for all metadata."""
    return options.output is not None or options.format != "text" or bool(options.graph)


def finish_writers(
    job: Job, writers: list[Writer[Any]], run: str, metadata: dict[str, str]
) -> None:
    """Write the facts of the run that are known only now, and close the results; collective.

    Raises `SharedError` when it cannot be written.
    """
    with job.agreement():
        for writer in writers:
            if metadata:
                writer.amend(run, metadata)
            writer.finish()


def _metadata(
    launch: Launch, run: str, nodes: list[Node], bindings: Sequence[Binding]
) -> dict[str, str]:
    from omb_py.results import metadata

    found = metadata.process_metadata(run) | launch.buffer.describe() | launch.job.describe()
    for binding in bindings:
        for key, text in binding.describe().items():
            if found.setdefault(key, text) != text:
                found[f"{binding.name}_{key}"] = text
    found["hosts"] = metadata.describe_nodes(nodes)
    if placement := metadata.describe_placement(nodes):
        found["placement"] = placement
    if launch.buffer.device is not None:
        found["devices"] = metadata.describe_devices(nodes)
        found["device_chosen"] = f"{'before' if launch.device_first else 'after'} MPI"
    return found

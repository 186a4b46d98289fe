"""The writers of a run: opened on rank 0, and told what they write about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from omb_py.bindings import Binding
from omb_py.job import Node
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from omb_py.measure.walk import Setting


def start_writers(
    setting: Setting,
    run: str,
    nodes: list[Node],
    opened: Callable[[], list[Writer[Any]]],
    bindings: Sequence[Binding] = (),
) -> list[Writer[Any]]:
    """What ``opened`` gives on rank 0, with all written that stands before the rows.

    ``run`` is the run's name. Collective; raises `SharedError` when it cannot be written.
    """
    job, options = setting.job, setting.options
    writers: list[Writer[Any]] = []
    metadata = {"ranks": str(job.ranks)}
    if setting.buffer.device is not None:
        metadata["accelerator"] = "MANAGED" if options.managed else "CUDA"
    if options.output is not None or options.format != "text" or options.graph:
        metadata = _metadata(setting, run, nodes, bindings) | metadata
    with job.agreement():
        if job.rank == 0:
            writers = opened()
            for writer in writers:
                writer.start(metadata)
    return writers


def _metadata(
    setting: Setting, run: str, nodes: list[Node], bindings: Sequence[Binding]
) -> dict[str, str]:
    from omb_py.results.metadata import describe_devices, describe_nodes, process_metadata

    found = process_metadata(run) | setting.buffer.describe() | setting.job.describe()
    for binding in bindings:
        found |= binding.describe()
    found["hosts"] = describe_nodes(nodes)
    if setting.buffer.device is not None:
        found["devices"] = describe_devices(nodes)
        found["device_chosen"] = f"{'before' if setting.device_first else 'after'} MPI"
    return found

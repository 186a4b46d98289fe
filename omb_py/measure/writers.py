"""The writers of a run: opened on rank 0, with the facts that their headers need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from omb_py.bindings import Binding
from omb_py.buffers import Buffer
from omb_py.core.job import Job, Node
from omb_py.core.options import Options
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from omb_py.measure.parts import PartJob


class Started(Protocol):
    """The facts on a measurement that writers need at its start."""

    @property
    def options(self) -> Options: ...
    @property
    def buffer(self) -> Buffer: ...
    @property
    def job(self) -> Job: ...
    @property
    def device_first(self) -> bool: ...
    @property
    def more_writers(self) -> Callable[[], Sequence[Writer[Any]]]: ...


def start_writers(
    setting: Started,
    run: str,
    nodes: list[Node],
    opened: Callable[[], list[Writer[Any]]],
    bindings: Sequence[Binding] = (),
    conditions: Mapping[str, str] | None = None,
    part: PartJob | None = None,
) -> list[Writer[Any]]:
    """Return the writers that ``opened`` and the setting make on rank 0, started.

    ``run`` is the run's name, ``conditions`` more of its metadata; ``part`` are the ranks that
    measure if others sleep. Collective; raises `SharedError` when it cannot be written.
    """
    job, options = setting.job, setting.options
    writers: list[Writer[Any]] = []
    metadata = {"ranks": str(job.ranks)}
    device = setting.buffer.device
    if device is not None:
        metadata["accelerator"] = "MANAGED" if options.managed else device.accelerator
    with job.agreement():
        if job.rank == 0:
            if takes_metadata(options):
                facts = _metadata(setting, run, nodes, bindings)
                metadata = {**facts, **(conditions or {}), **metadata}
            writers = [*opened(), *setting.more_writers()]
            if part is not None:
                writers = part.naming(writers)
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
    setting: Started, run: str, nodes: list[Node], bindings: Sequence[Binding]
) -> dict[str, str]:
    from omb_py.results import metadata

    found = metadata.process_metadata(run) | setting.buffer.describe() | setting.job.describe()
    for binding in bindings:
        for key, text in binding.describe().items():
            if found.setdefault(key, text) != text:
                found[f"{binding.name}_{key}"] = text
    found["hosts"] = metadata.describe_nodes(nodes)
    if placement := metadata.describe_placement(nodes):
        found["placement"] = placement
    if setting.buffer.device is not None:
        found["devices"] = metadata.describe_devices(nodes)
        found["device_chosen"] = f"{'before' if setting.device_first else 'after'} MPI"
    return found

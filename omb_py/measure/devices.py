"""Additions to a run for messages on a device: allowed accesses, notes."""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.benchmarks import Case, Plan
from omb_py.bindings import Binding, calls_of
from omb_py.buffers import Device
from omb_py.core.calls import Iteration, Step
from omb_py.core.dataclass import replace
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.job import Node
from omb_py.core.memory import Local
from omb_py.core.options import Options


def option_for_devices(options: Options, device: Device | None) -> str | None:
    """Return an option that is given and has no sense if no rank's messages are on a device."""
    asked = {
        "--staging": options.staging,
        "--stream-sync": options.stream_sync,
        "--device": options.devices and device is None,
    }
    return next((name for name, wanted in asked.items() if wanted), None)


def check_host_only(options: Options, device: Device | None) -> None:
    """Raise `UsageError` for options without sense if no rank's messages are on a device."""
    name = option_for_devices(options, device)
    if name is not None:
        raise UsageError(f"{name} is for messages on a device: choose one, as in --buffer cupy")


def arranged(plan: Plan, case: Case) -> Plan:
    """Return the plan with copies through the host and a wait for the device, if wanted."""
    if case.options.staging:
        from omb_py.measure.staging import staged

        plan = staged(plan, case.rank)
    wait = case.buffer.wait() if case.options.stream_sync else None
    return plan if wait is None else begun_by(plan, (wait,))


def begun_by(plan: Plan, steps: Sequence[Local]) -> Plan:
    """Return the plan with steps of this rank before the calls of each iteration, in its time."""
    iterations = (replace(one, steps=(*steps, *one.steps)) for one in plan.iterations)
    return replace(plan, iterations=tuple(iterations))


def check(binding: Binding, iterations: Sequence[Iteration], options: Options) -> None:
    """Raise `UnsupportedError` if MPI would be given device memory that it cannot take."""
    if not binding.passes_addresses:
        if options.staging:
            raise UnsupportedError(
                f"binding {binding.name} hands no addresses to MPI that could be staged: leave out "
                "--staging"
            )
        return
    if not binding.needs_mpi:
        return
    by_kind: dict[str, list[str]] = {}
    for iteration in iterations:
        for kind in {kind for step in iteration.everything for kind in kinds(step)}:
            by_kind.setdefault(kind, []).extend(binding.functions(iteration))
    for kind, functions in by_kind.items():
        from omb_py.core.mpi.gpu_aware import awareness

        awareness(options.gpu_aware, binding.comm, kind).check(tuple(dict.fromkeys(functions)))


def kinds(step: Step) -> set[str]:
    """Return the kinds of memory on devices that MPI is given in this step."""
    memories = [message.memory for call in calls_of(step) for message in call.messages]
    return {memory.kind for memory in memories if memory.kind}


def word(device: Device | None) -> str:
    """Return a rank's device in one word: its number there, and its identity."""
    return "-" if device is None else f"{device.number}={device.identity[:8]}"


def sharing(nodes: Sequence[Node]) -> str | None:
    """Return a sentence for the first of ``nodes`` on which ranks share a device, if any."""
    for node in nodes:
        identities = [said.partition("=")[2] for said in node.words if said != "-"]
        most = max(map(identities.count, identities), default=0)
        if most > 1:
            return (
                f"{most} ranks share one device of {node.host}: times include waiting for it, and "
                "messages between them stay on it"
            )
    return None

"""The options of a run with the choices that only a started launch can make, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from omb_py.bindings import BINDINGS
from omb_py.core.dataclass import replace
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.memory import Place
from omb_py.core.options import Options
from omb_py.measure.launch import Launch

BINDING_OPTIONS = ("backend", "interface")
"""Options that only some bindings have a use for."""


def adapted(name: str, options: Options, launch: Launch) -> Options:
    """Return the options with the choices that depend on the buffer, known by now; collective.

    Raises `SharedError` if a requirement of the binding is missing.
    """
    if options.window_kind is None:
        # what MPI allocates is on the host
        kind = "allocate" if launch.buffer.device is None else "create"
        options = replace(options, window_kind=kind)
    if options.placement and launch.buffer.device is None:
        if {*options.placement} != {Place.HOST}:
            letters = " ".join(place.value for place in options.placement)
            launch.job.note(f"buffer {options.buffer} has no device: {letters} is measured as H H")
        options = replace(options, placement=())
    options = labelled(options)
    with launch.job.agreement():
        point_to_point = BINDINGS.load(options.binding).point_to_point
    if point_to_point:
        from omb_py.benchmarks.algorithms import for_point_to_point

        options = for_point_to_point(name, options)
    return options


def labelled(options: Options) -> Options:
    """Return the options with the binding's backend as their label, unless they have one.

    The label distinguishes results. A network interface is a property of the machine, not of the
    measurement.
    """
    if options.variant is not None or options.backend is None:
        return options
    return replace(options, variant=f"backend {options.backend}")


def check_binding_options(options: Options, bindings: Sequence[str]) -> None:
    """Raise `UsageError` for an option that none of these bindings uses."""
    given = [name for name in BINDING_OPTIONS if getattr(options, name) is not None]
    known: set[str] = set()
    for one in bindings if given else ():
        with suppress(OmbError):  # one that cannot be here is refused, or left out, when it is made
            known.update(BINDINGS.load(one).own_options)
    for name in given:
        if name not in known:
            raise UsageError(
                f"--{name.replace('_', '-')} has no meaning for binding {', '.join(bindings)}: "
                "leave it out, or choose another binding"
            )

"""Native OMB's programs, by their names: the options that omb-py itself has otherwise or not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import click

from omb_py.benchmarks import Benchmark
from omb_py.buffers import BUFFERS
from omb_py.core.dataclass import replace
from omb_py.core.errors import MissingError, OmbError, UsageError
from omb_py.core.mpi import launcher
from omb_py.options.option import Kind, Row, traits
from omb_py.options.table import COMPUTE_TARGETS, count, parameters
from omb_py.options.types import BYTES
from omb_py.results.text import title_line

DEVICE_BUFFERS = {
    "cuda": ("cupy", "numba", "pycuda"),
    "managed": ("cupy", "numba", "pycuda"),
    "rocm": ("cupy",),
    "sycl": ("dpnp",),
}
"""Buffers for values of ``-d``: the first that can be used here."""

ACCELERATORS = (*DEVICE_BUFFERS, "openacc")
MANAGED = {"M": "MD"}
"""Letters of messages' places that omb-py has another word for."""


@cache
def note_once(text: str) -> None:
    """Print a note on stderr, from rank 0 and only once in a process."""
    launcher.note(text, launcher.rank())


def note_no_effect(why: str, ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Print that an option has no effect, and why."""
    if value is not None:
        note_once(f"{parameter.opts[0]} has no effect on {ctx.info_name}: {why}")


def refuse_counters(ctx: click.Context, parameter: click.Parameter, events: Any) -> None:
    """Raise `UsageError` for PAPI's counters."""
    if events is not None:
        raise UsageError(
            "-P: omb-py reads no PAPI counters: leave it out, and start the ranks under 'perf stat'"
        )


def note_ignored(ctx: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> None:
    """Print that options of other programs have no effect."""
    if words:
        note_once(f"{' '.join(words)} has no effect on {ctx.info_name}, as in native OMB")


def show_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print what native OMB does for ``-v``, and leave."""
    if wanted and not ctx.resilient_parsing:
        from omb_py.benchmarks import find_benchmark

        click.echo(title_line(find_benchmark(str(ctx.info_name))))
        ctx.exit()


def without_effect(who: str, why: str, names: str, kind: Kind) -> Row:
    """Return an option of native OMB's program that has no effect here."""
    call = partial(note_no_effect, why)
    return Row(names, kind, None, who, "Without effect.", callback=call, expose_value=False)


HEADING = "Of native OMB"
# fmt: off
ROWS = (
    Row("-v --version", bool, None, "", "Show the release of native OMB whose output this is.",
        is_eager=True, expose_value=False, callback=show_version),
    Row("-d --accelerator", ACCELERATORS, None, "",
        f"Messages on a device: cuda and managed by the first of "
        f"{', '.join(DEVICE_BUFFERS['cuda'])} that works here, rocm by cupy, sycl by dpnp; places "
        "are H unless they are named."),
    Row("-P --papi", "EVENTS:FILE", None, "", "Refused: omb-py reads no PAPI counters.",
        expose_value=False, callback=refuse_counters),
    without_effect("planned", "devices compute only with -r", "-a --array-size", count(0)),
    without_effect("planned !varied", "it has no message size to choose",
                   "-m --message-size", "[MIN:]MAX"),
    without_effect("planned !sized", "it has no messages", "-M --mem-limit", BYTES),
    without_effect("planned !sized", "it checks no data", "-u --validation-warmup", count(0)),
    without_effect("planned window placement", "it computes nothing",
                   "-t --num-test-calls", count(0)),
    without_effect("planned collective !overlap", "it computes nothing",
                   "-r --cuda-target", COMPUTE_TARGETS),
)
# fmt: on
"""Options of native OMB's programs that omb-py has otherwise or not."""

SINCE_7_5 = ("partitioned_latency",)
"""Benchmarks that native OMB has from 7.5 on."""


def has_program(benchmark: Benchmark) -> bool:
    """Return whether native OMB 7.4 or 7.5 has a program of its name."""
    return benchmark.native or benchmark.name in SINCE_7_5


def begun_as_native(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with native OMB's smallest message: its programs skip 0 bytes."""
    smallest = max(1, benchmark.defaults.smallest)
    return replace(benchmark, defaults=replace(benchmark.defaults, smallest=smallest))


def program_parameters(benchmark: Benchmark) -> list[click.Parameter]:
    """Return the parameters of native OMB's program, which has all of omb-py's command, too.

    Native OMB's start-up programs take any option, and Ramble starts them with ``-z``.
    """
    found: list[click.Parameter] = []
    partitioned = "partitions" in benchmark.options
    for one in parameters(benchmark):
        if partitioned and "-q" in one.opts:
            one.opts.remove("-q")
        if one.name == "partitions":
            one.opts.insert(0, "-q")
        if one.name == "placement":
            places = click.Choice(["H", "D", "MH", "MD", *MANAGED])
            one = click.Argument(["placement"], type=places, nargs=-1, metavar=one.metavar)
        if one.name != "accelerator":
            found.append(one)
    if benchmark.start_up is not None:
        ignored = click.Argument(
            ["ignored"],
            nargs=-1,
            type=click.UNPROCESSED,
            metavar="[OPTION]...",
            expose_value=False,
            callback=note_ignored,
        )
        found.append(ignored)
    words = traits(benchmark)
    return found + [row.option(HEADING) for row in ROWS if row.applies(words)]


def translated(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a program's options as those of omb-py's command.

    Raises `UsageError` for devices that omb-py has no buffers for, `MissingError` if none can be
    used here.
    """
    found = dict(values)
    accelerator = found.pop("accelerator")
    places = tuple(MANAGED.get(place, place) for place in found.get("placement") or ())
    if accelerator is not None:
        if accelerator not in DEVICE_BUFFERS:
            raise UsageError(
                f"-d {accelerator}: no array library is for it: use -d {', '.join(DEVICE_BUFFERS)}"
            )
        found["buffer"] = usable_buffer(accelerator)
        found["managed"] = accelerator == "managed" and "placement" not in found
        places = places or ("H", "H")
    if "placement" in found:
        found["placement"] = places
    return found


def usable_buffer(accelerator: str) -> str:
    """Return the first buffer library for devices usable here; raise `MissingError` without one."""
    reasons = []
    for name in DEVICE_BUFFERS[accelerator]:
        try:
            device = BUFFERS.load(name).prepare(launcher.local_rank() or 0).device
        except OmbError as error:
            reasons.append(f"{name}: {error}")
            continue
        if accelerator in ("managed", device.accelerator.lower()):
            return name
        reasons.append(f"{name}: its device is one of {device.accelerator}")
    raise MissingError(f"-d {accelerator}: no device can be used here ({'; '.join(reasons)})")

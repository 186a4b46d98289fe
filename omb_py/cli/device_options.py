"""The options for messages on a device, one row each."""

from __future__ import annotations

import click

from omb_py.cli.option_row import FLAG, OptionRow
from omb_py.cli.parameters import Devices
from omb_py.core.errors import UsageError

INSTEAD_OF_ACCELERATORS = {
    "cuda": "--buffer cupy (or numba, pycuda, torch) puts messages on a device",
    "managed": "--buffer cupy --managed puts messages into managed memory",
}
"""What does here what native OMB's ``-d`` does."""


def refuse_accelerator(ctx: click.Context, parameter: click.Parameter, text: str | None) -> None:
    """Raise `UsageError` for ``-d``, which says how to choose a device here."""
    if text is not None:
        known = INSTEAD_OF_ACCELERATORS.get(text.lower(), "omb-py measures NVIDIA devices alone")
        raise UsageError(f"-d {text}: {known}")


DEVICE_OPTIONS: tuple[OptionRow, ...] = (
    OptionRow(
        ("-d", "--accelerator"),
        {"callback": refuse_accelerator, "expose_value": False, "hidden": True},
    ),
    OptionRow(
        ("--device", "devices"),
        {
            "type": Devices(),
            "default": (),
            "show_default": "all visible",
            "metavar": "N,N,…",
            "help": "Devices that the ranks of a node take in turn.",
        },
    ),
    OptionRow(
        ("--managed",),
        FLAG | {"help": "Managed memory, whose pages move between host and device."},
        sized=True,
    ),
    OptionRow(
        ("--gpu-aware",),
        {
            "type": click.Choice(["auto", "yes", "no"]),
            "default": "auto",
            "help": "Whether MPI takes memory on a device; auto asks the library. A wrong yes "
            "crashes.",
        },
        sized=True,
    ),
    OptionRow(
        ("--staging",),
        FLAG
        | {"help": "Copy messages on a device through page-locked host memory, inside the time."},
        sized=True,
    ),
    OptionRow(
        ("--stream-sync",),
        FLAG
        | {"help": "Wait for the device's stream before each iteration's calls, inside the time."},
        sized=True,
    ),
)

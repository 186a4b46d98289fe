"""The options for messages on a device, one row each."""

from __future__ import annotations

import click

from omb_py.cli.option_row import FLAG, OptionRow
from omb_py.cli.parameters import Devices

DEVICE_OPTIONS: tuple[OptionRow, ...] = (
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

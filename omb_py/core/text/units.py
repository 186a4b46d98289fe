"""Sizes, times and rates as people write them."""

from __future__ import annotations

from math import floor, log10

BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(nbytes: float) -> str:
    """A message size, in binary units where it is a whole number of them.

    >>> size_text(65536), size_text(1000), size_text(1536), size_text(0)
    ('64 KiB', '1000 B', '1.5 KiB', '0 B')
    """
    value, unit = float(nbytes), 0
    while value >= 1024 and value % 512 == 0 and unit < len(BINARY) - 1:
        value /= 1024
        unit += 1
    return f"{value:g} {BINARY[unit]}" if value < 1e6 else f"{value:.0f} {BINARY[unit]}"


def digits(value: float, significant: int = 3) -> str:
    """A number with so many significant digits and no exponent, never fewer than its integer part.

    >>> digits(0.012345), digits(1234.5), digits(1.5), digits(0.0)
    ('0.0123', '1234', '1.50', '0')
    """
    if value == 0 or value != value:
        return "0" if value == 0 else "-"
    return f"{value:.{max(0, significant - 1 - floor(log10(abs(value))))}f}"


def value_text(value: float, unit: str) -> str:
    """A value with its unit, scaled to what one reads at a glance; rates are decimal.

    >>> value_text(1500.0, "us"), value_text(0.25, "us"), value_text(12500.0, "MB/s")
    ('1.50 ms', '250 ns', '12.5 GB/s')
    """
    steps = {
        "us": ((1e6, "s"), (1e3, "ms"), (1, "µs"), (1e-3, "ns")),
        "MB/s": ((1e6, "TB/s"), (1e3, "GB/s"), (1, "MB/s"), (1e-3, "kB/s")),
        "msg/s": ((1e9, "G msg/s"), (1e6, "M msg/s"), (1e3, "k msg/s"), (1, "msg/s")),
    }[unit]
    scale, name = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    return f"{digits(value / scale)} {name}"

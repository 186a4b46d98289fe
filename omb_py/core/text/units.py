"""Sizes, times and rates as people write them, and numbers as options have them.

Options have one notation everywhere, in digits of ASCII.
"""

from __future__ import annotations

import re
from math import floor, log10
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from numpy import ndarray

BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

Steps: TypeAlias = tuple[tuple[float, str], ...]

STEPS: dict[str, Steps] = {
    "us": ((1e6, "s"), (1e3, "ms"), (1, "µs"), (1e-3, "ns")),
    "MB/s": ((1e6, "TB/s"), (1e3, "GB/s"), (1, "MB/s"), (1e-3, "kB/s")),
    "msg/s": ((1e9, "G msg/s"), (1e6, "M msg/s"), (1e3, "k msg/s"), (1, "msg/s")),
}
"""Units of values, the largest first, and how many of that in which results have them each is."""

Ratio = TypeVar("Ratio", float, "ndarray[Any, Any]")


def is_time(unit: Any) -> Any:
    """Return whether a unit, or each of a column, is that of times, of which the lower is better.

    Of bandwidths and rates the higher is better.
    """
    return unit == "us"


def slowdown(ratio: Ratio, unit: str) -> Ratio:
    """Return how many times slower a value is than another, by their ratio: its inverse for rates.

    >>> slowdown(2.0, "us"), slowdown(2.0, "MB/s")
    (2.0, 0.5)
    """
    return ratio if is_time(unit) else 1 / ratio


def size_text(nbytes: float) -> str:
    """Return a message size, in binary units if it is a whole number of them.

    >>> size_text(65536), size_text(1000), size_text(1536), size_text(0)
    ('64 KiB', '1000 B', '1.5 KiB', '0 B')
    """
    value, unit = float(nbytes), 0
    while value >= 1024 and value % 512 == 0 and unit < len(BINARY) - 1:
        value /= 1024
        unit += 1
    return f"{value:g} {BINARY[unit]}" if value < 1e6 else f"{value:.0f} {BINARY[unit]}"


def digits(value: float, significant: int = 3) -> str:
    """Return a number with ``significant`` digits and no exponent, its whole part complete.

    >>> digits(0.012345), digits(1234.5), digits(1.5), digits(0.0)
    ('0.0123', '1234', '1.50', '0')
    >>> digits(9.998), digits(0.9996)
    ('10.0', '1.00')
    """
    if value == 0 or value != value:
        return "0" if value == 0 else "-"
    rounded = float(f"{value:.{significant - 1}e}")
    return f"{value:.{max(0, significant - 1 - floor(log10(abs(rounded))))}f}"


def value_text(value: float, unit: str) -> str:
    """Return a value with its unit, scaled to what one reads at a glance; rates are decimal.

    >>> value_text(1500.0, "us"), value_text(0.25, "us"), value_text(12500.0, "MB/s")
    ('1.50 ms', '250 ns', '12.5 GB/s')
    """
    scale, name = unit_of(value, STEPS[unit])
    return f"{digits(value / scale)} {name}"


def unit_of(value: float, steps: Steps) -> tuple[float, str]:
    """Return the largest unit that is not above a value, else the smallest."""
    return next((step for step in steps if abs(value) >= step[0]), steps[-1])


def number(value: float | None) -> str:
    """Return a whole number with blanks between thousands; a dash for None.

    >>> number(1234567.2), number(None)
    ('1 234 567', '-')
    """
    return "-" if value is None else f"{round(value):,}".replace(",", " ")


def amount(nbytes: float | None) -> str:
    """Return bytes in words, with three digits unless they are a whole number of a unit.

    >>> amount(10485760), amount(10551296), amount(None)
    ('10 MiB', '10.1 MiB', '-')
    """
    if nbytes is None:
        return "-"
    value, unit = float(round(nbytes)), 0
    exact = size_text(value)
    if len(exact) <= len("1023 KiB"):
        return exact
    while value >= 1024 and unit < len(BINARY) - 1:
        value, unit = value / 1024, unit + 1
    return f"{digits(value)} {BINARY[unit]}"


def scaled(value: float, unit: str = "") -> str:
    """Return a number with three digits at most before its unit.

    >>> scaled(0), scaled(1234), scaled(56_700_000, "B/s")
    ('0', '1.23 k', '56.7 MB/s')
    """
    for factor, prefix in DECIMAL:
        if value >= 0.9995 * factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{round(value, 2):.3g} {unit}".rstrip()


def duration(seconds: float) -> str:
    """Return a time for people.

    >>> duration(0.25), duration(12.3), duration(75), duration(7300)
    ('0.2 s', '12.3 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{max(0.0, seconds):.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def share_text(share: float | None) -> str:
    """Return a share in percent; empty if it is not known.

    >>> share_text(0.256), share_text(None)
    ('26 %', '')
    """
    return "" if share is None else f"{100 * share:.0f} %"


MEBIBYTE = 1 << 20
UNITS = {"": 1, "K": 1 << 10, "M": MEBIBYTE, "G": 1 << 30}

LARGEST = (1 << 63) - 1
"""The largest number that an option may have: what C counts with."""

DECIMAL_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def parse_whole(text: str) -> int:
    """Return a whole number in decimal digits of ASCII, without blanks or underscores.

    Raises `ValueError` for another text, or a number that C cannot count with.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text!r} is not a whole number")
    digits = digits.lstrip("0") or "0"  # Python's int() takes 4300 digits, zeros in front included
    if len(digits) > len(str(LARGEST)) or int(digits) > LARGEST:
        raise ValueError(f"{text} is too large: the largest number is {LARGEST}")
    return -int(digits) if text.startswith("-") else int(digits)


def parse_count(text: str) -> int:
    """Return a whole number from 0 on; raise `ValueError` for another text."""
    if text.startswith("-"):
        raise ValueError(f"{text!r} is not a whole number from 0 on")
    return parse_whole(text)


def parse_decimal(text: str) -> float:
    """Return a finite number such as ``2``, ``0.5`` or ``1e-3``, without blanks and underscores.

    Raises `ValueError` for another text.
    """
    if DECIMAL_NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a number")
    number = float(text)
    if number - number != 0:
        raise ValueError(f"{text} is too large")
    return number


def parse_bytes(text: str) -> int:
    """Return a number of bytes, with K, M or G for binary multiples.

    Raises `ValueError` for another text, or a number that C cannot count with.
    """
    number = text.upper().removesuffix("B").removesuffix("I")
    unit = number[-1:] if number[-1:] in UNITS else ""
    digits = number.removesuffix(unit) if unit else number
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text!r} is not a number of bytes, such as 0, 65536 or 64K")
    nbytes = parse_whole(digits) * UNITS[unit]
    if nbytes > LARGEST:
        raise ValueError(f"{text} is too large: the largest number is {LARGEST}")
    return nbytes

"""Numbers as options have them: one notation everywhere, in digits of ASCII."""

from __future__ import annotations

import re

MEBIBYTE = 1 << 20
UNITS = {"": 1, "K": 1 << 10, "M": MEBIBYTE, "G": 1 << 30}

LARGEST = (1 << 63) - 1
"""The largest number that an option may have: what C counts with."""

DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


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
    if DECIMAL.fullmatch(text) is None:
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

"""Numbers as options have them, and as people read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omb_py.core.text.units import (
    LARGEST,
    parse_bytes,
    parse_count,
    parse_decimal,
    parse_whole,
    share_text,
)

FOREIGN = ("", " 2", "2 ", "1_000", "٣", "²", "0x10", "two")
"""Texts that are no number in any option; Python takes some of them for one."""


@pytest.mark.parametrize(
    ("parse", "text", "number"),
    [
        *((parse_whole, "-12", -12), (parse_whole, "0012", 12), (parse_whole, "0", 0)),
        *((parse_whole, str(LARGEST), LARGEST), (parse_count, "12", 12)),
        *((parse_decimal, "2", 2.0), (parse_decimal, "-.5", -0.5), (parse_decimal, "+1.", 1.0)),
        *((parse_decimal, "1E-3", 0.001), (parse_decimal, "2.5e+2", 250.0)),
        *(
            (parse_bytes, "65536", 65536),
            (parse_bytes, "64K", 65536),
            (parse_bytes, "1MiB", 1 << 20),
        ),
        *((parse_bytes, "2gb", 2 << 30), (parse_bytes, "0", 0)),
    ],
)
def test_text_of_an_option_is_its_number(
    parse: Callable[[str], float], text: str, number: float
) -> None:
    assert parse(text) == number


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse, text) for parse in (parse_whole, parse_count, parse_bytes) for text in FOREIGN),
        *((parse_decimal, text) for text in FOREIGN),
        *((parse_decimal, text) for text in (".", "1e", "nan", "inf", "1e999", "-1e999", "1.2.3")),
        *((parse_whole, text) for text in ("--1", "+1", "1.0", str(LARGEST + 1))),
        *((parse_count, "-1"), (parse_bytes, "-1"), (parse_bytes, "1T"), (parse_bytes, "K")),
        *((parse_bytes, f"{LARGEST}K"), (parse_bytes, "1.5K")),
    ],
)
def test_text_that_is_no_number_of_an_option_is_refused(
    parse: Callable[[str], float], text: str
) -> None:
    with pytest.raises(ValueError, match=r"number|too large"):
        parse(text)


def test_unknown_share_is_empty() -> None:
    assert [share_text(share) for share in (None, 0.0, 0.256, 1.0)] == ["", "0 %", "26 %", "100 %"]

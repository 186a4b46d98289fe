"""Durations, names, and what may not stand in a configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from omb_py.sweeps.field_types import Duration, EnvironmentName, Line, Name, Word, clock, seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(90, 90), ("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400)],
        *[("0:30:00", 1800), ("01:30", 90), ("25 m", 1500)],
        *[("1h30m", 5400), ("1d12h", 129_600), ("1h0.5m2s", 3632), ("1h 30m", 5400)],
    ],
)
def test_durations(text: str | int, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((Duration, text) for text in ("", "soon", "0", "-5", "1:2:3:4", "1:x", "5 weeks")),
        *((Duration, value) for value in (True, None, "30m1h", "1h30", "1h1h", "1h30m:00")),
        *((EnvironmentName, name) for name in ("A B", "A=B", "1A", "", "A-B", "Ä", "A\n")),
    ],
)
def test_wrong_value_refused(kind: Any, value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(value)


@given(st.integers(1, 359_999))
def test_a_duration_is_read_as_schedulers_write_it(value: int) -> None:
    assert seconds(clock(value)) == value


@given(st.text())
def test_words_and_names_hold_nothing_that_a_shell_knows(text: str) -> None:
    for kind in (Word, Name):
        try:
            found = TypeAdapter(kind).validate_python(text)
        except ValidationError:
            continue
        assert found
        assert not set(found) & set(" \t\r\n\0'\"`$\\;&|<>(){}[]*?!#%")


@given(st.text())
def test_a_line_is_one_line(text: str) -> None:
    try:
        found = TypeAdapter(Line).validate_python(text)
    except ValidationError:
        return
    assert len(found.splitlines()) <= 1
    assert "\0" not in found

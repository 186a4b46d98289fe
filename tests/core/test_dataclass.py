"""Frozen data classes without generated code behave as those of `dataclasses` do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core import dataclass as ours


@ours.dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    scale: Callable[[int], int] = lambda number: number
    tags: dict[str, int] = ours.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x")


@ours.dataclass(frozen=True)
class Named(Point):
    name: str = ""


@ours.dataclass(frozen=True, eq=False)
class Slot:
    count: int = 1


@pytest.mark.slow
@given(st.integers(0), st.integers(), st.dictionaries(st.text(), st.integers()))
def test_fields_by_position_by_name_and_by_default(x: int, y: int, tags: dict[str, int]) -> None:
    assert (Point(x).x, Point(x).y, Point(x).tags) == (x, 2, {})
    assert Point(x).tags is not Point(x).tags
    assert Point(x, y, tags=tags) == Point(tags=tags, y=y, x=x)
    assert Point(x, y).scale(5) == 5
    assert Named(x, name="n").name == "n"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Point(), "needs 'x'"),  # type: ignore[call-arg]
        (lambda: Point(1, x=2), "cannot take 'x'"),  # type: ignore[misc]
        (lambda: Point(1, z=2), "cannot take 'z'"),  # type: ignore[call-arg]
        (lambda: Slot(1, 2), "fewer values"),  # type: ignore[call-arg]
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], what: str) -> None:
    with pytest.raises(TypeError, match=what):
        make()


def test_objects_are_frozen_and_checked() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        del Point(1).x
    with pytest.raises(ValueError, match="x"):
        Point(-1)


@given(st.integers(0), st.integers(0))
def test_equality_and_hash_are_those_of_the_fields(one: int, other: int) -> None:
    assert (Point(one) == Point(other)) is (one == other)
    assert hash(Point(one, tags={"a": 1})) == hash(Point(one))
    assert Point(one) != Named(one)
    assert Slot(one) != Slot(one)
    assert len({Slot(one), Slot(one)}) == 2


def test_what_dataclasses_offers_works_on_them() -> None:
    point = Named(1, name="n")
    assert [one.name for one in dataclasses.fields(Named)] == ["x", "y", "scale", "tags", "name"]
    assert {one.name: one.type for one in dataclasses.fields(point)}["tags"] == "dict[str, int]"
    assert dataclasses.fields(Named)[0] is dataclasses.fields(point)[0], "made once"
    assert dataclasses.is_dataclass(point)
    assert dataclasses.replace(point, y=3) == ours.replace(point, y=3) == Named(1, 3, name="n")
    assert dataclasses.asdict(Slot(2)) == ours.values(Slot(2)) == {"count": 2}
    assert repr(Slot(2)) == "Slot(count=2)"


def test_a_field_may_have_any_name() -> None:
    @ours.dataclass(frozen=True)
    class Odd:
        record: int
        values: int = 0

    assert ours.replace(Odd(1), record=2, values=3) == Odd(2, 3)


def test_a_data_class_can_extend_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class Wide(Slot):
        width: int = 3

    assert Wide(1, 2).width == 2


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_copies_are_equal(copied: Callable[[Any], Any]) -> None:
    assert copied(Slot(4)).count == 4

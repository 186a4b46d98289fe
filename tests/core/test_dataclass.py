"""Frozen data classes without generated code behave as those of `dataclasses` do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

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
    record: int = 1
    values: int = 0


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Point(), TypeError, "needs 'x'"),  # type: ignore[call-arg]
        (lambda: Point(1, x=2), TypeError, "cannot take 'x'"),  # type: ignore[misc]
        (lambda: Point(1, z=2), TypeError, "cannot take 'z'"),  # type: ignore[call-arg]
        (lambda: Slot(1, 2, 3), TypeError, "fewer values"),  # type: ignore[call-arg]
        (lambda: setattr(Point(1), "x", 2), AttributeError, "frozen"),
        (lambda: delattr(Point(1), "x"), AttributeError, "frozen"),
        (lambda: Point(-1), ValueError, "x"),
    ],
)
def test_wrong_argument_or_change_refused(
    make: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()


def test_fields_are_set_by_position_name_or_default() -> None:
    assert (Point(1).y, Point(1).scale(5), Point(1).tags) == (2, 5, {})
    assert Point(1).tags is not Point(1).tags
    assert Point(1, 3, tags={"a": 1}) == Point(tags={"a": 1}, y=3, x=1) != Point(1, 3)
    assert Named(1, name="n").name == "n"


def test_equality_and_hash_are_those_of_the_fields() -> None:
    assert Point(1) == Point(1) != Point(2)
    assert hash(Point(1, tags={"a": 1})) == hash(Point(1)) != hash(Point(2))
    assert Point(1) != Named(1)
    assert len({Slot(1), Slot(1)}) == 2


def test_what_dataclasses_offers_works_on_them() -> None:
    @dataclasses.dataclass(frozen=True)
    class Wide(Slot):
        width: int = 3

    point = Named(1, name="n")
    assert [one.name for one in dataclasses.fields(Named)] == ["x", "y", "scale", "tags", "name"]
    assert {one.name: one.type for one in dataclasses.fields(point)}["tags"] == "dict[str, int]"
    assert dataclasses.replace(point, y=3) == ours.replace(point, y=3) == Named(1, 3, name="n")
    assert dataclasses.asdict(Slot(2)) == ours.values(Slot(2)) == {"record": 2, "values": 0}
    assert repr(ours.replace(Slot(1), record=2, values=3)) == "Slot(record=2, values=3)"
    assert (Wide(1, 2).values, Wide(1, 2).width) == (2, 3)
    for copied in (copy.copy(Slot(4)), copy.deepcopy(Slot(4)), pickle.loads(pickle.dumps(Slot(4)))):
        assert copied.record == 4

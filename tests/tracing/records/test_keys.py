"""Keys of communicators, which all members find alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omb_py.tracing.records.layout import communicator_key


def test_a_key_is_the_hash_that_is_documented() -> None:
    # FNV-1a of nothing and of "0", as its authors list them
    assert communicator_key([], 1) == "cbf29ce484222325#1"
    assert communicator_key([0], 2) == "af63ad4c86019caf#2"


@given(st.lists(st.integers(0, 5000), unique=True), st.integers(1, 9))
def test_members_in_another_order_are_another_communicator(members: list[int], one: int) -> None:
    other = members[::-1]
    assert (communicator_key(members, one) == communicator_key(other, one)) == (members == other)
    assert communicator_key(members, one) != communicator_key(members, one + 1)

"""Unequal blocks: shares by Zipf's law or a matrix, and their whole elements."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.calls.skew import Skew, parse_skew, read_matrix
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

RANKS = st.integers(1, 40)


@given(RANKS, st.floats(0, 1), st.integers(0, 100))
def test_busiest_rank_has_the_factor_and_the_mean_is_one(
    ranks: int, part: float, seed: int
) -> None:
    factor = 1 + part * (ranks - 1)
    shares = Skew("", factor, seed).shares(ranks)
    assert max(shares) == pytest.approx(factor, rel=1e-6)
    assert sum(shares) == pytest.approx(ranks)


def test_seed_chooses_the_busiest_rank_and_repeats_it() -> None:
    shares = [Skew("", 3.0, seed).shares(8) for seed in range(20)]
    assert len({one.index(max(one)) for one in shares}) > 3
    assert shares[7] == Skew("", 3.0, 7).shares(8)
    assert len({tuple(sorted(one)) for one in shares}) == 1


@given(RANKS, st.integers(0, 1000), st.floats(0, 1))
def test_elements_are_all_shared_out(ranks: int, elements: int, part: float) -> None:
    skew = Skew("", 1 + part * (ranks - 1))
    assert sum(skew.of_ranks(elements, ranks)) == elements * ranks


@given(st.integers(1, 8), st.integers(0, 100), st.randoms(use_true_random=False))
def test_what_ranks_send_is_what_others_receive(ranks: int, elements: int, random: object) -> None:
    whole = [[(3 * i + 5 * j + 1) % 7 for j in range(ranks)] for i in range(ranks)]
    whole[0][0] = 1
    for skew in (Skew("", float(ranks)), Skew("", matrix=tuple(map(tuple, whole)))):
        sent = [skew.sent(rank, elements, ranks) for rank in range(ranks)]
        received = [skew.received(rank, elements, ranks) for rank in range(ranks)]
        assert [tuple(column) for column in zip(*sent, strict=True)] == received


@pytest.mark.parametrize(
    ("matrix", "busiest", "largest"),
    [
        (((1, 1), (1, 1)), 1.0, 1.0),
        (((0, 8), (0, 0)), 4.0, 2.0),
        (((9, 0), (0, 9)), 0.0, 1.0),
    ],
)
def test_busiest_rank_of_a_matrix_leaves_out_its_own_block(
    matrix: tuple[tuple[int, ...], ...], busiest: float, largest: float
) -> None:
    skew = Skew("", matrix=matrix)
    assert (skew.busiest(2), skew.largest(2)) == (busiest, largest)


def test_equal_blocks_have_the_factor_of_nccl_tests() -> None:
    assert Skew("", 1.0).busiest(4) == 3.0


def test_bytes_of_a_matrix_are_sent_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("# router\n0, 64, 128\n1 2 3\n\n0,0,702\n")
    skew = read_matrix(str(tmp_path / "m.csv"))
    assert (skew.text, skew.mean) == ("m.csv", 100)
    assert [skew.sent(rank, 100, 3) for rank in range(3)] == [(0, 64, 128), (1, 2, 3), (0, 0, 702)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2\n3\n", "no square"),
        ("", "no square"),
        ("0,0\n0,0\n", "no rank sends"),
        ("1,x\n1,1\n", "line 1"),
        ("1,-1\n1,1\n", "below 0"),
    ],
)
def test_file_without_a_matrix_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "m.csv").write_text(text)
    with refuses(UsageError, f"m.csv {words}"):
        read_matrix(str(tmp_path / "m.csv"))


@pytest.mark.parametrize("text", ["0.5", "x", "2:", "2:x", "nan"])
def test_text_without_a_skew_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_skew(text)


@pytest.mark.parametrize("skew", [Skew("5", 5.0), Skew("m.csv", matrix=((1, 1), (1, 1)))])
def test_shares_that_ranks_cannot_have_are_refused(skew: Skew) -> None:
    with refuses(UsageError, f"{skew.text} {4}"):
        skew.check(4)

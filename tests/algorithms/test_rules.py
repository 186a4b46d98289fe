"""Files of rules, written and read as the library reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from omb_py.algorithms import library
from omb_py.algorithms.rules import Choice, LibraryBuild, Rule, rules_format
from omb_py.core.errors import OmbError, UsageError

OPEN_MPI = LibraryBuild("Open MPI", (5, 0, 11))
COMPOSITIONS: dict[str, dict[str, Any]] = {
    "collective=allreduce": {
        "comm_type=intra": {"composition=MPIDI_Allreduce_intra_composition_alpha": {}}
    }
}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "collective=bcast": {
        "comm_type=intra": {"algorithm=MPIR_Bcast_intra_binomial": {}},
        "comm_type=inter": {"algorithm=MPIR_Bcast_inter_remote_send_local_bcast": {}},
    },
    "collective=allreduce": {
        "comm_type=intra": {
            "avg_msg_size<=8": {"algorithm=MPIR_Allreduce_intra_recursive_doubling": {}},
            "avg_msg_size=any": {"algorithm=MPIR_Allreduce_intra_smp": {}},
        }
    },
    "collective=reduce": {
        "comm_type=intra": {
            "comm_size<8": {"avg_msg_size=any": {"algorithm=MPIR_Reduce_intra_binomial": {}}},
            "comm_size=any": {"algorithm=MPIR_Reduce_intra_smp": {}},
        }
    },
    "collective=allgather": {
        "comm_type=intra": {"algorithm=MPIR_Allgather_intra_brucks": {}},
    },
}


@pytest.fixture
def mpich(tmp_path: Path) -> LibraryBuild:
    """A file of code in which a library's trees stand as text, and its build."""
    texts = [json.dumps(tree, separators=(",", ":")) for tree in (COMPOSITIONS, ALGORITHMS)]
    code = b"\x7fELF\0" + b"\0".join(text.encode() for text in texts) + b"\0more\0"
    (tmp_path / "libmpi.so.12").write_bytes(code)
    return LibraryBuild("MPICH", (5, 0, 2), tmp_path / "libmpi.so.12")


def rule(build: LibraryBuild, function: str, ranks: int, sizes: str, word: str) -> Rule:
    first, last = map(int, sizes.split("-"))
    return Rule(function, ranks, first, last, library(build.name).algorithm(function, word))


def written(build: LibraryBuild, *rules: Rule) -> tuple[str, ...]:
    return rules_format(build.name).write(rules, ["about them"], build)


def choice_of(build: LibraryBuild, *rules: Rule) -> Choice:
    return rules_format(build.name).read(written(build, *rules))


def at(choice: Choice, function: str, ranks: int, sizes: Sequence[int]) -> list[str | None]:
    return [choice(function, ranks, size) for size in sizes]


def test_open_mpi_takes_a_rule_inside_its_sizes_and_nowhere_else() -> None:
    choice = choice_of(OPEN_MPI, rule(OPEN_MPI, "allreduce", 4, "1024-65536", "ring"))
    assert at(choice, "allreduce", 4, [1023, 1024, 65536, 65537]) == [None, "4", "4", None]
    assert [choice("allreduce", ranks, 2048) for ranks in (2, 3, 5, 8)] == [None] * 4
    assert choice("bcast", 4, 2048) is None


def test_open_mpi_takes_rules_that_follow_each_other() -> None:
    rules = [
        rule(OPEN_MPI, "bcast", 4, "1-1023", "binomial"),
        rule(OPEN_MPI, "bcast", 4, "1024-4096", "chain"),
        rule(OPEN_MPI, "bcast", 5, "8-64", "binary"),
    ]
    choice = choice_of(OPEN_MPI, *rules)
    assert at(choice, "bcast", 4, [0, 1, 1023, 1024, 4097]) == [None, "6", "6", "2", None]
    assert at(choice, "bcast", 5, [4, 8, 65]) == [None, "5", None]
    assert choice("bcast", 6, 8) is None


def test_open_mpi_compares_blocks_of_all_ranks_for_allgather() -> None:
    (text,) = written(OPEN_MPI, rule(OPEN_MPI, "allgather", 4, "1024-4095", "ring"))
    assert "4096 4 4 0 0  # ring\n16384 0 4 0 0\n" in text


def test_open_mpi_compares_the_mean_block_for_allgatherv() -> None:
    (text,) = written(OPEN_MPI, rule(OPEN_MPI, "allgatherv", 4, "1024-4095", "ring"))
    assert "1024 3 4 0 0  # ring\n4096 0 4 0 0\n" in text


def test_open_mpi_has_a_rule_of_barrier_for_the_size_that_it_sees() -> None:
    choice = choice_of(OPEN_MPI, rule(OPEN_MPI, "barrier", 4, "0-0", "double_ring"))
    assert (choice("barrier", 4, 0), choice("barrier", 5, 0)) == ("2", None)


def test_open_mpi_gets_the_segment_of_an_algorithm() -> None:
    (text,) = written(OPEN_MPI, rule(OPEN_MPI, "bcast", 4, "1024-4096", "pipeline:8192"))
    assert "1024 3 4 8192 0  # pipeline:8192\n" in text


def test_open_mpi_before_5_0_7_gets_the_format_without_a_version() -> None:
    older = LibraryBuild("Open MPI", (5, 0, 6))
    (text,) = written(older, rule(older, "allreduce", 4, "1024-65536", "ring"))
    assert text.startswith("# about them\n1  # collectives\n")
    assert "1024 4 4 0  # ring\n" in text


def test_open_mpi_applies_the_first_entry_to_smaller_communicators() -> None:
    choice = rules_format("Open MPI").read(["1 2 1 8 1 0 4 0 0"])
    assert (choice("allreduce", 2, 8), choice("allreduce", 64, 8)) == ("4", "4")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it ends without the number of collectives"),
        ("1 2 1 4 1 0 4 0", "it ends without the bytes of a segment"),
        ("1 2 1 4 1 8 4 0 0", "the first message size of collective 2 on 4 ranks is 8"),
        ("23", "line 1: 23 for the number of collectives"),
        ("1\n# a comment 7\n22 1", "line 3: 22 for a collective"),
    ],
)
def test_file_that_open_mpi_ignores_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        rules_format("Open MPI").read([text])


def test_mpich_takes_a_rule_inside_its_sizes_and_its_own_tree_elsewhere(
    mpich: LibraryBuild,
) -> None:
    choice = choice_of(mpich, rule(mpich, "allreduce", 4, "1024-65536", "ring"))
    own = "smp"
    assert at(choice, "allreduce", 4, [8, 1023, 1024, 65536, 65537]) == [
        *("recursive_doubling", own, "ring", "ring", own)
    ]
    assert [choice("allreduce", ranks, 2048) for ranks in (2, 3, 5)] == [own] * 3
    assert choice("bcast", 4, 2048) == "binomial"


def test_mpich_asks_what_an_algorithm_needs_of_a_call(mpich: LibraryBuild) -> None:
    _, text = written(mpich, rule(mpich, "allreduce", 4, "1024-65536", "rabenseifner"))
    branch = json.loads(text)["collective=allreduce"]["comm_type=intra"]["comm_size<=4"]
    assert list(branch) == ["is_op_built_in=yes", "is_op_built_in=no"]
    assert list(branch["is_op_built_in=yes"]) == ["count<pow2", "count=any"]
    own = ALGORITHMS["collective=allreduce"]["comm_type=intra"]
    assert branch["is_op_built_in=no"] == branch["is_op_built_in=yes"]["count<pow2"] == own


def test_mpich_hands_calls_with_a_rule_on_to_the_tree_of_algorithms(mpich: LibraryBuild) -> None:
    text, _ = written(mpich, rule(mpich, "allreduce", 4, "1024-65536", "ring"))
    tree = json.loads(text)["collective=allreduce"]["comm_type=intra"]
    own = COMPOSITIONS["collective=allreduce"]["comm_type=intra"]
    assert tree["comm_size<=3"] == tree["comm_size=any"] == own
    sizes = tree["comm_size<=4"]["is_op_built_in=yes"]["count=any"]
    assert sizes["avg_msg_size<=1023"] == own
    assert sizes["avg_msg_size<=65536"] == {
        "composition=MPIDI_Allreduce_intra_composition_beta": {}
    }


def test_mpich_asks_for_the_communicator_before_the_call(mpich: LibraryBuild) -> None:
    """As in its own trees: what it asks then is answered once for a communicator."""
    _, text = written(mpich, rule(mpich, "reduce", 4, "1024-4095", "rabenseifner"))
    branch = json.loads(text)["collective=reduce"]["comm_type=intra"]["comm_size<=4"]
    assert list(branch) == ["comm_size<8", "comm_size=any"]
    assert list(branch["comm_size<8"]) == ["is_op_built_in=yes", "is_op_built_in=no"]
    binomial: dict[str, Any] = {"algorithm=MPIR_Reduce_intra_binomial": {}}
    assert branch["comm_size<8"]["is_op_built_in=no"] == binomial


def test_mpich_compares_blocks_of_all_ranks_for_allgather(mpich: LibraryBuild) -> None:
    _, text = written(mpich, rule(mpich, "allgather", 4, "1024-4095", "ring"))
    branch = json.loads(text)["collective=allgather"]["comm_type=intra"]["comm_size<=4"]
    assert list(branch) == ["total_msg_size<=4092", "total_msg_size<=16380", "total_msg_size=any"]


def test_mpich_gets_every_key_of_a_tree_that_cuts_messages(mpich: LibraryBuild) -> None:
    _, text = written(mpich, rule(mpich, "bcast", 4, "1024-4095", "pipelined_binary:2048"))
    tree = json.loads(text)["collective=bcast"]
    found = tree["comm_type=intra"]["comm_size<=4"]["avg_msg_size<=4095"]
    keys = ["is_non_blocking=1", "recv_pre_posted=0", "tree_type=kary", "k=2", "chunk_size=2048"]
    assert found == {"algorithm=MPIR_Bcast_intra_pipelined_tree": {key: {} for key in keys}}
    assert tree["comm_type=inter"] == ALGORITHMS["collective=bcast"]["comm_type=inter"]


def test_mpich_without_trees_in_its_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "libmpi.so").write_bytes(b"nothing of the kind")
    build = LibraryBuild("MPICH", (3, 0), tmp_path / "libmpi.so")
    with pytest.raises(OmbError, match=r"has no trees of MPICH 3\.0"):
        written(build)


@pytest.mark.parametrize("text", ["{", '{"collective=allreduce": {"rank=3": {}}}'])
def test_file_that_mpich_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="MPICH cannot read this file"):
        rules_format("MPICH").read([text])("allreduce", 4, 8)


def test_library_without_rules_is_refused() -> None:
    with pytest.raises(UsageError, match="Intel MPI has no file of rules"):
        rules_format("Intel MPI")

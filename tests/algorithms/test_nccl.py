"""NCCL's algorithms by name, and the file of its example tuner, without a device."""

from __future__ import annotations

import os

import pytest

from omb_py.algorithms.nccl import LIBRARY
from omb_py.algorithms.rules import LibraryBuild, Rule, rules_format
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.options import Options
from omb_py.measure.library_algorithm import STARTED_WITH, request

BUILD = LibraryBuild("NCCL", (2, 30, 0))


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of NCCL, nor what a request adds."""
    for name in ("NCCL_ALGO", "NCCL_PROTO"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr("omb_py.measure.library_algorithm.STARTED_WITH", set(STARTED_WITH))


@pytest.mark.parametrize(
    ("word", "variables"),
    [
        ("ring", {"NCCL_ALGO": "Ring"}),
        ("tree_ll", {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}),
        ("nvls-tree-simple", {"NCCL_ALGO": "NVLSTree", "NCCL_PROTO": "Simple"}),
    ],
)
def test_word_sets_variables_of_nccl_before_it_starts(word: str, variables: dict[str, str]) -> None:
    request("allreduce", word, Options(binding="nccl"))
    assert {name: os.environ[name] for name in os.environ if name in variables} == variables


def test_variable_with_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    with pytest.raises(UsageError, match="NCCL_ALGO=Tree is set, but --coll-algorithm ring needs"):
        request("allreduce", "ring", Options(binding="nccl"))


def test_word_that_a_function_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="NCCL has no algorithm 'tree' for MPI_Bcast"):
        request("bcast", "tree", Options(binding="nccl"))


@pytest.mark.parametrize("backend", [None, "gloo"])
def test_torch_without_nccl_has_no_algorithms(backend: str | None) -> None:
    with pytest.raises(UnsupportedError, match="torch's gloo has no algorithms to choose from"):
        request("allreduce", "ring", Options(binding="torch", backend=backend))


def test_tuner_takes_a_rule_inside_its_sizes_on_its_ranks() -> None:
    rules = [
        Rule("allreduce", 8, 1024, 65536, LIBRARY.algorithm("allreduce", "tree_ll")),
        Rule("allgather", 8, 1024, 65536, LIBRARY.algorithm("allgather", "ring_simple")),
    ]
    form = rules_format("NCCL")
    (text,) = form.write(rules, ["about"], BUILD)
    assert "# omb-py did not try this file: it was written without two GPUs\n" in text
    assert "\nallreduce,1024,65536,tree,ll,-1,-1,8\n" in text
    assert "\nallgather,8192,524288,ring,simple,-1,-1,8\n" in text
    choice = form.read([text])
    sizes = (1023, 1024, 65536, 65537)
    assert [choice("allreduce", 8, size) for size in sizes] == [None, "Tree", "Tree", None]
    assert (choice("allgather", 8, 1024), choice("allreduce", 4, 1024)) == ("Ring", None)


def test_tuner_takes_the_first_line_that_fits() -> None:
    lines = ["reduce,0,10,ring,ll,-1,-1,-1", "reduce,0,99,tree,simple,4,2,-1,1,0"]
    choice = rules_format("NCCL").read(["\n".join(lines)])
    assert [choice("reduce", 2, size) for size in (10, 11)] == ["Ring", "Tree"]


def test_line_that_the_tuner_skips_is_refused() -> None:
    with pytest.raises(UsageError, match="skips line 2 of this file: allreduce,0,1,star,ll"):
        rules_format("NCCL").read(["# a comment\nallreduce,0,1,star,ll,-1,-1,-1\n"])


def test_rule_without_a_protocol_is_refused() -> None:
    rule = Rule("allreduce", 8, 1, 2, LIBRARY.algorithm("allreduce", "tree"))
    with pytest.raises(UsageError, match="needs a protocol beside tree: measure tree_simple"):
        rules_format("NCCL").write([rule], [], BUILD)

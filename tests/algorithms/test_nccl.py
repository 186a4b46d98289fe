"""NCCL's algorithms by name, and the file of rules of its example tuner plugin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omb_py.algorithms import Algorithm, library, nccl
from omb_py.algorithms.patterns import CollectiveShape
from omb_py.algorithms.rules import LibraryBuild, Rule, rules_format
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.options import Options
from omb_py.measure.library_algorithm import STARTED_WITH, called_by, request, select
from omb_py.simulation.collectives import repetitions
from tests.helpers.refusals import refuses

NCCL = library("NCCL")
FORMAT = rules_format("NCCL")
BUILD = LibraryBuild("NCCL", (2, 30, 7))
LAST = 4294967295


def rule(function: str, word: str, first: int, last: int, ranks: int = 8) -> Rule:
    return Rule(function, ranks, first, last, NCCL.algorithm(function, word))


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


class TestWords:
    @pytest.mark.parametrize(
        ("word", "variables"),
        [
            ("ring", {"NCCL_ALGO": "Ring"}),
            ("tree_ll128", {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL128"}),
            ("NVLS-Tree", {"NCCL_ALGO": "NVLSTree", "NCCL_PROTO": "Simple"}),
            ("collnet_direct", {"NCCL_ALGO": "CollNetDirect", "NCCL_PROTO": "Simple"}),
        ],
    )
    def test_word_names_algorithm_and_protocol(self, word: str, variables: dict[str, str]) -> None:
        found = NCCL.algorithm("allreduce", word)
        assert NCCL.environment("allreduce", found, {}) == variables

    @pytest.mark.parametrize(
        ("function", "word", "error", "words"),
        [
            ("bcast", "tree", UsageError, "NCCL no algorithm 'tree' MPI_Bcast ring_ll128"),
            ("bcast", "binomial", UnsupportedError, "NCCL no algorithm 'binomial' MPI_Bcast"),
            ("allgather", "nvls_ll", UsageError, "NCCL no algorithm 'nvls_ll' did you mean nvls?"),
            ("alltoall", "ring", UsageError, "NCCL has no choice MPI_Alltoall"),
        ],
    )
    def test_word_that_a_function_lacks_refused(
        self, function: str, word: str, error: type[Exception], words: str
    ) -> None:
        with refuses(error, words):
            NCCL.algorithm(function, word)

    def test_values_of_a_function_are_all_different(self) -> None:
        """Rules that are read name an algorithm by its value."""
        for algorithms in nccl.TABLE.values():
            assert len({one.value for one in algorithms}) == len(algorithms)

    def test_one_rank_alone_has_no_algorithm(self) -> None:
        ring = NCCL.algorithm("allreduce", "ring")
        assert ring.refusal(CollectiveShape(1, 8)) == "one rank alone copies"
        assert ring.refusal(CollectiveShape(2, 8)) is None

    def test_messages_are_known_of_rings_of_blocks_only(self) -> None:
        def known(algorithm: Algorithm) -> bool:
            try:
                return bool(repetitions(algorithm, CollectiveShape(4, 1024)))
            except UnsupportedError as error:
                assert "not known" in str(error)
                return False

        words = [one.word for one in nccl.TABLE["allreduce"] if known(one)]
        assert words == ["ring", "ring_simple"]
        assert not any(map(known, nccl.TABLE["bcast"]))


class TestVariables:
    @pytest.fixture(autouse=True)
    def without_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("NCCL_ALGO", "NCCL_PROTO"):
            monkeypatch.setenv(name, "")  # restored, whatever a test sets
            monkeypatch.delenv(name)

    @pytest.mark.parametrize(
        "options",
        [
            Options(binding="nccl", library_algorithm="tree_ll"),
            Options(binding="torch", backend="nccl", library_algorithm="tree_ll"),
        ],
        ids=["nccl", "torch"],
    )
    def test_request_sets_them_and_nothing_of_mpi(self, options: Options) -> None:
        before = dict(os.environ), set(STARTED_WITH)
        request("allreduce", options)
        assert os.environ == before[0] | {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}
        assert before[1] == STARTED_WITH, "NCCL reads them again for the next communicator"
        request("allreduce", options)

    @pytest.mark.parametrize(
        ("name", "value", "words"),
        [
            ("NCCL_ALGO", "Ring", "NCCL_ALGO=Ring is set needs NCCL_ALGO=Tree unset it"),
            ("NCCL_PROTO", "LL", "NCCL_PROTO=LL is set go before tree unset it"),
        ],
    )
    def test_variable_that_is_set_otherwise_refused(
        self, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
    ) -> None:
        monkeypatch.setenv(name, value)
        with refuses(UsageError, words):
            request("allreduce", Options(binding="nccl", library_algorithm="tree"))

    @pytest.mark.parametrize("backend", [None, "gloo", "mpi"])
    def test_other_backends_of_torch_refused(self, backend: str | None) -> None:
        options = Options(binding="torch", backend=backend, library_algorithm="ring")
        name = backend or "gloo"
        with refuses(UnsupportedError, f"torch's {name} no choice --backend nccl"):
            select("allreduce", options)

    def test_bindings_of_mpi_ask_mpis_library(self, vendor_name: str) -> None:
        assert called_by(Options(binding="buffer")).name == vendor_name
        assert select("allreduce", Options(binding="torch", library_algorithm="default")) is None


@pytest.fixture
def vendor_name(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an MPI library that takes the place of this process's own."""

    class Mpi:
        @staticmethod
        def get_vendor() -> tuple[str, tuple[int, ...]]:
            return "Open MPI", (5, 0, 11)

    monkeypatch.setattr("omb_py.core.mpi.load", lambda: Mpi)
    return "Open MPI"


class TestRules:
    def test_rules_written_are_rules_read(self) -> None:
        rules = [
            rule("allreduce", "tree_ll", 8, 65536),
            rule("allreduce", "ring_simple", 65537, 1 << 30),
            rule("allreduce", "nvls", 8, 1 << 30, ranks=16),
            rule("allgather", "ring_ll128", 1024, 4096),
            rule("reduce_scatter", "pat", 1024, 4096),
            rule("bcast", "ring_ll", 0, 64),
        ]
        (text,) = FORMAT.write(rules, ["measured"], BUILD)
        choose = FORMAT.read([text])
        for one in rules:
            for nbytes in (one.first, one.last):
                assert choose(one.function, one.ranks, nbytes) == one.algorithm.value
        assert choose("allreduce", 8, 4) is None
        assert choose("allreduce", 4, 64) is None
        assert choose("allgather", 8, 4097) is None
        assert choose("alltoall", 8, 64) is None

    def test_sizes_of_blocks_are_those_of_all_ranks(self) -> None:
        """The message of allgather is a rank's block; that of reduce_scatter is the whole."""
        rules = [rule(name, "nvls", 1024, 4096) for name in ("allgather", "reduce_scatter")]
        assert rows(FORMAT.write(rules, [], BUILD)[0]) == [
            "allgather,8192,32768,nvls,simple,-1,-1,8,-1,-1",
            "reducescatter,1024,4096,nvls,simple,-1,-1,8,-1,-1",
        ]

    def test_comments_say_what_the_file_needs(self) -> None:
        (text,) = FORMAT.write([rule("bcast", "ring_ll", 0, 64)], ["x" * 300], BUILD)
        comments = [line for line in text.splitlines() if line.startswith("#")]
        assert max(map(len, comments)) <= 100, "the plugin cuts lines after 255 characters"
        for words in ("did not try this file", "NCCL_TUNER_PLUGIN=example", "nChannels = 0"):
            assert words in " ".join(line.removeprefix("# ") for line in comments)

    def test_rule_without_protocol_refused(self) -> None:
        with refuses(UsageError, "protocol ring ring_simple, ring_ll, ring_ll128"):
            FORMAT.write([rule("allreduce", "ring", 8, 64)], [], BUILD)

    @pytest.mark.parametrize(
        ("lines", "value"),
        [
            (
                [f"allreduce,0,{LAST},tree,ll,-1,-1,-1", f"allreduce,0,{LAST},ring,ll,2,-1,8"],
                "Tree LL",
            ),
            ([f"broadcast,0,{LAST},tree,ll,-1,-1,-1", f"allreduce,0,{LAST},nvls,ll,1,-1,-1"], None),
            ([f" allreduce , 0,{LAST},\ttree,simple,-1,-1,8,1,0,9"], "Tree Simple"),
            ([f"allreduce,0,{LAST},tree,ll,-1,-1"], None),
            ([f"unknown,0,{LAST},unknown,unknown,-1,-1,-1"], "Ring Simple"),
            ([f"allreduce,0,{LAST},tree,ll,-1,2,-1"], None),
            ([f"allreduce,0,{LAST},tree,ll,-1,-1,-1,4"], None),
            ([f"allreduce,0,{LAST},tree,ll,-1,-1,-1,-1,1"], None),
            ([f"allreduce,,0,{LAST},,tree,ll,-1,-1,-1"], "Tree LL"),
            (["#" * 255 + f"allreduce,0,{LAST},tree,ll,-1,-1,-1"], "Tree LL"),
            (["", f"#allreduce,0,{LAST},tree,ll,-1,-1,-1"], None),
        ],
    )
    def test_file_is_read_as_the_plugin_reads_it(self, lines: list[str], value: str | None) -> None:
        assert FORMAT.read(["\n".join(lines) + "\n"])("allreduce", 8, 1024) == value

    def test_row_that_nccl_cannot_use_is_passed_over(self) -> None:
        text = f"broadcast,0,{LAST},tree,ll,-1,-1,-1\nbroadcast,0,{LAST},ring,ll,-1,-1,-1\n"
        assert FORMAT.read([text])("bcast", 8, 64) == "Ring LL"

    def test_variables_load_the_plugin_and_take_back_what_is_forced(self) -> None:
        assert FORMAT.environment([Path("/a/nccl_tuner.conf")]) == {
            "NCCL_TUNER_CONFIG_FILE": "/a/nccl_tuner.conf",
            "NCCL_TUNER_PLUGIN": "example",
        }
        assert FORMAT.forced(["bcast"], {"NCCL_ALGO": "Ring"}) == {"NCCL_ALGO": ""}
        assert FORMAT.forced(["bcast"], {}) == {}

"""nccl-tests' options: each letter of it is known, and what cannot be is refused in a sentence."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import NCCL_PROGRAMS
from omb_py.cli.nccl import nccl_command
from omb_py.core.datatypes import find_types
from omb_py.core.errors import MissingError, UsageError
from omb_py.core.options import Options
from omb_py.measure.nccl import asked_sizes, block_of
from omb_py.options.nccl import ROWS, be_as_torchrun, chosen, read
from omb_py.options.parse import read_words
from omb_py.results.nccl import NcclSettings
from tests.conftest import Run
from tests.helpers.refusals import assert_refused, refuses

LETTERS = "t:g:b:e:i:f:n:m:w:N:p:I:K:c:o:d:r:z:y:T:hG:C:a:R:x:D:V:J:S:M:u:"
"""The argument of getopt_long in src/common.cu of 2.19.6."""

(FLOAT,) = find_types(["float32"])
(BYTE,) = find_types(["int8"])


def asked(words: str = "", program: str = "all_reduce") -> tuple[NcclSettings, Options]:
    """What words after a program's name ask for."""
    name = f"{program}_perf"
    return read(name, program, read_words(nccl_command(name), words.split()))


def sizes(words: str) -> list[int]:
    settings, _ = asked(words)
    return list(asked_sizes(settings, settings.largest))


def test_every_option_of_nccl_tests_is_known() -> None:
    ours = {name for row in ROWS for name in row.names if re.fullmatch("-.", name)}
    assert ours == {f"-{letter}" for letter in LETTERS if letter not in ":h"}


def test_defaults_are_those_of_nccl_tests() -> None:
    settings, options = asked()
    assert (settings.smallest, settings.largest) == (32 << 20, 32 << 20)
    assert (settings.iterations, settings.warmup, settings.checks) == (20, 1, 1)
    assert (settings.average, settings.blocking) == (1, 0)
    assert (options.types, options.timeout, options.validate) == (("float32",), None, True)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("-b 8 -e 128 -f 2", [8, 16, 32, 64, 128]),
        ("-b 8 -e 200 -f 4", [8, 32, 128]),
        ("-b 1M -e 3M", [1 << 20, 2 << 20, 3 << 20]),
        ("-b 0 -e 2K -i 1K -f 1", [0, 1024, 2048]),
        ("--minbytes 1G --maxbytes=2G --stepfactor 2", [1 << 30, 2 << 30]),
        ("-b8 -e16 -f2", [8, 16]),
    ],
)
def test_sizes_grow_by_a_factor_or_by_bytes(words: str, found: list[int]) -> None:
    assert sizes(words) == found


def test_sizes_end_where_memory_does() -> None:
    settings, _ = asked("-b 1K -e 1G -f 2")
    assert [*asked_sizes(settings, 3000)] == [1024, 2048]
    assert [*asked_sizes(settings, 100)] == [100]
    assert [*asked_sizes(settings, 0)] == [0]


@pytest.mark.parametrize(
    ("program", "size", "ranks", "block"),
    [
        ("all_reduce", 15, 4, 12),
        ("broadcast", 3, 4, 0),
        ("all_gather", 100, 2, 48),  # 12 of 25 elements, a multiple of 4
        ("all_gather", 60, 4, 0),
        ("reduce_scatter", 100, 2, 96),
        ("alltoall", 1 << 20, 3, 349520),
    ],
)
def test_sizes_are_rounded_down_as_in_nccl_tests(
    program: str, size: int, ranks: int, block: int
) -> None:
    """``(count / ranks) & ~(16 / size of an element - 1)`` elements for each rank."""
    assert block_of(program, size, FLOAT, ranks) == block


def test_parts_of_bytes_are_multiples_of_sixteen() -> None:
    assert block_of("gather", 100, BYTE, 3) == 32


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("-g 8", "-g 8 torchrun --nproc_per_node 8 all_reduce_perf"),
        ("-t 2", "-t 2 torchrun --nproc_per_node 2"),
        ("-G 1", "-G 1 graph"),
        ("-D 1", "-D 1 NCCL"),
        ("-I 1", "-I 1 omb-py"),
        ("-o max", "-o max -o sum"),
        ("-b 2M -e 1M", "-b 2097152 -e 1048576"),
        ("-b 0 -e 8 -f 2", "-b 0"),
        ("-b 8 -e 64 -i 0", "-i 0"),
        ("-J out.txt", "out.txt .json"),
        ("-N 0", "0"),
        ("-d fp8", "fp8 half"),
        ("-b 8X", "8X"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(words: str, named: str) -> None:
    with refuses(UsageError, named):
        asked(words)


def test_an_operation_is_of_no_matter_where_nothing_is_added() -> None:
    assert asked("-o max", "all_gather")[0].program == "all_gather"


def test_a_root_is_a_rank_or_each_in_turn() -> None:
    assert [asked(f"-r {text}", "reduce")[0].root for text in ("3", "-1", "all")] == [3, None, None]
    with refuses(UsageError, "-r x"):
        asked("-r x", "reduce")


@pytest.mark.parametrize("letter", "KVMRxpy")
def test_an_option_without_effect_says_so_only_if_it_asks_for_something(
    in_process: Run, letter: str
) -> None:
    """A wrong option after it ends the command before any rank starts."""
    words = ("all_reduce_perf", "-J", "x.txt", f"-{letter}")
    silent, told = in_process(*words, "0"), in_process(*words, "1")
    assert "no effect" not in silent.err
    assert f"-{letter} has no effect on all_reduce_perf: " in told.err


def test_a_minimum_that_is_no_number_is_refused(in_process: Run) -> None:
    done = in_process("all_reduce_perf", NCCL_TESTS_MIN_BW="fast")
    assert_refused(done, 2, "NCCL_TESTS_MIN_BW=fast")


SLURM = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0"}


def without_mpi(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Make this process one that srun, or nobody, has started, without MPI."""
    monkeypatch.setattr("omb_py.options.nccl.has_mpi", lambda: False)
    for name in [name for name in os.environ if name.startswith(("PMI", "OMPI", "SLURM"))]:
        monkeypatch.delenv(name)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)


@pytest.mark.parametrize(
    ("hosts", "first"),
    [("gpu[07-08,11]", "gpu07"), ("a1,b2", "a1"), ("n-3", "n-3"), ("x[5],y", "x5")],
)
def test_ranks_of_srun_meet_on_the_first_host(
    monkeypatch: pytest.MonkeyPatch, hosts: str, first: str
) -> None:
    without_mpi(monkeypatch, **SLURM, SLURM_STEP_NODELIST=hosts, SLURM_JOB_ID="4711")
    found: dict[str, Any] = dict(os.environ)
    be_as_torchrun(None, found)
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == (first, "30211")
    assert (found["RANK"], found["WORLD_SIZE"], found["LOCAL_RANK"]) == ("1", "2", "0")


def test_ranks_without_a_host_to_meet_on_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    without_mpi(monkeypatch, **SLURM)
    with refuses(UsageError, "MASTER_ADDR"):
        be_as_torchrun(None, {})


def test_the_binding_is_what_can_be_used_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omb_py.options.nccl.DEVICE_FILES", ())
    assert chosen(None, None, None) == ("buffer", "numpy")
    assert chosen("torch", None, None) == ("torch", "numpy")
    assert chosen("nccl", None, None) == ("nccl", "cupy")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert chosen(None, None, None) == ("torch", "numpy")


def test_devices_that_no_package_can_use_are_not_left_for_memory_of_the_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("omb_py.options.nccl.DEVICE_FILES", (str(tmp_path),))
    monkeypatch.setattr("omb_py.options.nccl.usable", lambda binding: False)
    monkeypatch.setattr("omb_py.options.nccl.find_spec", lambda name: None)
    with refuses(MissingError, "torch CuPy --buffer numpy"):
        chosen(None, None, None)
    assert chosen(None, "numpy", None) == ("buffer", "numpy")


def test_programs_have_the_names_of_nccl_tests() -> None:
    assert len(NCCL_PROGRAMS) == 18
    assert "all_reduce_perf" in NCCL_PROGRAMS
    assert "sendrecv_perf_mpi" in NCCL_PROGRAMS

"""Names that options had in the release before still work, each with one note."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omb_py.benchmarks import all_benchmarks, find_benchmark
from omb_py.options.option import Option, note_once
from omb_py.options.parse import parse, words_of
from omb_py.options.table import parameters
from omb_py.sweeps import toml
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import plan
from tests.conftest import Finished


@pytest.fixture(autouse=True)
def nothing_noted_yet() -> Iterator[None]:
    note_once.cache_clear()
    yield
    note_once.cache_clear()


def noted(old: str, new: str) -> str:
    return f"omb-py: note: {old} is now {new}; the old name goes with the next release\n"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("allreduce", "--algorithm ring", "--p2p-algorithm ring"),
        ("allreduce", "--library-algorithm=ring", "--coll-algorithm=ring"),
        (
            "allreduce",
            "--library-algorithm ring --prove-algorithm",
            "--coll-algorithm ring --verify-algorithm",
        ),
        ("latency", "--variant UCX_TLS=tcp", "--label UCX_TLS=tcp"),
        ("spawn", "--spawned 3", "--spawn-count 3"),
    ],
)
def test_an_old_name_means_the_new_one(
    name: str, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = find_benchmark(name)
    expected = parse(benchmark, new.split())
    assert capsys.readouterr().err == ""
    assert parse(benchmark, old.split()) == expected != parse(benchmark, [])
    pairs = zip(old.replace("=", " ").split(), new.replace("=", " ").split(), strict=True)
    notes = [noted(*pair) for pair in pairs if pair[0] != pair[1] and pair[0][:2] == "--"]
    assert sorted(capsys.readouterr().err.splitlines(keepends=True)) == sorted(notes)
    parse(benchmark, old.split())
    assert capsys.readouterr().err == "", "one note in a process"


def test_an_old_name_means_the_new_one_in_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = find_benchmark("allreduce")
    assert words_of(benchmark, {"library_algorithm": "ring"}) == ["--coll-algorithm=ring"]
    assert capsys.readouterr().err == noted("library_algorithm", "coll_algorithm")


def test_an_old_name_means_the_new_one_in_a_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'name = "x"\n[[experiments]]\nbenchmarks = "allreduce"\nranks = 2\n'
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    old.write_text(f'{text}library_algorithms = "ring"\noptions.algorithm = "library"\n')
    new.write_text(f'{text}coll_algorithms = "ring"\noptions.p2p_algorithm = "library"\n')
    machine = Machine(name="here", cores_per_node=2)
    expected = plan(toml.read(new, Sweep), machine)
    assert capsys.readouterr().err == ""
    assert plan(toml.read(old, Sweep), machine) == expected
    assert capsys.readouterr().err == noted("key library_algorithms", "coll_algorithms") + noted(
        "option algorithm", "p2p-algorithm"
    )


def test_help_has_no_old_name_and_no_benchmark_a_name_twice() -> None:
    for benchmark in all_benchmarks():
        options = [one for one in parameters(benchmark) if isinstance(one, Option)]
        names = [name for one in options for name in (*one.opts, *one.old_names)]
        assert len(set(names)) == len(names), benchmark.name


def test_rank_0_alone_notes_an_old_name(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(2, "latency", "--variant", "old", "--sizes", "8", "-i", "2")
    assert job.code == 0
    assert job.err.count("--variant is now --label") == 1

"""Names that options had in the release before still work, each with one note."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from omb_py.benchmarks import all_benchmarks, find_benchmark
from omb_py.cli import command
from omb_py.core.errors import OmbError
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


@pytest.mark.parametrize("words", ["--variant old --label new", "--label new --variant old"])
def test_beside_an_old_name_the_new_one_counts(words: str) -> None:
    assert parse(find_benchmark("latency"), words.split()).variant == "new"


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


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (
            "profile",
            "-f -o d --level c --ranks all a.py",
            "--force --dir d --intercept pmpi --per-rank all a.py",
        ),
        ("profile", "--output d --level=python a.py", "--dir d --intercept=mpi4py a.py"),
        (
            "watch",
            "-i 2 --patience 3 --silence 4",
            "--interval 2 --min-wait 3 --stale-after 4",
        ),
        ("model", "x --ranks 4", "x --predict-ranks 4"),
        ("plot", "x --output d", "x --figure d"),
        ("efficiency", "x -o d", "x --figure d"),
        ("compare", "a b --ranks 3", "a b --np 3"),
        ("compare", "--native d latency --ranks 3", "--native d latency --np 3"),
        ("job render", "x --output=d", "x --dir=d"),
    ],
)
def test_an_old_name_of_another_command_means_the_new_one(
    path: str, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def values(words: str) -> dict[str, object]:
        found: click.Command = command
        for name in path.split():
            assert isinstance(found, click.Group)
            found = found.get_command(click.Context(found), name) or pytest.fail(name)
        return found.make_context(path, words.split()).params

    expected = values(new)
    assert capsys.readouterr().err == ""
    assert values(old) == expected
    renamed = [pair for pair in zip(old.split(), new.split(), strict=True) if pair[0] != pair[1]]
    notes = capsys.readouterr().err
    for was, now in renamed:
        if was.startswith("-"):
            was, now = was.partition("=")[0], now.partition("=")[0]
            assert f"note: {was}" in notes
            assert f" is now {now}" in notes


def test_an_old_flag_that_became_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = command.get_command(click.Context(command), "profile")
    assert profile is not None
    for words in (["show"], ["--read"]):
        with pytest.raises(OmbError, match="nothing"):
            profile.main([*words, str(tmp_path / "nothing")], standalone_mode=False)
    assert capsys.readouterr().err == noted("profile --read", "profile show")

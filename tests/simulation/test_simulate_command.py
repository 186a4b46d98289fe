"""``omb-py simulate``: tables, rows, a check against results, and what goes wrong in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import omb_py
from omb_py.simulation import network
from tests.conftest import OMB_PY, Finished, run, succeeded
from tests.helpers.refusals import assert_refused


def simulate(folder: Path, *words: str, **variables: str) -> Finished:
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")} | variables
    return run([OMB_PY, "simulate", *words], environment, folder, 120)


@pytest.mark.usefixtures("simgrid")
class TestOnSimGrid:
    @pytest.mark.long
    def test_algorithms_side_by_side_and_which_is_best(self, tmp_path: Path) -> None:
        done = simulate(
            *(tmp_path, "bcast", "--ranks", "8,16", "--coll-algorithm", "all", "--sizes", "8,1M"),
            *("--network", "fat-tree:4,4"),
        )
        assert done.code == 0, done.err
        assert "bcast on 16 ranks, simulated" in done.out
        assert "bcast: the best, simulated" in done.out
        lines = done.out.partition("the best, simulated")[2].splitlines()
        (large,) = (line.split() for line in lines if line.startswith("1 MiB"))
        assert large[2:5:2] == ["scatter_allgather", "scatter_allgather"]
        assert "Network: fat-tree:4,4; costs: round figures" in done.out
        assert "20 simulations, at most" in done.err

    @pytest.mark.long
    def test_rows_are_read_as_those_of_a_benchmark(self, tmp_path: Path) -> None:
        words = ("allreduce", "--ranks", "4", "--sizes", "8,1024", "--output", "simulated.csv")
        succeeded(simulate(tmp_path, *words, "--coll-algorithm", "ring,recursive_doubling"))
        rows = omb_py.load(tmp_path / "simulated.csv").rows
        assert rows["binding"].unique().tolist() == ["simulated"]
        assert sorted(rows["library_algorithm"]) == ["recursive_doubling"] * 2 + ["ring"] * 2
        assert rows["mpi"].str.startswith("SimGrid").all()
        done = run(
            [OMB_PY, "show", "simulated.csv", "--across", "library_algorithm"], {}, tmp_path, 60
        )
        assert done.code == 0, done.err

    def test_placements_and_networks_are_compared(self, tmp_path: Path) -> None:
        done = simulate(
            *(tmp_path, "allreduce", "--ranks", "16", "--ranks-per-node", "4", "--sizes", "1M"),
            *("--placement", "packed,scattered", "--network", "torus:2x2", "--network", "star"),
            *("--coll-algorithm", "recursive_doubling"),
        )
        assert done.code == 0, done.err
        head = next(line for line in done.out.splitlines() if line.startswith("size"))
        for name in ("torus:2x2, packed", "star, scattered"):
            assert name in head

    def test_node_aware_algorithm_gets_placed_nodes(self, tmp_path: Path) -> None:
        words = ("allreduce", "--ranks", "16", "--ranks-per-node", "4", "--sizes", "64K")
        done = succeeded(simulate(tmp_path, *words, "--p2p-algorithm", "hierarchical,ring"))
        assert "own hierarchical" in done.out
        assert "left out" not in done.err

    def test_segments_are_compared(self, tmp_path: Path) -> None:
        words = ("bcast", "--ranks", "4", "--sizes", "1M", "--p2p-algorithm", "pipelined_chain")
        succeeded(simulate(tmp_path, *words, "--segment", "4K,1M", "-o", "simulated.csv"))
        rows = omb_py.load(tmp_path / "simulated.csv").rows
        assert rows["segment"].tolist() == [4096, 1048576]

    @pytest.mark.long
    def test_errors_against_results_are_written_into_the_network(self, tmp_path: Path) -> None:
        """Results that are the simulation itself, with 10 % more: that is what is found."""
        path = tmp_path / "small.toml"
        path.write_text('topology = "star"\n[between]\nlatency_us = 10\nbandwidth_MBps = 1000\n')
        words = ("allreduce", "--ranks", "2,4", "--p2p-algorithm", "ring", "--sizes", "8,64K")
        done = simulate(tmp_path, *words, "--network", "small.toml", "-o", "as-measured.csv")
        assert done.code == 0, done.err
        rows = omb_py.load(tmp_path / "as-measured.csv").rows
        made = ["run,benchmark,bytes,ranks,buffer,binding,mpi_type,latency_us,algorithm"]
        made += [
            f"r{row.ranks},allreduce,{row.bytes},{row.ranks},numpy,buffer,MPI_INT,"
            f"{row.latency_us * 1.1},ring"
            for row in rows.itertuples()
        ]
        texts = [
            "\n".join(
                [
                    f"# run: r{ranks}",
                    f"# hosts: {' '.join(f'n{node}:1' for node in range(ranks))}",
                    made[0],
                    *(line for line in made[1:] if line.startswith(f"r{ranks},")),
                ]
            )
            for ranks in (2, 4)
        ]
        for number, text in enumerate(texts):
            (tmp_path / f"measured{number}.csv").write_text(text + "\n")
        measured = ("--check", "measured0.csv", "--check", "measured1.csv")
        done = succeeded(simulate(tmp_path, *measured, "--network", "small.toml"))
        assert "-9%" in done.out
        done = succeeded(
            simulate(tmp_path, *measured, "--network", "small.toml", "--format", "csv")
        )
        assert len(done.out.splitlines()) == 1 + 4
        checked = network.read(path).checked
        assert sum(one.points for one in checked) == 4
        assert all(one.worst_error == pytest.approx(0.0909, abs=2e-3) for one in checked)
        done = simulate(tmp_path, *words, "--network", "small.toml")
        assert "within 9% (median 9%)" in done.out
        assert "Beyond is extrapolation." in done.out

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            ("allreduce", "simulate --ranks"),
            ("allreduce --ranks 1", "2 ranks or more"),
            ("allreduce --ranks x", "'x' list of numbers"),
            ("allreduce --ranks 99999999999", "99999999999 1048576 simulated"),
            ("allreduce --ranks 32 --network torus:2x2", "32 nodes 4"),
            ("allreduce --ranks 4 --network nothing", "nothing no file no topology"),
            ("allreduce --ranks 4 --p2p-algorithm magic", "magic ring"),
            (
                "bcast --ranks 4 --p2p-algorithm binomial --segment 4K",
                "--segment is for pipelined_chain choose",
            ),
            (
                "bcast --ranks 4 --p2p-algorithm pipelined_chain --segment 0",
                "--segment 0 1 byte or more",
            ),
            ("allreduce --ranks 4 --coll-algorithm magic", "no algorithm 'magic'"),
            ("alltoallw --ranks 4", "--coll-algorithm (linear)"),
            ("nothing --ranks 4", "unknown benchmark 'nothing'"),
            ("latency --ranks 4", "latency exactly 2 ranks"),
            ("init --ranks 4", "init no messages"),
            ("", "needs a benchmark"),
            ("--check . --network star", "--check name file --network"),
            ("--check . --network one.toml --topology star", "--topology --check copy"),
        ],
    )
    def test_impossible_simulation_refused(self, tmp_path: Path, words: str, sentence: str) -> None:
        assert_refused(simulate(tmp_path, *words.split()), 2, sentence)


def test_where_simgrid_is_missing_its_package_is_named(tmp_path: Path) -> None:
    """A module of that name that cannot be found stands for none."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'simgrid': raise ModuleNotFoundError(name=name)\n"
    )
    done = run([OMB_PY, "simulate", "allreduce", "--ranks", "4"], {"PYTHONPATH": ""}, tmp_path, 60)
    if done.code == 0:
        pytest.skip("SimGrid is installed in this environment")
    assert_refused(done, 8, "apt install python3-simgrid")

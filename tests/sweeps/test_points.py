"""A sweep and a machine make points: each combination once, and only what can be measured."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.benchmarks import all_benchmarks
from omb_py.core.errors import UsageError
from omb_py.options.parse import parse
from omb_py.sweeps import catalog
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.launchers import AUTO, LAUNCHERS
from omb_py.sweeps.machine import Library, Machine
from omb_py.sweeps.point_options import options_of
from omb_py.sweeps.points import SweepPlan, in_order, plan
from omb_py.sweeps.targets import parse_target, target
from omb_py.sweeps.toml import read
from tests.helpers.refusals import assert_names, missing, refuses
from tests.sweeps.configs import machine, sweep


def named(found: SweepPlan) -> list[str]:
    """The points in words."""
    return [point.describe() for point in found.points]


def test_every_combination_is_a_point() -> None:
    experiment = {"benchmarks": ["bcast", "allreduce"], "bindings": ["native", "buffer"]}
    found = plan(
        sweep(experiment | {"ranks": [2, 4], "buffers": ["numpy", "bytearray"]}), machine()
    )
    assert len(found.points) == 16
    assert len({point.name for point in found.points}) == 16
    assert found.left_out == ()


def test_rows_are_the_sizes_that_the_benchmark_would_measure() -> None:
    found = plan(sweep({"benchmarks": ["allreduce", "latency"], "sizes": "1:16"}), machine())
    assert [point.sizes for point in found.points] == [(4, 8, 16), (1, 2, 4, 8, 16)]
    assert found.rows == 8
    assert plan(sweep({"sizes": ["0", 3, "1K"]}), machine()).points[0].sizes == (0, 3, 1024)
    assert plan(sweep({"sizes": "0,3,1K"}), machine()).points[0].sizes == (0, 3, 1024)


def test_a_benchmark_without_messages_is_one_row() -> None:
    found = plan(sweep({"benchmarks": ["barrier", "import_time"]}), machine())
    assert [point.rows for point in found.points] == [1, 1]
    assert "--sizes" not in " ".join(found.points[0].arguments(()))


def test_sizes_over_the_memory_limit_are_not_planned() -> None:
    experiment = {"benchmarks": "alltoall", "ranks": 8, "sizes": "1M:128M"}
    (point,) = plan(sweep(experiment), machine()).points
    assert max(point.sizes) == 32 << 20


def test_a_launcher_without_mpi_measures_what_needs_none() -> None:
    experiments = (
        {"benchmarks": "latency", "bindings": ["buffer", "tcp", "pickle", "asyncio"]},
        {"benchmarks": ["kmeans", "init"], "bindings": "tcp"},
    )
    found = plan(sweep(*experiments), machine(launcher="torchrun"))
    assert [point.binding for point in found.points] == ["tcp", "asyncio"]
    why = "needs MPI, without which launcher torchrun starts ranks"
    assert [one.reason for one in found.left_out] == [
        f"binding buffer {why}",
        f"binding pickle {why}",
        f"it {why}",
    ]


def test_families_and_all() -> None:
    everything = {found.name for found in all_benchmarks() if found.recovery is None}
    found = plan(sweep({"benchmarks": "all", "ranks": [2, 4], "sizes": "64"}), machine())
    assert {point.benchmark for point in found.points} == everything
    assert not missing("launcher mpich ranks fail", found.left_out[-1].describe())
    found = plan(sweep({"benchmarks": "one-sided", "without": ["put_bw"], "sizes": "8"}), machine())
    benchmarks = {point.benchmark for point in found.points}
    assert "put_latency" in benchmarks
    assert "put_bw" not in benchmarks


def test_applications_are_one_row_and_take_their_options() -> None:
    experiment = {"benchmarks": "matmul", "options": {"rows": [64, 128], "no_references": True}}
    found = plan(sweep(experiment), machine())
    assert found.rows == 2
    for point, rows in zip(found.points, ("--rows=64", "--rows=128"), strict=True):
        words = point.arguments(())
        assert words[0] == "matmul"
        assert {rows, "--no-references"} <= set(words)


def test_benchmarks_all_leaves_out_applications() -> None:
    everything = {point.benchmark for point in plan(sweep({"benchmarks": "all"}), machine()).points}
    found = {
        point.benchmark for point in plan(sweep({"benchmarks": "application"}), machine()).points
    }
    assert "matmul" in found - everything


@pytest.mark.parametrize(
    ("experiment", "words"),
    [
        *(
            ({"benchmarks": "matmul", "options": options}, words)
            for options, words in (
                ({"sizes": "8"}, "sizes"),
                ({"row": 8}, "matmul no option 'row'; 'rows'?"),
                ({"references": False}, "no_references = true"),
                ({"rows": 0}, "rows 0 range"),
                ({"iterations": 3}, "--repeats for matmul"),
            )
        ),
        *(
            ({"benchmarks": "bw", "options": options}, words)
            for options, words in (
                ({"windw_size": 1}, "bw no option 'windw-size'; 'window-size'?"),
                ({"window_size": "x"}, "'x' whole number"),
                ({"stats": "perhaps"}, "'--stats' value"),
                ({"output": "/etc/passwd"}, "output own folder"),
                ({"file": "/etc/passwd"}, "file own folder"),
                ({"graph": "png"}, "graph own folder"),
                ({"binding": "native"}, "key bindings"),
                ({"vary_window": True}, "option window-size a list"),
                ({"type": "all"}, "element types one by one"),
                ({"sizes": "8"}, "key sizes"),
                ({"-i": 3}, "bw no option '-i'"),
            )
        ),
        ({"nodes": 2}, "nothing of mine: machine here 1 node"),
    ],
)
def test_impossible_experiment_refused(experiment: dict[str, Any], words: str) -> None:
    with refuses(UsageError, words):
        plan(sweep(experiment), machine())


class TestPlaces:
    def test_ranks_are_shared_out_over_nodes(self) -> None:
        experiment = {"benchmarks": "bcast", "ranks": [1, 2, 4, 8], "nodes": [1, 2]}
        found = plan(sweep(experiment), machine(nodes=2))
        places = [(point.nodes, point.ranks_per_node) for point in found.points]
        assert places == [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4)]

    def test_ranks_per_node_by_what_a_node_has(self) -> None:
        experiment = {"benchmarks": "bcast", "ranks_per_node": ["gpus", "cores", 3], "nodes": "all"}
        found = plan(sweep(experiment), machine(nodes=5, gpus_per_node=4))
        assert [point.ranks for point in found.points] == [20, 40, 15]

    @pytest.mark.parametrize(
        ("experiment", "reason"),
        [
            ({"nodes": [1, 2]}, "(latency on 2 nodes): machine here 1 node"),
            ({"ranks_per_node": ["gpus", 2]}, "(latency on 1 node): machine here GPUs"),
            ({"ranks": [2, 4]}, "(latency on 1 node): exactly 2 ranks"),
            (
                {"benchmarks": "bcast", "ranks": [2, 9]},
                "(bcast on 1 node): 9 ranks here 8 cores (oversubscribe = true",
            ),
        ],
    )
    def test_impossible_point_is_left_out(self, experiment: dict[str, object], reason: str) -> None:
        found = plan(sweep(experiment), machine())
        assert len(found.points) == 1
        (left_out,) = found.left_out
        assert_names(left_out.describe(), f"left out 1 point {reason}")

    def test_points_left_out_for_one_reason_share_a_line(self) -> None:
        experiment = {"benchmarks": ["bcast", "allreduce"], "nodes": [1, 2, 4, 8], "ranks": 8}
        (left_out,) = plan(sweep(experiment), machine(nodes=2)).left_out
        words = "left out 4 points (bcast, allreduce on 4 and 8 nodes): machine here 2 nodes"
        assert_names(left_out.describe(), words)

    def test_ranks_that_nodes_cannot_share_evenly_are_named(self) -> None:
        experiment = {"benchmarks": "bcast", "nodes": 2, "ranks": [1, 2, 3]}
        found = plan(sweep(experiment), machine(nodes=2))
        assert [point.ranks for point in found.points] == [2]
        for left_out, ranks in zip(found.left_out, ("1 rank", "3 ranks"), strict=True):
            assert_names(left_out.describe(), f"1 point (bcast on 2 nodes): {ranks} 2 nodes")

    @pytest.mark.slow
    def test_a_family_that_is_left_out_is_named_as_one(self) -> None:
        experiment = {"benchmarks": "all", "nodes": [1, 2], "sizes": "64"}
        lines = [one.describe() for one in plan(sweep(experiment), machine()).left_out]
        (line,) = [line for line in lines if "machine here has 1 node" in line]
        assert "collective benchmarks" in line
        assert "allreduce" not in line

    @pytest.mark.parametrize(
        ("experiment", "line"),
        [
            (
                {"benchmarks": "alltoall", "ranks": 8, "sizes": "1M:128M"},
                "sizes of 1 point (alltoall on 1 node): (option mem_limit)",
            ),
            (
                {"benchmarks": "allreduce", "sizes": "1,4,6"},
                "sizes of 1 point (allreduce on 1 node): whole elements, ranks layout",
            ),
        ],
    )
    def test_left_out_sizes_are_named(self, experiment: dict[str, object], line: str) -> None:
        (left_out,) = plan(sweep(experiment), machine()).left_out
        assert_names(left_out.describe(), line)

    def test_oversubscribing_is_allowed_by_the_machine(self) -> None:
        found = plan(sweep({"benchmarks": "bcast", "ranks": 64}), machine(oversubscribe=True))
        assert found.points[0].ranks == 64

    def test_an_experiment_without_oversubscription_overrules_the_machine(self) -> None:
        experiment = {"benchmarks": "bcast", "ranks": [8, 9], "oversubscribe": False}
        found = plan(sweep(experiment), machine(oversubscribe=True))
        assert [point.ranks for point in found.points] == [8]
        assert_names(found.left_out[0].describe(), "9 ranks a node has 8 cores")

    def test_counts_of_nodes(self) -> None:
        experiment = {"benchmarks": "bcast", "ranks_per_node": 1, "nodes": [4, 1, 2, 64]}
        assert plan(sweep(experiment), machine(nodes=4)).node_counts == (1, 2, 4)


class TestSettings:
    def test_lists_are_axes(self) -> None:
        experiment = {"benchmarks": "bw", "options": {"window_size": [1, 64], "iterations": 10}}
        found = plan(sweep(experiment), machine())
        assert [point.arguments(())[-2:] for point in found.points] == [
            ["--iterations=10", "--window-size=1"],
            ["--iterations=10", "--window-size=64"],
        ]

    def test_flags_and_placement(self) -> None:
        options = {"stats": True, "validation": True, "placement": "D H"}
        (point,) = plan(
            sweep({"options": options, "buffers": "cupy"}), machine(gpus_per_node=1)
        ).points
        words = point.arguments(())
        assert words[-4:] == ["D", "H", "--stats", "--validation"]
        (point,) = plan(sweep({"options": {"stats": False}}), machine()).points
        assert "--stats" not in point.arguments(())

    @pytest.mark.parametrize(
        ("own", "planned", "reasons"),
        [
            ({}, "", {"CUDA", "CUDA or ROCM", "SYCL"}),
            ({"gpus_per_node": 4}, "cupy numba pycuda", {"SYCL"}),
            ({"gpus_per_node": 4, "accelerator": "rocm"}, "cupy", {"CUDA", "SYCL"}),
            ({"gpus_per_node": 6, "accelerator": "sycl"}, "dpnp", {"CUDA", "CUDA or ROCM"}),
        ],
    )
    def test_buffers_without_their_device_are_left_out(
        self, own: dict[str, object], planned: str, reasons: set[str]
    ) -> None:
        buffers = ["numpy", "cupy", "numba", "pycuda", "dpnp"]
        found = plan(sweep({"buffers": buffers}), machine(**own))
        assert [point.buffer for point in found.points] == ["numpy", *planned.split()]
        said = [one.reason.removeprefix("machine here has no ") for one in found.left_out]
        assert {text.partition(" devices (")[0] for text in said} == reasons

    def test_variants_are_named_by_what_varies(self) -> None:
        environment = {"UCX_TLS": ["tcp", "sm,self"], "OMP_NUM_THREADS": "1"}
        found = plan(sweep({"environment": environment}), machine())
        assert [point.variant for point in found.points] == ["UCX_TLS=tcp", "UCX_TLS=sm,self"]
        assert dict(found.points[0].environment) == {"OMP_NUM_THREADS": "1", "UCX_TLS": "tcp"}
        assert "--label=UCX_TLS=tcp" in found.points[0].arguments(())

    def test_devices_in_the_machine_s_order(self) -> None:
        own = machine(gpus_per_node=4, devices=[3, 2, 1, 0])
        found = plan(sweep({"buffers": ["cupy", "numpy"]}), own)
        assert ["--device=3,2,1,0" in point.arguments(()) for point in found.points] == [
            True,
            False,
        ]


class TestNames:
    def test_a_sweep_may_grow_by_sizes_and_keep_its_points(self) -> None:
        before, after = (plan(sweep({"sizes": text}), machine()) for text in ("1:64", "1:128"))
        assert [point.name for point in before.points] == [point.name for point in after.points]

    def test_the_same_point_of_two_experiments_is_measured_once(self) -> None:
        (point,) = plan(sweep({"sizes": "8,16"}, {"sizes": "16,32"}), machine()).points
        assert point.sizes == (8, 16, 32)

    def test_rounds_come_one_after_the_other(self) -> None:
        found = plan(sweep({"benchmarks": ["latency", "bw"]}, launches=2), machine())
        assert [point.launch for point in found.points] == [1, 1, 2, 2]
        assert len({point.name for point in found.points}) == 4

    @given(st.text(max_size=30).filter(lambda text: text.isprintable()))
    def test_whatever_a_variant_says_its_file_stays_in_the_folder(self, text: str) -> None:
        values = [text, "plain"] if text != "plain" else [text, "other"]
        for point in plan(sweep({"environment": {"A": values}}), machine()).points:
            assert not set(point.name) - set(
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+=-"
            )
            assert not point.name.startswith((".", "-"))
            assert len(point.name) < 120


@pytest.mark.parametrize("name", ["latency", "allreduce", "file_write", "put_latency", "init"])
def test_shared_options_are_parsed_once(name: str) -> None:
    found = target(name)
    known = options_of(name)
    words = ["--buffer", "bytearray", "--label=a b"] + (["--file=x"] if "file" in known else [])
    for option in ("--iterations=7", "--stats", "--tail-lat", "--managed"):
        if option[2:].partition("=")[0] in known:
            words.append(option)
    assert parse_target(name, words) == parse(found, words)
    if name == "latency":
        words = ["--stats", "D", "--buffer", "numpy", "H"]
        assert parse_target(name, words) == parse(found, words)
    with pytest.raises(UsageError):
        parse_target(name, [*words, "--iterations=many"])


class TestOrder:
    BENCHMARKS = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "scatter")

    def order(self, *more: str, **values: Any) -> list[tuple[int, str]]:
        found = sweep({"benchmarks": [*self.BENCHMARKS, *more]}, launches=3, **values)
        points = in_order(plan(found, machine()).points, found)
        return [(point.launch, point.benchmark) for point in points]

    def test_each_round_measures_all_points_in_an_order_of_its_own(self) -> None:
        order = self.order()
        assert [launch for launch, _ in order] == [1] * 7 + [2] * 7 + [3] * 7
        rounds = {tuple(name for _, name in order[i : i + 7]) for i in (0, 7, 14)}
        assert len(rounds) == 3
        assert {frozenset(names) for names in rounds} == {frozenset(self.BENCHMARKS)}

    def test_the_seed_chooses_the_order_and_repeats_it(self) -> None:
        assert self.order() == self.order(seed=0) != self.order(seed=1)

    def test_points_that_are_added_leave_the_others_in_their_order(self) -> None:
        grown = self.order("allgatherv", "reduce_scatter")
        assert [item for item in grown if item[1] in self.BENCHMARKS] == self.order()

    def test_as_written_is_the_order_of_the_file(self) -> None:
        names = [name for _, name in self.order(order="as written")]
        assert names == [*self.BENCHMARKS] * 3

    def test_order_of_points_over_rounds_is_balanced(self) -> None:
        found = sweep({"benchmarks": [*self.BENCHMARKS]}, launches=700)
        order = in_order(plan(found, machine()).points, found)
        first = Counter(point.benchmark for point in order[::7])
        assert all(70 <= first[name] <= 130 for name in self.BENCHMARKS)  # 100 +/- 3.2 sigma


SWEEPS = sorted(path.stem for path in (catalog.folder() / "sweeps").glob("*.toml"))
MACHINES = sorted(path.stem for path in (catalog.folder() / "machines").glob("*.toml"))


def test_what_is_promised_is_here() -> None:
    sweeps = {"quick", "full", "scaling", "buffers", "paper", "algorithms", "applications"}
    assert sweeps <= set(SWEEPS)
    promised = {"local", "thetagpu", "polaris", "aurora", "generic-pbs", "generic-slurm"}
    assert promised <= set(MACHINES)


@pytest.mark.slow
@pytest.mark.product(strength=1)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_sweep_has_points_on_every_machine(sweep: str, machine: str) -> None:
    where = read(catalog.find("machines", machine), Machine)
    what = read(catalog.find("sweeps", sweep), Sweep)
    assert (what.name, where.name) == (sweep, machine)
    if any(one.libraries for one in what.experiments):
        with refuses(UsageError, f"{machine} omb-py info --libraries"):
            plan(what, where)
        where = where.model_copy(update={"library": {"mpich": Library()}})
    if where.nodes == 1 and sweep == "paper":
        assert {point.nodes for point in plan(what, where).points} == {1}
    points = plan(what, where).points
    assert points
    if where.launcher != AUTO:
        assert where.launcher in LAUNCHERS


def test_a_name_a_path_and_neither(tmp_path: Path) -> None:
    assert catalog.find("sweeps", "quick").name == "quick.toml"
    with refuses(UsageError, "unknown sweep 'quik'; 'quick'"):
        catalog.find("sweeps", "quik")
    with refuses(UsageError, "there is no file"):
        catalog.find("machines", "./quick.toml")

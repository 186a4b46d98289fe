"""What standard output printed is read back: the rows of its text are those of the CSV."""

from __future__ import annotations

import io
import random
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omb_py.analysis.table import load
from omb_py.benchmarks import Benchmark, Case, Plan, Ranks, StartUp, all_benchmarks, find_benchmark
from omb_py.core.datatypes import find_types
from omb_py.core.errors import UsageError
from omb_py.core.job import Combined
from omb_py.core.memory import Place
from omb_py.core.mpi.startup_timer import INIT, SESSION, TOTAL
from omb_py.core.options import PIPELINED, VARIED_WINDOWS, Options
from omb_py.core.statistics import summarize
from omb_py.measure.rows import (
    Outcome,
    Overlap,
    Starts,
    make_part_row,
    make_row,
    make_unplanned_row,
    times_of,
)
from omb_py.options.parse import parse
from omb_py.options.table import parameters
from omb_py.results.columns import KINDS, Row
from omb_py.results.csv_json import CsvWriter
from omb_py.results.destinations import text_writer
from omb_py.results.readers import omb_text as omb
from omb_py.results.sink import StreamSink
from tests.helpers.properties import examples

CHOICES = (
    *(["-f"], ["--stats"], ["--busbw"], ["-c"], ["-V"], ["-R", "0"], ["-l"], ["-I"]),
    *(
        ["-T", "mpi_int"],
        ["-T", "uint16", "-T", "bfloat16"],
        ["-T", "float64", "-T", "mpi_char"],
        ["-D", "vect:8:4"],
        ["--sync", "clock"],
        ["-t", "2"],
    ),
    *(["-w", "create"], ["-s", "fence"], ["-W", "16"], ["-p", "1"], ["--partitions", "2"]),
    *(["--coll-algorithm", "ring"], ["--p2p-algorithm", "ring"], ["--p2p-algorithm", PIPELINED]),
    *(["--label", "UCX_TLS=tcp,self"], ["--label", "a (b), c: D"]),
    *(["--binding", "native"], ["--buffer", "cupy"], ["D", "H"]),
    *(["--staging"], ["--stream-sync"], ["-r", "both"], ["-k", "rotate"], ["-N", "cart:2:1"]),
)
PERCENTILES = ("50", "90", "95", "99", "99.9", "99.99", "99.99999", "100", "0", "0.00001", "12.5")
COARSE = 0.00501
THOUSANDTHS = ("algbw_", "busbw_", "sample_m", "sample_s", "median_", "slowest_")
"""How columns begin that are printed with three decimals; medians may come from ``-z``, too."""

IDENTITY = (
    *("benchmark", "bytes", "mpi_type", "elements", "part", "buffer", "binding", "variant"),
    *("algorithm", "segment", "library_algorithm", "ranks"),
)
"""Columns that text tells wherever the CSV has them."""

asked = st.tuples(
    st.sampled_from([benchmark.name for benchmark in all_benchmarks()]),
    st.lists(st.sampled_from(CHOICES), max_size=6, unique_by=lambda words: words[0]),
    st.lists(st.sampled_from(PERCENTILES), max_size=4, unique=True),
    st.integers(0, 2**32),
)


def options_of(benchmark: Benchmark, choices: list[list[str]], tails: list[str]) -> Options:
    """The options of a command line, without the choices that this benchmark does not have."""
    known = {name for option in parameters(benchmark) for name in option.opts}
    words = [word for words in choices if words[0] in known for word in words]
    if "placement" in known:
        words += [word for words in choices if words == ["D", "H"] for word in words]
    if tails and "-z" in known:
        words.append(f"-z{','.join(tails)}")
    if "--file" in known:
        words += ["--file", "unused"]
    options = parse(benchmark, words)
    if options.staging or options.stream_sync:
        options = replace(options, buffer="cupy")  # of memory on the host they are refused
    return replace(options, window_kind=options.window_kind or "allocate")


def ranks_of(benchmark: Benchmark) -> int:
    """A number of ranks that the benchmark runs on."""
    return 2 if benchmark.ranks is Ranks.TWO else 4


def seconds(chance: random.Random) -> array[float]:
    """Samples of one size: some ten of them, from nanoseconds to seconds."""
    scale = 10 ** chance.uniform(-8, 0.5)
    return array("d", [scale * chance.uniform(1, 1.5) for _ in range(12)])


def outcome(benchmark: Benchmark, options: Options, size: int, chance: random.Random) -> Outcome:
    """What may come of one message size."""
    samples = seconds(chance)
    mean = sum(samples) / len(samples)
    collective = benchmark.collective
    slowest = array("d", [1.1 * sample for sample in samples]) if collective else None
    combined = Combined(samples, 0.9 * mean, 1.2 * mean, slowest)
    overlap = None
    if "overlap" in benchmark.options:
        overall, compute = (summarize([1e6 * one for one in seconds(chance)]) for _ in range(2))
        start, test, wait = (1e6 * mean * chance.random() for _ in range(3))
        overlap = Overlap(overall, compute, start, test, wait, percent=chance.uniform(0, 100))
    clock = options.sync == "clock" and not options.validate
    return Outcome(
        combined,
        Plan((), payload=size // 2 if not options.layout.contiguous else size, messages=64),
        warmup=2,
        passed=chance.random() < 0.9 if options.validate else None,
        starts=Starts(chance.randrange(10), 1e-7) if clock else None,
        overlap=overlap,
    )


def write(benchmark: Benchmark, options: Options, chance: random.Random, folder: Path) -> None:
    """The text and the CSV of one run, each in a folder of its own."""
    printed, table = io.StringIO(), io.BytesIO()
    writers = [text_writer(printed, benchmark, options), CsvWriter(StreamSink(table), Row)]
    for writer in writers:
        writer.start({"ranks": str(ranks_of(benchmark))})
    for datatype in find_types(options.types or ("mpi_char",)):
        for writer in writers:
            writer.section(datatype if benchmark.sized else None)
        for measured in rows_of(benchmark, options, datatype, chance):
            for writer in writers:
                writer.row(measured)
        if not benchmark.sized:
            break
    for writer in writers:
        writer.finish()
    for kind in ("text", "table"):
        (folder / kind).mkdir(exist_ok=True)
    (folder / "text" / f"{benchmark.name}.txt").write_text(printed.getvalue())
    (folder / "table" / f"{benchmark.name}.csv").write_bytes(table.getvalue())


def rows_of(
    benchmark: Benchmark, options: Options, datatype: Any, chance: random.Random
) -> list[Row]:
    """The rows of one element type."""
    if benchmark.start_up is not None:
        return start_rows(benchmark, options, chance)
    if benchmark.recovery is not None:
        return failure_rows(benchmark, options, chance)
    sizes = [0]
    if benchmark.sized:
        sizes = sorted({datatype.itemsize << chance.randrange(20) for _ in range(3)})
    found: list[Row] = []
    for size in sizes:
        for window in VARIED_WINDOWS if options.vary_window else (options.window,):
            device = options.buffer == "cupy"
            place = SimpleNamespace(place=Place.DEVICE if device else Place.HOST)
            case = Case(
                0,
                ranks_of(benchmark),
                size,
                datatype,
                window,
                cast(Any, place),
                options,
                cast(Any, None),
            )
            result = outcome(benchmark, options, size, chance)
            if "topology" in benchmark.options and not found and datatype.mpi != "DOUBLE":
                what = ("run", benchmark, case, result.plan)
                found.append(make_part_row(*what, "topology creation", result.combined))
            found.append(make_row("run", benchmark, case, result))
    return found


def failure_rows(benchmark: Benchmark, options: Options, chance: random.Random) -> list[Row]:
    """The rows of one failure."""
    found = []
    for part in benchmark.part_names(options):
        samples = seconds(chance)
        combined = Combined(samples, 0.5 * min(samples), 2 * max(samples), samples)
        columns = times_of(combined) | {"failed": chance.randrange(4)}
        what = ("run", benchmark, options, part, ranks_of(benchmark))
        found.append(make_unplanned_row(*what, **columns))
    return found


def start_rows(benchmark: Benchmark, options: Options, chance: random.Random) -> list[Row]:
    """The rows of the start of a job."""
    init = SESSION if options.session else INIT
    parts = {
        StartUp.INIT: [init],
        StartUp.HELLO: [TOTAL],
        StartUp.PARTS: ["interpreter", "omb-py", "numpy", "buffer", "mpi4py", init, TOTAL],
    }
    assert benchmark.start_up is not None
    found = []
    for part in parts[benchmark.start_up]:
        mean = 10 ** chance.uniform(0, 7)
        values: dict[str, object] = {"run": "run", "benchmark": benchmark.name}
        values |= {
            "ranks": ranks_of(benchmark),
            "buffer": options.buffer,
            "percentiles": (),
            "iterations": 1,
        }
        values |= {"warmup": 0, "part": part, "variant": options.variant, "latency_us": mean}
        values |= {"latency_min_us": 0.5 * mean, "latency_max_us": 1.5 * mean}
        found.append(Row(**values))
    return found


def read(folder: Path) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Each benchmark with the rows of its text and of its CSV; no line of them is left out."""
    found = []
    for kind in ("text", "table"):
        results = load(folder / kind)
        # a short part of the start is printed as 0.00 ms; some rows failed their validation
        known = ("is not above 0", "the data was wrong (validation Fail)")
        assert [one for one in results.problems if not any(w in one.text for w in known)] == []
        rows = results.rows
        found.append({Path(str(file)).stem: part for file, part in rows.groupby("file")})
    assert list(found[0]) == list(found[1])
    for name, text in found[0].items():
        yield name, text, found[1][name]


def assert_same(text: pd.DataFrame, table: pd.DataFrame, benchmark: Benchmark) -> None:
    """Every cell of the text is the CSV's within the digits printed, and no row is missing."""
    assert len(text) == len(table)
    hello = benchmark.start_up is StartUp.HELLO
    for name in IDENTITY if not hello else ("benchmark", "ranks"):
        assert texts(text[name]) == texts(table[name]), name
    for name in Row.columns:
        for printed, value in zip(text[name], table[name], strict=True):
            if name == "run" or pd.isna(printed):
                continue
            if name == "percentiles":
                assert_percentiles(str(printed), str(value))
            elif KINDS[name] == "float":
                within = 0.000501 if name.startswith(THOUSANDTHS) else COARSE
                if benchmark.start_up is not None:
                    within = 5.01
                assert abs(printed - value) <= within + 1e-8 * abs(value), (name, printed, value)
            else:
                assert str(printed) == str(value), name


def texts(column: pd.Series) -> list[str]:
    """A column's values as texts."""
    return ["" if pd.isna(value) else str(value) for value in column]


def assert_percentiles(printed: str, value: str) -> None:
    """Percentiles of a text and of a CSV, as in ``p50=1.25 p99.9=3.00``."""
    pairs = [dict(part.split("=") for part in text.split()) for text in (printed, value)]
    assert list(pairs[0]) == list(pairs[1])
    for name, number in pairs[0].items():
        exact = float(pairs[1][name])
        assert abs(float(number) - exact) <= COARSE + 1e-8 * exact


def check(name: str, choices: list[list[str]], tails: list[str], seed: int) -> None:
    """Write what a command line would print, and read it back."""
    benchmark = find_benchmark(name)
    try:
        options = options_of(benchmark, choices, tails)
    except UsageError:
        return  # options that exclude each other
    with TemporaryDirectory() as folder:
        write(benchmark, options, random.Random(seed), Path(folder))
        for _, text, table in read(Path(folder)):
            assert_same(text, table, benchmark)


@pytest.mark.long
@examples(40)
@given(asked)
@example(("latency", [], ["50", "99.9"], 0))
@example(("bw", [["-c"]], ["99.99999", "0.00001"], 0))
@example(("allreduce", [["-f"], ["--stats"]], ["50"], 0))
@example(("allreduce", [["-c"], ["--sync", "clock"]], [], 0))
@example(("mbw_mr", [["-V"], ["-T", "float64", "-T", "mpi_char"]], [], 0))
@example(("mbw_mr", [["-p", "1"]], [], 0))
@example(("init", [["-I"]], [], 0))
def test_text_is_read_back(command: tuple[str, list[list[str]], list[str], int]) -> None:
    check(*command)


@pytest.mark.long
@pytest.mark.parametrize("choices", [[], [["-f"], ["--stats"], ["-c"], ["--label", "a, b"]]])
def test_text_of_every_benchmark_is_read_back(choices: list[list[str]], tmp_path: Path) -> None:
    for benchmark in all_benchmarks():
        options = options_of(benchmark, choices, ["50", "99.9"] if choices else [])
        write(benchmark, options, random.Random(1), tmp_path)
    checked = 0
    for name, text, table in read(tmp_path):
        assert_same(text, table, find_benchmark(name))
        checked += 1
    assert checked == len(list(all_benchmarks()))


def test_words_of_a_banner_that_are_not_known_are_a_variant() -> None:
    said = omb.options_of_banner
    assert said("tag 3") == {"variant": "tag 3"}
    assert said("ranks 3, staged, with stream sync, session, MD H") == {
        "ranks": 3,
        "staged": True,
        "stream_sync": True,
        "placement": "MD H",
    }


def test_a_damaged_part_of_the_start_is_left_out(tmp_path: Path) -> None:
    benchmark = find_benchmark("import_time")
    write(benchmark, Options(), random.Random(2), tmp_path)
    file = tmp_path / "text" / "import_time.txt"
    lines = file.read_text().splitlines()
    lines[3] = lines[3][:-1]
    file.write_text("\n".join(lines) + "\n")
    results = load(file)
    assert len(results.rows) == 6
    problems = [problem.text for problem in results.problems]
    assert [text for text in problems if "is not above 0" not in text] == [
        "not a whole row, left out"
    ]

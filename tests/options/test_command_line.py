"""Options as native OMB writes them, and what becomes of them; no MPI is started."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omb_py.benchmarks import all_benchmarks, find_benchmark
from omb_py.cli import COMMANDS, LAZY_COMMANDS, command
from omb_py.cli.benchmark import benchmark_command
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.core.text.units import parse_bytes, parse_whole
from omb_py.options.option import Option
from omb_py.options.parse import parse, spell_out
from omb_py.options.table import EXTRA, parameters
from tests import ROOT
from tests.conftest import CHOOSES_ITS_LIBRARY, Run, succeeded
from tests.helpers.refusals import assert_names, assert_refused, refuses


def parsed(name: str, *arguments: str) -> Options:
    """The options that a command line stands for."""
    return parse(find_benchmark(name), arguments)


def test_without_options_everything_is_native_ombs() -> None:
    assert parsed("allreduce") == Options()
    benchmark = find_benchmark("latency")
    assert benchmark.counts(Options(), 8192) == (10_000, 100)
    assert benchmark.counts(Options(), 8193) == (1_000, 10)
    assert find_benchmark("bw").counts(Options(), 1 << 20) == (20, 2)
    assert find_benchmark("mbw_mr").counts(Options(), 1 << 20) == (100, 10)
    assert find_benchmark("allreduce").counts(Options(), 1 << 20) == (100, 10)
    assert find_benchmark("ibarrier").counts(Options(), 0) == (100, 10)  # osu_ibarrier.c:93


def test_native_letters_and_long_names() -> None:
    short = parsed("mbw_mr", *"-m 2:8 -i 5 -x 0 -W 16 -V -R 0 -p 1 -b multiple -T mpi_int".split())
    long = parsed(
        "mbw_mr",
        *"--message-size 2:8 --iterations 5 --warmup 0 --window-size 16 --vary-window".split(),
        *"--print-rate 0 --num-pairs 1 --buffer-num multiple --type mpi_int".split(),
    )
    assert short == long
    assert short == Options(
        smallest=2,
        largest=8,
        iterations=5,
        warmup=0,
        window=16,
        vary_window=True,
        print_rate=False,
        pairs=1,
        buffer_per_message=True,
        types=("mpi_int",),
    )


@pytest.mark.parametrize(
    ("text", "smallest", "largest"),
    [("8", None, 8), ("2:", 2, None), (":8", None, 8), ("2:8", 2, 8), ("1K:1M", 1024, 1 << 20)],
)
def test_message_size_is_the_smallest_and_the_largest(
    text: str, smallest: int | None, largest: int | None
) -> None:
    options = parsed("latency", "-m", text)
    assert (options.smallest, options.largest) == (smallest, largest)


@pytest.mark.parametrize(
    ("arguments", "percentiles", "validate", "log"),
    [
        (["-z"], (50.0, 90.0, 99.0), False, None),
        (["-z25,99.9"], (25.0, 99.9), False, None),
        (["--tail-lat"], (50.0, 90.0, 99.0), False, None),
        (["--tail-lat=1"], (1.0,), False, None),
        (["-c"], (), True, None),
        (["-clog"], (), True, "validation_output"),
        (["-clog:faults"], (), True, "faults"),
        (["-fc", "-z5"], (5.0,), True, None),
        (["-i", "5", "-c"], (), True, None),
        (["-i5", "-z"], (50.0, 90.0, 99.0), False, None),
    ],
)
def test_values_of_c_and_z_are_attached(
    arguments: list[str], percentiles: tuple[float, ...], validate: bool, log: str | None
) -> None:
    options = parsed("allreduce", *arguments)
    assert (options.percentiles, options.validate, options.validation_log) == (
        percentiles,
        validate,
        log,
    )


def test_placement_may_follow_c_and_z() -> None:
    assert parsed("latency", "-c", "D", "H").validate
    assert parsed("latency", "-z", "H", "H").percentiles == (50.0, 90.0, 99.0)


def test_a_value_that_looks_like_an_option_stays_one() -> None:
    arguments = ["--output", "x.csv", "-o", "-c", "-i", "3", "--", "-c"]
    assert spell_out(arguments, {"o": "--origin", "i": "--iterations"}, {}) == [
        *("--output", "x.csv", "--origin=-c", "--iterations=3", "--", "-c")
    ]


def test_value_of_a_long_option_may_begin_with_a_dash() -> None:
    with pytest.raises(UsageError, match="'-inf'"):
        parsed("latency", "--timeout", "-inf")


@pytest.mark.parametrize(
    ("arguments", "spelled"),
    [
        (["-fi5"], ["--full", "--iterations=5"]),
        (["-fi", "5", "D"], ["--full", "--iterations=5", "D"]),
        (["-i"], ["-i"]),
        (["-fQ5"], ["--full", "-Q5"]),
        (["-fclog"], ["--full", "--validation=log"]),
        (["-", "-5"], ["-", "-5"]),
    ],
)
def test_short_options_are_spelled_out(arguments: list[str], spelled: list[str]) -> None:
    valued = {"i": "--iterations", "c": "--validation"}
    assert spell_out(arguments, valued, {"f": "--full"}) == spelled


LACKING = (
    *("latency -f 1", "allreduce -W 1", "bcast -k 1", "barrier -m 1", "bw -p 1", "init -i 1"),
    *("init -x 1", "hello --precision 1", "import_time --binding 1", "hello --validation 1"),
    *("import_time --staging 1", "allreduce -t 5", "latency -w create"),
    *("allreduce -N cart:1:1", "fop_latency -m 8", "cas_latency --sizes 8"),
    "file_read --file data --file-sync",
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        *((line, "No such option") for line in LACKING),
        *(
            (f"latency {option} {value}", f"'{option}' {words}")
            for option in ("--timeout", "--max-time")
            for value, words in (
                ("nan", "'nan' is not a number"),
                ("inf", "'inf' is not a number"),
                ("-inf", "is not a number"),
                ("1e300", "1e+300 too long"),
                ("1e999", "1e999 too large"),
                ("0", "not in the range x>0"),
            )
        ),
        ("latency -i 99999999999999999999", "99999999999999999999 too large"),
        ("latency -M 9999999999G", "9999999999G too large"),
        ("allreduce -z 50,99", "-z -z50,99 without a blank"),
        ("allreduce -fz 99.9", "-fz -fz99.9 without a blank"),
        ("allreduce --tail-lat 50", "--tail-lat --tail-lat=50 without a blank"),
        ("allreduce -c log:faults", "-c -clog:faults without a blank"),
        ("allreduce -fcz", "'z' is not log"),
        ("put_bibw -s lock", "'lock' 'pscw', 'fence'"),
        ("latency --target-busy 1e9", "'--target-busy' not in the range"),
        ("latency --offset 4096", "--offset within a page 4096"),
        ("file_write --file=", "--file is empty"),
    ],
)
def test_wrong_option_or_value_refused(line: str, words: str) -> None:
    with refuses(UsageError, words):
        parsed(*line.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sizes", "1", "-m", "8"],
        ["-c", "-D", "vect:8:4"],
        ["--force"],
        ["--output", "rows.xls"],
    ],
)
def test_options_that_exclude_each_other(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        parsed("bcast", *arguments)


@pytest.mark.parametrize("value", ["1_0", " 10", "10 ", "\uff11\uff10", "\u00b2", "0x10", "10\n"])
@pytest.mark.parametrize(
    "line",
    [
        *["mbw_mr -i", "mbw_mr -W", "mbw_mr -p", "mbw_mr -x", "latency --sizes", "latency -m"],
        *["latency --timeout", "latency --max-time", "latency --precision", "latency -M"],
        *["latency_mt -t", "gather -k", "latency --device", "bw_fan_in --node-map"],
        *["kmeans --samples", "kmeans --repeats", "overhead latency --rounds", "compare --rounds"],
        *["watch --interval", "timeline x --ranks", "profile --events"],
        *["compare x y --fail-above", "job render quick --nodes"],
    ],
)
def test_numbers_have_one_notation(line: str, value: str) -> None:
    around = {"gather -k": f"fixed:{value}", "compare x y --fail-above": f"{value}%"}
    words = [*line.split(), around.get(line, value)]
    with pytest.raises((UsageError, click.UsageError)) as refusal:
        command.main(words, standalone_mode=False)
    text = str(refusal.value)
    assert value in text or repr(value)[1:-1] in text, "refused for another reason"


@pytest.mark.parametrize("text", ["5", "0.05", "5 percent", "-5%", "0.5x", "x", ""])
@pytest.mark.parametrize(
    "line",
    [
        *(f"{name} x y --fail-above" for name in ("compare", "history", "guidelines")),
        *(f"{name} x y --tolerance" for name in ("compare", "check", "guidelines")),
        *["compare x y --launch-spread", "compare x y --precision", "latency --precision"],
    ],
)
def test_difference_without_its_unit_is_refused(in_process: Run, line: str, text: str) -> None:
    *_, option = words = line.split()
    assert_refused(in_process(*words, text), 2, f"'{option}': {text}: write 5% or 1.05x")


def every_command(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from every_command(found, f"{path} {name}")
        else:
            yield f"{path} {name}".strip(), found


def test_no_command_reads_numbers_in_a_way_of_its_own() -> None:
    for name, found in every_command(command):
        for parameter in found.params:
            assert type(parameter.type) not in (
                *(click.IntRange, click.FloatRange),
                *(type(click.INT), type(click.FLOAT)),
            ), f"{name}: {parameter.opts}"


@pytest.mark.slow
def test_helps_list_options_alone_among_options() -> None:
    for name, found in every_command(command):
        text = help_of(*name.split())
        for argument in (one for one in found.params if isinstance(one, click.Argument)):
            word = re.escape(argument.human_readable_name)
            listed = re.search(rf"^  \[?{word}\]?(\.\.\.)?(  |$)", text, re.MULTILINE)
            assert listed is None, name


def test_hyphens_in_names_are_underscores() -> None:
    assert parsed("latency", "--buffer", "torch-cpu") == parsed("latency", "--buffer", "torch_cpu")


@given(st.integers(0, 1 << 40), st.sampled_from([("", 1), ("K", 1 << 10), ("MiB", 1 << 20)]))
def test_numbers_of_bytes(number: int, unit: tuple[str, int]) -> None:
    assert parse_bytes(f"{number}{unit[0]}") == number * unit[1]


@given(st.integers(0, 10_000), st.integers(-(1 << 63) + 1, (1 << 63) - 1))
def test_zeros_in_front_change_no_number(zeros: int, number: int) -> None:
    sign, digits = ("-", str(-number)) if number < 0 else ("", str(number))
    assert parse_whole(sign + "0" * zeros + digits) == number


@given(st.text())
@example("9" * 20)
def test_anything_else_is_not_a_number_of_bytes(text: str) -> None:
    try:
        assert parse_bytes(text) >= 0
    except ValueError as error:
        assert re.search("is not a number of bytes|is too large", str(error))


def test_every_benchmark_has_help() -> None:
    for benchmark in all_benchmarks():
        command = benchmark_command(benchmark)
        text = command.get_help(click.Context(command, info_name=benchmark.name))
        assert benchmark.summary in " ".join(text.split())


def help_of(*names: str, option: str = "--help") -> str:
    """What ``--help`` prints in 80 columns."""
    width: dict[str, Any] = {"terminal_width": 80, "max_content_width": 80}
    with io.StringIO() as out, contextlib.redirect_stdout(out):
        command.main([*names, option], prog_name="omb-py", standalone_mode=False, **width)
        return out.getvalue()


BESIDE = {"list", "info", "completion"}
"""Commands that the help names elsewhere than in its lists."""


def test_help_fits_one_screen_and_names_every_command() -> None:
    lines = help_of().splitlines()
    assert len(lines) <= 34
    assert max(map(len, lines)) <= 80
    named = {line.split()[0] for line in lines if line.startswith("  ")}
    assert {"mpiexec", "omb-py", *LAZY_COMMANDS, *command.commands} - BESIDE <= named
    text = " ".join(lines)
    assert all(f"omb-py {name}" in text for name in BESIDE)


@pytest.mark.parametrize(
    ("name", "sentence"), [one for names in COMMANDS.values() for one in names.items()]
)
def test_help_has_the_first_sentence_of_each_command(name: str, sentence: str) -> None:
    context = click.Context(command)
    found = command.get_command(context, name)
    assert found is not None
    assert found.get_short_help_str(limit=99) == sentence


GROUPS = (
    *("Most used", "What is measured", "How it is sampled", "Data and checks"),
    *("How MPI is called", "Output"),
)


def headings_of(text: str) -> tuple[str, ...]:
    lines = text.splitlines()
    return tuple(line[:-1] for line in lines if line.endswith(":") and not line.startswith(" "))


def test_help_has_at_most_forty_options() -> None:
    text = help_of("allreduce")
    assert headings_of(text) == GROUPS
    lines = text.splitlines()
    first = ("-m", "--split", "--precision", "-u", "-l", "--samples")
    for heading, name in zip(GROUPS, first, strict=True):
        after = lines[lines.index(f"{heading}:") + 1]
        assert after.split()[0].rstrip(",") == name
    assert sum(line.startswith("  -") for line in lines) <= 40
    used = lines[lines.index("Most used:") : lines.index("What is measured:")]
    assert sum(line.startswith("  -") for line in used) == 15


def test_help_all_shows_what_the_help_leaves_out() -> None:
    text = help_of("allreduce", option="--help-all")
    assert set(headings_of(text)) == {*GROUPS, *EXTRA}
    assert "--staging" in text
    assert "--staging" not in help_of("allreduce")


def test_every_option_has_a_group_and_a_help_text() -> None:
    for benchmark in all_benchmarks():
        for parameter in parameters(benchmark):
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert isinstance(parameter, Option)
                assert parameter.group in (*GROUPS, *EXTRA), parameter.opts
                assert parameter.help
                assert parameter.help.endswith("."), parameter.opts


@pytest.mark.skipif(not CHOOSES_ITS_LIBRARY, reason="an mpi4py that is linked with a library")
def test_a_machine_without_an_mpi_library_is_said(omb_py: Run) -> None:
    missing = {"MPI4PY_LIBMPI": "/no/such/libmpi.so"}
    job = omb_py("barrier", **missing)
    assert_refused(job, 6, "load the site's MPI module or set MPI4PY_LIBMPI")
    info = succeeded(omb_py("info", **missing))
    assert "MPI      none: mpi4py cannot load an MPI library" in info.out
    assert "mpiexec -n 1 omb-py info" in info.out
    assert info.out.count("/no/such/libmpi.so") == 1
    for name in ("buffer", "native"):
        assert re.search(rf"(?m)^binding +{name} +not here: it needs an MPI library$", info.out)


@pytest.mark.slow
def test_list_and_info_and_module(omb_py: Run) -> None:
    listed = succeeded(omb_py("list"))
    for benchmark in all_benchmarks():
        assert f"  {benchmark.name} " in listed.out
    assert "mapped" in listed.out
    info = succeeded(omb_py("info"))
    assert "MPI " in info.out
    assert "numpy           ready" in info.out
    module = subprocess.run(
        [sys.executable, "-m", "omb_py", "--version"], capture_output=True, text=True, check=True
    )
    assert "omb-py" in module.stdout


FULL_DISK = """
import os, sys
from omb_py.cli import main
import omb_py.analysis.compare.side_by_side, omb_py.analysis.model.parameters
import omb_py.analysis.charts.terminal
read, write = os.pipe()
for words in sys.argv[1].split(";"):
    child = os.fork()
    if child == 0:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        os.dup2(write, 2)
        sys.stdout = open(1, "w", buffering=1 if words == "list" else 65536, closefd=False)
        sys.argv = ["omb-py", *words.split()]
        main()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, os.read(read, 65536).decode(), sep="|", end="", flush=True)
"""

RESULT = ROOT / "tests" / "data" / "omb" / "osu_latency.txt"
PRINTING = (
    *("list", "--version", f"model {RESULT}", f"plot --format text {RESULT}"),
    *(f"compare {RESULT} {RESULT} --format {kind}" for kind in ("text", "csv")),
)


@pytest.mark.long
def test_output_that_has_no_room_is_one_sentence_and_a_failure() -> None:
    """Whichever command prints it, and whether Python notices at once or at its end."""
    done = subprocess.run(
        # Python 3.12 warns of forks beside threads, which NumPy has
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FULL_DISK, ";".join(PRINTING)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    said = [line for line in done.stdout.splitlines() if not line.startswith("omb-py: note:")]
    assert len(said) == len(PRINTING)
    for line in said:
        assert line.startswith("1|omb-py: ")
        assert_names(line, "output No space left on device")
    assert done.stderr == ""

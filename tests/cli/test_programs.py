"""Native OMB's programs by their names: written, named by what starts them, with all options."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import click
import pytest

from docs.generate import LETTERS, option_table
from omb_py.benchmarks import all_benchmarks, find_benchmark
from omb_py.cli import NCCL_PROGRAMS
from omb_py.cli.benchmark import benchmark_command
from omb_py.cli.compare import why_not
from omb_py.core.errors import OmbError
from omb_py.options.native import SINCE_7_5, has_program, translated
from tests import ROOT
from tests.conftest import Run, own_temporary_folder, succeeded
from tests.helpers.refusals import assert_names, assert_refused, missing

PROGRAMS = [one for one in all_benchmarks() if has_program(one)]


def native_letters() -> dict[str, str]:
    """The letters that each of native OMB's programs takes, by the name of its benchmark."""
    text = (ROOT / "tests" / "data" / "omb" / "options-7.4.txt").read_text()
    families = (line.split(": ") for line in text.splitlines() if not line.startswith("#"))
    return {name: letters for letters, names in families for name in names.split()}


NATIVE_LETTERS = native_letters()

VALUES = {
    "m": "1:8",
    "i": "5",
    "x": "2",
    "M": "1048576",
    "W": "8",
    "R": "1",
    "p": "1",
    "t": "2",
    "u": "3",
    "b": "multiple",
    "T": "mpi_char",
    "D": "vect:8:4",
    "k": "rotate",
    "a": "32",
    "N": "cart:1:1",
    "G": "tty",
    "w": "create",
    "s": "fence",
    "d": "cuda",
    "r": "both",
    "q": "4",
}
"""A value of each letter that takes one, as native OMB has it."""


def is_taken(name: str, *words: str) -> bool:
    """Whether a program by native OMB's name takes these words."""
    command = benchmark_command(find_benchmark(name), native=True)
    try:
        command.make_context(f"osu_{name}", list(words), resilient_parsing=False)
    except click.exceptions.Exit:
        return True
    except (click.ClickException, OmbError):
        return False
    return True


def test_programs_start_the_benchmark_of_their_name(in_process: Run, tmp_path: Path) -> None:
    done = in_process("programs", "osu")
    assert (done.code, done.err) == (0, "")
    files = sorted((tmp_path / "osu").iterdir())
    assert [path.name for path in files] == sorted(
        ["run.py", *NCCL_PROGRAMS, *(f"osu_{one.name}" for one in PROGRAMS)]
    )
    assert len(files) == 77 + len(SINCE_7_5) + 1 + 2 * 9
    assert all(path.stat().st_mode & stat.S_IXUSR for path in files)
    with own_temporary_folder() as environment:
        shown = subprocess.run(
            [tmp_path / "osu" / "osu_mbw_mr", "-v"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert shown.stdout == "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
    succeeded(in_process("programs", "osu"))


def test_a_file_of_somebody_else_stays(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "osu").mkdir()
    (tmp_path / "osu" / "osu_bw").write_text("native OMB's")
    done = in_process("programs", "osu")
    assert_refused(done, 1, "osu/osu_bw omb-py")
    assert (tmp_path / "osu" / "osu_bw").read_text() == "native OMB's"


def test_links_to_a_program_that_is_not_there_are_refused(
    in_process: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omb_py.cli.programs.sysconfig.get_path", lambda name: str(tmp_path))
    assert_refused(in_process("programs", "osu"), 1, "there is no")
    assert not (tmp_path / "osu").exists()


@pytest.mark.parametrize("name", NATIVE_LETTERS)
def test_programs_take_every_option_of_native_omb(name: str) -> None:
    words = {
        letter: [f"-{letter}", VALUES[letter]] if letter in VALUES else [f"-{letter}"]
        for letter in NATIVE_LETTERS[name]
    }
    assert [letter for letter, given in words.items() if not is_taken(name, *given)] == []


def test_every_program_of_native_omb_is_in_the_table() -> None:
    assert {one.name for one in PROGRAMS} == {*NATIVE_LETTERS}


def test_all_collectives_take_one_set_of_options() -> None:
    names = [name for name, letters in NATIVE_LETTERS.items() if "M" in letters]
    assert len(names) == 54
    words = "-m 8:8 -i 3 -x 1 -f -a 32 -M 1048576 -u 2 -r cpu -z".split()
    assert [name for name in names if not is_taken(name, *words)] == []


def test_letters_are_those_of_the_table() -> None:
    assert set("".join(NATIVE_LETTERS.values())) <= {*LETTERS}


def test_no_letter_means_two_things() -> None:
    for one in PROGRAMS:
        command = benchmark_command(one, native=True)
        names = [name for param in command.params for name in param.opts if name.startswith("-")]
        assert len(names) == len({*names}), one.name


def test_table_of_letters_has_a_row_for_each_letter() -> None:
    rows = option_table().splitlines()[2:]
    assert list(dict.fromkeys(row[3:5] for row in rows)) == [f"-{letter}" for letter in LETTERS]
    assert all(row.count(" | ") == 3 for row in rows)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("help", "Analyze results"),
        ("help latency", "--sizes --binding"),
        ("overhead --help", "--bindings --rounds --launches allreduce"),
    ],
)
def test_help_has_the_options(in_process: Run, words: str, named: str) -> None:
    assert not missing(named, succeeded(in_process(*words.split())).out)


def test_values_mean_what_they_do_in_native_omb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omb_py.options.native.usable_buffer", lambda accelerator: "numba")
    with click.Context(click.Command("osu_latency")):
        assert translated({"accelerator": None, "placement": ("M", "D")}) == {
            "placement": ("MD", "D")
        }
        on_device = translated({"accelerator": "cuda", "placement": (), "managed": False})
        assert on_device == {"buffer": "numba", "managed": False, "placement": ("H", "H")}
        managed = translated({"accelerator": "managed", "managed": False})
        assert managed == {"buffer": "numba", "managed": True}


def test_what_has_no_such_program_cannot_be_compared_with_it() -> None:
    reasons = {one.name: why_not(one) for one in all_benchmarks()}
    assert reasons["latency"] is None
    assert reasons["partitioned_latency"] is None
    assert "prints no time" in str(reasons["hello"])
    assert_names(reasons["scan"], "native OMB scan compare")
    native = [name for name, reason in reasons.items() if reason is None]
    assert all(find_benchmark(name).native for name in native if name != "partitioned_latency")
    assert len(native) == 77  # of 7.4 without hello, and 7.5's

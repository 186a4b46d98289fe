"""What is wrong with a configuration is said with file, line, key and what may stand there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import StringConstraints, TypeAdapter, ValidationError

from omb_py.bindings import BINDINGS
from omb_py.core.errors import OmbError, UsageError
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.field_types import (
    LINE,
    NAME,
    PERMITTED,
    VARIABLE,
    WORD,
    Duration,
    EnvironmentName,
    Line,
    Name,
    Word,
    clock,
    seconds,
)
from omb_py.sweeps.launchers import LAUNCHERS
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.toml import key_lines, read, reason
from tests.helpers.refusals import assert_names, refuses

GOOD = """\
name = "mine"

[[experiments]]
benchmarks = [
    "latency",
    "bw",   # two of them
]
ranks = 2
"""


def fault(tmp_path: Path, text: str, model: type[Sweep] | type[Machine] = Sweep) -> str:
    """The sentence about a configuration that is not right."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read(path, model)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def test_a_good_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    (experiment,) = read(path, Sweep).experiments
    assert experiment.benchmarks == ("latency", "bw")
    assert experiment.ranks == (2,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('name = "mine"', 'nme = "mine"'), "line 1: unknown key 'nme'; 'name'?"),
        (('name = "mine"\n', "\n"), "key 'name' missing"),
        (("ranks = 2", "rank = 2"), "line 8: unknown key 'experiments.0.rank'; 'ranks"),
        (('"bw", ', '"bv", '), "line 4: experiments.0.benchmarks: unknown benchmark 'bv'"),
        (("ranks = 2", "ranks = 0"), "line 8: experiments.0.ranks: greater 0"),
        (("ranks = 2", "ranks = [2, 2]"), "line 8: experiments.0.ranks: 2 twice"),
        (("ranks = 2", "ranks = []"), "line 8: experiments.0.ranks: empty"),
        (("ranks = 2", "nodes = 2"), "line 3: experiments.0: ranks or ranks_per_node"),
        (("ranks = 2", 'ranks = 2\nsizes = "1:2:3"'), "line 9: experiments.0.sizes: '1:2:3'"),
        (("ranks = 2", 'ranks = 2\nbuffers = "nunpy"'), "'nunpy' 'numpy'?"),
        (
            ("ranks = 2", 'ranks = 2\nbindings = ["C"]'),
            f"'C' (known: {', '.join(BINDINGS.names())})",
        ),
        (('name = "mine"', 'name = "mine"\ntime_limit = "soon"'), "line 2: time_limit: 'soon'"),
        (('name = "mine"', 'name = "mine"\nretries = 11'), "line 2: retries: less 10"),
        (("ranks = 2", "ranks = 2 2"), "not TOML"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    assert change[0] in GOOD
    assert_names(fault(tmp_path, GOOD.replace(*change)), words)


def test_allowed_words_are_named(tmp_path: Path) -> None:
    machine = 'name = "here"\n'
    said = fault(tmp_path, machine + 'launcher = "mpirun"', Machine)
    assert "line 2: launcher: unknown 'mpirun'" in said
    assert f"(known: {', '.join(['auto', *LAUNCHERS])})" in said
    said = fault(tmp_path, machine + 'binding = "socket"', Machine)
    assert "line 2: binding must be 'default', 'none', 'core', 'numa' or 'depth'" in said
    said = fault(tmp_path, machine + 'scheduler = "slrum"', Machine)
    assert "did you mean 'slurm'?" in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cores = 4", "unknown key 'cores'; 'cores_per_node'?"),
        ("gpus = 4", "'gpus'; 'gpus_per_node'?"),
        ("node = 4", "'node'; 'nodes'?"),
        ('virtualenv = "x"', "'virtualenv'; 'virtual_environment'?"),
        ('module = "x"', "'module'; 'modules'?"),
        ('walltime = "30m"', "unknown key 'walltime'; in [job]"),
        ("[job]\nnodes = 4", "unknown key 'job.nodes'; above the first table"),
        ('[job]\ntime = "30m"', "'job.time'; 'walltime'?"),
        (
            '[job]\nproject = "x"',
            "'job.project' (known: queue, account, account_required, walltime",
        ),
        ('name = "a b"', "line 1: name: a blank 'a b', letters, digits"),
        ('name = "-a"', "line 1: name: '-a' letters, digits _ . -"),
        ('modules = ["a;b"]', "modules: ';' 'a;b', letters, digits _ ."),
        ('host_file = "a\\u0007"', "host_file: '\\x07'"),
        ('description = "a\\nb"', "description: 'a\\nb', one line"),
        ('environment = {"A-B" = "1"}', "environment '-' 'A-B', letters, digits _"),
        ('[job]\nqueue = "$(id)"', "job.queue: '$' '$(id)', letters"),
        ('[job]\nselect = ["a b"]', "job.select: a blank 'a b'"),
        ('[job]\ndirectives = ["a\\tb"]', "job.directives: 'a\\tb'"),
    ],
)
def test_wrong_key_or_character_is_named(tmp_path: Path, line: str, words: str) -> None:
    name = "" if line.startswith("name") else 'name = "here"\n'
    assert_names(fault(tmp_path, f"{name}{line}\n", Machine), words)


@given(st.sampled_from([NAME, WORD, LINE, VARIABLE]), st.text(max_size=70))
def test_a_text_that_does_not_fit_is_told_why(pattern: str, text: str) -> None:
    """Pydantic's pattern and the character that is named agree."""
    words = TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    try:
        words.validate_python(text)
    except ValidationError as error:
        (fault,) = error.errors()
        assert repr(text) in reason(fault) or fault["type"] != "string_pattern_mismatch"
    else:
        assert not PERMITTED[pattern][0].search(text)


def test_all_faults_are_named_up_to_a_few(tmp_path: Path) -> None:
    said = fault(tmp_path, "".join(f"key{number} = 1\n" for number in range(9)))
    assert said.count("line ") == 3
    assert "; and 6 more" in said


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), (b"\xff\xfe\x00", "not UTF-8")]
)
def test_unreadable_file_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    with refuses(OmbError, words):
        read(path, Sweep)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.booleans()), max_size=12))
def test_every_key_begins_where_it_stands(shape: list[tuple[int, int, bool]]) -> None:
    lines: list[str] = []
    expected = {}
    for number, (gap, height, table) in enumerate(shape):
        lines += ["# a comment, or nothing", ""][: gap % 3]
        expected[number] = len(lines) + 1
        if table:
            lines += [f"[table{number}]", 'text = """', "[not.a.table]", '"""'][
                : height if height > 3 else 1
            ]
        else:
            lines += [f"key{number} = ["] + ["  1,"] * height + ["]"]
    names = {key[-1]: line for key, line in key_lines("\n".join(lines))}
    for number, (_, _, table) in enumerate(shape):
        assert names[f"{'table' if table else 'key'}{number}"] == expected[number]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(90, 90), ("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400)],
        *[("0:30:00", 1800), ("01:30", 90), ("25 m", 1500)],
        *[("1h30m", 5400), ("1d12h", 129_600), ("1h0.5m2s", 3632), ("1h 30m", 5400)],
    ],
)
def test_duration_is_read_in_seconds(text: str | int, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((Duration, text) for text in ("", "soon", "0", "-5", "1:2:3:4", "1:x", "5 weeks")),
        *((Duration, value) for value in (True, None, "30m1h", "1h30", "1h1h", "1h30m:00")),
        *((EnvironmentName, name) for name in ("A B", "A=B", "1A", "", "A-B", "Ä", "A\n")),
    ],
)
def test_wrong_value_refused(kind: Any, value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(value)


@given(st.integers(1, 359_999))
def test_a_duration_is_read_as_schedulers_write_it(value: int) -> None:
    assert seconds(clock(value)) == value


@given(st.text())
def test_words_and_names_hold_nothing_that_a_shell_knows(text: str) -> None:
    for kind in (Word, Name):
        try:
            found = TypeAdapter(kind).validate_python(text)
        except ValidationError:
            continue
        assert found
        assert not set(found) & set(" \t\r\n\0'\"`$\\;&|<>(){}[]*?!#%")


@given(st.text())
def test_a_line_is_one_line(text: str) -> None:
    try:
        found = TypeAdapter(Line).validate_python(text)
    except ValidationError:
        return
    assert len(found.splitlines()) <= 1
    assert "\0" not in found

"""A configuration cannot run anything, nor write outside its sweep's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run, rows_of
from tests.sweeps.sweeping import MACHINE, SmallSweep, toml

pytestmark = pytest.mark.any_library

HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned;",
    "' ; touch pwned ; '",
    '" ; touch pwned ; "',
    "| tee pwned",
    "> pwned",
    "../../pwned",
    "--output=pwned.csv",
    "-o pwned",
    "a\tb\\n%s{}*?~",
    "é ☃ ${HOME}",
)


def quoted(text: str) -> str:
    """A TOML string of any text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{escaped}"'


def text_with(variable: str, values: list[str]) -> str:
    """A sweep of one rank that varies an environment variable."""
    axis = ", ".join(quoted(value) for value in values)
    return (
        'name = "mine"\n[[experiments]]\nbenchmarks = "allreduce"\nbindings = "buffer"\nranks = 1\n'
        f"sizes = 8\noptions = {toml({'iterations': 5})}\n"
        f"environment = {{ {variable} = [{axis}] }}\n"
    )


@pytest.fixture
def refused(tmp_path: Path, in_process: Run) -> Callable[..., str]:
    """``refused(text, machine)`` is the sentence by which a sweep is not even begun."""

    def start(text: str, machine: str = MACHINE) -> str:
        sweep = SmallSweep(tmp_path, text, machine)
        done = in_process(*sweep.command()[1:])
        assert done.code == 2
        assert not sweep.place.exists()
        (sentence,) = done.sentences
        return sentence

    return start


@pytest.mark.long
@pytest.mark.usefixtures("mpi")
def test_values_reach_the_ranks_as_they_are_and_run_nothing(tmp_path: Path) -> None:
    values = [value for value in HOSTILE if "\t" not in value]
    home = tmp_path / "a folder; touch pwned $(touch pwned) '\""
    sweep = SmallSweep(home, text_with("OMP_HOSTILE", values))
    done = sweep.run()
    assert done.code == 0, done.out + done.err
    rows = [row for path in sweep.place.glob("points/*.csv") for row in rows_of(path)]
    said = {row["variant"].replace("%23", "#") for row in rows}
    assert said == {f"OMP_HOSTILE={value}" for value in values}
    assert [path for path in tmp_path.rglob("*") if path.stem == "pwned"] == []
    assert {path.name for path in home.iterdir()} == {"mine.toml", "here.toml", "out"}
    commands = "\n".join(path.read_text() for path in sweep.place.glob("logs/*"))
    assert commands.count("$ ") >= len(values)


@pytest.mark.parametrize("value", ["a\\tb", "a\\nb", "a\\u0000b", "a\\u2028b", "a\\u001bb"])
def test_values_of_more_than_a_line_are_refused(refused: Callable[..., str], value: str) -> None:
    text = text_with("OMP_HOSTILE", ["x"]).replace('"x"', f'"{value}"')
    assert "permitted" in refused(text)


@pytest.mark.parametrize(
    "name", ["../out", "/etc/out", "a/b", "", ".", "..", "-x", "a\\nb", "$(x)"]
)
def test_names_lead_nowhere(refused: Callable[..., str], name: str) -> None:
    text = text_with("OMP_HOSTILE", ["x"])
    assert refused(text.replace('"mine"', f'"{name}"'))
    assert refused(text, f'name = "{name}"\n')


@pytest.mark.parametrize(
    "options",
    [
        {"output": "/tmp/pwned.csv"},
        {"file": "/tmp/pwned"},
        {"graph": "png"},
        {"validation": "log:/tmp/pwned"},
        {"--output": "/tmp/pwned.csv"},
        {"iterations=5 --output": "/tmp/pwned.csv"},
        {"placement": "--output=/tmp/pwned.csv"},
    ],
)
def test_options_write_nowhere_else(refused: Callable[..., str], options: dict[str, str]) -> None:
    words = ", ".join(f'"{name}" = "{value}"' for name, value in options.items())
    text = text_with("OMP_HOSTILE", ["x"]).replace(
        "options = { iterations = 5 }", f"options = {{ {words} }}"
    )
    assert words in text
    assert refused(text.replace("allreduce", "latency").replace("ranks = 1", "ranks = 2"))

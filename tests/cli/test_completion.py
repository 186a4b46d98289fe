"""``omb-py completion``: what the shells themselves make of what is typed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.apps import APPLICATIONS
from omb_py.benchmarks import all_benchmarks
from omb_py.cli import LAZY_COMMANDS
from omb_py.cli import command as omb_py
from tests.conftest import BIN

ASKING = {
    "bash": """
        eval "$(omb-py completion bash)"
        complete -p omb-py > /dev/null || exit 1
        compopt() { echo "$2"; }
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _omb_py_completion omb-py
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        compdef() { :; }
        eval "$(omb-py completion zsh)"
        compadd() { print -l -- $completions; }
        _describe() { print -l -- ${completions_with_descriptions%%:*}; }
        _path_files() { print -- ${${1/-f/default}/-\\//dirnames}; }
        words=("$@"); CURRENT=$#
        _omb_py_completion
    """,
    "fish": """
        omb-py completion fish | source
        complete -C (string join " " -- $argv)
    """,
}
"""Scripts that have their arguments completed, the last of them being what was typed of a word."""


def answers(shell: str, folder: Path, *words: str) -> list[str]:
    """What a shell offers for the last of some words."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    own = {"zsh": ["-f", "-c"], "bash": ["--norc", "-c"], "fish": ["--no-config", "-c"]}[shell]
    name = [] if shell == "fish" else [shell]
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(
        [shell, *own, ASKING[shell], *name, "omb-py", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.slow
def test_the_shells_complete_commands_options_and_choices(shell: str, tmp_path: Path) -> None:
    assert answers(shell, tmp_path, "allr") == ["allreduce", "allreduce_persistent"]
    assert answers(shell, tmp_path, "allreduce", "--buf") == ["--buffer"]
    assert answers(shell, tmp_path, "plot", "--kind", "pa") == ["parts", "pairs"]


def test_files_are_completed_as_files(tmp_path: Path) -> None:
    assert answers("bash", tmp_path, "report", "") == ["default"]
    assert answers("bash", tmp_path, "bcast", "--output", "res") == ["default"]
    assert answers("bash", tmp_path, "programs", "") == ["dirnames"]
    assert answers("zsh", tmp_path, "report", "") == ["default"]


def offered(folder: Path, *words: str) -> list[str]:
    """What click's protocol answers for the last of some words."""
    asked = {"_OMB_PY_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [BIN / "omb-py"],
        env=os.environ | asked | {"COMP_WORDS": "\n".join(["omb-py", *words])},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_all_that_can_be_typed_first(tmp_path: Path) -> None:
    benchmarks = {benchmark.name for benchmark in all_benchmarks()}
    names = benchmarks | {*APPLICATIONS.names(), *LAZY_COMMANDS, *omb_py.commands}
    assert set(offered(tmp_path, "")) == names
    planned = {benchmark.name for benchmark in all_benchmarks() if benchmark.planned}
    assert set(offered(tmp_path, "overhead", "")) == planned


@pytest.mark.parametrize("words", [["nonsense", ""], ["bw", "-c", "log", ""], ["bw", "-V1", "-"]])
def test_unreadable_file_has_no_completions(tmp_path: Path, words: list[str]) -> None:
    offered(tmp_path, *words)


@pytest.mark.parametrize("typed", ["", "bcast --buffer ", "sweep ", "report "])
def test_an_answer_loads_nothing_large(tmp_path: Path, typed: str) -> None:
    words = f"omb-py {typed}"
    asked = {"_OMB_PY_COMPLETE": "bash_complete", "COMP_WORDS": words}
    asked["COMP_CWORD"] = str(len(words.split()))
    program = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stdout));"
    program += "from omb_py.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | asked,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert "click" in loaded
    assert not {"numpy", "mpi4py", "pandas", "pydantic", "altair", "rich"} & loaded

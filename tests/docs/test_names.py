"""Names in backquotes in prose: commands, options, columns, keys and files that there are.

Blocks of commands and code have tests of their own (`test_commands`, `test_sources`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import click
import pytest
from pydantic import BaseModel

from omb_py.benchmarks import all_benchmarks
from omb_py.cli import NCCL_PROGRAMS, command
from omb_py.cli.programs import run_command
from omb_py.simulation import network
from omb_py.simulation.network import Network, Protocol
from omb_py.sweeps.config import Experiment, Sweep
from omb_py.sweeps.machine import ROWS, JobSettings, Library, Machine, Queue
from perf.results import PARTS
from tests import ROOT
from tests.docs.pages import FENCE, pages

SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
GENERATED = re.compile(r"<!-- generated: .*?<!-- end of generated -->", re.DOTALL)
WORD = re.compile(r"[a-z][\w-]*")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
PATH = re.compile(r"(?:\.\./)*(?:[\w.-]+/)+[\w.*-]*")
LIST = r"((?:`[^`]+`(?:,? and |,? or |, )?)+)"
OF_A_MACHINE = re.compile(rf"machine(?: file)?'s {LIST}|{LIST} of a machine file", re.I)
KEY = re.compile(r"^([a-z_]+) = ", re.MULTILINE)
EXTRAS = re.compile(r"(?<![\w\]])\[([a-z\d]+(?:,[a-z\d]+)*)\]\"")
MINUTES = re.compile(r"(\w+(?:\.\d)?) min")

MODELS: tuple[type[BaseModel], ...] = (Sweep, Experiment, Machine, JobSettings, Queue, Library)
COSTS = (Network, network.Path, Protocol)
TOLD_OF_TESTS = ("testing.md", "CONTRIBUTING.md", "extending.md")
"""Pages whose names are also those of tests."""

OTHERS = {
    "mpiexec": "--bind-to --mca --oversubscribe --ntasks -hosts",
    "pip and CPython's configure": "--disable-gil",
    "pytest": "--require --sample-seed any_library every_library exhaustive",
    "schedulers": "bhosts bkill mpiprocs qdel qrerun sbcast scancel sinfo undelivered",
    "packages and programs": "ethtool hcoll ibstat impi-rt iproute2 libucx-cu13 tc util-linux"
    " mpichversion ompi_info ruff",
    "perftest and UCX": "ib_read_bw ib_write_bw ib_write_lat t_stdev tag_lat uct_am_lat"
    " ucp_put_lat ucp_tag_bw --out_json",
    "NVSHMEM, and nccl-tests' that omb-py lacks": "nvshmem_put_bw_uni alltoallv_perf"
    " hypercube_perf",
    "PyTorch": "fp16_compress_hook",
    "browsers": "unsafe-eval",
    "the environment of the release workflow": "pypi",
    "names of examples, formed as the text says": "node1 node2 tree_ll obvious",
    "units": "MB/s GB/s msg/s",
    "files that commands write": "DIR/rank-N.log omb-profile/timeline.json jobs/record bin/run.py"
    " logs/sweep.output sweeps/libraries-local sweeps/quick-mycluster/logs/sweep.output"
    " sweeps/SWEEP-MACHINE/jobs/NAME.sh",
    "the kernel's, and a place for any room": "hw_counters/tx_bytes omb_py/ROOM/",
}
"""Names that are not of this program or folder, by whose they are."""

EXCEPTED = {name for names in OTHERS.values() for name in names.split()}
PAGES = [*pages(), *(ROOT / name / "README.md" for name in ("results", "jobs"))]
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def spans(text: str) -> Iterator[str]:
    """What stands in backquotes outside of fenced blocks and of what the code has written."""
    for found in SPAN.finditer(FENCE.sub("", GENERATED.sub("", text))):
        yield " ".join(found[1].split())


def texts(tree: ast.Module) -> Iterator[str]:
    """Names and strings of a module; docstrings are prose, too, and so prove nothing."""
    prose = {
        id(line.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for line in node.body
        if isinstance(line, ast.Expr)
    }
    for node in ast.walk(tree):
        constant = isinstance(node, ast.Constant) and id(node) not in prose
        for name in ("value",) if constant else ("id", "attr", "arg", "name"):
            found = getattr(node, name, None)
            if isinstance(found, str):
                yield found


@cache
def words(folder: str) -> frozenset[str]:
    """The words of the sources in a folder."""
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            found.update(re.findall(r"\w+|[\w-]+", text), re.findall(r"[\w-]+", text))
        found.add(path.stem)
    return frozenset(found)


@cache
def words_of_configurations() -> frozenset[str]:
    """The words of machine files and sweeps."""
    found: set[str] = set()
    for path in (ROOT / "configs").rglob("*.toml"):
        found.update(re.findall(r"[\w-]+", path.read_text(encoding="utf-8")), [path.stem])
    return frozenset(found)


@cache
def programs() -> frozenset[str]:
    """The names of benchmarks, and those by which native OMB's and nccl-tests' users start them."""
    names = {one.name for one in all_benchmarks()}
    return frozenset(names | {f"osu_{name}" for name in names} | {*NCCL_PROGRAMS})


@cache
def options() -> frozenset[str]:
    """The options of all commands."""
    found: set[str] = set()
    waiting: list[click.Command] = [command, run_command]
    while waiting:
        one = waiting.pop()
        context = click.Context(one)
        for parameter in one.get_params(context):
            found.update(parameter.opts, parameter.secondary_opts)
        if isinstance(one, click.Group):
            members = (one.get_command(context, name) for name in one.list_commands(context))
            waiting += [member for member in members if member is not None]
    return frozenset(found)


def unknown_words(text: str, *folders: str) -> list[str]:
    """Words of prose that neither the program nor its benchmarks nor options have."""
    known = words_of_configurations() | programs() | EXCEPTED
    known |= {word for folder in ("omb_py", "tests/plugin", *folders) for word in words(folder)}
    known |= {option.lstrip("-").replace("-", "_") for option in options()}  # of omb_py.run
    return [span for span in spans(text) if WORD.fullmatch(span) and span not in known]


def unknown_options(text: str) -> list[str]:
    """Options of prose that no command has."""
    ours = (span for span in spans(text) if span.startswith("--") or "omb-py" in span)
    found = [option for span in ours for option in OPTION.findall(span)]
    return [option for option in found if option not in options() | EXCEPTED]


def unknown_files(text: str) -> list[str]:
    """Paths of prose below a folder of the project that lead to nothing."""
    paths = [span for span in spans(text) if PATH.fullmatch(span) and span not in EXCEPTED]
    return [path for path in paths if not any(ends_with(there, path) for there in files())]


@cache
def files() -> frozenset[Path]:
    """All files and folders of the project."""
    folders = ("omb_py", "tests", "docs", "configs", "jobs", "perf", "results", "contrib", ".ci")
    found = [path for name in folders for path in (ROOT / name).rglob("*")]
    return frozenset([ROOT / "Makefile", *(ROOT / name for name in folders), *found])


def ends_with(path: Path, end: str) -> bool:
    """Whether a page can name a file so: by its last folders, or by a pattern of them."""
    return path.match(re.sub(r"^(\.\./)+", "", end.rstrip("/")))


def unknown_keys(text: str) -> list[str]:
    """Keys of TOML, and keys of a machine that prose names, that no configuration has."""
    lists = [found[1] or found[2] for found in OF_A_MACHINE.finditer(FENCE.sub("", text))]
    found = [key.partition(" ")[0] for names in lists for key in spans(names)]
    for block in FENCE.finditer(text):
        if block["language"] == "toml" and "project.entry-points" not in block["text"]:
            found += KEY.findall(block["text"])
    known = {name for model in MODELS for name in model.model_fields}
    known |= {field.name for costs in COSTS for field in fields(costs)}
    return [key for key in found if WORD.fullmatch(key) and key not in known | set(ROWS)]


@pytest.mark.slow
@EACH
def test_words_of_prose_are_words_of_the_program(page: Path) -> None:
    tests = ("tests",) if page.name in TOLD_OF_TESTS else ()
    assert unknown_words(page.read_text(encoding="utf-8"), *tests) == []


@EACH
def test_options_of_prose_exist(page: Path) -> None:
    assert unknown_options(page.read_text(encoding="utf-8")) == []


@EACH
def test_files_of_prose_exist(page: Path) -> None:
    assert unknown_files(page.read_text(encoding="utf-8")) == []


@EACH
def test_keys_of_configurations_exist(page: Path) -> None:
    assert unknown_keys(page.read_text(encoding="utf-8")) == []


@EACH
def test_extras_exist(page: Path) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    known = set(re.findall(r"^(\w+) = \[", project, re.MULTILINE))
    found = EXTRAS.findall(page.read_text(encoding="utf-8"))
    assert {extra for extras in found for extra in extras.split(",")} <= known


def test_files_of_results_are_explained() -> None:
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    named = {span.rstrip("/") for span in spans(text)}
    there = {path.name for path in (ROOT / "results").iterdir()} - {"README.md"}
    assert there <= named
    named = {name for name in named if name.endswith((".csv", ".txt", ".parquet"))}
    assert all([*(ROOT / "results").rglob(name)] for name in named)


def test_each_file_of_results_is_measured_by_one_part() -> None:
    for path in (ROOT / "results").rglob("*.*"):
        if path.name != "README.md":
            assert [path in part.paths() for part in PARTS.values()].count(True) == 1, path


@pytest.mark.parametrize("target", ["make check", "make test"])
def test_pages_agree_on_the_time_of_a_target(target: str) -> None:
    numbers = {
        word: n
        for n, word in enumerate("one two three four five six seven eight nine ten".split(), 1)
    }
    found: set[float] = set()
    for name in ("README.md", "Makefile", "docs/testing.md", "docs/extending.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for line in re.findall(rf"{target}(?![\w-])[^\n]*(?:\n(?!\n|.*make ).*)?", text):
            if said := MINUTES.search(line):
                found.add(float(numbers.get(said[1], 0) or said[1]))
    assert len(found) == 1, found


@pytest.mark.parametrize("name", sorted(EXCEPTED))
def test_an_exception_is_in_some_page(name: str) -> None:
    assert any(name in page.read_text(encoding="utf-8") for page in PAGES)


def test_a_name_that_does_not_exist_is_found() -> None:
    text = """
`omb-py show --sideways`, `--output`; a machine's `preload` or `palette`; `bandwith_us`,
`latency_us`; `results/nothing.csv`, `results/abi.csv`

```toml
nodes = 2
knots = 3
```
"""
    assert unknown_options(text) == ["--sideways"]
    assert unknown_words(text) == ["palette", "bandwith_us"]
    assert unknown_files(text) == ["results/nothing.csv"]
    assert unknown_keys(text) == ["palette", "knots"]

"""Samples of products: they cover what the product covers, and a seed decides which they are."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import run
from tests.helpers.battery import Line, line
from tests.helpers.properties import examples
from tests.layers import Case, cases_of, covered, factors, sample
from tests.mpi import test_benchmarks
from tests.mpi.lines import WITH_DATA

SEEDS = st.integers(0, (1 << 32) - 1)
STRENGTHS = st.sampled_from([0, 1, 2])
CASES = st.lists(
    st.fixed_dictionaries(
        {name: st.sampled_from("abcd") for name in ("benchmark", "binding", "ranks", "size")}
    ).map(lambda values: frozenset(values.items())),
    min_size=1,
    max_size=60,
)


def everything(cases: list[Case], strength: int) -> set[tuple[tuple[str, str], ...]]:
    """What some cases cover together."""
    return {one for case in cases for one in covered(case, strength)}


@given(CASES, STRENGTHS, SEEDS)
def test_sample_covers_as_its_product(cases: list[Case], strength: int, seed: int) -> None:
    chosen = sample(cases, strength, seed)
    assert everything([cases[one] for one in chosen], strength) == everything(cases, strength)


@given(CASES, STRENGTHS, SEEDS)
def test_the_same_seed_draws_the_same_sample(cases: list[Case], strength: int, seed: int) -> None:
    assert sample(cases, strength, seed) == sample(list(cases), strength, seed)


def test_another_seed_draws_another_sample() -> None:
    cases = [frozenset({("a", f"{a}"), ("b", f"{b}")}) for a in range(9) for b in range(9)]
    assert len({frozenset(sample(cases, 1, seed)) for seed in range(9)}) > 1


@given(CASES, SEEDS)
def test_any_case_is_one_case(cases: list[Case], seed: int) -> None:
    assert len(sample(cases, 0, seed)) == 1


@given(SEEDS)
def test_strength_1_takes_as_many_cases_as_values(seed: int) -> None:
    cases = [frozenset({("a", f"{a}"), ("b", f"{b}")}) for a in range(7) for b in range(3)]
    assert len(sample(cases, 1, seed)) == 7


@examples(25)
@given(SEEDS)
def test_every_benchmark_binding_and_buffer_is_in_the_sample(seed: int) -> None:
    marked: Any = test_benchmarks.test_what_arrives_is_what_was_sent
    (lines,) = (mark.args[1] for mark in marked.pytestmark if mark.name == "parametrize")
    chosen = sample(cases_of({"line": one} for one in lines), 2, seed)
    drawn = [lines[number] for number in chosen]
    assert len(drawn) < len(lines) / 2
    assert {one.arguments[0] for one in drawn} == {one.name for one in WITH_DATA}
    for option in ("--binding", "--buffer"):
        assert values(drawn, option) == values(lines, option)


def values(lines: list[Line], option: str) -> set[str]:
    """What lines give for an option."""
    words = [one.arguments for one in lines if option in one.arguments]
    return {given[given.index(option) + 1] for given in words}


def test_pairs_are_of_families_and_not_of_benchmarks() -> None:
    case = frozenset(factors({"line": line(2, "latency --binding native -c")}).items())
    found = set(covered(case, 2))
    assert (("benchmark", "latency"),) in found
    pairs = {pair for pair in found if len(pair) == 2}
    assert (("--binding", " native"), ("family", "point-to-point")) in pairs
    assert not any("benchmark" in (first[0], second[0]) for first, second in pairs)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (
            line(3, "bcast --sizes 8,4096 -k fixed:2 -l"),
            {"ranks": "3", "benchmark": "bcast", "--sizes": " 8,4096", "-k": " fixed:2", "-l": ""},
        ),
        (line(2, "latency D H --buffer raw", FAULT="1"), {"--buffer": " raw", "FAULT": "1"}),
        (line(2, "matmul --rows 48"), {"family": "matmul", "--rows": " 48"}),
    ],
)
def test_each_option_of_a_line_is_a_factor(one: Line, expected: dict[str, str]) -> None:
    assert expected.items() <= factors({"line": one, "words": "said"}).items()
    assert factors({"line": one, "words": "said"})["words"] == "said"


@pytest.mark.slow
def test_tests_of_a_group_run_on_one_worker(tmp_path: Path) -> None:
    """pytest-xdist 3.8 forgets groups with pytest 9.2, and says nothing."""
    (tmp_path / "test_groups.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('group', 5 * ['a', 'b'])\n"
        "def test_one(request, group, worker_id): ...\n"
    )
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        group = item.callspec.params['group']\n"
        "        item.add_marker(pytest.mark.xdist_group(group))\n"
    )
    words = "-n 2 --dist loadgroup -vv -p no:randomly -p no:cacheprovider".split()
    command = [sys.executable, "-m", "pytest", *words]
    out = run(command, {}, tmp_path, timeout=120).out
    found = {(worker, group) for worker, group in re.findall(r"\[(gw\d)\].*@(\w) *$", out, re.M)}
    assert {group for _, group in found} == {"a", "b"}
    assert len(found) == 2


@pytest.mark.slow
def test_a_run_names_what_failed_and_counts_what_was_not_tested(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    (tmp_path / "test_skips.py").write_text(
        "import pytest\n"
        "@pytest.mark.browser\n"
        "@pytest.mark.parametrize('number', range(3))\n"
        "def test_page(number): pytest.skip('no browser')\n"
        "def test_wrong(): assert 0\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = browser: Chromium\n")
    words = "-p tests.layers -p no:randomly -p no:cacheprovider".split()
    command = [sys.executable, "-m", "pytest", *words]
    usual = run(command, {"PYTHONPATH": str(root)}, tmp_path, timeout=120)
    required = run([*command, "--require", "browser"], {"PYTHONPATH": str(root)}, tmp_path, 120)
    assert "not tested, 3 cases: no browser" in usual.out
    assert usual.out.index("FAILED test_skips.py::test_wrong") < usual.out.index("= FAILURES")
    assert "1 failed, 3 skipped" in usual.out
    assert "4 failed" in required.out
    assert "--require browser: no browser" in required.out

"""Networks' files: what is written is read again, and what is wrong is named with file and key."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.simulation import network
from omb_py.simulation.network import Checked, Network, Protocol
from omb_py.simulation.network import Path as NetworkPath
from tests.helpers.properties import examples
from tests.helpers.refusals import missing, refuses

numbers = st.floats(0.001, 1e6).map(lambda number: float(format(number, ".6g")))


@st.composite
def paths(draw: st.DrawFn) -> NetworkPath:
    limits = sorted(draw(st.sets(st.integers(1, 1 << 20), max_size=3)))
    protocols = tuple(
        Protocol(limit, draw(numbers), draw(numbers), draw(numbers)) for limit in [*limits, inf]
    )
    return NetworkPath(draw(numbers), draw(numbers), draw(numbers), protocols)


@examples(50)
@given(paths(), paths(), numbers, numbers)
def test_a_network_that_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    between: NetworkPath,
    within: NetworkPath,
    memory: float,
    add: float,
) -> None:
    path = tmp_path_factory.getbasetemp() / "network.toml"
    made = Network("torus:4x4", between, within, memory, add, "measured by latency")
    path.write_text(network.text_of(made, {"between.latency_us": "latency, 1 B"}))
    found = network.read(path)
    assert found.origin == "network.toml, measured by latency"
    assert (found.between, found.within) == (between, within)
    assert (found.topology, found.memory_MBps, found.add_us_per_byte) == ("torus:4x4", memory, add)


def test_a_text_may_have_quotes(tmp_path: Path) -> None:
    made = replace(network.ROUND_FIGURES, origin='my "own" \\ numbers')
    path = tmp_path / "network.toml"
    path.write_text(network.text_of(made, {}))
    assert network.read(path).origin == f"network.toml, {made.origin}"


def test_a_latency_and_a_bandwidth_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text('topology = "star"\n[between]\nlatency_us = 1\nbandwidth_MBps = 1000\n')
    assert network.find(str(path)).between.protocol(1e9) == Protocol()
    assert network.find(str(path), "torus:2x2").nodes == 4


def test_errors_of_a_check_replace_the_last_ones(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    mine = 'topology = "star"  # mine\n[between]\nlatency_us = 1 # my own\nbandwidth_MBps = 1000'
    path.write_text(mine)
    for points in (3, 5):
        checked = (Checked("allreduce", "latency-bound", 2, 8, points, 0.01, 0.25),)
        network.write_checked(path, checked)
        assert network.read(path).checked == checked
        assert path.read_text().startswith(mine)
        assert network.find(str(path), "torus:2x2").checked == ()
    assert path.read_text().count("[[checked]]") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topology = ", "not TOML"),
        ('topology = "star"', "between: required"),
        ("latency_us = 1", "latency_us: Unexpected"),
        ("bandwidth_MBps = -1", "between.bandwidth_MBps: greater than 0"),
        ("[[between.protocols]]\nup_to = 8\n[[between.protocols]]\nup_to = 4", "up_to grow"),
        ("bandwidth_MBps = inf", "between.bandwidth_MBps: less than inf"),
        ('topology = "ring:5"', "ring:5 no file no topology"),
    ],
)
def test_wrong_network_file_names_the_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "wrong.toml"
    parts = {
        "topology": 'topology = "star"\n',
        "between": "[between]\nlatency_us = 1\nbandwidth_MBps = 1000\n",
    }
    if "topology" in text:
        parts["topology"] = f"{text}\n"
        if "required" in words:
            parts["between"] = ""
    elif text.startswith("bandwidth"):
        parts["between"] = f"[between]\nlatency_us = 1\n{text}\n"
    elif text.startswith("latency"):
        parts["topology"] += f"{text}\n"
    else:
        parts["between"] += text
    path.write_text("".join(parts.values()))
    with refuses(UsageError, words):
        network.read(path)


def test_round_figures_say_that_they_are() -> None:
    found = network.find("fat-tree:4,4")
    assert not missing("Network: fat-tree:4,4; round figures nothing measured", found.description)
    with refuses(UsageError, "--topology network file"):
        network.find("star", "torus:2x2")

"""Networks from measured results: what curves were made of is found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.analysis.model import fit
from omb_py.analysis.table import of_rows
from omb_py.core.errors import UsageError
from omb_py.simulation import network
from omb_py.simulation.calibration import Calibrated, calibrate
from tests import RESULTS
from tests.conftest import OMB_PY, run, succeeded
from tests.helpers.refusals import assert_refused, refuses

SIZES = [1 << power for power in range(0, 21, 2)]


def rows(
    benchmark: str, hosts: int, values: dict[int, float], **columns: object
) -> list[dict[str, Any]]:
    """Rows of two ranks; latencies in us, bandwidths in MB/s."""
    column = "latency_us" if benchmark in ("latency", "allreduce", "bcast") else "bandwidth_MBps"
    usual = {"benchmark": benchmark, "hosts": hosts, "ranks": 2, "buffer": "numpy"}
    return [
        usual | {"bytes": size, "payload_bytes": size, column: value} | columns
        for size, value in values.items()
    ]


def latency(overhead: float, latency: float, bandwidth: float, switch: int) -> dict[int, float]:
    """Half round trips; above a size, 20 us of a handshake more."""
    return {
        size: 2 * overhead + latency + size / bandwidth + 20 * (size > switch) for size in SIZES
    }


def window(overhead: float, alone: float, bandwidth: float, messages: int) -> dict[int, float]:
    """Bandwidths of a window, which ends with the last message and its answer."""
    return {
        size: size * messages / (messages * max(overhead, size / bandwidth) + 2 * alone)
        for size in SIZES
    }


def calibrated(found: list[dict[str, Any]]) -> Calibrated:
    frame = of_rows([one | {"run": "r"} for one in found], {}).rows
    frame["hosts"] = pd.array([one["hosts"] for one in found], dtype="Int64")
    return calibrate(fit.model(frame, {}), "torus:4x4", "measured by these")


def everything() -> list[dict[str, Any]]:
    between, within = latency(1.0, 5.0, 1000.0, 1 << 14), latency(0.2, 0.5, 10_000.0, 1 << 12)
    return [
        *rows("latency", 2, between),
        *rows("bw", 2, window(1.0, 7.0, 1000.0, 64), window=64, pairs=1),
        *rows("latency", 1, within),
        *rows("bw", 1, window(0.2, 0.9, 10_000.0, 64), window=64, pairs=1),
        *rows("mbw_mr", 1, dict.fromkeys(SIZES, 25_000.0), window=64, pairs=4, ranks=8),
        *rows(
            *("allreduce", 1, {size: time + size * 2e-3 for size, time in within.items()}),
            algorithm="recursive_doubling",
        ),
    ]


def test_what_curves_were_made_of_is_found_again() -> None:
    found = calibrated(everything())
    made = found.network
    assert found.missing == ()
    assert made.between.latency_us == pytest.approx(5.0, rel=0.1)
    assert made.between.bandwidth_MBps == pytest.approx(1000.0, rel=0.05)
    assert made.between.eager == 1 << 14
    small, large = made.between.protocol(1), made.between.protocol(1 << 20)
    assert small.overhead_us == pytest.approx(1.0, rel=0.1)
    assert large.handshake_us == pytest.approx(20.0, rel=0.1)
    assert large.us_per_byte == pytest.approx(0.0, abs=5e-5)
    assert made.within.latency_us == pytest.approx(0.5, rel=0.15)
    assert made.memory_MBps == pytest.approx(25_000.0)
    assert made.add_us_per_byte == pytest.approx(2e-3, rel=0.05)


@pytest.mark.parametrize("nbytes", [1, 4096, 1 << 16, 1 << 20])
def test_a_lone_message_takes_what_was_measured(nbytes: int) -> None:
    path = calibrated(everything()).network.between
    protocol = path.protocol(nbytes)
    bytes_alone = nbytes / path.bandwidth_MBps
    time = 2 * protocol.overhead_us + protocol.delay_us(nbytes) + path.latency_us + bytes_alone
    assert time == pytest.approx(latency(1.0, 5.0, 1000.0, 1 << 14)[nbytes], rel=0.05)


def test_every_number_has_a_comment_with_its_source() -> None:
    found = calibrated(everything())
    text = network.text_of(found.network, found.comments)
    lines = [line for line in text.splitlines() if "#" in line]
    assert any(line.startswith("bandwidth_MBps = ") and "# bw, " in line for line in lines)
    assert "memory_MBps = 25000  # mbw_mr, 4 pairs, 1 B" in lines
    assert "eager = 16384  # latency's switch between 16 KiB and 64 KiB" in lines


def test_a_sender_that_goes_on_at_once_tells_of_eager_messages() -> None:
    curve = {size: 7 + size / 1000 for size in SIZES}
    sent = {size: curve[size] for size in SIZES if size <= 1 << 18}
    broadcast = [
        one | {"latency_min_us": 1.0, "latency_max_us": one["latency_us"]}
        for one in rows("bcast", 2, sent, algorithm="binomial")
    ]
    found = calibrated([*rows("latency", 2, curve), *broadcast])
    assert found.network.between.eager == 1 << 18
    assert "latency between ranks of one host" in found.missing
    assert found.comments["within.latency_us"].startswith("a round figure")


@pytest.mark.long
def test_pairs_of_ranks_do_as_well(tmp_path: Path) -> None:
    """Those of one host are within, all others between; their medians count."""
    header = "run,benchmark,bytes,ranks,buffer,sender,receiver,sender_host,receiver_host"
    lines = [f"{header},latency_us,median_us"]
    for sender, receiver in ((0, 1), (0, 2), (1, 2), (2, 0)):
        hosts = [f"node{rank // 2}" for rank in (sender, receiver)]
        near = hosts[0] == hosts[1]
        for size in (8, 1024, 65536):
            time = 1 + size / 10_000 if near else (7 + size / 1000) * (1 + 9 * (sender == 2))
            row = ("r", "latency", size, 4, "numpy", sender, receiver, *hosts, time, time)
            lines.append(",".join(map(str, row)))
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    command = [OMB_PY, "model", "pairs.csv", "--network", "n.toml"]
    (tmp_path / "n.toml").write_text("mine")
    assert_refused(run(command, {}, tmp_path, 60), 2, "n.toml exists --force")
    assert (tmp_path / "n.toml").read_text() == "mine"
    succeeded(run([*command, "--force"], {}, tmp_path, 60))
    found = network.read(tmp_path / "n.toml")
    assert found.between.bandwidth_MBps == pytest.approx(1000, rel=0.05)
    assert found.between.latency_us == pytest.approx(7 / 2, rel=0.05)
    assert found.within.bandwidth_MBps == pytest.approx(10_000, rel=0.05)


def test_without_latencies_there_is_no_network() -> None:
    bandwidths = rows("bw", 1, window(0.2, 0.9, 10_000.0, 64), window=64, pairs=1)
    with refuses(UsageError, "a network needs latencies"):
        calibrated(bandwidths)


@pytest.mark.long
def test_the_command_writes_the_file(tmp_path: Path) -> None:
    """From results that the repository has."""
    results = str(RESULTS / "two-core-vm.csv")
    words = [OMB_PY, "model", results, "--network", "network.toml", "--topology", "torus:2x2"]
    done = succeeded(run(words, {}, tmp_path, 60))
    assert network.read(tmp_path / "network.toml").topology == "torus:2x2"
    assert "a figure is not measured" in done.err
    done = run([*words[:3], "--topology", "star"], {}, tmp_path, 60)
    assert (done.code, "--topology is that of --network's file" in done.err) == (2, True)

"""Horovod's timeline: activities, negotiations, late ranks, files that a killed job left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.tracing.profile import nccl
from omb_py.tracing.profile.horovod import is_timeline, load, sheets
from tests import ROOT
from tests.conftest import Finished
from tests.helpers.refusals import assert_refused, missing, refuses

REAL = ROOT / "tests" / "data" / "horovod" / "timeline.json"
STEPS, LATE = 3, 2


class Written:
    """A file as Horovod writes it.

    From horovod/common/timeline.cc: metadata names a tensor's process before its first event and
    ends with a line; events follow each other on that line, since each replaces the closing bracket
    by a comma; ends have no name; the ready rank of a negotiation is an event X of no duration,
    named by its number; markers of cycles have no process. Times are microseconds.
    """

    def __init__(self) -> None:
        self.text = "[\n"
        self.tensors: list[str] = []

    def event(self, phase: str, tensor: str, at: int, name: str = "") -> None:
        if tensor not in self.tensors:
            self.tensors.append(tensor)
            number = len(self.tensors)
            for kind, value in (("name", f'"{tensor}"'), ("sort_index", f"{number}")):
                self.text += f'{{"name": "process_{kind}", "ph": "M", "pid": {number}, '
                self.text += f'"args": {{"{kind}": {value}}}}},\n'
        named = f', "name": "{name}"' if phase != "E" else ""
        more = ', "dur": 0' if phase == "X" else ""
        number = self.tensors.index(tensor) + 1
        self.text += f'{{"ph": "{phase}"{named}, "ts": {at}, "pid": {number}{more}}},'

    def cycle(self, at: int) -> None:
        self.text += f'{{"ph": "i", "name": "CYCLE_START", "ts": {at}, "s": "g"}},'

    def closed(self) -> str:
        return self.text[:-1] + "]"


def job() -> Written:
    """Two tensors in steps of 1 ms: 400 us of negotiation, of which rank 2 is waited for 300 us,
    then 500 us of one fused allreduce, 300 of them in NCCL. Only the first step has the ranks."""
    file = Written()
    for step in range(STEPS):
        start = 1000 * step
        file.cycle(start)
        for tensor in ("grad/a", "grad/b"):
            file.event("B", tensor, start, "NEGOTIATE_ALLREDUCE")
            for rank, at in ((0, 0), (1, 100), (3, 100), (LATE, 400)) if step == 0 else ():
                file.event("X", tensor, start + at, f"{rank}")
        for tensor in file.tensors:
            file.event("E", tensor, start + 400)
        for phase, at, name in (
            ("B", 500, "ALLREDUCE"),
            ("B", 500, "QUEUE"),
            ("E", 700, ""),
            ("B", 700, "NCCL_ALLREDUCE"),
            ("E", 1000, ""),
            ("E", 1000, ""),
        ):
            for tensor in file.tensors:
                file.event(phase, tensor, start + at, name)
    return file


def shown(path: Path, text: str) -> list[Sheet]:
    path.write_text(text)
    assert is_timeline(path)
    return list(sheets(load(path), path.name))


LAYOUTS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "an event on each line, no end": lambda text: text.replace(",{", ",\n{").removesuffix("]"),
    "a comma at its end": lambda text: text.removesuffix("]") + ",",
    "an event in part": lambda text: text.removesuffix("]") + ',{"ph": "B", "name": "NEGOT',
    "a damaged event": lambda text: text.replace(',{"ph": "i"', ',{\0"ph": i"', 1),
    "a time of no clock": lambda text: text.replace('"ts": 0', f'"ts": {10**400}', 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_time_is_by_activity_and_tensor(tmp_path: Path, layout: str) -> None:
    activities, tensors, _ = shown(tmp_path / "t.json", LAYOUTS[layout](job().closed()))
    assert activities.rows == (
        ("ALLREDUCE", "2", "0.002", "50 %", "6", "0.003", "500 µs", "500 µs"),
        ("- NCCL_ALLREDUCE", "2", "0.001", "30 %", "6", "0.002", "300 µs", "300 µs"),
        ("- QUEUE", "2", "0.001", "20 %", "6", "0.001", "200 µs", "200 µs"),
        ("NEGOTIATE_ALLREDUCE", "2", "0.001", "40 %", "6", "0.002", "400 µs", "400 µs"),
    )
    assert tensors.rows[0] == ("grad/a", "3", "0.001", "400 µs", "400 µs")
    damaged = layout in ("an event in part", "a damaged event", "a time of no clock")
    assert ("1 event damaged" in activities.remarks[-1]) is damaged
    assert not missing("in 2 of 6 negotiations HOROVOD_CACHE_CAPACITY", activities.remarks[0])


def test_late_rank_is_the_one_that_negotiations_waited_for(tmp_path: Path) -> None:
    late = shown(tmp_path / "t.json", job().closed())[2]
    assert late.rows[0] == (f"{LATE}", "2", "2", "0.001", "400 µs", "400 µs")
    assert [row[0] for row in late.rows[1:]] == ["1", "3", "0"]


def test_file_of_horovods_own_writer_is_read() -> None:
    activities, tensors, late = sheets(load(REAL), REAL.name)
    assert [(row[0], row[1], row[4]) for row in activities.rows] == [
        ("ALLREDUCE", "2", "6"),
        ("- NCCL_ALLREDUCE", "2", "6"),
        ("- QUEUE", "2", "6"),
        ("NEGOTIATE_ALLREDUCE", "2", "6"),
    ]
    assert {row[0] for row in tensors.rows} == {"grad/conv1", "grad/dense"}
    assert late.rows[0][:3] == (f"{LATE}", "2", "2")


def test_stalled_tensor_is_named_with_the_ranks_that_are_ready(tmp_path: Path) -> None:
    file = Written()
    file.event("B", "grad/a", 10, "NEGOTIATE_ALLREDUCE")
    for rank in (0, 3):
        file.event("X", "grad/a", 10, f"{rank}")
    file.event("X", "grad/a", 600_000_010, "1")
    activities, *_ = shown(tmp_path / "t.json", file.closed())
    assert activities.rows[0][:4] == ("NEGOTIATE_ALLREDUCE", "0", "600.000", "100 %")
    (remark,) = activities.remarks
    assert not missing("1 tensor NEGOTIATE_ALLREDUCE of grad/a ranks 0, 1, 3 were ready", remark)


@pytest.mark.parametrize(
    "text", ['[\n{"ph": "i", "name": "CYCLE_START", "ts": 1}', '[{"name": 1}]']
)
def test_list_without_a_negotiation_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    assert is_timeline(path)
    with refuses(UsageError, "no negotiation of Horovod"):
        load(path)


def test_file_is_read_a_block_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = shown(tmp_path / "t.json", job().closed())
    monkeypatch.setattr(nccl, "BLOCK", 150)
    assert shown(tmp_path / "t.json", job().closed()) == whole


def test_two_files_have_tables_each(in_process: Callable[..., Finished]) -> None:
    done = in_process("profile", "show", str(REAL), str(REAL))
    assert (done.code, done.err) == (0, "")
    assert done.out.count("Horovod's timeline") == done.out.count("Late ranks") == 2


@pytest.mark.parametrize("command", ["show", "report", "plot", "timeline", "efficiency"])
@pytest.mark.parametrize("kind", ["horovod", "inspector"])
def test_other_commands_name_the_one_that_prints_it(
    in_process: Callable[..., Finished], tmp_path: Path, command: str, kind: str
) -> None:
    mark = {nccl.MARK.decode().strip('"'): "v4.0"}
    text = REAL.read_text() if kind == "horovod" else json.dumps({"metadata": mark})
    (tmp_path / "other.json").write_text(text)
    assert_refused(in_process(command, "other.json"), (1, 2), "omb-py profile show prints")

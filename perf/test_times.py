"""Where the time of the tests goes: launching, starting Python and MPI, computing, waiting.

Usage: python -m pytest -p perf.test_times [--test-times FILE] ...
       python -m perf.test_times FILE [COUNT]     the table of the slowest tests

A moment of a test belongs to the first of these that is true: a rank that it started is still
importing or in MPI_Init (`import`); a rank or another Python process is past that (`computing` as
far as CPU time was used, `waiting` for the rest); a launcher or another command runs (`launch`);
else the time is the test's own, split alike into `computing` and `waiting`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
NOTES = "OMB_PY_TEST_TIMES"
EVERY_PYTHON = f"""\
import os, sys; {NOTES!r} in os.environ and (sys.path.append({str(FOLDER)!r}), \
__import__("notes_of_ranks"), sys.path.remove({str(FOLDER)!r}))
"""
PARTS = ("launch", "import", "computing", "waiting")
Spans = list[tuple[float, float]]


class Recorder:
    """Writes a line of JSON for each test: its moments, its commands and its processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._notes = Path(tempfile.mkdtemp()) / "notes"
        self._spans: list[list[float]] = []
        self._hook = Path(sysconfig.get_path("purelib")) / "omb_py_test_times.pth"
        path.write_text("")

    def start(self) -> None:
        """Have every command that is started from now on timed."""
        self._hook.write_text(EVERY_PYTHON)
        os.environ[NOTES] = str(self._notes)
        popen: Any = subprocess.Popen
        spans, begin, wait = self._spans, popen.__init__, popen._wait

        def timed_begin(self: Any, *arguments: Any, **options: Any) -> None:
            self.span_of_test = [time.time(), 0.0]
            spans.append(self.span_of_test)
            begin(self, *arguments, **options)

        def timed_wait(self: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return wait(self, *arguments, **options)
            finally:
                self.span_of_test[1] = time.time()

        popen.__init__ = timed_begin
        popen._wait = timed_wait

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._notes.unlink(missing_ok=True)
        self._spans.clear()
        start, cpu = time.time(), time.process_time()
        result = yield
        record = {
            "test": item.nodeid,
            "span": (start, time.time()),
            "cpu": time.process_time() - cpu,
            "commands": [tuple(span) for span in self._spans],
            "notes": [json.loads(line) for line in self._lines()],
        }
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        return result

    def pytest_unconfigure(self) -> None:
        self._hook.unlink(missing_ok=True)

    def _lines(self) -> list[str]:
        return self._notes.read_text().splitlines() if self._notes.exists() else []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--test-times", default="test-times.jsonl", help="file to write")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(Path(config.getoption("--test-times")).resolve()))


def pytest_collection_finish(session: pytest.Session) -> None:
    recorder = next(p for p in session.config.pluginmanager.get_plugins() if type(p) is Recorder)
    recorder.start()


def within(spans: Spans, begin: float, end: float) -> Spans:
    """The spans cut to an interval."""
    cut = [(max(first, begin), min(last, end)) for first, last in spans]
    return [(first, last) for first, last in cut if first < last]


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """The seconds that lie in at least one span."""
    total, reached = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, reached))
        reached = max(reached, last)
    return total


def parts(record: dict[str, Any]) -> dict[str, float]:
    """Seconds of a test by what they were spent on."""
    begin, end = record["span"]
    processes: dict[int, dict[str, tuple[float, float]]] = defaultdict(dict)
    for process, stage, moment, cpu in record["notes"]:
        processes[process][stage] = (moment, cpu)
    commands = within([(a, b or end) for a, b in record["commands"]], begin, end)
    last_command = max([b for _, b in commands], default=end)
    importing, running, used = [], [], 0.0
    for stages in processes.values():
        if "start" not in stages:
            continue
        done = stages.get("end", (last_command, 0.0))
        ready = stages.get("ready", stages["start"])  # without MPI: running at once
        importing.append((stages["start"][0], ready[0]))
        running.append((ready[0], done[0]))
        used += max(0.0, done[1] - ready[1])
    importing, running = within(importing, begin, end), within(running, begin, end)
    starts = covered(importing)
    runs = covered(importing + running) - starts
    launch = covered(importing + running + commands) - starts - runs
    own = end - begin - launch - starts - runs
    cores = min(os.cpu_count() or 1, max(1, len(running)))
    computing = min(runs, used / cores)
    computing_here = min(own, record["cpu"])
    return {
        "launch": launch,
        "import": starts,
        "computing": computing + computing_here,
        "waiting": runs - computing + own - computing_here,
    }


def main() -> None:
    records = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    tests = [(parts(record), record) for record in records]
    tests.sort(key=lambda one: -sum(one[0].values()))
    print(
        "".join(f"{title:>10}" for title in ("seconds", "commands", "processes", *PARTS)), " test"
    )

    def line(title: str, some: list[tuple[dict[str, float], dict[str, Any]]]) -> None:
        sums = [sum(one[part] for one, _ in some) for part in PARTS]
        commands = sum(len(record["commands"]) for _, record in some)
        started = sum(note[1] == "start" for _, record in some for note in record["notes"])
        figures = "".join(f"{value:10.1f}" for value in sums)
        print(f"{sum(sums):10.1f}{commands:10d}{started:10d}{figures}  {title}")

    for one in tests[:count]:
        line(one[1]["test"], [one])
    line(f"the slowest {count}", tests[:count])
    line(f"all {len(tests)}", tests)


if __name__ == "__main__":
    main()

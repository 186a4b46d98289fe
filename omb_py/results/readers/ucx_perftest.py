"""The tables of ucx_perftest, of UCX 1.2 and later: the rows of whole runs, not their progress.

The client prints the numbers and the server the test, so its name, size and memory come from a
command line or from the server's heading, whichever is in the file. A ping-pong's time is half a
round trip, that of ``get`` is one operation (``src/tools/perf/lib/libperf.c``).
"""

from __future__ import annotations

import re
from typing import Any

from omb_py.results.readers import Reader, Reading, Source, typed

MEBIBYTE = 1.048576
"""The MB of ucx_perftest, in 10^6 bytes."""

SAID = re.compile(r"\| (API|Test|(?:Send|Recv) memory|(?:Message|Window) size): +(\S.*?) *\|")
HEADING = re.compile(
    r"(?:\| +(?P<stage>Stage|Test) +\| )?# iterations \| +(?:(?P<rank>\d+\.\d)%ile|typical) \|"
)
COUNT, TIME, RATE = r"\d{1,18}", r"\d{1,12}\.\d{3}", r"\d{1,12}\.\d\d"
NUMBERS = (
    rf"\s*(?P<iterations>{COUNT})\s+(?P<percentile>{TIME})\s+{TIME}\s+(?P<overall>{TIME})\s+"
    rf"{RATE}\s+(?P<megabytes>{RATE})\s+{COUNT}\s+(?P<messages>{COUNT})(?:  .*)?"
)
FORMS = {stage: re.compile(rf"(?:.*[]:>] ?)?{NUMBERS}") for stage in ("Test", None)}
FORMS["Stage"] = re.compile(rf"(?:.*[]:> ])?Final: {NUMBERS}")
"""Rows below each kind of heading; below that of before 1.9, without stages, the last counts."""

COMMAND = re.compile(r"(?:^|[\s/])(ucx_perftest(?:\s.*|$))")
OPTION = re.compile(r"\s-([tsmObl])(?:\s*([^\s-]\S*))?(?=\s|$)")
OF_HEADING = re.compile(
    r"(UCP )?(tag match|tag sync match|put|get|am|active message|stream) (latency|bandwidth).*"
)
OF_COMMAND = re.compile(r"(ucp_)?(tag_sync|tag|stream|put|get|am)(?:_(lat|bw))?")
OPERATIONS = {"tag match": "tag", "tag sync match": "tag_sync", "active message": "am"}
"""Operations of headings that commands call otherwise."""

PLACES = {"host": "H", "cuda": "D", "cuda-managed": "M", "rocm": "D", "rocm-managed": "M"}
SENDER = (
    "bandwidths of device memory are timed by the sender alone, before UCX 1.19 until its own "
    "completions: they may exceed the link"
)
ACCEPTED = "Accepted connection from"
ALONE = (
    "a process alone (-l) prints half the time of its one message, and neither a command line nor "
    f'"{ACCEPTED}" above shows two processes'
)
UNKNOWN = "neither a command line nor a heading above names a test that is known, and its size"


def benchmark_of(test: str, api: str) -> str | None:
    """Return the name of a test of a command or of a heading, None if it is unknown.

    Only the ping-pong of tagged messages is one of ours: half a round trip of send and receive.
    """
    match = OF_HEADING.fullmatch(test) or OF_COMMAND.fullmatch(test)
    if match is None:
        return None
    operation = OPERATIONS.get(match[2], match[2])
    of_ucp = match[1] or operation[:3] in ("tag", "str") or "protocol" in api
    layer = "ucp" if of_ucp else "uct"
    name = f"{layer}_{operation}_{'bw' if match[3] in ('bw', 'bandwidth') else 'lat'}"
    return "latency" if name == "ucp_tag_lat" else name


class UcxReading(Reading):
    """The state of the reader: what was said of the next run, and the table.

    ``fresh`` if that is of a run whose heading is still to come.
    """

    whole = re.compile(".*")  # only the last number may lack digits
    like = re.compile(rf"\s*(?:Final: *)?{COUNT}\s+{TIME}\s")

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.said: dict[str, str] = {}
        self.heading: re.Match[str] | None = None
        self.run, self.fresh = "", False

    def line(self, line: str, index: int) -> None:
        """Take the next line: a heading of numbers or of a test, a command, or a row."""
        if match := HEADING.search(line):
            if self.form is not None and not self.fresh:
                self.said = {}  # of a run without a row
            self.finish(index)
            self.begin(index, "ucx_perftest")
            self.run, self.fresh = f"{self.source.path}:{index + 1}", False
            self.heading, self.form = match, FORMS[match["stage"]]
        elif match := SAID.search(line):
            anew = match[1] == "API" and not self.fresh
            self.said = {**({} if anew else self.said), match[1]: match[2]}
            self.fresh |= anew
        elif ACCEPTED in line:
            self.said, self.fresh = {"two": "processes"}, True
        elif match := COMMAND.search(line):
            options = dict(OPTION.findall(match[1]))
            if "t" in options and "b" not in options:  # a server's names no test
                self.said, self.fresh = {"command": match[1], "s": "8"} | options, True
                self.said |= {} if "l" in options else {"two": "processes"}
        elif self.heading and "[thread" not in line:
            text = line.replace(",", "")  # which option -N puts between digits
            if cells := self.cells(text, index):
                self.row(cells, index, self.heading["stage"], self.heading["rank"])

    def row(self, cells: dict[str, str], index: int, stage: str | None, rank: str | None) -> None:
        """Take the row of a whole run, if its test and size are known; ``rank`` is a percentage."""
        said, self.begun = self.said, None
        benchmark = benchmark_of(said.get("Test") or said.get("t", ""), said.get("API", ""))
        size = said.get("Message size") or said.get("s", "")
        window = said.get("Window size") or said.get("O", "")
        row: dict[str, Any] = {"run": self.run, "suite": "ucx_perftest", "binding": "ucx"}
        row |= {"benchmark": benchmark, "ranks": 2 if "two" in said else None}
        words = said.get("m", "host").split(",")
        ends = [said.get("Send memory", words[0]), said.get("Recv memory", words[-1])]
        if set(ends) <= PLACES.keys() and set(ends) != {"host"}:
            row["buffer"] = "hip" if "rocm" in "".join(ends) else "cuda"
            row["placement"] = " ".join(PLACES[end] for end in ends)
        if benchmark is None or not re.fullmatch(COUNT, size):
            self.notes.add(index, f"{UNKNOWN}: left out")
        elif benchmark.endswith("_lat") and window not in ("", "1"):
            self.notes.add(index, f"{window} operations are in flight, not one: left out")
        elif not benchmark.endswith("bw") and "two" not in said:
            self.notes.add(index, f"{ALONE}: left out")
        else:
            row |= typed({"bytes": size, "iterations": cells["iterations"]})
            if not benchmark.endswith("bw"):
                row["latency_us"] = float(cells["overall"])
                if rank in (None, "50.0"):  # of the last 2048 iterations
                    row["sample_p50_us"] = float(cells["percentile"])
            else:
                row["window"] = int(window) if window.isdecimal() else None
                row["bandwidth_MBps"] = float(cells["megabytes"]) * MEBIBYTE
                if index != self.source.torn:
                    row["messages_per_s"] = int(cells["messages"])
                if "buffer" in row:
                    said = {**said, "sender": SENDER}
                    self.notes.add(index, SENDER, rows=0, lost=False)
            self.rows = self.rows if stage else []
            self.add(index, row)
            self.found.runs[self.run] = said
        if stage:
            self.said, self.fresh = {}, False


READER = Reader("ucx_perftest", (b" | average | overall |", b"| API: "), UcxReading.read)

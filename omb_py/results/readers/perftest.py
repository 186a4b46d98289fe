"""The output of perftest (``ib_write_bw`` and its kind), in text and in JSON (``--out_json``).

Two columns are not what they are called, and left out: newer versions drop the two slowest
iterations before they take ``t_max``, and ``t_stdev`` is of whole microseconds (print_report_lat
in ``src/perftest_parameters.c``). JSON has no unit of bandwidth: its rate of messages tells it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from omb_py.results.readers import Reader, Reading, Source, form_of, typed

COUNT, DECIMALS, MILLIONTHS = r"\d{1,18}", r"\d{1,15}\.\d\d(?:\d{4})?", r"\d{1,15}\.\d{6}"
CELLS = {
    "#bytes": ("bytes", COUNT),
    "#iterations": ("iterations", COUNT),
    "t_min": ("sample_min_us", DECIMALS),
    "t_typical": ("sample_p50_us", DECIMALS),
    "t_avg": ("latency_us", DECIMALS),
    "99% percentile": ("sample_p99_us", DECIMALS),
    "99.9% percentile": ("sample_p999_us", DECIMALS),
    "BW average": ("bandwidth", DECIMALS),
    "MsgRate": ("millions", MILLIONTHS),
}
"""Each heading's column, without its unit, and what its cells look like."""

KEYS = {"MsgSize": "#bytes", "n_iterations": "#iterations", "BW_average": "BW average"}
KEYS |= {f"percentile_{rank}": f"{rank}% percentile" for rank in ("99", "99.9")}
"""Keys of JSON that are not the headings of text."""

GIGABITS, MEBIBYTES = 125.0, 1.048576
"""Units of bandwidth in 10^6 bytes per second; before 2024 headings wrote MB for the second."""

HEADING = re.compile(r"\s*#bytes +#iterations .*(?:BW average\[|t_avg\[|t_typical\[)")
NAMES = re.compile(r"(#\w+|[^\s\[\]#]+(?: [^\s\[\]#]+)?)(?:\[[^\]]+\])?")
TITLE = re.compile(
    r"\s*(Send|RDMA.Write|RDMA.Read|Atomic)(.imm|.CMP.AND.SWAP|.FETCH.AND.ADD)?"
    r"(?P<both>.Bidirectional)?(?:.Post.List)?.(?P<what>BW|Latency).Test\s*"
)
FACTS = r"Device|Number.of.qps|Connection.type|TX.depth|Mtu|Link.type|cuda.device"
FACT = re.compile(rf'\b({FACTS})"?\s*: "?([^\s",]+)')
CYCLES = re.compile(r"(?:^|[\s/])ib_\w+_lat(?P<cycles>(?=.*\s(?:-C|--report-cycles)\b))?(?:\s|$)")
RULE = re.compile(r"-{20,}|(?P<one_way>(?:Local|Remote) results:)")
PAIR = re.compile(r'\s*"?(?P<key>[a-zA-Z_][\w.]*)"? ?: "?(?P<value>[^\s",]+)"?,?')
UNTITLED = "no title such as RDMA_Write BW Test is above, or this is one direction of the sum above"


def describe(run: str, title: re.Match[str], said: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns that all rows below a title share.

    Only a ping-pong of sends is one of ours, half a round trip; one-sided ones have no MPI window.
    """
    of_rate = title["what"] == "BW"
    verb = re.sub(r"\W", "_", f"{title[1]}{title[2] or ''}".lower()).removeprefix("rdma_")
    name = f"ib_{verb}_{'bw' if of_rate else 'lat'}"
    kind, queues = said.get("Connection type", "RC"), said.get("Number of qps", "1")
    unusual = [kind] * (kind != "RC") + [f"{queues} queue pairs"] * (queues != "1")
    row: dict[str, Any] = {"run": run, "suite": "perftest", "binding": "verbs", "ranks": 2}
    row["benchmark"] = "latency" if name == "ib_send_lat" else name
    row |= {
        "part": "bidirectional" if title["both"] else None,
        "variant": ", ".join(unusual) or None,
    }
    row |= typed({"buffer": "cuda" if "cuda device" in said else None})
    return row | typed({"window": said.get("TX depth") if of_rate else None})


def values(cells: Mapping[str, str], unit: float | None) -> dict[str, Any]:
    """Return a row's columns; of a bandwidth in no unit (None), in the one that its rate tells."""
    row = typed(cells)
    rate = float(cells.get("millions", 0))
    for scale in (GIGABITS, MEBIBYTES) if "bandwidth" in cells else ():
        megabytes, told = float(cells["bandwidth"]) * scale, rate * row["bytes"]
        if unit == scale or (unit is None and 0.9 * told < megabytes < 1.1 * told):
            row["bandwidth_MBps"] = megabytes
    return row | ({"messages_per_s": rate * 1e6} if "millions" in cells else {})


class PerftestReading(Reading):
    """The state of the reader: the title and the facts above the next table.

    ``top`` is the index of a document of JSON, and ``results`` are those of it so far.
    """

    whole = re.compile(".*")  # every cell has a fixed number of decimals

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.said: dict[str, str] = {}
        self.shared: dict[str, Any] = {}
        self.results: dict[str, str] = {}
        self.title: re.Match[str] | None = None
        self.run, self.unit, self.top, self.cycles = "", MEBIBYTES, 0, False

    def line(self, line: str, index: int) -> None:
        """Take the next line: a title, a fact, a heading, or a row."""
        pair = PAIR.fullmatch(line)
        key = KEYS.get(pair["key"], pair["key"]) if pair else ""
        if title := TITLE.fullmatch(pair["value"] if pair and key == "test" else line):
            self.finish(index)
            self.begin(index, f"{title[0].strip()} of perftest")
            self.title, self.top, self.results = title, index, {}
            self.run = f"{self.source.path}:{index + 1}"
            self.said = {k: v for k, v in self.said.items() if self.said.keys() == {"cuda device"}}
            self.found.runs[self.run] = self.said
        elif HEADING.match(line):
            self.heading(line, index)
        elif match := RULE.match(line.strip()):
            self.end_table()
            self.title = None if match["one_way"] else self.title
        elif match := CYCLES.search(line):
            self.cycles = match["cycles"] is not None
        elif "initializing CUDA" in line:
            self.said = {"cuda device": "CUDA"}  # of the title that follows at once
        elif pair and key in CELLS and re.fullmatch(CELLS[key][1], pair["value"]):
            self.results[CELLS[key][0]] = pair["value"]
        elif self.results and line.strip(" ,") == "}":
            self.document()
        elif self.form is None:
            self.said |= {re.sub(r"\W|_", " ", key): value for key, value in FACT.findall(line)}
        elif (row := self.cells(line, index)) and self.follows(index, int(row["bytes"])):
            self.add(index, self.shared | values(row, self.unit), (None, int(row["bytes"])))

    def heading(self, line: str, index: int) -> None:
        """Read a heading of numbers: rows follow, if it is known of what."""
        self.end_table()
        names = enumerate(NAMES.findall(line))
        cells = [CELLS.get(name, (f"other_{at}", r"[\d.]+")) for at, name in names]
        self.unit = GIGABITS if "Gb/sec" in line else MEBIBYTES
        if self.title is None or self.cycles:
            text = "times in cycles (-C)" if self.cycles else UNTITLED
            self.notes.add(index, f"{text}: left out", lost=self.cycles or not self.found.runs)
        else:
            self.form = form_of(line, cells)
            self.shared = describe(self.run, self.title, self.said)

    def document(self) -> None:
        """Take the results of a document of JSON at their end."""
        cells, self.results = self.results, {}
        if self.title is None or self.title["both"] or "bytes" not in cells:
            text = "no size, or both directions, of which --report-both keeps the last one"
            self.notes.add(self.top, f"{text}: left out")
        else:
            shared = describe(self.run, self.title, self.said)
            self.add(self.top, shared | values(cells, None))
        self.title = None


READER = Reader(
    "perftest",
    (b" BW average[", b" t_typical[", b" t_avg[", b"test_info", b'"test_info"'),
    PerftestReading.read,
)

"""The tables of fi_pingpong, of libfabric.

A time is half a round trip, the mean of all iterations without any before them: with the usual 10
that of the first size has the start of the connection in it (``util/pingpong.c``).
"""

from __future__ import annotations

import re
from typing import Any

from omb_py.results.readers import Reader, Reading, Source

HEADING = re.compile(r"bytes +#sent +#ack +total +time +MB/sec +usec/xfer +Mxfers/sec")
ROUNDED, HUNDREDTHS = r"\d{1,4}(?:\.\d)?[kmgb]?", r"\d{1,12}\.\d\d"
ROW = re.compile(
    rf"(?:.*[]:>] ?)?(?P<size>\d{{1,4}}(?:\.\d)?)(?P<unit>[kmg]?)\s+(?P<sent>{ROUNDED})\s+"
    rf"(?P<lost>[=+-]){ROUNDED}\s+{ROUNDED}\s+{HUNDREDTHS}s\s+(?P<megabytes>{HUNDREDTHS})\s+"
    rf"(?P<time>{HUNDREDTHS})\s+{HUNDREDTHS}"
)
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class FabricReading(Reading):
    """The state of the reader."""

    whole = re.compile(".*")  # a row ends with a fixed number of decimals
    like = re.compile(rf"\s*{ROUNDED}\s+{ROUNDED}\s+[=+-]")

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.run = ""

    def line(self, line: str, index: int) -> None:
        """Take the next line: a heading, or a row whose size is exact and whose messages came."""
        if HEADING.search(line):
            self.finish(index)
            self.begin(index, "fi_pingpong")
            self.run, self.form = f"{self.source.path}:{index + 1}", ROW
        elif cells := self.cells(line, index):
            size = round(float(cells["size"]) * UNITS[cells.get("unit", "")])
            time, megabytes = float(cells["time"]), float(cells["megabytes"])
            error = 0.005 * (time + megabytes + 0.005) + 1e-6 * size  # of the last digits
            row: dict[str, Any] = {"run": self.run, "suite": "fi_pingpong", "binding": "ofi"}
            row |= {"benchmark": "latency", "ranks": 2, "bytes": size, "latency_us": time}
            row["iterations"] = int(cells["sent"]) if cells["sent"].isdecimal() else None
            if cells["lost"] != "=":
                self.notes.add(index, "not all messages were acknowledged: left out")
            elif abs(megabytes * time - size) > error:
                self.notes.add(index, "the size is rounded, as bandwidth and time show: left out")
            elif self.follows(index, size):
                self.add(index, row, (None, size))


READER = Reader("fi_pingpong", (b"usec/xfer",), FabricReading.read)

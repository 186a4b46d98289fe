"""The tables of NVSHMEM's perftest, of 3.4 and later.

No row has a name of ours: kernels move the data, sizes of its collectives are of all parts, and
its ping-pongs print whole round trips (``perftest/device/pt-to-pt``).
"""

from __future__ import annotations

import re
from typing import Any

from omb_py.results.readers import Reader, Reading, Source, form_of, typed

COUNT, WORD, NUMBER = r"\d{1,18}", r"[\w.-]+", r"\d{1,15}\.\d{3}(?:\d{3})?"
CELLS = {
    "size(B)": ("bytes", COUNT),
    "count": ("count", COUNT),
    **{name: (name, WORD) for name in ("type", "redop", "scope")},
    "latency(us)": ("latency_us", NUMBER),
    "min_lat(us)": ("sample_min_us", NUMBER),
    "max_lat(us)": ("sample_max_us", NUMBER),
    "algbw(GB/s)": ("algbw_GBps", NUMBER),
    "busbw(GB/s)": ("busbw_GBps", NUMBER),
    "BW(GB/sec)": ("gigabytes", NUMBER),
    "Bandwidth(GB)": ("gigabytes", NUMBER),
}
"""Each heading's column, and what its cells look like; GB are 10^9 bytes, per second."""

JOB = re.compile(r"#\s*(?:shmem_)?([A-Za-z]\w+)\s*")
NAMES = re.compile(r"\S+(?: \([\w/]+\))?")


class NvshmemReading(Reading):
    """The state of the reader: the job named above the next table, and what its rows share."""

    whole = re.compile(".*")  # every cell has a fixed number of decimals

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.job = ""
        self.shared: dict[str, Any] = {"suite": "NVSHMEM perftest", "binding": "nvshmem"}
        self.shared |= {"buffer": "cuda", "placement": "D"}

    def line(self, line: str, index: int) -> None:
        """Take the next line: the name of a job, a heading, or a row."""
        if match := JOB.fullmatch(line):
            self.job = match[1].lower()
        elif line.startswith("size(B) "):
            names = [name.replace(" ", "") for name in NAMES.findall(line)]
            self.finish(index)
            if self.job and CELLS.keys() >= set(names):
                self.form = form_of(line, [CELLS[name] for name in names])
                self.begin(index, f"{self.job} of NVSHMEM's perftest")
            else:
                self.notes.add(index, "a table without its name, or of unknown columns: left out")
            self.shared |= {"run": f"{self.source.path}:{index + 1}"}
            self.shared |= {"benchmark": f"nvshmem_{self.job}"}
            self.job = ""
        elif cells := self.cells(line, index):
            words = [cells.get(name, "None") for name in ("type", "redop", "scope")]
            part = ", ".join(word for word in words if word != "None") or None
            row = self.shared | {"part": part} | typed(cells)
            if "gigabytes" in cells:
                row["bandwidth_MBps"] = float(cells["gigabytes"]) * 1e3
            if self.follows(index, row["bytes"], part):
                self.add(index, row, (part, row["bytes"]))


READER = Reader("NVSHMEM's perftest", (b"size(B) ",), NvshmemReading.read)

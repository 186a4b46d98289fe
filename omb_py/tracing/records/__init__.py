"""Records of a run: what every rank called, when, for how long, with how many bytes.

`layout` says what a record is. What reads records is loaded when it is asked for: ranks that write
a record stay without.
"""

from __future__ import annotations

from omb_py.tracing.records.layout import Communicator as Communicator
from omb_py.tracing.records.layout import EventKind as EventKind

READING = ("ClockComparison", "Now", "RankRecord", "read", "read_folder", "missing_ranks", "NS")
"""What `omb_py.tracing.records.reading` offers and can be had here."""

TYPE_CHECKING = False  # typing's own would be one more module for each rank to load
if TYPE_CHECKING:
    from omb_py.tracing.records.reading import NS as NS
    from omb_py.tracing.records.reading import ClockComparison as ClockComparison
    from omb_py.tracing.records.reading import Now as Now
    from omb_py.tracing.records.reading import RankRecord as RankRecord
    from omb_py.tracing.records.reading import missing_ranks as missing_ranks
    from omb_py.tracing.records.reading import read as read
    from omb_py.tracing.records.reading import read_folder as read_folder


def __getattr__(name: str) -> object:
    if name not in READING:
        raise AttributeError(f"module 'omb_py.tracing.records' has no attribute {name!r}")
    from omb_py.tracing.records import reading

    return getattr(reading, name)

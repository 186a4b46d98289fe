"""How many bytes mpi4py's pickle makes and takes, for the sizes of messages with objects."""

from __future__ import annotations

from threading import local
from typing import Any, NamedTuple

from mpi4py import MPI


class Moved(NamedTuple):
    """Bytes that were pickled to be sent, and received to be unpickled."""

    sent: int
    received: int


class Pickled:
    """Counts what goes through ``MPI.pickle``, for each thread."""

    def __init__(self) -> None:
        """From now on, unless the program replaces the pickle; pickles are the same as before."""
        from pickle import dumps, loads

        self.counts = counts = Counts()

        def counted_dumps(*args: Any, **kwargs: Any) -> Any:
            data = dumps(*args, **kwargs)
            counts.sent += len(data)
            return data

        def counted_loads(data: Any, *args: Any, **kwargs: Any) -> Any:
            counts.received += len(data)
            return loads(data, *args, **kwargs)

        pickle: Any = MPI.pickle
        pickle.__init__(counted_dumps, counted_loads, pickle.PROTOCOL, pickle.THRESHOLD)

    def mark(self) -> Moved:
        """What was counted until now."""
        return Moved(self.counts.sent, self.counts.received)

    def since(self, before: Moved) -> Moved:
        """What was counted since then."""
        return Moved(self.counts.sent - before.sent, self.counts.received - before.received)


class Counts(local):
    """Bytes of this thread, in all."""

    sent = 0
    received = 0

"""Windows of messages from Python: the obvious loop, omb-py's forms of it, and C, alternately.

Usage: python -m perf.windows [ROUNDS]   (compiles perf/reference.c with the MPI's own mpicc -O2)

Times are per message, 64 messages of 8 bytes a window, on two ranks.
"""

from __future__ import annotations

import sys

from perf.contenders import compare

FORMS = ["persistent", "prebound", "buffer", "array", "obvious"]


def main() -> None:
    """Against C, then against the obvious loop."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    compare("bw", [8], ["C", "native", *FORMS], rounds)
    compare("bw", [8], FORMS[::-1], rounds)


if __name__ == "__main__":
    main()

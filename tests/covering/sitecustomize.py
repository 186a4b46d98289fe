"""Under coverage, a rank writes what it has covered before it ends its job, and so itself."""

from __future__ import annotations

import sys
import time
from typing import SupportsIndex

from coverage import Coverage


def sleep(seconds: SupportsIndex | float, /) -> None:
    launcher = sys.modules.get("omb_py.core.mpi.launcher")
    covering = Coverage.current()
    if covering and launcher and seconds == launcher.SECONDS_TO_BE_HEARD:
        covering.save()
    _sleep(seconds)


_sleep, time.sleep = time.sleep, sleep

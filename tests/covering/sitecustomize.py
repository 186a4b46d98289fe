"""Under coverage, a rank writes what it has covered before it ends its job, and so itself."""

from __future__ import annotations

import time

from coverage import Coverage

BEFORE_ABORTING = 0.3
"""`omb_py.launcher.SECONDS_TO_BE_HEARD`, which nothing here may import."""


def sleep(seconds: float, /) -> None:
    covering = Coverage.current()
    if seconds == BEFORE_ABORTING and covering is not None:
        covering.save()
    _sleep(seconds)


_sleep, time.sleep = time.sleep, sleep

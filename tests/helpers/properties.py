"""Properties that Hypothesis tries: on few examples, in `make test-all` then on all.

`--hypothesis-profile all` asks for all. On no example is there a limit of time.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

FEW, ALL = 20, 100
"""Examples of a property that does not say how many it needs."""

for name, number in (("few", FEW), ("all", ALL)):
    settings.register_profile(
        name, max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("few")


def examples(number: int, **options: Any) -> settings:
    """Settings of a property that is tried on ``number`` examples where all are tried."""
    default = settings.default
    assert default is not None
    return settings(max_examples=number * default.max_examples // ALL, **options)

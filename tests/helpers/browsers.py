"""A Chromium that Playwright drives, without a network of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OFFLINE = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


def find_chromium() -> str | None:
    """The path of a Chromium, None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def chromium(program: str) -> Iterator[Any]:
    """A Chromium as Playwright's browser, closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=OFFLINE.split())
        yield started
        started.close()

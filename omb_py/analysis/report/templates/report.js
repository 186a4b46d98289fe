"use strict";
(async () => {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(stream).json();
  const root = document.documentElement;
  const byId = (name) => document.getElementById(name);
  const chooser = byId("figure");
  const theme = byId("theme");
  const narrow = matchMedia("(max-width: 36rem)");

  const draw = async () => {
    const dark = (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    theme.textContent = dark ? "Light" : "Dark";
    theme.ariaLabel = `${theme.textContent} theme`;
    const figure = data.figures[chooser?.value];
    if (figure) {
      // A specification has the colours of a light page.
      const themed = JSON.stringify(figure.specs[Number(narrow.matches)]).replace(/#[0-9A-Fa-f]{6}/g, (color) => (dark && data.dark[color.toUpperCase()]) || color);
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
    for (const group of chooser.children) group.hidden = [...group.children].every((option) => option.hidden);
    const first = [...chooser.options].find((option) => !option.hidden);
    if (first && chooser.selectedOptions[0].hidden) {
      first.selected = true;
      draw();
    }
  });
  chooser?.addEventListener("change", draw);
  narrow.addEventListener("change", draw);
  for (const link of document.querySelectorAll("[data-figure]")) {
    link.addEventListener("click", () => draw((chooser.value = link.dataset.figure)));
  }

  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = theme.textContent.toLowerCase();
    draw();
  });

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

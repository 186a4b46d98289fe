// The page: what is chosen, and what follows from it.

const $ = (id) => document.getElementById(id);
const state = { benchmark: data.benchmarks[0], across: "bytes", metric: "value", logX: true, logY: true, band: true, chosen: new Map(), hidden: new Set() };
let varied = [];
let curves = [];
let drawn = null; // {inRows, offset}: how the plot stands now
let csv = () => "";

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light theme" : "Dark theme";
}

function remembered(theme) {
  try {
    if (theme) localStorage.setItem("omb-py theme", theme);
    return localStorage.getItem("omb-py theme");
  } catch {
    return null; // a browser may forbid it to files
  }
}

// The list of benchmarks, each with its first line as a sketch.

function listBenchmarks() {
  const families = new Map();
  for (const benchmark of data.benchmarks) {
    const radio = element("input", { type: "radio", name: "benchmark", value: benchmark.name });
    radio.addEventListener("change", () => choose(benchmark));
    const entry = element("label", { class: "bench" }, radio, element("span", {}, benchmark.name), sketch(benchmark));
    benchmark.entry = entry;
    if (!families.has(benchmark.family)) families.set(benchmark.family, element("fieldset", {}, element("legend", {}, benchmark.family)));
    families.get(benchmark.family).append(entry);
  }
  $("benchmarks").append(...families.values());
  $("search").addEventListener("input", () => {
    const words = $("search").value.toLowerCase().split(/\s+/);
    for (const benchmark of data.benchmarks) benchmark.entry.hidden = !words.every((word) => benchmark.name.toLowerCase().includes(word));
    for (const family of families.values()) family.hidden = !family.querySelector(".bench:not([hidden])");
  });
}

function sketch(benchmark) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 56 20");
  svg.setAttribute("aria-hidden", "true");
  let longest = benchmark.series[0];
  for (let line = benchmark.series[0]; line < benchmark.series[1]; line++) {
    if (data.first[line + 1] - data.first[line] > data.first[longest + 1] - data.first[longest]) longest = line;
  }
  const values = points.value.slice(data.first[longest], data.first[longest + 1]).filter((value) => value > 0).map(Math.log);
  if (values.length < 2) return svg;
  const least = Math.min(...values);
  const height = Math.max(Math.max(...values) - least, 0.5);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", values.map((value, i) => `${i ? "L" : "M"}${((i / (values.length - 1)) * 54 + 1).toFixed(1)} ${(18 - ((value - least) / height) * 16).toFixed(1)}`).join(""));
  svg.append(path);
  return svg;
}

// Choices that depend on the benchmark.

function choose(benchmark, wanted = {}) {
  state.benchmark = benchmark;
  if (wanted.metric && benchmark.metrics.includes(wanted.metric)) state.metric = wanted.metric;
  if (!benchmark.metrics.includes(state.metric)) state.metric = "value";
  const ranks = byName.ranks && dimensionsOf(benchmark, "bytes").find(({ dimension }) => dimension.name === "ranks");
  const overRanks = Boolean(ranks) && ranks.codes.filter((code) => code >= 0).length > 1;
  $("across").options[1].disabled = !overRanks;
  const sized = points.bytes.slice(...rangeOf(benchmark)).some((size) => size !== null);
  if (!overRanks || wanted.across === "bytes") state.across = "bytes";
  else if (!sized) state.across = "ranks";
  state.logY = !benchmark.name.startsWith("overhead ") && !["overlap"].includes(state.metric);
  setVaried(wanted.codes);
  for (const radio of $("benchmarks").querySelectorAll("input")) radio.checked = radio.value === benchmark.name;
  for (const name of document.querySelectorAll(".benchmark")) name.textContent = benchmark.name;
  const unit = data.unit[benchmark.series[0]];
  $("metric").replaceChildren(...benchmark.metrics.map((name) => element("option", { value: name }, titleOf(benchmark, name, unit))));
  draw();
}

function setVaried(codes) {
  varied = dimensionsOf(state.benchmark, state.across);
  state.chosen = firstChoice(state.benchmark, varied);
  state.hidden = new Set();
  for (const { dimension } of varied) {
    if (codes?.has(dimension.name)) state.chosen.get(dimension.name).add(codes.get(dimension.name));
  }
  const same = varied.filter(({ codes: there }) => there.length === 1 && there[0] !== -1);
  $("same").textContent = same.map(({ dimension, codes: [code] }) => labelOf(dimension, code)).join(" · ");
  $("filters").replaceChildren(...varied.filter(({ tells }) => tells).map(filter));
}

const FEW_OPTIONS = 3;

function filter({ dimension, codes }) {
  const chosen = state.chosen.get(dimension.name);
  const options = codes.map((code) => {
    const box = element("input", { type: "checkbox", checked: chosen.has(code), name: dimension.name, value: String(code) });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(code);
      else chosen.delete(code);
      draw();
    });
    return element("label", {}, box, textOf(dimension, code));
  });
  const fieldset = element("fieldset", {}, element("legend", {}, dimension.title), element("div", { class: "options" }, ...options));
  if (codes.length > FEW_OPTIONS) fieldset.firstChild.append(" ", ...["all", "none"].map((word) => tickAll(word, fieldset, chosen, codes)));
  return fieldset;
}

function tickAll(word, fieldset, chosen, codes) {
  const button = element("button", { type: "button", class: "word" }, word);
  button.addEventListener("click", () => {
    chosen.clear();
    if (word === "all") for (const code of codes) chosen.add(code);
    for (const box of fieldset.querySelectorAll("input")) box.checked = word === "all";
    draw();
  });
  return button;
}

// The plot, its legend and its table.

function draw() {
  const { benchmark, metric } = state;
  const every = curvesOf(benchmark, state.across, varied, state.chosen, metric);
  curves = every.slice(0, MOST_LINES);
  if (every.length > MOST_LINES || curves.some((curve) => curve.place >= COLORS * DASHES.length)) curves.forEach((curve, i) => (curve.place = i));
  for (const curve of curves) curve.hidden = state.hidden.has(curve.label);
  const alone = curves.length === 1 && curves[0].points.length === 1;
  for (const part of document.querySelectorAll(".of-several")) part.hidden = alone;
  $("alone").hidden = !alone;
  $("metric").value = metric;
  $("across").value = state.across;
  $("log-x").checked = state.logX;
  $("log-y").checked = state.logY;
  $("band").checked = state.band;
  $("note").textContent = every.length > MOST_LINES ? `${MOST_LINES} of ${every.length} lines are drawn: choose fewer above.` : "";
  leave();
  drawn = null;
  if (alone) $("alone").replaceChildren(...wordsOf(0, 0));
  else {
    plot();
    listLines();
    fillNumbers(every);
  }
}

function plot() {
  const { metric, across } = state;
  if (!curves.length) {
    Plotly.react($("plot"), [], { ...baseLayout(), annotations: [{ text: "Nothing is chosen", showarrow: false, font: { size: 16 } }], xaxis: { visible: false }, yaxis: { visible: false } }, CONFIG);
    return;
  }
  const layout = baseLayout();
  const x = horizontal(curves, across, state.logX);
  const inRows = x.values.length < 2;
  const y = vertical(state.benchmark, metric, curves, state.logY, state.band && !inRows);
  $("plot").style.height = inRows ? "auto" : "";
  let traces;
  if (inRows) {
    traces = dotsOf(curves, y, metric);
    layout.height = 90 + 30 * curves.length;
    layout.xaxis = { ...layout.xaxis, ...y.axis, showgrid: true };
    layout.yaxis = { ...layout.yaxis, range: [curves.length - 0.5, -0.5], tickmode: "array", tickvals: curves.map((_, i) => i), ticktext: curves.map((curve) => plain(shorter(curve.label))) };
  } else {
    traces = linesOf(curves, x, y, metric, state.band);
    layout.xaxis = { ...layout.xaxis, ...x.axis };
    layout.yaxis = { ...layout.yaxis, ...y.axis };
  }
  if (isRatio(metric)) {
    const line = { type: "line", line: { color: color("muted"), width: 1.5, dash: "dash" }, layer: "below" };
    layout.shapes = [inRows ? { ...line, yref: "paper", x0: 1, x1: 1, y0: 0, y1: 1 } : { ...line, xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1 }];
  }
  drawn = { inRows, offset: traces.length - curves.length };
  for (const control of ["log-x", "band"]) $(control).closest("label").hidden = inRows || (control === "band" && metric !== "value");
  $("plot").setAttribute("aria-label", `${titleOf(state.benchmark, metric, y.unit)} of ${state.benchmark.name}, ${curves.length} line${curves.length === 1 ? "" : "s"}`);
  Plotly.react($("plot"), traces, layout, CONFIG);
}

function listLines() {
  $("legend").hidden = curves.length < 2 || drawn.inRows; // rows have their names beside them
  $("legend").replaceChildren(...curves.map((curve) => {
    const button = element("button", { type: "button", "aria-pressed": String(!curve.hidden) }, swatch(curve), curve.label);
    button.addEventListener("click", () => {
      curve.hidden = !curve.hidden;
      if (curve.hidden) state.hidden.add(curve.label);
      else state.hidden.delete(curve.label);
      button.setAttribute("aria-pressed", String(!curve.hidden));
      leave();
      plot();
    });
    return element("li", {}, button);
  }));
}

function fillNumbers(every) {
  const { benchmark, metric } = state;
  const rows = every.flatMap((curve) => curve.points.map((point) => ({ point, curve })));
  const column = (title, name, numeric, of, text) => ({ title, name, numeric, values: rows.map(of), text });
  const own = data.unit[benchmark.series[0]];
  const number = (title, name, of = ({ point }) => points[name]?.[point] ?? null, unit = METRICS[name]?.unit || own) =>
    column(title, `${name} ${unit}`, true, of, (value) => (value === null ? "–" : valueText(value, unit)));
  const columns = varied
    .filter(({ dimension, tells }) => tells && dimension !== SIZE)
    .map(({ dimension }) => column(dimension.title, dimension.name, false, ({ point }) => {
      const code = codeOf(dimension, point);
      return code < 0 ? null : dimension.values[code];
    }));
  if (state.across === "ranks") columns.push(column("Ranks", "ranks", true, ({ point }) => ranksOf(point)));
  if (rows.some(({ point }) => points.bytes[point] !== null)) columns.push(column("Size", "bytes", true, ({ point }) => points.bytes[point], sizeText));
  const shown = [number(titleOf(benchmark, metric, METRICS[metric].unit || own), metric)];
  if (metric !== "value") shown.push(number(titleOf(benchmark, "value", own), "value"));
  const bound = (end) => ({ point }) => boundsOf(metric, point)?.[end] ?? null;
  const unit = METRICS[metric].unit || own;
  shown.push(number("Spread from", "low", bound(0), unit), number("to", "high", bound(1), unit));
  if (metric === "value") shown.push(number("99th percentile", "p99"));
  columns.push(...shown.filter(({ values }) => values.some((value) => value !== null)));
  if (points.slowdown) {
    if (metric !== "slowdown") columns.push(number("Slowdown", "slowdown"));
    columns.push({ ...column("Verdict", "verdict", false, ({ point }) => points.verdict[point]), mark: (verdict) => verdict });
  }
  columns.push(column("Runs", "runs", true, ({ point }) => points.runs[point]));
  csv = fillTable($("table"), columns, $("rows"));
}

function fileName() {
  return state.benchmark.name.replace(/[^\w-]+/g, "-");
}

function listen() {
  const redraw = (id, name, property) => $(id).addEventListener("change", () => {
    state[name] = $(id)[property];
    draw();
  });
  redraw("log-x", "logX", "checked");
  redraw("log-y", "logY", "checked");
  redraw("band", "band", "checked");
  redraw("metric", "metric", "value");
  $("across").addEventListener("change", () => {
    state.across = $("across").value;
    setVaried();
    draw();
  });
  $("reset").addEventListener("click", () => choose(state.benchmark));
  $("picture").addEventListener("click", () => Plotly.downloadImage($("plot"), { format: "png", scale: 2, width: $("plot").clientWidth, height: $("plot").clientHeight, filename: fileName() }));
  $("copy").addEventListener("click", async () => {
    $("rows").textContent = (await copyText(csv())) ? "Copied" : "The browser does not let this page copy: download instead";
  });
  $("download").addEventListener("click", () => downloadText(csv(), `${fileName()}.csv`));
  $("plot").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !drawn) return;
    if (event.key === "Escape") leave();
    else if (["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
      step(event.key);
      event.preventDefault();
    }
  });
  $("plot").addEventListener("blur", leave);
  if (!$("plot").on) Plotly.react($("plot"), [], baseLayout(), CONFIG); // plotly has not drawn there yet
  $("plot").on("plotly_hover", ({ points: [hit] }) => showPoint(hit.curveNumber - drawn.offset, hit.pointNumber, boxOf(hit.curveNumber - drawn.offset, hit.pointNumber)));
  $("plot").on("plotly_unhover", leave);
  $("plot").on("plotly_relayout", leave);
}

// Buttons beside findings and changes.

function codesOf(where) {
  const codes = new Map();
  for (const dimension of data.dimensions) {
    const code = dimension.name in where ? dimension.values.indexOf(where[dimension.name]) : -1;
    codes.set(dimension.name, code);
  }
  return codes;
}

function show(where, metric) {
  const benchmark = data.benchmarks.find(({ name }) => name === where.benchmark);
  if (!benchmark) return;
  const codes = codesOf(where);
  $("search").value = "";
  $("search").dispatchEvent(new Event("input"));
  choose(benchmark, { metric, across: "bytes", codes });
  benchmark.entry.scrollIntoView({ block: "nearest" });
  $("figures").scrollIntoView();
  const number = curves.findIndex((curve) => varied.every(({ dimension }, i) => curve.codes[i] === codes.get(dimension.name)));
  const index = number < 0 ? -1 : Math.max(0, curves[number].points.findIndex((point) => points.bytes[point] === (where.bytes ?? null)));
  $("plot").focus({ preventScroll: true });
  if (index >= 0 && drawn) $("said").textContent = showPoint(number, index, boxOf(number, index));
}

function redrawAll() {
  draw();
  drawRatios();
}

function start() {
  $("explorer").hidden = false;
  listBenchmarks();
  choose(state.benchmark);
  listen();
  drawRatios();
  for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
  for (const button of document.querySelectorAll("[data-show]")) {
    const inComparison = button.closest("#comparison") !== null;
    button.addEventListener("click", () => show(JSON.parse(button.dataset.show), inComparison ? "slowdown" : "value"));
  }
  document.documentElement.dataset.ready = "";
}

setTheme(remembered() || (isDark() ? "dark" : "light"));
$("theme").hidden = false;
$("theme").addEventListener("click", () => {
  setTheme(isDark() ? "light" : "dark");
  remembered(isDark() ? "dark" : "light");
  redrawAll();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  if (remembered()) return;
  setTheme(event.matches ? "dark" : "light");
  redrawAll();
});
addEventListener("beforeprint", () => {
  document.documentElement.dataset.screen = isDark() ? "dark" : "light";
  setTheme("light");
  onPaper = true;
  redrawAll();
});
addEventListener("afterprint", () => {
  onPaper = false;
  setTheme(document.documentElement.dataset.screen);
  redrawAll();
});
document.addEventListener("DOMContentLoaded", start);

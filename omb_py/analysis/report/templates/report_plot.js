// Drawing by plotly: lines, bars, the point under the pointer or chosen by keys, all slowdowns.

const COLORS = 7;
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "triangle-down", "cross"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const SYMBOL_PATHS = [
  "M17 3.5a3.5 3.5 0 1 0 .01 0Z",
  "M13.5 3.5h7v7h-7Z",
  "M17 2.5l4.5 4.5-4.5 4.5-4.5-4.5Z",
  "M17 2.5l4.5 8h-9Z",
  "M13 5l2-2 2 2 2-2 2 2-2 2 2 2-2 2-2-2-2 2-2-2 2-2Z",
  "M17 11.5l4.5-8h-9Z",
  "M15.5 2.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z",
];
const DASH_ARRAYS = ["", "6 3", "2 2", "7 2 2 2"];

// A colour of the theme as the browser computes it, for plotly cannot read CSS.
function color(name) {
  const probe = element("span", { style: `color: var(--${name})` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function clear(rgb, opacity) {
  return rgb.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);
}

function lookOf(place) {
  return { color: color(`line-${place % COLORS}`), symbol: (place + Math.floor(place / COLORS)) % SYMBOLS.length, dash: Math.floor(place / COLORS) % DASHES.length };
}

// Text from files for plotly, which reads some markup.
function plain(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

const PAPER = { width: 640, height: 320 }; // in CSS pixels, within the margins of A4 and Letter
let onPaper = false;

function plotWidth() {
  return onPaper ? PAPER.width : document.getElementById("plot").clientWidth;
}

function baseLayout() {
  const axis = { gridcolor: color("line"), linecolor: color("line"), zerolinecolor: color("line"), tickcolor: color("line"), automargin: true };
  return {
    font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 13, color: color("muted") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 64, r: 16, t: 16, b: 52 },
    ...(onPaper ? PAPER : { autosize: true }),
    hovermode: "closest",
    hoverdistance: 40,
    showlegend: false,
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: { ...axis, showgrid: false, zeroline: false, showline: true, ticks: "outside" },
    yaxis: { ...axis, ticks: "" },
  };
}

// No tool bar over the points: the buttons above the plot do what it would.
const CONFIG = { displayModeBar: false, responsive: true, showTips: false };

// The horizontal axis: binary steps, with 0 bytes one step before the least size.
function horizontal(curves, across, log) {
  const at = (point) => (across === "ranks" ? ranksOf(point) : points.bytes[point]);
  const values = [...new Set(curves.flatMap((curve) => curve.points.map(at)))].filter((value) => value !== null).sort((a, b) => a - b);
  const text = (value) => (across === "ranks" ? String(value) : sizeText(value));
  const least = values.find((value) => value > 0) || 1;
  const place = (value) => (!log ? value : value > 0 ? Math.log2(value) : Math.log2(least) - 1.5);
  const width = plotWidth();
  const most = Math.max(4, Math.floor(width / 72));
  let ticks = values;
  if (!log || values.length > most) {
    const span = place(values[values.length - 1]) - place(values[0]) || 1;
    ticks = [];
    let last = -Infinity;
    for (const value of log ? values : [...values].reverse()) {
      if (Math.abs(place(value) - last) >= span / most) {
        ticks.push(value);
        last = place(value);
      }
    }
  }
  const title = across === "ranks" ? "Ranks" : "Message size";
  return { values, place: (point) => place(at(point)), axis: { type: "linear", title: { text: title }, tickmode: "array", tickvals: ticks.map(place), ticktext: ticks.map(text) } };
}

function vertical(benchmark, metric, curves, log, band) {
  const unit = unitOf(curves[0], metric);
  const { factor, suffix } = UNITS[unit];
  const axis = { type: log ? "log" : "linear", title: { text: titleOf(benchmark, metric, unit), standoff: 12 }, ticksuffix: suffix, exponentformat: "SI", minexponent: 0, nticks: 8 };
  const [low, high] = extremesOf(curves, metric, band, log);
  if (log) {
    const room = 0.06 * Math.log10(high / low) + 0.05;
    axis.dtick = high / low > 200 ? 1 : high / low > 20 ? "D2" : `L${roundStep((high - low) * factor / 5)}`;
    axis.range = [Math.log10(low * factor) - room, Math.log10(high * factor) + room];
  } else {
    const start = isRatio(metric) ? low : Math.min(0, low);
    const room = 0.06 * (high - start || 1);
    axis.range = [(start === 0 ? 0 : start - room) * factor, (high + room) * factor];
  }
  return { axis, factor, unit };
}

// The nearest of 1, 2 and 5, times a power of ten.
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step || 1));
  return [1, 2, 5, 10].find((digit) => digit * power >= step * 0.7) * power;
}

const isRatio = (metric) => metric === "ratio" || metric === "slowdown";

// The ends of all that is drawn: points, their bounds and bands, and 1 where that means equal.
function extremesOf(curves, metric, band, log) {
  let [low, high] = isRatio(metric) ? [0.98, 1.02] : [Infinity, -Infinity];
  for (const curve of curves.filter(({ hidden }) => !hidden)) {
    for (const point of curve.points) {
      for (const value of [points[metric][point], ...(boundsOf(metric, point) || []), ...((band && bandOf(metric, point)) || [])]) {
        if (log && value <= 0) continue; // has no place there
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
  }
  return low <= high ? [low, high] : [1, 1];
}

function bandOf(metric, point) {
  return metric === "value" && points.spread_low?.[point] != null ? [points.spread_low[point], points.spread_high[point]] : null;
}

function linesOf(curves, x, y, metric, band) {
  const bands = [];
  const lines = curves.map((curve) => {
    const look = lookOf(curve.place);
    const xs = curve.points.map(x.place);
    const ys = curve.points.map((point) => points[metric][point] * y.factor);
    const ends = curve.points.map((point) => boundsOf(metric, point) || [points[metric][point], points[metric][point]]);
    if (band && curve.points.some((point) => bandOf(metric, point))) {
      const common = { x: xs, mode: "lines", line: { width: 0 }, hoverinfo: "skip", visible: !curve.hidden };
      const edge = (end) => curve.points.map((point) => (bandOf(metric, point)?.[end] ?? points.value[point]) * y.factor);
      bands.push({ ...common, y: edge(0) }, { ...common, y: edge(1), fill: "tonexty", fillcolor: clear(look.color, 0.13) });
    }
    return {
      x: xs, y: ys, mode: "lines+markers", hoverinfo: "none", visible: !curve.hidden, cliponaxis: false,
      line: { color: look.color, width: 2, dash: DASHES[look.dash] },
      marker: { color: look.color, symbol: SYMBOLS[look.symbol], size: 7 },
      error_y: {
        type: "data", symmetric: false, thickness: 1, width: 3, color: look.color,
        array: ends.map(([, high], i) => Math.max(0, high * y.factor - ys[i])), arrayminus: ends.map(([low], i) => Math.max(0, ys[i] - low * y.factor)),
      },
    };
  });
  return [...bands, ...lines];
}

// Where nothing varies along the axis: a row with a dot for each line.
function dotsOf(curves, x, metric) {
  return curves.map((curve, i) => {
    const [point] = curve.points;
    const value = points[metric][point];
    const [low, high] = boundsOf(metric, point) || [value, value];
    const mark = color("line-0");
    return {
      x: [value * x.factor], y: [i], mode: "markers", hoverinfo: "none", visible: !curve.hidden, cliponaxis: false, marker: { color: mark, size: 10 },
      error_x: { type: "data", symmetric: false, thickness: 1.5, width: 4, color: mark, array: [(high - value) * x.factor], arrayminus: [(value - low) * x.factor] },
    };
  });
}

function shorter(text) {
  const most = plotWidth() < 600 ? 18 : 48;
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function swatch(curve) {
  const look = lookOf(curve.place);
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 34 14");
  svg.setAttribute("aria-hidden", "true");
  const draw = (name, attributes) => {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    svg.append(made);
  };
  draw("path", { d: "M1 7h32", stroke: look.color, "stroke-width": 2, "stroke-dasharray": DASH_ARRAYS[look.dash] });
  draw("path", { d: SYMBOL_PATHS[look.symbol], fill: look.color });
  return svg;
}

// The point under the pointer, or chosen by keys.

let current = { curve: 0, index: -1 };

// A point in words: its value, and all else that is known of it.
function wordsOf(number, index) {
  const { value, lines } = describe(curves[number].points[index], curves[number], state.benchmark, state.metric, state.across);
  return [element("strong", {}, value), ...lines.map((line) => element("span", {}, line))];
}

function showPoint(number, index, box) {
  const words = wordsOf(number, index);
  $("tip").replaceChildren(...words);
  $("tip").hidden = false;
  const plotBox = $("plot").getBoundingClientRect();
  const outer = $("plot").parentNode.getBoundingClientRect();
  const x = (box.x0 + box.x1) / 2;
  const y = (box.y0 + box.y1) / 2;
  const width = $("tip").offsetWidth;
  const left = x + 18 + width > plotBox.width ? x - 18 - width : x + 18;
  $("tip").style.left = `${Math.max(0, Math.min(left, plotBox.width - width))}px`;
  $("tip").style.top = `${Math.max(0, y - $("tip").offsetHeight - 14) + plotBox.top - outer.top}px`;
  $("ring").hidden = false;
  $("ring").style.left = `${x}px`;
  $("ring").style.top = `${y + plotBox.top - outer.top}px`;
  current = { curve: number, index };
  return words.map((word) => word.textContent).join(", ");
}

function leave() {
  $("tip").hidden = true;
  $("ring").hidden = true;
}

// Where a point stands in the plot, in pixels.
function boxOf(number, index) {
  const { xaxis, yaxis } = $("plot")._fullLayout;
  const trace = $("plot").data[drawn.offset + number];
  const x = xaxis._offset + xaxis.d2p(trace.x[index]);
  const y = yaxis._offset + yaxis.d2p(trace.y[index]);
  return { x0: x, x1: x, y0: y, y1: y };
}

function step(key) {
  const shown = curves.map((curve, number) => ({ curve, number })).filter(({ curve }) => !curve.hidden);
  if (!shown.length) return;
  let place = Math.max(0, shown.findIndex(({ number }) => number === current.curve));
  const before = shown[place].curve.points;
  let index = Math.min(current.index, before.length - 1);
  const vertically = drawn.inRows || key === "ArrowUp" || key === "ArrowDown";
  if (key === "Home") index = 0;
  else if (key === "End") index = before.length - 1;
  else if (index < 0) index = 0;
  else if (!vertically) index = Math.max(0, Math.min(before.length - 1, index + (key === "ArrowRight" ? 1 : -1)));
  else {
    const ahead = key === "ArrowDown" || key === "ArrowRight" ? 1 : -1;
    const size = points.bytes[before[index]];
    place = (place + ahead + shown.length) % shown.length;
    const after = shown[place].curve.points;
    const same = after.findIndex((point) => points.bytes[point] === size);
    index = state.across === "bytes" && same >= 0 ? same : Math.min(index, after.length - 1);
  }
  $("said").textContent = showPoint(shown[place].number, index, boxOf(shown[place].number, index));
}

// All slowdowns, a row for each benchmark.

const MOST_ROWS_OF_RATIOS = 40;
const MOST_DOTS = 4000;

// Plotly's own ticks of a short logarithmic axis are bare digits: 8 for 0.8.
function ticksOfRatios(shown) {
  const ratios = shown.flatMap(({ members }) => members.map((point) => points.slowdown[point]));
  const decades = [-3, -2, -1, 0, 1, 2, 3].map((power) => 10 ** power);
  const reach = Math.max(1.1, ...ratios.map((ratio) => Math.max(ratio, 1 / ratio)));
  const steps = plotWidth() < 700 && reach > 100 ? [1] : reach < 2 ? [1, 1.1, 1.25, 1.5, 8, 9] : reach < 20 ? [1, 1.5, 2, 3, 5] : [1, 3];
  const values = decades.flatMap((decade) => steps.map((step) => Number((decade * step).toPrecision(3))));
  return { tickmode: "array", tickvals: values, ticktext: values.map((value) => `${value}×`) };
}

function drawRatios() {
  if (!$("ratios")) return;
  const rows = data.benchmarks.filter((benchmark) => benchmark.metrics.includes("slowdown")).map((benchmark) => {
    const [start, end] = rangeOf(benchmark);
    const members = Array.from({ length: end - start }, (_, i) => start + i).filter((point) => points.slowdown[point] !== null);
    return { benchmark, members, most: Math.max(...members.map((point) => Math.abs(Math.log(points.slowdown[point])))) };
  });
  const shown = rows.sort((a, b) => b.most - a.most).slice(0, MOST_ROWS_OF_RATIOS);
  const every = Math.ceil(shown.reduce((sum, row) => sum + row.members.length, 0) / MOST_DOTS);
  const looks = { slower: ["slower", "triangle-up"], faster: ["faster", "triangle-down"], "within noise": ["within", "circle"], equal: ["within", "square"], unclear: ["within", "circle-open"] };
  const traces = Object.entries(looks).reverse().map(([verdict, [name, symbol]]) => {
    const x = [];
    const y = [];
    const texts = [];
    shown.forEach(({ members }, row) => members.forEach((point, i) => {
      if (points.verdict[point] !== verdict || i % every) return;
      x.push(points.slowdown[point]);
      y.push(row + (((i * 7) % 11) - 5) / 22);
      texts.push(`${digits(points.slowdown[point])}× ${points.verdict[point]}, ${sizeText(points.bytes[point])}`);
    }));
    return { x, y, text: texts.map(plain), hoverinfo: "text", mode: "markers", marker: { symbol, size: name === "within" ? 5 : 8, color: color(name), opacity: name === "within" ? 0.45 : 0.85 } };
  });
  const layout = baseLayout();
  layout.height = 70 + shown.length * (onPaper ? 19 : 26);
  layout.xaxis = { ...layout.xaxis, type: "log", title: { text: "Slowdown against the base" }, ...ticksOfRatios(shown), tickangle: 0, showgrid: true };
  layout.yaxis = { ...layout.yaxis, showgrid: false, zeroline: false, tickmode: "array", tickvals: shown.map((_, i) => i), ticktext: shown.map(({ benchmark }) => plain(shorter(benchmark.name))), range: [shown.length - 0.4, -0.6] };
  layout.shapes = [{ type: "line", yref: "paper", x0: 1, x1: 1, y0: 0, y1: 1, line: { color: color("muted"), width: 1.5, dash: "dash" }, layer: "below" }];
  layout.hoverlabel = { bgcolor: color("surface"), bordercolor: color("control"), font: { color: color("text") } };
  Plotly.react($("ratios"), traces, layout, CONFIG);
}

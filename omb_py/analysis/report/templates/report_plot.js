// Drawing by plotly: looks, lines, the point that is looked at.

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

function baseLayout() {
  const axis = { gridcolor: color("line"), linecolor: color("line"), zerolinecolor: color("line"), tickcolor: color("line"), automargin: true };
  return {
    font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 13, color: color("muted") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 64, r: 16, t: 16, b: 52 },
    hovermode: "closest",
    hoverdistance: 40,
    showlegend: false,
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: { ...axis, showgrid: false, zeroline: false, showline: true, ticks: "outside" },
    yaxis: { ...axis, ticks: "" },
  };
}

const CONFIG = { displaylogo: false, responsive: true, showTips: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], toImageButtonOptions: { filename: "omb-py", scale: 2 } };

// The horizontal axis: binary steps, with 0 bytes one step before the least size.
function horizontal(curves, across, log) {
  const at = (point) => (across === "ranks" ? ranksOf(point) : points.bytes[point]);
  const values = [...new Set(curves.flatMap((curve) => curve.points.map(at)))].filter((value) => value !== null).sort((a, b) => a - b);
  const text = (value) => (across === "ranks" ? String(value) : sizeText(value));
  const least = values.find((value) => value > 0) || 1;
  const place = (value) => (!log ? value : value > 0 ? Math.log2(value) : Math.log2(least) - 1.5);
  const width = document.getElementById("plot").clientWidth;
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

function vertical(benchmark, metric, curves, log) {
  const unit = unitOf(curves[0], metric);
  const axis = { type: log ? "log" : "linear", title: { text: titleOf(benchmark, metric, unit), standoff: 12 }, ticksuffix: UNITS[unit].suffix, exponentformat: "SI", minexponent: 0, nticks: 8 };
  if (log) axis.dtick = "D2";
  const [least, greatest] = extremesOf(curves, metric);
  if (log && greatest / least > 200) axis.dtick = 1;
  axis.range = rangeOfValues(curves, metric, UNITS[unit].factor, log);
  return { axis, factor: UNITS[unit].factor, unit };
}

function extremesOf(curves, metric) {
  const values = curves.filter((curve) => !curve.hidden).flatMap((curve) => curve.points.map((point) => points[metric][point]));
  return values.length ? [Math.min(...values), Math.max(...values)] : [1, 1];
}

// Of the lines alone: one wide spread would squeeze them all.
function rangeOfValues(curves, metric, factor, log) {
  let [least, greatest] = extremesOf(curves, metric);
  if (["ratio", "slowdown"].includes(metric)) [least, greatest] = [Math.min(least, 0.98), Math.max(greatest, 1.02)];
  if (log) {
    const room = 0.06 * Math.log10(greatest / least) + 0.05;
    return [Math.log10(least * factor) - room, Math.log10(greatest * factor) + room];
  }
  const low = metric === "slowdown" || metric === "ratio" ? least : Math.min(0, least);
  const room = 0.06 * (greatest - low || 1);
  return [(low < 0 || low === least ? low - room : 0) * factor, (greatest + room) * factor];
}

// The ends of what is known of a point's number: its runs, or its samples' interval.
function boundsOf(metric, point) {
  const pairs = metric === "value" ? (points.runs[point] > 1 ? [["least", "greatest"], ["low", "high"]] : [["low", "high"]]) : metric === "slowdown" ? [["slowdown_low", "slowdown_high"]] : [];
  for (const [low, high] of pairs) {
    if (points[low] && points[low][point] !== null) return [points[low][point], points[high][point]];
  }
  return [points[metric][point], points[metric][point]];
}

function linesOf(curves, x, y, metric, band) {
  const bands = [];
  const lines = curves.map((curve) => {
    const look = lookOf(curve.place);
    const xs = curve.points.map(x.place);
    const ys = curve.points.map((point) => points[metric][point] * y.factor);
    const ends = curve.points.map((point) => boundsOf(metric, point));
    if (band && metric === "value" && points.spread_low && curve.points.some((point) => points.spread_low[point] !== null)) {
      const common = { x: xs, mode: "lines", line: { width: 0 }, hoverinfo: "skip", visible: !curve.hidden };
      const edge = (name) => curve.points.map((point) => (points[name][point] ?? points.value[point]) * y.factor);
      bands.push({ ...common, y: edge("spread_low") }, { ...common, y: edge("spread_high"), fill: "tonexty", fillcolor: clear(look.color, 0.13) });
    }
    return {
      x: xs, y: ys, mode: "lines+markers", hoverinfo: "none", visible: !curve.hidden, cliponaxis: false,
      line: { color: look.color, width: 2, dash: DASHES[look.dash] },
      marker: { color: look.color, symbol: SYMBOLS[look.symbol], size: 7 },
      error_y: {
        visible: metric === "value" || metric === "slowdown", type: "data", symmetric: false, thickness: 1, width: 3, color: look.color,
        array: ends.map(([, high], i) => Math.max(0, high * y.factor - ys[i])), arrayminus: ends.map(([low], i) => Math.max(0, ys[i] - low * y.factor)),
      },
    };
  });
  return [...bands, ...lines];
}

// Where nothing varies along the axis: a bar for each line.
function barsOf(curves, y, metric) {
  return curves.map((curve, i) => ({
    type: "bar", orientation: "h", y: [i], x: [points[metric][curve.points[0]] * y.factor], hoverinfo: "none", visible: !curve.hidden,
    marker: { color: color("line-0") }, width: 0.62,
  }));
}

function shorter(text) {
  const most = document.getElementById("plot").clientWidth < 600 ? 18 : 48;
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

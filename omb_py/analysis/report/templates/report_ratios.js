// All slowdowns, a row for each benchmark.

const MOST_ROWS_OF_RATIOS = 40;
const MOST_DOTS = 4000;

// Plotly's own ticks of a short logarithmic axis are bare digits: 8 for 0.8.
function ticksOfRatios(shown) {
  const ratios = shown.flatMap(({ members }) => members.map((point) => points.slowdown[point]));
  const decades = [-3, -2, -1, 0, 1, 2, 3].map((power) => 10 ** power);
  const reach = Math.max(1.1, ...ratios.map((ratio) => Math.max(ratio, 1 / ratio)));
  const steps = reach < 2 ? [1, 1.1, 1.25, 1.5, 8, 9] : reach < 20 ? [1, 1.5, 2, 3, 5] : [1, 3];
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
  const looks = { slower: ["slower", "triangle-up"], faster: ["faster", "triangle-down"], same: ["same", "circle"], unclear: ["same", "circle-open"] };
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
    return { x, y, text: texts.map(plain), hoverinfo: "text", mode: "markers", marker: { symbol, size: name === "same" ? 5 : 8, color: color(name), opacity: name === "same" ? 0.45 : 0.85 } };
  });
  const layout = baseLayout();
  layout.height = 70 + shown.length * 26;
  layout.xaxis = { ...layout.xaxis, type: "log", title: { text: "Slowdown against the base" }, ...ticksOfRatios(shown), tickangle: 0, showgrid: true };
  layout.yaxis = { ...layout.yaxis, showgrid: false, zeroline: false, tickmode: "array", tickvals: shown.map((_, i) => i), ticktext: shown.map(({ benchmark }) => plain(shorter(benchmark.name))), range: [shown.length - 0.4, -0.6] };
  layout.shapes = [{ type: "line", yref: "paper", x0: 1, x1: 1, y0: 0, y1: 1, line: { color: color("muted"), width: 1.5, dash: "dash" }, layer: "below" }];
  layout.hoverlabel = { bgcolor: color("surface"), bordercolor: color("control"), font: { color: color("text") } };
  Plotly.react($("ratios"), traces, layout, CONFIG);
}

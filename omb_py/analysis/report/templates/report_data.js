// What the page knows: numbers and sizes as people write them, points, and the lines they make.

const UNITS = {
  us: { factor: 1e-6, suffix: "s", steps: [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]] },
  "MB/s": { factor: 1e6, suffix: "B/s", steps: [[1e6, "TB/s"], [1e3, "GB/s"], [1, "MB/s"], [1e-3, "kB/s"]] },
  "GB/s": { factor: 1e9, suffix: "B/s", steps: [[1e3, "TB/s"], [1, "GB/s"], [1e-3, "MB/s"], [1e-6, "kB/s"]] },
  "msg/s": { factor: 1, suffix: "/s", steps: [[1e9, "G msg/s"], [1e6, "M msg/s"], [1e3, "k msg/s"], [1, "msg/s"]] },
  "%": { factor: 1, suffix: " %", steps: [[0, "%"]] },
  "×": { factor: 1, suffix: "×", steps: [[0, "×"]] },
};

const HEADLINES = { us: "Latency", "MB/s": "Bandwidth", "msg/s": "Message rate" };

// What may be on the vertical axis: title and unit, null where it is the unit of the line.
const METRICS = {
  value: { title: null, unit: null },
  mean: { title: "Mean", unit: null },
  p99: { title: "99th percentile", unit: "us" },
  slowest: { title: "Slowest rank of an iteration", unit: "us" },
  overall: { title: "With computing", unit: "us" },
  overlap: { title: "Overlap", unit: "%" },
  rate: { title: "Message rate", unit: "msg/s" },
  busbw: { title: "Bus bandwidth", unit: "GB/s" },
  algbw: { title: "Algorithm bandwidth", unit: "GB/s" },
  ratio: { title: "Ratio to the base binding", unit: "×" },
  slowdown: { title: "Slowdown against the base", unit: "×" },
};

function digits(value) {
  if (value === 0) return "0";
  const before = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(12, 2 - before)));
}

function valueText(value, unit) {
  if (value === null || value === undefined) return "–";
  const steps = UNITS[unit].steps;
  const [scale, name] = steps.find(([least]) => Math.abs(value) >= least) || steps[steps.length - 1];
  return scale ? `${digits(value / scale)} ${name}` : `${digits(value)}${name === "×" ? "" : " "}${name}`;
}

function sizeText(bytes) {
  if (bytes === null) return "";
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && bytes % 512 === 0 && unit < names.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${bytes} ${names[unit]}`;
}

// An element with text and children; text never becomes markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key in made && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const data = JSON.parse(document.getElementById("data").textContent);
const points = data.points;
const SIZE = { name: "bytes", title: "Message size" };
const STATED = new Set(["source", "binding", "buffer", "mpi", "suite", "part", "base", "placement", "mpi_type"]);
const MOST_LINES = 24;
const FEW_LINES = 12;

// The line of each point.
const lineOf = new Int32Array(points.runs.length);
for (let line = 0; line + 1 < data.first.length; line++) lineOf.fill(line, data.first[line], data.first[line + 1]);

const byName = Object.fromEntries(data.dimensions.map((dimension) => [dimension.name, dimension]));

function codeOf(dimension, point) {
  return dimension === SIZE ? points.bytes[point] ?? -1 : dimension.of[lineOf[point]];
}

function textOf(dimension, code) {
  if (dimension === SIZE) return code < 0 ? "no size" : sizeText(code);
  const value = code < 0 ? "not said" : dimension.values[code];
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

// As in a legend: with the column's name where a value alone says nothing.
function labelOf(dimension, code) {
  const text = textOf(dimension, code);
  if (dimension === SIZE || STATED.has(dimension.name)) return text;
  if (["ranks", "hosts", "pairs", "nodes", "partitions"].includes(dimension.name)) return `${text} ${text === "1" ? dimension.name.slice(0, -1) : dimension.name}`;
  return `${dimension.title.toLowerCase()}: ${text}`;
}

function rangeOf(benchmark) {
  return [data.first[benchmark.series[0]], data.first[benchmark.series[1]]];
}

// The dimensions of a benchmark's lines: their codes, and whether they tell lines apart. One that
// follows from another before it tells nothing more.
function dimensionsOf(benchmark, across) {
  const [start, end] = rangeOf(benchmark);
  const found = [];
  for (const dimension of [...data.dimensions, SIZE]) {
    if (dimension.name === across || (dimension === SIZE && across === "bytes")) continue;
    const codes = new Set();
    for (let point = start; point < end; point++) codes.add(codeOf(dimension, point));
    const tells = codes.size > 1 && !found.some((other) => other.tells && follows(benchmark, dimension, other.dimension));
    found.push({ dimension, codes: [...codes].sort((a, b) => a - b), tells });
  }
  return found;
}

function follows(benchmark, dimension, known) {
  const [start, end] = rangeOf(benchmark);
  const codes = new Map();
  for (let point = start; point < end; point++) {
    const given = codeOf(known, point);
    const code = codeOf(dimension, point);
    if (!codes.has(given)) codes.set(given, code);
    else if (codes.get(given) !== code) return false;
  }
  return true;
}

// What is ticked at first: everything, unless that is too many lines to tell apart, or the command
// named the dimensions that tell lines apart.
function firstChoice(benchmark, varied) {
  const [start, end] = rangeOf(benchmark);
  const lines = new Map();
  for (let point = start; point < end; point++) {
    const codes = varied.map(({ dimension }) => codeOf(dimension, point));
    lines.set(codes.join(), codes);
  }
  let left = [...lines.values()];
  const few = points.bytes.slice(start, end).some((size) => size !== null) ? FEW_LINES : MOST_LINES;
  const isLine = (i) => data.lines.includes(varied[i].dimension.name);
  const order = varied.map((_, i) => i).filter((i) => varied[i].tells).sort((a, b) => isLine(a) - isLine(b) || varied[b].codes.length - varied[a].codes.length);
  for (const i of order) {
    if (left.length <= few && (isLine(i) || !data.lines.length)) break;
    const counts = new Map();
    for (const codes of left) counts.set(codes[i], (counts.get(codes[i]) || 0) + 1);
    const most = Math.max(...counts.values());
    const wanted = varied[i].codes.filter((code) => counts.get(code) === most);
    const kept = wanted[varied[i].dimension.name === "ranks" || varied[i].dimension === SIZE ? wanted.length - 1 : 0];
    left = left.filter((codes) => codes[i] === kept);
  }
  const seen = varied.map((_, i) => new Set(left.map((codes) => codes[i])));
  return new Map(varied.map(({ dimension, codes, tells }, i) => [dimension.name, tells ? seen[i] : new Set(codes)]));
}

// Lines of the chosen points that have the metric: {points, codes, place} in the order of the data.
// `place` numbers all of a benchmark's lines, so that a colour stays when others are left out.
function curvesOf(benchmark, across, varied, chosen, metric) {
  const [start, end] = rangeOf(benchmark);
  const values = points[metric];
  const curves = new Map();
  let place = 0;
  for (let point = start; point < end; point++) {
    const codes = varied.map(({ dimension }) => codeOf(dimension, point));
    const key = codes.join();
    if (!curves.has(key)) curves.set(key, { points: [], codes, place: place++, unit: data.unit[lineOf[point]] });
    const taken = varied.every(({ dimension }, i) => chosen.get(dimension.name).has(codes[i]));
    if (taken && values[point] !== null) curves.get(key).points.push(point);
  }
  const found = [...curves.values()].filter((curve) => curve.points.length);
  if (across === "ranks") for (const curve of found) curve.points.sort((a, b) => ranksOf(a) - ranksOf(b));
  const told = varied.map(({ tells }, i) => tells && new Set(found.map((curve) => curve.codes[i])).size > 1);
  for (const curve of found) {
    const words = curve.codes.map((code, i) => (told[i] && code !== -1 ? labelOf(varied[i].dimension, code) : null));
    curve.label = words.filter((word) => word !== null).join(", ") || benchmark.name;
  }
  return found;
}

function ranksOf(point) {
  const code = byName.ranks ? codeOf(byName.ranks, point) : -1;
  return code < 0 ? null : byName.ranks.values[code];
}

function unitOf(curve, metric) {
  return METRICS[metric].unit || curve.unit;
}

function titleOf(benchmark, metric, unit) {
  if (metric === "value" && benchmark.name.startsWith("overhead ")) return "Added by the binding, median";
  if (metric === "mean" && benchmark.name.startsWith("overhead ")) return "Latency, median";
  const headline = HEADLINES[unit] || "";
  if (metric === "value") return `${headline}, ${benchmark.statistic}`;
  return metric === "mean" ? `${headline}, mean` : METRICS[metric].title;
}

// The ends of what is known of a point's number: its runs, or its samples' interval.
const BOUNDS = { value: [["minimum", "maximum"], ["low", "high"]], slowdown: [["slowdown_low", "slowdown_high"]] };

function boundsOf(metric, point) {
  for (const [low, high] of BOUNDS[metric] || []) {
    if (points[low]?.[point] != null) return [points[low][point], points[high][point]];
  }
  return null;
}

// What is known of a point, in short lines.
function describe(point, curve, benchmark, metric, across) {
  const unit = unitOf(curve, metric);
  const of = (name) => (points[name] ? points[name][point] : null);
  const lines = [curve.label === benchmark.name ? "" : curve.label];
  lines.push(across === "ranks" ? `${ranksOf(point)} ranks` : sizeText(points.bytes[point]));
  const between = ([low, high]) => `${valueText(low, unit)} to ${valueText(high, unit)}`;
  const bounds = boundsOf("value", point);
  if (metric === "value" && bounds) lines.push(`${of("runs") > 1 && of("minimum") !== null ? `${of("runs")} runs:` : "95 % interval"} ${between(bounds)}`);
  if (metric === "value" && of("spread_low") !== null) lines.push(`smallest sample to 95th percentile ${between([of("spread_low"), of("spread_high")])}`);
  if (of("slowdown") !== null) {
    const base = of("base_value") === null ? "" : `, base ${valueText(of("base_value"), curve.unit)}`;
    const interval = of("slowdown_low") === null ? "" : ` (${digits(of("slowdown_low"))} to ${digits(of("slowdown_high"))})`;
    lines.push(`${of("verdict")}: slowdown ${digits(of("slowdown"))}×${interval}${base}`);
  }
  const run = data.run.of[point] < 0 ? "" : `run ${data.run.names[data.run.of[point]]}`;
  lines.push(of("runs") > 1 ? `first ${run}` : run);
  const more = of("files") > 1 ? ` and ${of("files") - 1} more` : "";
  lines.push(data.file.of[point] < 0 ? "" : data.file.names[data.file.of[point]] + more);
  return { value: valueText(of(metric), unit), lines: lines.filter(Boolean) };
}

// Numbers and sizes as people write them.

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

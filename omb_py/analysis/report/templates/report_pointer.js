// The point that is looked at, by pointer or by keys.

let looked = { curve: 0, index: -1 };

function lookAt(number, index, box) {
  const curve = curves[number];
  const { value, lines } = describe(curve.points[index], curve, state.benchmark, state.metric, state.across);
  $("tip").replaceChildren(element("strong", {}, value), ...lines.map((line) => element("span", {}, line)));
  $("tip").hidden = false;
  const plotBox = $("plot").getBoundingClientRect();
  const outer = $("plot").parentNode.getBoundingClientRect();
  const x = (box.x0 + box.x1) / 2;
  const y = (box.y0 + box.y1) / 2;
  const width = $("tip").offsetWidth;
  const left = x + 18 + width > plotBox.width ? x - 18 - width : x + 18;
  $("tip").style.left = `${Math.max(0, Math.min(left, plotBox.width - width))}px`;
  $("tip").style.top = `${Math.max(0, y - $("tip").offsetHeight - 14) + plotBox.top - outer.top}px`;
  $("ring").hidden = drawn.isBar;
  $("ring").style.left = `${x}px`;
  $("ring").style.top = `${y + plotBox.top - outer.top}px`;
  looked = { curve: number, index };
  return `${value}, ${lines.join(", ")}`;
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
  let place = Math.max(0, shown.findIndex(({ number }) => number === looked.curve));
  const before = shown[place].curve.points;
  let index = Math.min(looked.index, before.length - 1);
  const vertically = drawn.isBar || key === "ArrowUp" || key === "ArrowDown";
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
  $("said").textContent = lookAt(shown[place].number, index, boxOf(shown[place].number, index));
}

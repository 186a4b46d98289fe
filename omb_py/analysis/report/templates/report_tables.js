// Tables that can be sorted, and their numbers as CSV.

const MOST_ROWS = 500;

function compare(a, b) {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

// A heading's button; `sort` is called with whether it is to ascend.
function sortable(heading, sort) {
  const button = element("button", { type: "button" }, ...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => {
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    sort(ascending);
  });
}

// A table that is in the page already.
function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (heading.tagName !== "TH") return;
    const key = (row) => {
      const cell = row.cells[column];
      return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
    };
    sortable(heading, (ascending) => {
      const rows = [...table.tBodies[0].rows].sort((a, b) => compare(key(a), key(b)) * (ascending ? 1 : -1));
      table.tBodies[0].append(...rows);
    });
  });
}

// A table of columns {title, values, text, numeric}; shows the first rows of many.
function fillTable(table, columns, status) {
  const count = columns[0].values.length;
  let order = Array.from({ length: count }, (_, i) => i);
  const body = element("tbody");
  const show = () => {
    body.replaceChildren(
      ...order.slice(0, MOST_ROWS).map((row) =>
        element("tr", {}, ...columns.map((column) => {
          const text = column.text ? column.text(column.values[row]) : column.values[row] ?? "–";
          return element("td", { class: `${column.numeric ? "n" : ""} ${column.mark ? column.mark(column.values[row]) : ""}` }, String(text));
        })),
      ),
    );
  };
  const headings = columns.map((column, i) => {
    const heading = element("th", { class: column.numeric ? "n" : "", scope: "col" }, column.title);
    sortable(heading, (ascending) => {
      order.sort((a, b) => compare(column.values[a], column.values[b]) * (ascending ? 1 : -1) || a - b);
      show();
    });
    return heading;
  });
  show();
  table.replaceChildren(element("thead", {}, element("tr", {}, ...headings)), body);
  status.textContent = count > MOST_ROWS ? `${MOST_ROWS} of ${count} rows shown; the CSV has all` : `${count} row${count === 1 ? "" : "s"}`;
  return () => csvOf(columns, order);
}

// Texts come from files: one that a spreadsheet would take for a formula gets a quote before it.
function csvOf(columns, order) {
  const field = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns.map((column) => field(column.name || column.title)).join()];
  for (const row of order) lines.push(columns.map((column) => field(column.values[row])).join());
  return lines.join("\r\n") + "\r\n";
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // a browser may forbid it to files
  }
}

function downloadText(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

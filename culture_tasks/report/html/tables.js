// ---- tables: sorting

function sortKey(cell) {
  if (!cell) return null;
  const text = cell.dataset.value ?? cell.textContent.trim();
  if (text === "" || text === "—") return null;
  const number = Number(text.replace(/,/g, ""));
  return Number.isNaN(number) ? text : number;
}

function sortBy(header) {
  const table = header.closest("table");
  const body = table.tBodies[0];
  const headers = [...header.parentElement.children];
  const column = headers.indexOf(header);
  const first = header.classList.contains("number") ? "descending" : "ascending";
  const second = first === "ascending" ? "descending" : "ascending";
  const order = header.getAttribute("aria-sort") === first ? second : first;
  const direction = order === "ascending" ? 1 : -1;
  const rows = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column]) }));
  rows.sort((a, b) => compare(a.key, b.key, direction));
  body.append(...rows.map(({ row }) => row));
  headers.forEach((cell) => cell.setAttribute("aria-sort", cell === header ? order : "none"));
  say(`Sorted by ${header.textContent.trim()}, ${order}`);
}

function say(text) {
  byId("said").textContent = text;
}

// ---- tables: filtering

function filterTables() {
  const form = byId("tools");
  const rows = wordsOf(form.elements.rows.value);
  const columns = wordsOf(form.elements.columns.value);
  const published = form.elements.published.checked;
  const tables = [...document.querySelectorAll("table[data-filtered]")];
  const counts = tables.map((table) => filterTable(table, rows, columns, published));
  const total = counts.reduce((sum, count) => sum + count, 0);
  say(`${counted(total, "row")} shown in ${counted(counts.filter(Boolean).length, "table")}`);
  if (rows.length || columns.length) openAround(tables.filter((_, index) => counts[index]));
}

function filterTable(table, rows, columns, published) {
  const headers = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const visibility = headers.map((header) => !header.dataset.search || matches(folded(header.dataset.search), columns));
  const numbers = headers.filter((header) => header.dataset.search);
  const visibleNumbers = numbers.filter((header) => visibility[headers.indexOf(header)]);
  headers.forEach((header, index) => { header.hidden = !visibility[index]; });
  filterOver(table, visibility.slice(headers.length - numbers.length));
  let count = 0;
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, index) => { cell.hidden = !visibility[index]; });
    row.hidden = !matches(folded(row.dataset.search), rows) || (!published && "published" in row.dataset);
    count += row.hidden ? 0 : 1;
  }
  const empty = count === 0 || (numbers.length > 0 && visibleNumbers.length === 0);
  table.closest(".part").hidden = empty;
  return empty ? 0 : count;
}

function filterOver(table, visibility) {
  if (table.tHead.rows.length < 2) return;
  for (const cell of table.tHead.rows[0].querySelectorAll("[data-count]")) {
    const first = Number(cell.dataset.first);
    const count = visibility.slice(first, first + Number(cell.dataset.count)).filter(Boolean).length;
    cell.hidden = count === 0;
    cell.colSpan = Math.max(count, 1);
  }
}

// ---- tables: folding

// Opens every fold that something lies in, so that a link or a filter never leads into a closed one.
function openAround(parts) {
  for (const part of parts) {
    for (let fold = part.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  }
}

function openTarget() {
  const target = location.hash.length > 1 ? byId(decodeURIComponent(location.hash.slice(1))) : null;
  if (!target) return;
  openAround([target]);
  if (target.matches("details")) target.open = true;
  target.scrollIntoView();
}

function openForPrint() {
  document.querySelectorAll("main details, body > header details").forEach((details) => { details.open = true; });
  document.querySelectorAll("figure img").forEach((image) => { image.loading = "eager"; });
}

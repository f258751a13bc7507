"use strict";

(() => {
const find = (selector, within = document) => within.querySelector(selector);
const articles = [...document.querySelectorAll("article.response")];
const rater = find("#rater"), culture = find("#culture"), status = find("#status");
const store = `culture-tasks ratings ${rater.defaultValue} ${articles.map((article) => article.dataset.row).join("")}`.slice(0, 2000);
let selection = articles, index = 0, unsaved = false;

const ratingOf = (article) => find("input:checked", article)?.value ?? "";
const commentOf = (article) => find("textarea", article).value;
const isTyping = (target) => target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  || (target instanceof HTMLInputElement && target.type !== "radio");

// The responses

function show(place, focus = true) {
  index = Math.max(0, Math.min(place, selection.length - 1));
  for (const article of articles) article.hidden = article !== selection[index];
  find("#previous").disabled = index === 0;
  find("#next").disabled = index === selection.length - 1;
  selection.forEach((article, number) => {
    find(".place", article).textContent = number + 1;
    find(".total", article).textContent = selection.length;
  });
  if (focus) {
    find("h2", selection[index]).focus({ preventScroll: true });
    window.scrollTo({ top: Math.max(0, selection[index].offsetTop - 8) });
  }
}

function count() {
  const rated = articles.filter(ratingOf).length;
  find("#progress").value = rated;
  status.textContent = `${rated} of ${articles.length} rated${unsaved ? ", not saved yet" : ""}`;
}

function choose() {
  selection = articles.filter((article) => !culture?.value || article.dataset.culture === culture.value);
  show(0, false);
}

function nextUnrated() {
  const ahead = [...selection.slice(index + 1), ...selection.slice(0, index + 1)].find((article) => !ratingOf(article));
  if (ahead) show(selection.indexOf(ahead));
}

// Ratings

function rate(article, value) {
  const input = [...article.querySelectorAll("input[type=radio]")].find((radio) => radio.value === String(value));
  if (input) {
    input.checked = true;
    onChange();
  }
}

function step(article, change) {
  const inputs = [...article.querySelectorAll("input[type=radio]")];
  const position = inputs.findIndex((radio) => radio.checked);
  const next = position < 0 ? (change > 0 ? 0 : inputs.length - 1) : Math.max(0, Math.min(inputs.length - 1, position + change));
  rate(article, inputs[next].value);
}

function digit(article, key) {
  const values = [...article.querySelectorAll("input[type=radio]")].map((radio) => radio.value);
  rate(article, key === "0" && !values.includes("0") ? "10" : key);
}

function onChange() {
  unsaved = true;
  keep();
  count();
}

// The browser's own store, which may be switched off; the saved file is what counts.

function keep() {
  const state = { rater: rater.value, rows: {} };
  for (const article of articles) {
    if (ratingOf(article) || commentOf(article)) state.rows[article.dataset.row] = [ratingOf(article), commentOf(article)];
  }
  try {
    localStorage.setItem(store, JSON.stringify(state));
  } catch {
    // ratings are on the page alone
  }
}

function recall() {
  try {
    const state = JSON.parse(localStorage.getItem(store) ?? "null");
    if (!state) return;
    if (state.rater) rater.value = state.rater;
    fill(Object.entries(state.rows).map(([row, [rating, comment]]) => ({ row, rating, comment })));
    unsaved = Object.keys(state.rows).length > 0;
  } catch {
    // a state of another version
  }
}

// For the next rater at the same machine, who must not see these ratings.
function startAnew() {
  if (!window.confirm(unsaved ? "Remove all ratings from this page? They aren't saved." : "Remove all ratings from this page?")) return;
  for (const article of articles) {
    for (const input of article.querySelectorAll("input[type=radio]")) input.checked = false;
    find("textarea", article).value = "";
  }
  rater.value = rater.defaultValue;
  unsaved = false;
  keep();
  count();
  show(0);
}

function fill(lines) {
  let matches = 0;
  for (const { row, rating, comment } of lines) {
    const article = articles.find((candidate) => candidate.dataset.row === row);
    if (!article) continue;
    const input = [...article.querySelectorAll("input[type=radio]")].find((radio) => radio.value === String(rating).trim());
    if (input) input.checked = true;
    if (comment) find("textarea", article).value = comment;
    matches += 1;
  }
  return matches;
}

// Files

// A text that begins like a formula gets an apostrophe, so that no spreadsheet runs it.
const guard = (text) => (/^\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r]/.test(text) ? `'${text}` : text);
const quote = (text) => `"${guard(text).replaceAll('"', '""')}"`;

function save() {
  const name = rater.value.trim();
  if (!name) {
    status.textContent = "Enter your name first.";
    rater.focus();
    return;
  }
  const lines = articles.filter((article) => ratingOf(article) || commentOf(article)).map((article) =>
    [article.dataset.row, ratingOf(article), quote(commentOf(article)), quote(name)].join(","));
  const text = `\ufeff${["row,rating,comment,rater", ...lines].join("\r\n")}\r\n`;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  link.download = `ratings_${name.normalize("NFKC").replace(/[^\p{L}\p{N}]+/gu, "_").slice(0, 40)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  unsaved = false;
  count();
}

// Rows of a CSV file as lists of cells; quotes may hold commas, quotes and line breaks.
function cells(text) {
  const heading = text.split("\n", 1)[0].replaceAll(/"[^"]*"/g, "");
  const separator = [",", ";", "\t"].find((mark) => heading.includes(mark));
  const rows = [[""]];
  let inside = false;
  for (let place = 0; place < text.length; place += 1) {
    const mark = text[place], row = rows[rows.length - 1];
    if (inside && mark === '"' && text[place + 1] === '"') {
      row[row.length - 1] += mark;
      place += 1;
    } else if (mark === '"') inside = !inside;
    else if (!inside && mark === separator) row.push("");
    else if (!inside && (mark === "\n" || mark === "\r")) {
      if (row.length > 1 || row[0]) rows.push([""]);
    } else row[row.length - 1] += mark;
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

async function load(file) {
  const [header, ...lines] = cells((await file.text()).replace(/^\ufeff/, ""));
  const column = (name) => (header ?? []).indexOf(name);
  if (column("row") < 0 || column("rating") < 0) {
    status.textContent = "This file has no columns row and rating.";
    return;
  }
  const matches = fill(lines.map((line) =>
    ({ row: line[column("row")], rating: line[column("rating")] ?? "", comment: (line[column("comment")] ?? "").replace(/^'(?=[=+\-@])/, "") })));
  const name = lines.map((line) => line[column("rater")] ?? "").find(Boolean);
  if (name && !rater.value) rater.value = name;
  keep();
  count();
  if (!matches) status.textContent = "This file is of another sheet.";
}

// Keys and events

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
    event.preventDefault();
    save();
    return;
  }
  if (event.key === "Escape" && isTyping(event.target)) find("h2", selection[index]).focus();
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const isButton = event.target instanceof HTMLButtonElement || event.target.closest?.("summary");
  const act = {
    ArrowRight: () => show(index + 1),
    ArrowLeft: () => show(index - 1),
    Enter: isButton ? null : () => show(index + 1),
    ArrowUp: () => step(selection[index], 1),
    ArrowDown: () => step(selection[index], -1),
    u: nextUnrated,
    c: () => find("textarea", selection[index]).focus(),
  }[event.key] ?? (/^[0-9]$/.test(event.key) ? () => digit(selection[index], event.key) : null);
  if (act) {
    event.preventDefault();
    act();
  }
});

for (const article of articles) {
  article.addEventListener("change", onChange);
  find("textarea", article).addEventListener("input", onChange);
  find(".clear", article).addEventListener("click", () => {
    for (const input of article.querySelectorAll("input[type=radio]")) input.checked = false;
    onChange();
  });
}
find("#bar").addEventListener("submit", (event) => event.preventDefault());
rater.addEventListener("input", keep);
culture?.addEventListener("change", choose);
find("#save").addEventListener("click", save);
find("#anew").addEventListener("click", startAnew);
find("#load").addEventListener("change", (event) => event.target.files[0] && load(event.target.files[0]));
find("#previous").addEventListener("click", () => show(index - 1));
find("#next").addEventListener("click", () => show(index + 1));
find("#unrated").addEventListener("click", nextUnrated);
window.addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});

recall();
find("#turn").hidden = false;
show(0, false);
count();
})();

"use strict";

(() => {
const find = (selector, within = document) => within.querySelector(selector);
const all = [...document.querySelectorAll("article.response")];
const rater = find("#rater"), culture = find("#culture"), said = find("#said");
const store = `culture-tasks ratings ${rater.defaultValue} ${all.map((one) => one.dataset.row).join("")}`.slice(0, 2000);
let shown = all, at = 0, unsaved = false;

const ratingOf = (article) => find("input:checked", article)?.value ?? "";
const commentOf = (article) => find("textarea", article).value;
const isTyping = (target) => target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  || (target instanceof HTMLInputElement && target.type !== "radio");

// What is shown

function show(place, focus = true) {
  at = Math.max(0, Math.min(place, shown.length - 1));
  for (const article of all) article.hidden = article !== shown[at];
  find("#previous").disabled = at === 0;
  find("#next").disabled = at === shown.length - 1;
  shown.forEach((article, number) => {
    find(".place", article).textContent = number + 1;
    find(".total", article).textContent = shown.length;
  });
  if (focus) {
    find("h2", shown[at]).focus({ preventScroll: true });
    window.scrollTo({ top: Math.max(0, shown[at].offsetTop - 8) });
  }
}

function count() {
  const rated = all.filter(ratingOf).length;
  find("#progress").value = rated;
  said.textContent = `${rated} of ${all.length} rated${unsaved ? ", not saved yet" : ""}`;
}

function choose() {
  shown = all.filter((article) => !culture?.value || article.dataset.culture === culture.value);
  show(0, false);
}

function nextUnrated() {
  const ahead = [...shown.slice(at + 1), ...shown.slice(0, at + 1)].find((article) => !ratingOf(article));
  if (ahead) show(shown.indexOf(ahead));
}

// Ratings

function rate(article, value) {
  const input = [...article.querySelectorAll("input[type=radio]")].find((one) => one.value === String(value));
  if (input) {
    input.checked = true;
    changed();
  }
}

function step(article, by) {
  const inputs = [...article.querySelectorAll("input[type=radio]")];
  const now = inputs.findIndex((one) => one.checked);
  const next = now < 0 ? (by > 0 ? 0 : inputs.length - 1) : Math.max(0, Math.min(inputs.length - 1, now + by));
  rate(article, inputs[next].value);
}

function digit(article, key) {
  const values = [...article.querySelectorAll("input[type=radio]")].map((one) => one.value);
  rate(article, key === "0" && !values.includes("0") ? "10" : key);
}

function changed() {
  unsaved = true;
  keep();
  count();
}

// The browser's own store, which may be switched off; the saved file is what counts.

function keep() {
  const state = { rater: rater.value, rows: {} };
  for (const article of all) {
    if (ratingOf(article) || commentOf(article)) state.rows[article.dataset.row] = [ratingOf(article), commentOf(article)];
  }
  try {
    localStorage.setItem(store, JSON.stringify(state));
  } catch {
    // nothing is kept but on the page
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
    // what another version has kept
  }
}

// For the next rater at the same machine, who must not see these ratings.
function startAnew() {
  if (!window.confirm(unsaved ? "Remove all ratings from this page? They aren't saved." : "Remove all ratings from this page?")) return;
  for (const article of all) {
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
  let filled = 0;
  for (const { row, rating, comment } of lines) {
    const article = all.find((one) => one.dataset.row === row);
    if (!article) continue;
    const input = [...article.querySelectorAll("input[type=radio]")].find((one) => one.value === String(rating).trim());
    if (input) input.checked = true;
    if (comment) find("textarea", article).value = comment;
    filled += 1;
  }
  return filled;
}

// Files

// A text that begins like a formula gets an apostrophe, so that no spreadsheet runs it.
const guarded = (text) => (/^\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r]/.test(text) ? `'${text}` : text);
const quoted = (text) => `"${guarded(text).replaceAll('"', '""')}"`;

function save() {
  const name = rater.value.trim();
  if (!name) {
    said.textContent = "Enter your name first.";
    rater.focus();
    return;
  }
  const lines = all.filter((article) => ratingOf(article) || commentOf(article)).map((article) =>
    [article.dataset.row, ratingOf(article), quoted(commentOf(article)), quoted(name)].join(","));
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
  const rows = [[""]];
  let inside = false;
  for (let place = 0; place < text.length; place += 1) {
    const mark = text[place], row = rows[rows.length - 1];
    if (inside && mark === '"' && text[place + 1] === '"') {
      row[row.length - 1] += mark;
      place += 1;
    } else if (mark === '"') inside = !inside;
    else if (!inside && mark === ",") row.push("");
    else if (!inside && (mark === "\n" || mark === "\r")) {
      if (row.length > 1 || row[0]) rows.push([""]);
    } else row[row.length - 1] += mark;
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

async function load(file) {
  const [header, ...lines] = cells((await file.text()).replace(/^\ufeff/, ""));
  const at = (name) => (header ?? []).indexOf(name);
  if (at("row") < 0 || at("rating") < 0) {
    said.textContent = "This file has no columns row and rating with commas between them.";
    return;
  }
  const filled = fill(lines.map((line) =>
    ({ row: line[at("row")], rating: line[at("rating")] ?? "", comment: (line[at("comment")] ?? "").replace(/^'(?=[=+\-@])/, "") })));
  const name = lines.map((line) => line[at("rater")] ?? "").find(Boolean);
  if (name && !rater.value) rater.value = name;
  keep();
  count();
  if (!filled) said.textContent = "This file is of another sheet.";
}

// Keys and events

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
    event.preventDefault();
    save();
    return;
  }
  if (event.key === "Escape" && isTyping(event.target)) find("h2", shown[at]).focus();
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const isButton = event.target instanceof HTMLButtonElement || event.target.closest?.("summary");
  const act = {
    ArrowRight: () => show(at + 1),
    ArrowLeft: () => show(at - 1),
    Enter: isButton ? null : () => show(at + 1),
    ArrowUp: () => step(shown[at], 1),
    ArrowDown: () => step(shown[at], -1),
    u: nextUnrated,
    c: () => find("textarea", shown[at]).focus(),
  }[event.key] ?? (/^[0-9]$/.test(event.key) ? () => digit(shown[at], event.key) : null);
  if (act) {
    event.preventDefault();
    act();
  }
});

for (const article of all) {
  article.addEventListener("change", changed);
  find("textarea", article).addEventListener("input", changed);
  find(".clear", article).addEventListener("click", () => {
    for (const input of article.querySelectorAll("input[type=radio]")) input.checked = false;
    changed();
  });
}
find("#bar").addEventListener("submit", (event) => event.preventDefault());
rater.addEventListener("input", keep);
culture?.addEventListener("change", choose);
find("#save").addEventListener("click", save);
find("#anew").addEventListener("click", startAnew);
find("#load").addEventListener("change", (event) => event.target.files[0] && load(event.target.files[0]));
find("#previous").addEventListener("click", () => show(at - 1));
find("#next").addEventListener("click", () => show(at + 1));
find("#unrated").addEventListener("click", nextUnrated);
window.addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});

recall();
find("#turn").hidden = false;
show(0, false);
count();
})();

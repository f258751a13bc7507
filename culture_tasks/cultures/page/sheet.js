"use strict";

(() => {
const find = (selector, within = document) => within.querySelector(selector);
const every = (selector, within = document) => [...within.querySelectorAll(selector)];
const screens = every("article.screen"), cards = every(".card");
const body = document.body, statusLine = find("#said");
const touched = new Set();
let index = 0, unsaved = false;

const isTyping = (target) => target instanceof HTMLTextAreaElement
  || (target instanceof HTMLInputElement && !["radio", "checkbox", "file"].includes(target.type));
const fields = (card) => every(".field", card);
const inputs = (field) => every("input, textarea", field);

// The values of a card, as entries hold them

function valueOf(field) {
  const kind = field.dataset.kind, radios = every("input[type=radio]", field);
  const raw = radios.length ? find("input:checked", field)?.value ?? "" : inputs(field)[0].value.trim();
  if (raw === "") return null;
  if (kind === "number") return Number(raw);
  if (kind === "yes_no") return raw === "true";
  return kind === "texts" ? raw.split("\n").map((line) => line.trim()).filter(Boolean) : raw;
}

function valuesOf(card) {
  const values = {};
  for (const field of fields(card)) {
    const value = field.hidden ? null : valueOf(field);
    if (value !== null) values[field.dataset.name] = value;
  }
  return values;
}

const skips = (card) => find(".leave", card).checked;
const isBegun = (card) => skips(card) || find(".right", card)?.checked || touched.has(card.dataset.row);
const lacks = (field) => !field.hidden && (("required" in field.dataset && valueOf(field) === null)
  || valueOf(field)?.length > field.dataset.most || inputs(field).some((input) => !input.validity.valid));
const missingFields = (card) => fields(card).filter(lacks);
const isComplete = (card) => isBegun(card) && (skips(card) || missingFields(card).length === 0);

function setValue(field, value) {
  const radios = every("input[type=radio]", field);
  for (const radio of radios) radio.checked = radio.value === String(value);
  if (!radios.length) inputs(field)[0].value = Array.isArray(value) ? value.join("\n") : value ?? "";
}

// A card whose values were all taken away is as it was before anybody came.
function isUntouched(card) {
  return !("prefilled" in card.dataset) && !skips(card) && Object.keys(valuesOf(card)).length === 0;
}

function arrange(card) {
  const all = Object.fromEntries(fields(card).map((field) => [field.dataset.name, field]));
  for (const field of fields(card)) {
    const { onlyIf, onlyValue } = field.dataset;
    if (onlyIf) field.hidden = all[onlyIf].hidden || JSON.stringify(valueOf(all[onlyIf])) !== JSON.stringify(JSON.parse(onlyValue));
    if (!lacks(field) || skips(card)) field.classList.remove("missing");
  }
  find(".why", card).hidden = !skips(card);
  card.classList.toggle("skipped", skips(card));
}

// The screen

function show(place, focus = true) {
  if (focus) {
    for (const card of every(".card", screens[index])) {
      if (isBegun(card) && !skips(card)) for (const field of missingFields(card)) field.classList.add("missing");
    }
  }
  index = Math.max(0, Math.min(place, screens.length - 1));
  for (const screen of screens) screen.hidden = screen !== screens[index];
  find("#previous").disabled = index === 0;
  find("#next").disabled = index === screens.length - 1;
  if (focus) {
    find("h2", screens[index]).focus({ preventScroll: true });
    window.scrollTo({ top: Math.max(0, screens[index].offsetTop - 8) });
  }
}

function count() {
  const done = cards.filter(isComplete).length, half = cards.filter(isBegun).length - done;
  find("#progress").value = done;
  const { count: text, begun: begunText, unsaved: unsavedText } = statusLine.dataset;
  statusLine.textContent = [
    text.replace("{done}", done).replace("{all}", cards.length),
    ...(half ? [begunText.replace("{number}", half)] : []),
    ...(unsaved ? [unsavedText] : []),
  ].join(" · ");
}

function nextOpen() {
  const ahead = [...screens.slice(index + 1), ...screens.slice(0, index + 1)];
  const screen = ahead.find((candidate) => every(".card", candidate).some((card) => !isComplete(card)));
  if (screen) show(screens.indexOf(screen));
}

// The order of a group by its ratings, the highest first; equal ones share a place.

const ratingOf = (card, name) => valueOf(fields(card).find((field) => field.dataset.name === name));

function rank(screen) {
  const name = find(".order", screen)?.dataset.by;
  if (!name) return;
  const group = every(".card", screen), ratings = group.map((card) => ratingOf(card, name));
  group.forEach((card, number) => {
    const line = find(".rank", card), rating = ratings[number];
    line.hidden = rating === null;
    const place = 1 + ratings.filter((other) => other !== null && other > rating).length;
    const tied = ratings.filter((other) => other === rating).length > 1;
    line.textContent = (tied ? line.dataset.tie : line.dataset.rank).replace("{place}", place);
  });
}

function sort(screen) {
  const { by } = find(".order", screen).dataset;
  const group = every(".card", screen);
  group.sort((first, second) => (ratingOf(second, by) ?? -Infinity) - (ratingOf(first, by) ?? -Infinity));
  screen.append(...group);
}

// The browser's store, which may be switched off; the saved file counts.

function state() {
  const rows = {};
  for (const card of cards.filter(isBegun)) {
    rows[card.dataset.row] = skips(card) ? { skipped: find(".why input", card).value.trim() } : { values: valuesOf(card) };
  }
  return { sheet: body.dataset.sheet, rows };
}

function keep() {
  try {
    localStorage.setItem(body.dataset.store, JSON.stringify(state()));
  } catch {
    // the answers are on the page alone
  }
}

function fill({ rows }) {
  let rowCount = 0;
  for (const [row, { values, skipped }] of Object.entries(rows)) {
    const card = cards.find((candidate) => candidate.dataset.row === row);
    if (!card) continue;
    rowCount += 1;
    touched.add(row);
    find(".leave", card).checked = skipped !== undefined;
    if (skipped !== undefined) find(".why input", card).value = skipped;
    else for (const field of fields(card)) setValue(field, values[field.dataset.name] ?? null);
    arrange(card);
  }
  screens.forEach(rank);
  return rowCount;
}

function recall() {
  try {
    const answers = JSON.parse(localStorage.getItem(body.dataset.store) ?? "null");
    if (answers) unsaved = fill(answers) > 0;
    find("#help").open = !unsaved;
  } catch {
    // answers of another version
  }
}

// Files

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(state(), null, 1)], { type: "application/json" }));
  link.download = `${body.dataset.sheet}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  unsaved = false;
  count();
}

async function load(file) {
  let rowCount = 0;
  try {
    const content = JSON.parse(await file.text());
    if (content.sheet === body.dataset.sheet) rowCount = fill(content);
  } catch {
    // not a saved file
  }
  keep();
  count();
  if (!rowCount) statusLine.textContent = statusLine.dataset.other;
}

// Keys and events

function digit(card, key, focused) {
  const field = [focused, ...fields(card)].find((candidate) => candidate && !candidate.hidden && find("input[type=radio]", candidate));
  if (!field) return;
  const radios = every("input[type=radio]", field), number = key === "0" ? "10" : key;
  const radio = field.dataset.kind === "number"
    ? radios.find(({ value }) => value === key) ?? radios.find(({ value }) => value === number)
    : radios[Number(number) - 1];
  if (!radio) return;
  radio.focus();
  radio.checked = true;
  radio.dispatchEvent(new Event("change", { bubbles: true }));
}

document.addEventListener("keydown", (event) => {
  const control = event.ctrlKey || event.metaKey;
  if (control && event.key.toLowerCase() === "s") {
    event.preventDefault();
    save();
  } else if (control && event.key === "Enter") {
    event.preventDefault();
    show(index + (event.shiftKey ? -1 : 1));
  } else if (!control && !event.altKey && !isTyping(event.target) && /^[0-9]$/.test(event.key)) {
    event.preventDefault();
    const group = every(".card", screens[index]);
    digit(event.target.closest?.(".card") ?? group.find((card) => !isComplete(card)) ?? group[0], event.key, event.target.closest?.(".field"));
  }
});

for (const card of cards) {
  const onChange = (event) => {
    if (!event.target.classList.contains("right")) touched.add(card.dataset.row);
    arrange(card);
    if (isUntouched(card)) touched.delete(card.dataset.row);
    unsaved = true;
    rank(card.closest("article"));
    keep();
    count();
  };
  card.addEventListener("input", onChange);
  card.addEventListener("change", onChange);
  for (const clear of every(".clear", card)) {
    clear.addEventListener("click", (event) => {
      setValue(clear.closest(".field"), null);
      onChange(event);
    });
  }
  arrange(card);
}
for (const button of every(".order")) button.addEventListener("click", () => sort(button.closest("article")));
find("#bar").addEventListener("submit", (event) => event.preventDefault());
find("#save").addEventListener("click", save);
find("#load").addEventListener("change", (event) => event.target.files[0] && load(event.target.files[0]));
find("#previous").addEventListener("click", () => show(index - 1));
find("#next").addEventListener("click", () => show(index + 1));
find("#open").addEventListener("click", nextOpen);
window.addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});

recall();
find("#turn").hidden = false;
show(0, false);
count();
})();

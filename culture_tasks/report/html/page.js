"use strict";

// The page is finished without this script, which adds sorting, filters and the samples behind the numbers.
// Texts of models and data enter the page as text nodes and attribute values only.
(() => {
  const PAGE_SIZE = 20;
  const RUN = { row: 0, model: 1, task: 2, judge: 3 };
  const DOCUMENT = { item: 0, question: 1, references: 2, groups: 3, image: 4 };
  const SAMPLE = { run: 0, document: 1, response: 2, outcome: 3, score: 4, rationale: 5 };
  const CELL = { selection: 0, n: 1, coverage: 2, flags: 3, note: 4 };
  const FLAG = { name: 0, text: 1, excludes: 2 };
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const byId = (id) => document.getElementById(id);

  // ---- small tools

  function element(name, properties, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties || {})) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  // What can't be seen is shown: controls as their pictures, half of a surrogate pair as a replacement character.
  function visible(text) {
    const shown = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)));
    return typeof shown.toWellFormed === "function" ? shown.toWellFormed() : shown;
  }

  // A name keeps its direction, and what reorders text, to itself.
  function name(text) {
    return element("bdi", { textContent: visible(text) });
  }

  function folded(text) {
    return text.normalize("NFKC").toLocaleLowerCase();
  }

  function matches(text, words) {
    return words.every((word) => text.includes(word));
  }

  function wordsOf(text) {
    return folded(text).split(/\s+/).filter(Boolean);
  }

  // ---- sorting tables

  function sortKey(cell) {
    if (!cell) return null;
    const text = cell.dataset.value ?? cell.textContent.trim();
    if (text === "" || text === "—") return null;
    const number = Number(text.replace(/,/g, ""));
    return Number.isNaN(number) ? text : number;
  }

  // Cells without a value come last in both directions.
  function compare(first, second, direction) {
    if (first === null || second === null) return (first === null) - (second === null);
    if (typeof first === "number" && typeof second === "number") return direction * (first - second);
    return direction * collator.compare(String(first), String(second));
  }

  function sortBy(header) {
    const table = header.closest("table");
    const body = table.tBodies[0];
    const headers = [...header.parentElement.children];
    const column = headers.indexOf(header);
    const first = header.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = header.getAttribute("aria-sort") === first ? other : first;
    const direction = order === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column]) }));
    rows.sort((a, b) => compare(a.key, b.key, direction));
    body.append(...rows.map(({ row }) => row));
    headers.forEach((one) => one.setAttribute("aria-sort", one === header ? order : "none"));
    say(`Sorted by ${header.textContent.trim()}, ${order}`);
  }

  function say(text) {
    byId("said").textContent = text;
  }

  // ---- filtering tables

  function filterTables() {
    const form = byId("tools");
    const rows = wordsOf(form.elements.rows.value);
    const columns = wordsOf(form.elements.columns.value);
    const published = form.elements.published.checked;
    const tables = [...document.querySelectorAll("table[data-filtered]")];
    const shown = tables.map((table) => filterTable(table, rows, columns, published));
    const count = shown.reduce((sum, one) => sum + one, 0);
    say(`${count} rows shown in ${shown.filter(Boolean).length} tables`);
  }

  function filterTable(table, rows, columns, published) {
    const headers = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const kept = headers.map((header) => !header.dataset.search || matches(folded(header.dataset.search), columns));
    const numbers = headers.filter((header) => header.dataset.search);
    const numbersKept = numbers.filter((header) => kept[headers.indexOf(header)]);
    headers.forEach((header, place) => { header.hidden = !kept[place]; });
    filterOver(table, kept.slice(headers.length - numbers.length));
    let count = 0;
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, place) => { cell.hidden = !kept[place]; });
      row.hidden = !matches(folded(row.dataset.search), rows) || (!published && "published" in row.dataset);
      count += row.hidden ? 0 : 1;
    }
    const empty = count === 0 || (numbers.length > 0 && numbersKept.length === 0);
    table.closest("section").hidden = empty;
    return empty ? 0 : count;
  }

  function filterOver(table, kept) {
    if (table.tHead.rows.length < 2) return;
    for (const cell of table.tHead.rows[0].querySelectorAll("[data-count]")) {
      const first = Number(cell.dataset.first);
      const count = kept.slice(first, first + Number(cell.dataset.count)).filter(Boolean).length;
      cell.hidden = count === 0;
      cell.colSpan = Math.max(count, 1);
    }
  }

  // ---- samples: reading

  const data = JSON.parse(byId("data").textContent);

  function view(index) {
    const sample = data.samples[index];
    const run = data.runs[sample[SAMPLE.run]];
    const document = data.documents[sample[SAMPLE.document]];
    return {
      index,
      sample,
      document,
      model: run[RUN.row] || run[RUN.model],
      task: run[RUN.task],
      judge: run[RUN.judge],
      outcome: data.outcomes[sample[SAMPLE.outcome]],
      score: sample[SAMPLE.score],
      groups: data.groups[document[DOCUMENT.groups]],
    };
  }

  function groupOf(one, field) {
    const pair = one.groups.find(([name]) => name === field);
    return pair ? pair[1] : "";
  }

  function searchText(one) {
    const { document: asked, sample } = one;
    const parts = [asked[DOCUMENT.item], asked[DOCUMENT.question], ...asked[DOCUMENT.references]];
    return folded([...parts, sample[SAMPLE.response], sample[SAMPLE.rationale] || ""].join("\n"));
  }

  // ---- samples: filtering

  const state = { scope: [], found: [], shown: 0 };

  function filterForm() {
    return byId("filters").querySelector("form");
  }

  function choices(select, values, all) {
    const known = [...new Set(values)].filter(Boolean).sort(collator.compare);
    const options = known.map((value) => element("option", { value, textContent: visible(value) }));
    select.replaceChildren(element("option", { value: "", textContent: all }), ...options);
    select.disabled = known.length < 2;
  }

  function groupChoices(select, scope) {
    const fields = new Map();
    for (const one of scope) {
      for (const [field, value] of one.groups) {
        if (field !== "language") fields.set(field, (fields.get(field) || new Set()).add(value));
      }
    }
    const groups = [...fields].map(([field, values]) => {
      const options = [...values].sort(collator.compare).map((value) =>
        element("option", { value: JSON.stringify([field, value]), textContent: visible(value) }));
      return element("optgroup", { label: visible(field) }, ...options);
    });
    select.replaceChildren(element("option", { value: "", textContent: "all" }), ...groups);
    select.disabled = groups.length === 0;
  }

  function setChoices(scope) {
    const fields = filterForm().elements;
    choices(fields.model, scope.map((one) => one.model), "all");
    choices(fields.task, scope.map((one) => one.task), "all");
    choices(fields.language, scope.map((one) => groupOf(one, "language")), "all");
    choices(fields.outcome, scope.map((one) => one.outcome), "all");
    groupChoices(fields.group, scope);
  }

  function isWanted(one, wanted) {
    return (!wanted.model || one.model === wanted.model)
      && (!wanted.task || one.task === wanted.task)
      && (!wanted.language || groupOf(one, "language") === wanted.language)
      && (!wanted.outcome || one.outcome === wanted.outcome)
      && (!wanted.group || groupOf(one, wanted.group[0]) === wanted.group[1])
      && (!wanted.words.length || matches(searchText(one), wanted.words));
  }

  function wantedNow() {
    const fields = filterForm().elements;
    return {
      model: fields.model.value,
      task: fields.task.value,
      language: fields.language.value,
      outcome: fields.outcome.value,
      group: fields.group.value ? JSON.parse(fields.group.value) : null,
      words: wordsOf(fields.text.value),
    };
  }

  function inOrder(found, order) {
    if (order === "file") return found;
    if (order === "item") {
      return found.sort((a, b) => a.sample[SAMPLE.document] - b.sample[SAMPLE.document] || collator.compare(a.model, b.model));
    }
    const direction = order === "low" ? 1 : -1;
    return found.sort((a, b) => compare(a.score, b.score, direction));
  }

  function filterSamples() {
    const wanted = wantedNow();
    state.found = inOrder(state.scope.filter((one) => isWanted(one, wanted)), filterForm().elements.order.value);
    state.shown = 0;
    byId("samples").replaceChildren();
    showMore();
  }

  // ---- samples: showing

  function textBlock(text, language) {
    const block = element("p", { className: "text", dir: "auto", textContent: visible(text) });
    if (/^[a-z]{2,3}$/.test(language)) block.lang = language;
    if (text.length > 1200) {
      block.tabIndex = 0;
      block.setAttribute("role", "group");
      block.setAttribute("aria-label", "long text");
    }
    return block;
  }

  function titled(title, ...content) {
    return content.length ? [element("h4", { textContent: title }), ...content] : [];
  }

  function scoreText(one) {
    return one.score === null ? "" : `, score ${Number(one.score.toFixed(4))}`;
  }

  function heading(one) {
    const failed = one.outcome === "scored" ? "outcome" : "outcome failed";
    return element("h3", null,
      name(one.model),
      element("span", { className: failed }, name(one.outcome), scoreText(one)));
  }

  function chips(one) {
    const pairs = [["task", one.task], ["item", one.document[DOCUMENT.item]], ...one.groups];
    if (one.judge) pairs.push(["judge", one.judge]);
    const items = pairs.map(([field, value]) => element("li", null, name(field), ": ", name(value)));
    return element("ul", { className: "chips" }, ...items);
  }

  function picture(one) {
    const place = one.document[DOCUMENT.image];
    if (place < 0) return null;
    return element("img", { src: data.images[place], alt: `Image of item ${visible(one.document[DOCUMENT.item])}` });
  }

  function references(one, language) {
    const texts = one.document[DOCUMENT.references];
    if (texts.length < 2) return texts.map((text) => textBlock(text, language));
    return [element("ul", null, ...texts.map((text) => element("li", { dir: "auto" }, textBlock(text, language))))];
  }

  function card(one) {
    const language = groupOf(one, "language");
    const rationale = one.sample[SAMPLE.rationale];
    const article = element("article", null,
      heading(one),
      chips(one),
      picture(one),
      ...titled("Question", textBlock(one.document[DOCUMENT.question], language)),
      ...titled("References", ...references(one, language)),
      ...titled("Response", textBlock(one.sample[SAMPLE.response], language)),
      ...(rationale === null ? [] : titled("Verdict's rationale", textBlock(rationale, ""))));
    return element("li", null, article);
  }

  function showMore() {
    const next = state.found.slice(state.shown, state.shown + PAGE_SIZE);
    const cards = next.map(card);
    byId("samples").append(...cards);
    const focus = state.shown > 0 && cards.length > 0 ? cards[0].querySelector("article") : null;
    state.shown += next.length;
    byId("more").hidden = state.shown >= state.found.length;
    byId("browser-count").textContent = `${state.shown} of ${state.found.length} samples shown`;
    if (focus) {
      focus.tabIndex = -1;
      focus.focus();
    }
  }

  // ---- samples: opening

  function openBrowser(title, about, flags, indices) {
    state.scope = indices.map(view);
    byId("browser-title").replaceChildren(...title);
    byId("browser-about").textContent = about;
    byId("browser-flags").replaceChildren(...flags.map((place) => flagItem(data.flags[place])));
    filterForm().reset();
    setChoices(state.scope);
    byId("others").hidden = othersOnTheseItems().length === state.scope.length;
    byId("filters").open = window.innerWidth > 640;
    filterSamples();
    byId("browser").showModal();
    byId("browser").querySelector(".body").scrollTop = 0;
  }

  function flagItem(flag) {
    const text = flag[FLAG.excludes] ? `not comparable: ${flag[FLAG.text]}` : flag[FLAG.text];
    return element("li", { className: "flag", textContent: text });
  }

  function openCell(button) {
    const cell = data.cells[Number(button.dataset.cell)];
    const [total, indices] = data.selections[cell[CELL.selection]];
    openBrowser(cellTitle(button), cellText(cell, total, indices.length), cell[CELL.flags], indices);
  }

  function cellTitle(button) {
    const place = button.closest("td");
    const table = place.closest("table");
    const headers = table.tHead.rows[table.tHead.rows.length - 1].cells;
    const header = headers[place.cellIndex];
    const row = place.parentElement.dataset.search;
    return [name(row), " · ", name(header.dataset.search), `: ${button.textContent}`];
  }

  function cellText(cell, total, kept) {
    const coverage = cell[CELL.coverage] === null ? "" : `, coverage ${Math.round(100 * cell[CELL.coverage])} %`;
    const cut = kept < total ? `${kept} of its ${total} samples are in this page, the first of each run.` : `All ${total} samples are in this page.`;
    return `${cell[CELL.n]} scored items${coverage}. ${cut} ${visible(cell[CELL.note])}`;
  }

  // The same items as other models answered them, side by side.
  function othersOnTheseItems() {
    const documents = new Set(state.scope.map((one) => one.sample[SAMPLE.document]));
    return data.samples.flatMap((sample, index) => (documents.has(sample[SAMPLE.document]) ? [index] : []));
  }

  function addOthers() {
    state.scope = othersOnTheseItems().map(view);
    setChoices(state.scope);
    filterForm().elements.order.value = "item";
    byId("others").hidden = true;
    filterSamples();
  }

  function openAll() {
    const all = data.samples.map((_, index) => index);
    openBrowser(["All samples of this page"], "", [], all);
  }

  // ---- wiring

  function debounced(action, milliseconds = 150) {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(action, milliseconds);
    };
  }

  function onClick(event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.classList.contains("sort")) sortBy(button.closest("th"));
    else if (button.dataset.cell) openCell(button);
    else if (button.id === "browse") openAll();
    else if (button.id === "close") byId("browser").close();
    else if (button.id === "others") addOthers();
    else if (button.id === "more") showMore();
  }

  function openForPrint() {
    document.querySelectorAll("main details, body > header details").forEach((details) => { details.open = true; });
    document.querySelectorAll("figure img").forEach((image) => { image.loading = "eager"; });
  }

  function start() {
    byId("tools").hidden = false;
    byId("browse").hidden = data.samples.length === 0;
    document.addEventListener("click", onClick);
    document.querySelectorAll("form").forEach((form) => form.addEventListener("submit", (event) => event.preventDefault()));
    byId("tools").addEventListener("input", debounced(filterTables));
    filterForm().addEventListener("input", debounced(filterSamples));
    filterForm().addEventListener("reset", () => setTimeout(filterSamples));
    byId("browser").addEventListener("click", (event) => { if (event.target === byId("browser")) byId("browser").close(); });
    if (window.innerWidth <= 640) document.querySelector("nav details").open = false;
    window.addEventListener("beforeprint", openForPrint);
  }

  start();
})();

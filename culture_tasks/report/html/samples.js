// ---- samples

const PAGE_SIZE = 20;
const RUN = { label: 0, task: 1, judge: 2, key: 3, lower: 4 };
const CELL = { selection: 0, n: 1, coverage: 2, flags: 3, note: 4 };
const FLAG = { name: 0, text: 1, excludes: 2 };
const data = JSON.parse(byId("data").textContent);

const embedded = data.samples.map((row) => {
  const [run, place, document, response, outcome, score, correctness, rationale, doubt, prompt] = row;
  const [item, question, references, groups, image] = data.documents[document];
  const [model, task, judge] = data.runs[run];
  return {
    run, place, item, score, doubt, model, task, judge, question, references, response, rationale,
    groups: data.groups[groups],
    outcome: data.outcomes[outcome],
    correctness: data.correctness[correctness],
    itemKey: `${task}\n${item}`,
    prompt: prompt < 0 ? null : data.prompts[prompt],
    image: image < 0 ? null : data.images[image],
  };
});

function samplesOfRuns(runs) {
  return runs.flatMap((run) => embedded.filter((sample) => sample.run === run));
}

function groupOf(sample, field) {
  const pair = sample.groups.find(([name]) => name === field);
  return pair ? pair[1] : "";
}

function searchText(sample) {
  const { question, references, response, rationale } = sample;
  return folded([sample.item, question, ...references, response, rationale || ""].join("\n"));
}

// ---- samples: filtering

// scope: what may be shown; results: pairs or single samples that the filters leave.
// where: the groups that all of them belong to; linked: the sample that a link named.
const state = { scope: [], where: [], results: [], shown: 0, linked: null };

function filterForm() {
  return byId("filters").querySelector("form");
}

function choices(select, values, all) {
  const texts = [...new Set(values)].filter(Boolean).sort(collator.compare);
  const options = texts.map((value) => element("option", { value, textContent: visible(value) }));
  const before = select.value;
  select.replaceChildren(element("option", { value: "", textContent: all }), ...options);
  if (texts.includes(before)) select.value = before;
  select.disabled = texts.length < 2 && !select.value;
}

function groupChoices(select, scope) {
  const fields = new Map();
  for (const sample of scope) {
    for (const [field, value] of sample.groups) {
      if (field !== "language") fields.set(field, (fields.get(field) || new Set()).add(value));
    }
  }
  const groups = [...fields].map(([field, values]) => {
    const options = [...values].sort(collator.compare).map((value) =>
      element("option", { value: JSON.stringify([field, value]), textContent: visible(value) }));
    return element("optgroup", { label: visible(field) }, ...options);
  });
  const before = select.value;
  select.replaceChildren(element("option", { value: "", textContent: "all" }), ...groups);
  select.value = before;
  if (select.selectedIndex < 0) select.value = "";
  select.disabled = groups.length === 0;
}

function setChoices() {
  const fields = filterForm().elements;
  const scope = state.scope;
  const tasks = new Set(scope.map((sample) => sample.task));
  const models = data.runs.filter((run) => tasks.has(run[RUN.task])).map((run) => run[RUN.label]);
  choices(fields.model, scope.map((sample) => sample.model), "all");
  choices(fields.beside, models, "nothing");
  choices(fields.task, scope.map((sample) => sample.task), "all");
  choices(fields.language, scope.map((sample) => groupOf(sample, "language")), "all");
  choices(fields.outcome, scope.map((sample) => sample.outcome), "all");
  groupChoices(fields.group, scope);
}

function filterValues() {
  const fields = filterForm().elements;
  return {
    model: fields.model.value,
    task: fields.task.value,
    language: fields.language.value,
    outcome: fields.outcome.value,
    correctness: fields.correctness.value,
    group: fields.group.value ? JSON.parse(fields.group.value) : null,
    words: wordsOf(fields.text.value),
  };
}

function fits(sample, filters) {
  return (!filters.task || sample.task === filters.task)
    && (!filters.language || groupOf(sample, "language") === filters.language)
    && (!filters.outcome || sample.outcome === filters.outcome)
    && (!filters.correctness || sample.correctness === filters.correctness)
    && (!filters.group || groupOf(sample, filters.group[0]) === filters.group[1]);
}

function isFailure(sample) {
  return sample.correctness === "wrong" || sample.correctness === "not scored";
}

const PAIRS = {
  "": () => true,
  first: (a, b) => a.correctness === "right" && isFailure(b),
  second: (a, b) => isFailure(a) && b.correctness === "right",
  neither: (a, b) => isFailure(a) && isFailure(b),
  both: (a, b) => a.correctness === "right" && b.correctness === "right",
  differs: (a, b) => a.correctness !== b.correctness || (a.correctness === "scored" && a.score !== b.score),
};

// The samples that pass the filters: lists of one sample, or of two that answer the same item.
function filteredSamples() {
  const filters = filterValues();
  const fields = filterForm().elements;
  const candidates = state.scope.filter((sample) => fits(sample, filters));
  if (!fields.beside.value) {
    return candidates.filter((sample) => !filters.model || sample.model === filters.model).map((sample) => [sample]);
  }
  const answers = new Map(state.scope.filter((sample) => sample.model === fields.beside.value).map((sample) => [sample.itemKey, sample]));
  return candidates
    .filter((sample) => sample.model === filters.model && answers.has(sample.itemKey))
    .map((sample) => [sample, answers.get(sample.itemKey)])
    .filter(([a, b]) => PAIRS[fields.pairs.value](a, b));
}

const ORDERS = {
  failures: ([a], [b]) => data.correctness.indexOf(a.correctness) - data.correctness.indexOf(b.correctness) || badness(a) - badness(b),
  best: ([a], [b]) => badness(b) - badness(a),
  item: ([a], [b]) => collator.compare(a.itemKey, b.itemKey) || collator.compare(a.model, b.model),
};

function badness(sample) {
  return sample.score === null ? 0 : data.runs[sample.run][RUN.lower] ? -sample.score : sample.score;
}

function filterSamples() {
  const words = filterValues().words;
  let results = filteredSamples();
  if (words.length) {
    results = results.filter((samples) => samples.some((sample) => matches(searchText(sample), words)));
  }
  state.results = results.sort(ORDERS[filterForm().elements.order.value]);
  state.shown = 0;
  byId("samples").replaceChildren();
  showMore();
}

// Another model was chosen beside the first: all samples of the two that are here are added.
function setBeside() {
  const fields = filterForm().elements;
  const other = fields.beside.value;
  fields.pairs.disabled = !other;
  if (!other) return;
  if (!fields.model.value || fields.model.value === other) {
    const first = state.scope.find((sample) => sample.model !== other);
    if (first) fields.model.value = first.model;
  }
  const models = new Set([fields.model.value, other]);
  const runs = runsOfTasks(state.scope).filter((number) => models.has(data.runs[number][RUN.label]));
  widen(samplesOfRuns(runs).filter((sample) => state.where.every(([field, value]) => groupOf(sample, field) === value)));
}

function widen(samples) {
  state.scope = [...new Set([...state.scope, ...samples])];
  setChoices();
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

function badge(sample) {
  const score = sample.score === null ? "" : `, score ${Number(sample.score.toFixed(4))}`;
  const result = sample.correctness === "scored" ? sample.outcome : sample.correctness;
  const outcome = sample.correctness !== "scored" && sample.outcome !== "scored" ? `, ${visible(sample.outcome)}` : "";
  return element("span", { className: isFailure(sample) ? "outcome failed" : "outcome" }, name(result), outcome, score);
}

function chips(sample) {
  const pairs = [["task", sample.task], ["item", sample.item], ...sample.groups];
  if (sample.judge) pairs.push(["judge", sample.judge]);
  const items = pairs.map(([field, value]) => element("li", null, name(field), ": ", name(value)));
  return element("ul", { className: "chips" }, ...items);
}

function picture(sample) {
  return sample.image && element("img", { src: sample.image, alt: `Image of item ${visible(sample.item)}` });
}

function references(texts, language) {
  if (texts.length < 2) return texts.map((text) => textBlock(text, language));
  return [element("ul", null, ...texts.map((text) => element("li", { dir: "auto" }, textBlock(text, language))))];
}

function address(sample) {
  return `#sample-${encodeURIComponent(data.runs[sample.run][RUN.key])}-${sample.place}`;
}

function question(sample) {
  const language = groupOf(sample, "language");
  return [
    chips(sample),
    picture(sample),
    ...titled("Question", textBlock(sample.question, language)),
    ...titled("References", ...references(sample.references, language)),
  ];
}

function answer(sample) {
  const { response, rationale, prompt } = sample;
  const promptDetails = prompt === null ? null
    : element("details", null, element("summary", { textContent: "Prompt as sent" }), textBlock(prompt, ""));
  return [
    ...titled("Response", textBlock(response, groupOf(sample, "language"))),
    ...(rationale === null ? [] : titled("Verdict's rationale", textBlock(rationale, ""))),
    sample.doubt ? element("p", { className: "doubt", textContent: `Judge in doubt: ${visible(sample.doubt)}` }) : null,
    promptDetails,
    element("a", { className: "link", href: address(sample), textContent: "Link to this sample" }),
  ];
}

function heading(sample) {
  return element("h3", null, name(sample.model), badge(sample));
}

function card(samples) {
  const [sample] = samples;
  const article = samples.length > 1
    ? element("article", null, ...question(sample),
      element("div", { className: "pair" }, ...samples.map((part) => element("section", null, heading(part), ...answer(part)))))
    : element("article", null, heading(sample), ...question(sample), ...answer(sample));
  if (state.linked === sample) article.classList.add("wanted");
  return element("li", null, article);
}

function showMore() {
  const next = state.results.slice(state.shown, state.shown + PAGE_SIZE);
  const cards = next.map(card);
  byId("samples").append(...cards);
  const focus = state.shown > 0 && cards.length > 0 ? cards[0].querySelector("article") : null;
  state.shown += next.length;
  byId("more").hidden = state.shown >= state.results.length;
  const noun = filterForm().elements.beside.value ? "pair" : "sample";
  byId("browser-count").textContent = `${state.shown} of ${counted(state.results.length, noun)} shown`;
  if (focus) {
    focus.tabIndex = -1;
    focus.focus();
  }
}

// ---- samples: opening

function openBrowser(title, about, flags, selection) {
  byId("browser-title").replaceChildren(...title);
  byId("browser-about").textContent = about;
  byId("browser-flags").replaceChildren(...flags.map((place) => flagItem(data.flags[place])));
  filterForm().reset();
  filterForm().elements.pairs.disabled = true;
  byId("filters").open = window.innerWidth > 640;
  if (!byId("browser").open) byId("browser").showModal();
  state.scope = selection.scope;
  state.where = selection.where || [];
  state.linked = selection.linked || null;
  setChoices();
  if (selection.order) filterForm().elements.order.value = selection.order;
  byId("others").hidden = runsOfTasks(state.scope).length < 2;
  filterSamples();
  byId("browser").querySelector(".body").scrollTop = 0;
}

function flagItem(flag) {
  const text = flag[FLAG.excludes] ? `not comparable: ${flag[FLAG.text]}` : flag[FLAG.text];
  return element("li", { className: "flag", textContent: text });
}

function openCell(button) {
  const cell = data.cells[Number(button.dataset.cell)];
  const [total, where, kept] = data.selections[cell[CELL.selection]];
  const scope = kept.map((place) => embedded[place]);
  openBrowser(cellTitle(button), cellText(cell, total, kept.length), cell[CELL.flags], { scope, where });
}

function cellTitle(button) {
  const place = button.closest("td");
  const table = place.closest("table");
  const headers = table.tHead.rows[table.tHead.rows.length - 1].cells;
  const header = headers[place.cellIndex];
  const row = place.parentElement.dataset.search;
  return [name(row), " · ", name(header.dataset.search), `: ${button.textContent}`];
}

function cellText(cell, total, count) {
  const coverage = cell[CELL.coverage] === null ? "" : `, coverage ${Math.round(100 * cell[CELL.coverage])} %`;
  const extent = count < total
    ? `${count} of its ${counted(total, "sample")} are in this page: failures first, and a random sample, the same items for all models.`
    : total === 1 ? "Its sample is here." : `All ${total} samples are here.`;
  return `${counted(cell[CELL.n], "scored item")}${coverage}. ${extent} ${visible(cell[CELL.note])}`;
}

// Runs of the tasks in scope, of any model.
function runsOfTasks(scope) {
  const tasks = new Set(scope.map((sample) => sample.task));
  return data.runs.flatMap((run, number) => (tasks.has(run[RUN.task]) ? [number] : []));
}

// The same items as other models answered them.
function withOthers(scope) {
  const keys = new Set(scope.map((sample) => sample.itemKey));
  return samplesOfRuns(runsOfTasks(scope)).filter((sample) => keys.has(sample.itemKey));
}

function showOthers() {
  widen(withOthers(state.scope));
  filterForm().elements.order.value = "item";
  byId("others").hidden = true;
  filterSamples();
}

// A linked sample, and the answers of other models to its item.
function linkedSample(run, place) {
  const linked = embedded.find((sample) => sample.run === run && sample.place === place);
  if (!linked) return { scope: [] };
  const scope = [linked, ...withOthers([linked]).filter((sample) => sample !== linked)];
  return { scope, linked, order: "none" };
}

// Linked samples keep their order: the sample that the link names is first.
ORDERS.none = () => 0;

function openLinked() {
  const match = /^#sample-(.+)-(\d+)$/.exec(location.hash);
  if (!match) return false;
  const run = data.runs.findIndex((row) => encodeURIComponent(row[RUN.key]) === match[1]);
  const title = run < 0 ? ["No such sample"] : [name(data.runs[run][RUN.label]), " · ", name(data.runs[run][RUN.task])];
  const selection = linkedSample(run, Number(match[2]));
  const about = "One sample, with what other models answered. A page may hold only some samples: a sample that isn't among them isn't shown.";
  openBrowser(title, about, [], selection);
  return true;
}

function forgetLink() {
  if (/^#sample-/.test(location.hash)) history.replaceState(null, "", location.pathname + location.search);
}

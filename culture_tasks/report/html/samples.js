// ---- samples: where they are

const PAGE_SIZE = 20;
const FAIR_SIZE = 50; // of all samples beside the page
const RUN = { label: 0, task: 1, judge: 2, key: 3, lower: 4 };
const CELL = { selection: 0, n: 1, coverage: 2, flags: 3, note: 4 };
const FLAG = { name: 0, text: 1, excludes: 2 };
const data = JSON.parse(byId("data").textContent);
const nonce = document.currentScript.nonce;
const lieBeside = data.folder !== "";

// A sample as the filters see it. Its texts are there at once, or come from a file when it is shown.
function sampleOf(run, place, item, groups, outcome, score, correctness, doubt, more) {
  const [model, task, judge] = data.runs[run];
  return {
    run, place, item, groups, outcome, score, doubt, model, task, judge,
    correctness: data.correctness[correctness], asked: `${task}\n${item}`, draw: 0, texts: null, ...more,
  };
}

const embedded = data.samples.map((row) => {
  const [run, place, document, response, outcome, score, correctness, rationale, doubt, prompt] = row;
  const [item, question, references, groups, image] = data.documents[document];
  return sampleOf(run, place, item, data.groups[groups], data.outcomes[outcome], score, correctness, doubt, {
    texts: {
      question, references, response, rationale,
      prompt: prompt < 0 ? null : data.prompts[prompt],
      image: image < 0 ? null : data.images[image],
    },
  });
});

// ---- samples: files beside the page, each a script of one call

const TEXTS_IN_A_FILE = data.texts_in_a_file;
const IMAGES_IN_A_FILE = data.images_in_a_file;
const arriving = new Map();
const arrived = new Map();

window.cultureSamples = (name, content) => { arrived.set(name, content); };

function load(name) {
  if (!arriving.has(name)) {
    arriving.set(name, new Promise((done, failed) => {
      const script = element("script", { src: `${encodeURIComponent(data.folder)}/${name}.js` });
      script.nonce = nonce;
      script.onload = () => { script.remove(); (arrived.has(name) ? done : failed)(arrived.get(name)); };
      script.onerror = () => { script.remove(); arriving.delete(name); failed(new Error(name)); };
      document.head.append(script);
    }));
  }
  return arriving.get(name);
}

const ofRuns = new Map();

async function samplesOfRun(run) {
  if (!lieBeside) return embedded.filter((one) => one.run === run);
  if (!ofRuns.has(run)) {
    const { groups, outcomes, rows } = await load(`rows-${run}`);
    ofRuns.set(run, rows.map((row, at) => {
      const [place, item, group, outcome, score, correctness, doubt, draw] = row;
      return sampleOf(run, place, item, groups[group], outcomes[outcome], score, correctness, doubt, { draw, at });
    }));
  }
  return ofRuns.get(run);
}

async function samplesOfRuns(runs) {
  return (await Promise.all(runs.map(samplesOfRun))).flat();
}

async function textsOf(one) {
  if (one.texts) return;
  const part = await load(`texts-${one.run}-${Math.floor(one.at / TEXTS_IN_A_FILE)}`);
  const [question, references, response, rationale, prompt, place] = part[one.at % TEXTS_IN_A_FILE];
  const images = place < 0 ? null : await load(`images-${Math.floor(place / IMAGES_IN_A_FILE)}`);
  const image = images && images[place % IMAGES_IN_A_FILE];
  one.texts = { question, references, response, rationale, prompt, image };
}

function groupOf(one, field) {
  const pair = one.groups.find(([name]) => name === field);
  return pair ? pair[1] : "";
}

function searchText(one) {
  const { question, references, response, rationale } = one.texts;
  return folded([one.item, question, ...references, response, rationale || ""].join("\n"));
}

// ---- samples: filtering

// scope: what may be shown; fair: the samples of the fair draw; found: pairs or single samples that the filters leave.
// where: the groups that all of them belong to; wanted: the one that a link named.
const state = { scope: [], where: [], fair: new Set(), found: [], shown: 0, round: 0, wanted: null };

function filterForm() {
  return byId("filters").querySelector("form");
}

function choices(select, values, all) {
  const known = [...new Set(values)].filter(Boolean).sort(collator.compare);
  const options = known.map((value) => element("option", { value, textContent: visible(value) }));
  const before = select.value;
  select.replaceChildren(element("option", { value: "", textContent: all }), ...options);
  if (known.includes(before)) select.value = before;
  select.disabled = known.length < 2 && !select.value;
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
  const before = select.value;
  select.replaceChildren(element("option", { value: "", textContent: "all" }), ...groups);
  select.value = before;
  if (select.selectedIndex < 0) select.value = "";
  select.disabled = groups.length === 0;
}

function setChoices() {
  const fields = filterForm().elements;
  const scope = state.scope;
  const tasks = new Set(scope.map((one) => one.task));
  const others = data.runs.filter((run) => tasks.has(run[RUN.task])).map((run) => run[RUN.label]);
  choices(fields.model, scope.map((one) => one.model), "all");
  choices(fields.beside, others, "nothing");
  choices(fields.task, scope.map((one) => one.task), "all");
  choices(fields.language, scope.map((one) => groupOf(one, "language")), "all");
  choices(fields.outcome, scope.map((one) => one.outcome), "all");
  groupChoices(fields.group, scope);
  fields.doubt.disabled = !scope.some((one) => one.doubt);
  fields.pick.disabled = state.fair.size === 0;
}

function wantedNow() {
  const fields = filterForm().elements;
  return {
    pick: fields.pick.value,
    model: fields.model.value,
    task: fields.task.value,
    language: fields.language.value,
    outcome: fields.outcome.value,
    correctness: fields.correctness.value,
    doubt: fields.doubt.value,
    group: fields.group.value ? JSON.parse(fields.group.value) : null,
    words: wordsOf(fields.text.value),
  };
}

function isWanted(one, wanted) {
  return (wanted.pick !== "fair" || state.fair.has(one.asked))
    && (wanted.pick !== "failures" || isFailure(one))
    && (!wanted.task || one.task === wanted.task)
    && (!wanted.language || groupOf(one, "language") === wanted.language)
    && (!wanted.outcome || one.outcome === wanted.outcome)
    && (!wanted.correctness || one.correctness === wanted.correctness)
    && (!wanted.doubt || Boolean(one.doubt) === (wanted.doubt === "yes"))
    && (!wanted.group || groupOf(one, wanted.group[0]) === wanted.group[1]);
}

function isFailure(one) {
  return one.correctness === "wrong" || one.correctness === "not scored";
}

const PAIRS = {
  "": () => true,
  first: (a, b) => a.correctness === "right" && isFailure(b),
  second: (a, b) => isFailure(a) && b.correctness === "right",
  neither: (a, b) => isFailure(a) && isFailure(b),
  both: (a, b) => a.correctness === "right" && b.correctness === "right",
  differs: (a, b) => a.correctness !== b.correctness || (a.correctness === "scored" && a.score !== b.score),
};

// What the filters leave: lists of one sample, or of two that answer the same item.
function chosen() {
  const wanted = wantedNow();
  const fields = filterForm().elements;
  const fitting = state.scope.filter((one) => isWanted(one, wanted));
  if (!fields.beside.value) {
    return fitting.filter((one) => !wanted.model || one.model === wanted.model).map((one) => [one]);
  }
  const others = new Map(state.scope.filter((one) => one.model === fields.beside.value).map((one) => [one.asked, one]));
  return fitting
    .filter((one) => one.model === wanted.model && others.has(one.asked))
    .map((one) => [one, others.get(one.asked)])
    .filter(([a, b]) => PAIRS[fields.pairs.value](a, b));
}

const ORDERS = {
  failures: ([a], [b]) => data.correctness.indexOf(a.correctness) - data.correctness.indexOf(b.correctness) || badness(a) - badness(b) || a.draw - b.draw,
  best: ([a], [b]) => badness(b) - badness(a),
  draw: ([a], [b]) => a.draw - b.draw,
  file: ([a], [b]) => a.run - b.run || a.place - b.place,
  item: ([a], [b]) => collator.compare(a.asked, b.asked) || collator.compare(a.model, b.model),
};

function badness(one) {
  return one.score === null ? 0 : data.runs[one.run][RUN.lower] ? -one.score : one.score;
}

async function filterSamples() {
  const round = ++state.round;
  const words = wantedNow().words;
  let found = chosen();
  if (words.length) {
    if (found.some(([one]) => !one.texts)) tell("Reading the samples");
    await arriveAll(found.flat());
    if (round !== state.round) return;
    found = found.filter((ones) => ones.some((one) => matches(searchText(one), words)));
  }
  state.found = found.sort(ORDERS[filterForm().elements.order.value]);
  state.shown = 0;
  byId("samples").replaceChildren();
  await showMore();
}

async function arriveAll(samples) {
  try {
    await Promise.all(samples.map(textsOf));
  } catch {
    tell(`The samples lie in the folder ${data.folder}, which must stand beside this page; a file of it can't be loaded.`);
    throw new Error("samples");
  }
}

function tell(text) {
  byId("browser-count").textContent = text;
}

// Another model was chosen to stand beside the first: all that is here of the two is added.
async function setBeside() {
  const fields = filterForm().elements;
  const other = fields.beside.value;
  fields.pairs.disabled = !other;
  if (!other) return;
  if (!fields.model.value || fields.model.value === other) {
    const first = state.scope.find((one) => one.model !== other);
    if (first) fields.model.value = first.model;
  }
  const both = new Set([fields.model.value, other]);
  const runs = othersOf(state.scope).filter((number) => both.has(data.runs[number][RUN.label]));
  widen((await samplesOfRuns(runs)).filter((one) => state.where.every(([field, value]) => groupOf(one, field) === value)));
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

function badge(one) {
  const score = one.score === null ? "" : `, score ${Number(one.score.toFixed(4))}`;
  const what = one.correctness === "scored" ? one.outcome : one.correctness;
  const also = one.correctness !== "scored" && one.outcome !== "scored" ? `, ${visible(one.outcome)}` : "";
  return element("span", { className: isFailure(one) ? "outcome failed" : "outcome" }, name(what), also, score);
}

function chips(one) {
  const pairs = [["task", one.task], ["item", one.item], ...one.groups];
  if (one.judge) pairs.push(["judge", one.judge]);
  const items = pairs.map(([field, value]) => element("li", null, name(field), ": ", name(value)));
  return element("ul", { className: "chips" }, ...items);
}

function picture(one) {
  return one.texts.image && element("img", { src: one.texts.image, alt: `Image of item ${visible(one.item)}` });
}

function references(texts, language) {
  if (texts.length < 2) return texts.map((text) => textBlock(text, language));
  return [element("ul", null, ...texts.map((text) => element("li", { dir: "auto" }, textBlock(text, language))))];
}

function address(one) {
  return `#sample-${encodeURIComponent(data.runs[one.run][RUN.key])}-${one.place}`;
}

function question(one) {
  const language = groupOf(one, "language");
  return [
    chips(one),
    picture(one),
    ...titled("Question", textBlock(one.texts.question, language)),
    ...titled("References", ...references(one.texts.references, language)),
  ];
}

function answer(one) {
  const { response, rationale, prompt } = one.texts;
  const sent = prompt === null ? null
    : element("details", null, element("summary", { textContent: "Prompt as sent" }), textBlock(prompt, ""));
  return [
    ...titled("Response", textBlock(response, groupOf(one, "language"))),
    ...(rationale === null ? [] : titled("Verdict's rationale", textBlock(rationale, ""))),
    one.doubt ? element("p", { className: "doubt", textContent: `Judge in doubt: ${visible(one.doubt)}` }) : null,
    sent,
    element("a", { className: "link", href: address(one), textContent: "Link to this sample" }),
  ];
}

function heading(one) {
  return element("h3", null, name(one.model), badge(one));
}

function card(ones) {
  const [one, ...others] = ones;
  const article = others.length
    ? element("article", null, ...question(one),
      element("div", { className: "pair" }, ...ones.map((each) => element("section", null, heading(each), ...answer(each)))))
    : element("article", null, heading(one), ...question(one), ...answer(one));
  if (state.wanted === one) article.classList.add("wanted");
  return element("li", null, article);
}

async function showMore() {
  const round = state.round;
  const next = state.found.slice(state.shown, state.shown + PAGE_SIZE);
  await arriveAll(next.flat());
  if (round !== state.round) return;
  const cards = next.map(card);
  byId("samples").append(...cards);
  const focus = state.shown > 0 && cards.length > 0 ? cards[0].querySelector("article") : null;
  state.shown += next.length;
  byId("more").hidden = state.shown >= state.found.length;
  const what = filterForm().elements.beside.value ? "pair" : "sample";
  tell(`${state.shown} of ${counted(state.found.length, what)} shown`);
  if (focus) {
    focus.tabIndex = -1;
    focus.focus();
  }
}

// ---- samples: opening

async function openBrowser(title, about, flags, samples) {
  byId("browser-title").replaceChildren(...title);
  byId("browser-about").textContent = about;
  byId("browser-flags").replaceChildren(...flags.map((place) => flagItem(data.flags[place])));
  filterForm().reset();
  filterForm().elements.pairs.disabled = true;
  byId("samples").replaceChildren();
  byId("more").hidden = true;
  tell("");
  byId("filters").open = window.innerWidth > 640;
  if (!byId("browser").open) byId("browser").showModal();
  Object.assign(state, { scope: [], found: [], wanted: null });
  let found;
  try {
    found = await samples;
  } catch {
    state.round += 1;
    tell(`The samples lie in the folder ${data.folder}, which must stand beside this page; a file of it can't be loaded.`);
    return;
  }
  state.scope = found.scope;
  state.where = found.where || [];
  state.fair = found.fair;
  state.wanted = found.wanted || null;
  setChoices();
  if (found.order) filterForm().elements.order.value = found.order;
  byId("others").hidden = othersOf(state.scope).length < 2;
  await filterSamples();
  byId("browser").querySelector(".body").scrollTop = 0;
}

function flagItem(flag) {
  const text = flag[FLAG.excludes] ? `not comparable: ${flag[FLAG.text]}` : flag[FLAG.text];
  return element("li", { className: "flag", textContent: text });
}

// The items of a fair draw: the kept ones, or those with the lowest numbers.
function fairItems(samples) {
  const byDraw = [...new Map(samples.map((one) => [one.asked, one.draw]))].sort((a, b) => a[1] - b[1]);
  return new Set(byDraw.slice(0, FAIR_SIZE).map(([asked]) => asked));
}

async function samplesOfCell(selection) {
  const [, runs, where, failures, fair] = selection;
  if (!lieBeside) {
    const scope = [...new Set([...failures, ...fair])].map((place) => embedded[place]);
    return { scope, where, fair: new Set(fair.map((place) => embedded[place].asked)) };
  }
  const all = await samplesOfRuns(runs);
  const scope = all.filter((one) => where.every(([field, value]) => groupOf(one, field) === value));
  return { scope, where, fair: fairItems(scope) };
}

function openCell(button) {
  const cell = data.cells[Number(button.dataset.cell)];
  const selection = data.selections[cell[CELL.selection]];
  openBrowser(cellTitle(button), cellText(cell, selection), cell[CELL.flags], samplesOfCell(selection));
}

function cellTitle(button) {
  const place = button.closest("td");
  const table = place.closest("table");
  const headers = table.tHead.rows[table.tHead.rows.length - 1].cells;
  const header = headers[place.cellIndex];
  const row = place.parentElement.dataset.search;
  return [name(row), " · ", name(header.dataset.search), `: ${button.textContent}`];
}

function cellText(cell, [total, , , failures, fair]) {
  const coverage = cell[CELL.coverage] === null ? "" : `, coverage ${Math.round(100 * cell[CELL.coverage])} %`;
  const kept = lieBeside ? total : new Set([...failures, ...fair]).size;
  const cut = kept < total
    ? `${kept} of its ${counted(total, "sample")} are in this page: failures first, and a random sample, the same items for all models.`
    : total === 1 ? "Its sample is at hand." : `All ${total} samples are at hand.`;
  return `${counted(cell[CELL.n], "scored item")}${coverage}. ${cut} ${visible(cell[CELL.note])}`;
}

// Runs of the same tasks in which other models answered, and those in scope.
function othersOf(scope) {
  const tasks = new Set(scope.map((one) => one.task));
  return data.runs.flatMap((run, number) => (tasks.has(run[RUN.task]) ? [number] : []));
}

// The same items as other models answered them.
async function addOthers() {
  const asked = new Set(state.scope.map((one) => one.asked));
  widen((await samplesOfRuns(othersOf(state.scope))).filter((one) => asked.has(one.asked)));
}

async function showOthers() {
  await addOthers();
  filterForm().elements.order.value = "item";
  byId("others").hidden = true;
  await filterSamples();
}

async function allSamples() {
  const scope = lieBeside ? await samplesOfRuns(data.runs.map((_, number) => number)) : embedded;
  return { scope, fair: lieBeside ? fairItems(scope) : new Set() };
}

// A link to one sample: it, and what other models answered to the item.
async function linkedSample(run, place) {
  const own = await samplesOfRun(run);
  const wanted = own.find((one) => one.place === place);
  if (!wanted) return { scope: [], fair: new Set() };
  state.scope = [wanted];
  await addOthers();
  const scope = [wanted, ...state.scope.filter((one) => one !== wanted)];
  return { scope, fair: new Set(), wanted, order: "none" };
}

// Linked samples keep their order: the wanted one stands first.
ORDERS.none = () => 0;

function openLinked() {
  const found = /^#sample-(.+)-(\d+)$/.exec(location.hash);
  if (!found) return false;
  const run = data.runs.findIndex((one) => encodeURIComponent(one[RUN.key]) === found[1]);
  const title = run < 0 ? ["No such sample"] : [name(data.runs[run][RUN.label]), " · ", name(data.runs[run][RUN.task])];
  const sample = run < 0 ? Promise.resolve({ scope: [], fair: new Set() }) : linkedSample(run, Number(found[2]));
  const about = "One sample, with what other models answered. A page may hold only some samples: a sample that isn't among them isn't shown.";
  openBrowser(title, about, [], sample);
  return true;
}

function forgetLink() {
  if (/^#sample-/.test(location.hash)) history.replaceState(null, "", location.pathname + location.search);
}

// ---- wiring

function onClick(event) {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.classList.contains("sort")) sortBy(button.closest("th"));
  else if (button.dataset.cell) openCell(button);
  else if (button.id === "browse") openBrowser(["All samples"], "", [], { scope: embedded });
  else if (button.id === "close") byId("browser").close();
  else if (button.id === "others") showOthers();
  else if (button.id === "more") showMore();
}

function onFilter(event) {
  if (event.target.name === "beside") setBeside();
  filterSamples();
}

function onHash() {
  if (!openLinked()) openTarget();
}

function start() {
  byId("tools").hidden = false;
  byId("browse").hidden = embedded.length === 0;
  document.addEventListener("click", onClick);
  document.querySelectorAll("form").forEach((form) => form.addEventListener("submit", (event) => event.preventDefault()));
  byId("tools").addEventListener("input", debounced(filterTables));
  const soon = debounced(filterSamples);
  filterForm().addEventListener("input", (event) => (event.target.name === "text" ? soon() : onFilter(event)));
  filterForm().addEventListener("reset", () => setTimeout(() => { if (byId("browser").open) setChoices(), filterSamples(); }));
  byId("browser").addEventListener("click", (event) => { if (event.target === byId("browser")) byId("browser").close(); });
  byId("browser").addEventListener("close", forgetLink);
  window.addEventListener("hashchange", onHash);
  window.addEventListener("beforeprint", openForPrint);
  onHash();
}

start();

// ---- small tools

// Texts of models and data enter the page as text nodes and attribute values only.
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
const byId = (id) => document.getElementById(id);

function element(name, properties, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// What can't be seen is shown: controls as their pictures, half of a surrogate pair as a replacement character.
// At a separator of paragraphs, the direction of a name would reach the text after it: it is shown as a line break.
function visible(text) {
  const visibleText = text.replace(/[\u0085\u2029]/g, "\n").replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)));
  return typeof visibleText.toWellFormed === "function" ? visibleText.toWellFormed() : visibleText;
}

function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
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

// Values that are missing come last in both directions.
function compare(first, second, direction) {
  if (first === null || second === null) return (first === null) - (second === null);
  if (typeof first === "number" && typeof second === "number") return direction * (first - second);
  return direction * collator.compare(String(first), String(second));
}

function debounced(action, milliseconds = 150) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

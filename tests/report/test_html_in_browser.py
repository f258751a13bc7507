"""The page in a real browser; skipped where no Chromium is installed."""

import pytest
from support.browser import find_chromium, steered
from support.toy_report import HOSTILE

from culture_tasks.report.html.page import write_html

_CHROMIUM = find_chromium()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_CHROMIUM is None, reason="no chromium found: the page was not tried in a browser"),
]

# Every cell, every order and every filter is gone through, so that each text enters the page by each way.
_USE_EVERYTHING = """
(async () => {
  const pause = (time) => new Promise((done) => setTimeout(done, time));
  document.querySelectorAll("button.sort").forEach((button) => button.click());
  const form = document.querySelector("#filters form");
  for (const button of document.querySelectorAll("button[data-cell]")) {
    button.click();
    await pause();
    document.querySelector("#browser").close();
  }
  document.querySelector("#browse").click();
  for (const select of form.querySelectorAll("select")) {
    for (const option of select.options) {
      select.value = option.value;
      form.dispatchEvent(new Event("input", { bubbles: true }));
      await pause(20);
    }
    form.reset();
    await pause();
  }
  form.elements.text.value = "onerror";
  form.elements.text.dispatchEvent(new Event("input", { bubbles: true }));
  await pause(300);
  return document.querySelectorAll("#samples article").length;
})()
"""
_LEFT_TO_RIGHT = """((last) => {
  const edge = (place) => { const range = document.createRange();
    range.setStart(last, place); range.setEnd(last, place + 1); return range.getBoundingClientRect().left; };
  return edge(2) < edge(3); })"""
"""Whether the text behind a name, which begins with two signs, is in its order."""
_STOPPED = """
(() => {
  const blocked = [];
  document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
  const script = document.createElement("script");
  script.textContent = "window.canary = 1";
  document.body.append(script);
  document.body.insertAdjacentHTML("beforeend", "<img src='http://127.0.0.1:9/x.png' onerror='window.canary = 1'>");
  return new Promise((done) => setTimeout(() => done(blocked), 500));
})()
"""
_CONTRAST = """
(() => {
  const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  const behind = (one) => {
    while (one && /, 0\\)$|transparent/.test(getComputedStyle(one).backgroundColor)) one = one.parentElement;
    return getComputedStyle(one || document.body).backgroundColor; };
  return Math.min(...[...document.querySelectorAll(".value, .flag, .interval, .rank, .note, dt, a, h2, label")]
    .map((one) => [light(getComputedStyle(one).color), light(behind(one))].sort((a, b) => b - a))
    .map(([high, low]) => (high + 0.05) / (low + 0.05)));
})()
"""
_TABLE = "document.querySelector('#table-culturalvqa_by_country')"


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with steered(_CHROMIUM, tmp_path_factory.mktemp("profile")) as steered_tab:
        yield steered_tab


@pytest.fixture(scope="module")
def page(toy, tmp_path_factory):
    [path] = write_html(toy, tmp_path_factory.mktemp("page"), samples_per_cell=5)
    return path


def is_alone(tab):
    """Makes sure that nothing failed, that no request left the machine, and that the page loaded no file."""
    assert tab.of("Runtime.exceptionThrown") == []
    entries = [entry["entry"] for entry in tab.of("Log.entryAdded")]
    assert [entry for entry in entries if entry["level"] in ("error", "warning")] == []
    requests = [event["request"]["url"] for event in tab.of("Network.requestWillBeSent")]
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
    assert len({url for url in requests if url.startswith("file:")}) == 1


def test_no_text_runs_and_no_request_leaves(tab, hostile):
    """Nor does a name turn the number beside it around; and what gets in all the same is stopped by the policy."""
    tab.visit(hostile / "report.html")
    tab.run("document.querySelector('button[data-cell]').click()")
    assert tab.run(f"{_LEFT_TO_RIGHT}(document.querySelector('#browser-title').lastChild)")
    tab.run("document.querySelector('#browser').close()")
    assert tab.run(_USE_EVERYTHING) > 0
    tab.run("window.dispatchEvent(new Event('beforeprint'))")
    tab.until("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
    assert tab.run("document.querySelectorAll('script, iframe, object, embed, main section a, main svg').length") == 2
    response = tab.run("document.querySelector('#samples article h4:nth-of-type(3) + p').textContent")
    shown = HOSTILE[-1].replace("\x00", "\u2400").replace("\u2029", "\n").replace("\x1d", "\u241d")
    assert response == shown
    is_alone(tab)
    assert {"img-src", "script-src-elem"} <= set(tab.run(_STOPPED))
    assert tab.run("typeof window.canary") == "undefined"


def test_tables_are_sorted_with_the_keyboard_and_filtered(tab, page):
    visible = f"[...{_TABLE}.querySelectorAll('.scroll {{what}}')].filter((one) => !one.hidden)"
    rows, headers = visible.format(what="tbody tr"), visible.format(what="thead tr:last-child th")
    values = f"[...{_TABLE}.querySelectorAll('.scroll tbody tr')].map((row) => row.cells[3].dataset.value)"
    header = f"{_TABLE}.querySelector('.scroll thead tr:last-child').cells[3]"
    tab.visit(page)
    before = [float(value) for value in tab.run(values) if value]
    tab.run("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    tab.run(f"{header}.querySelector('button').focus()")
    for (key, code, text), order in ((("Enter", 13, "\r"), "descending"), ((" ", 32, " "), "ascending")):
        tab.press(key, code, text)
        assert tab.run(f"{header}.getAttribute('aria-sort')") == order
        missing = [""] * (len(tab.run(values)) - len(before))  # a missing number comes last in both directions
        found = tab.run(values)
        assert found[len(before) :] == missing
        assert [float(value) for value in found[: len(before)]] == sorted(before, reverse=order == "descending")
    assert "ascending" in tab.run("document.querySelector('#said').textContent")
    tab.run(
        """(() => { const form = document.querySelector("#tools"); form.elements.rows.value = "QWEN3";
        form.elements.columns.value = "chin"; form.elements.published.checked = false;
        form.elements.rows.dispatchEvent(new Event("input", { bubbles: true })); })()"""
    )
    tab.until("document.querySelector('#said').textContent.includes(' shown in ')")
    assert tab.run(f"{rows}.length") == 1
    assert tab.run(f"{headers}.map((one) => one.textContent)")[-1:] == ["China"]
    assert tab.run("document.querySelector('#table-runs').hidden")
    is_alone(tab)


def test_a_cell_opens_its_samples_and_those_of_other_models_and_escape_closes_them(tab, page):
    button = f"{_TABLE}.querySelector('.scroll button[data-cell]')"
    tab.visit(page)
    tab.run(f"{_TABLE}.open = true; {button}.focus()")
    tab.press("Enter", 13, "\r")
    assert tab.run("document.querySelector('#browser').open")
    assert "Brazil" in tab.run("document.querySelector('#browser-title').textContent")
    assert "5 of its 11 samples are in this page" in tab.run("document.querySelector('#browser-about').textContent")
    chips = tab.run("[...document.querySelectorAll('#samples .chips')].map((chips) => chips.textContent)")
    assert ["country: brazil" in one for one in chips] == [True] * 5
    for _ in range(30):
        tab.press("Tab", 9)
        inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        assert tab.run(inside)
    tab.press("Escape", 27)
    assert not tab.run("document.querySelector('#browser').open")
    assert tab.run(f"document.activeElement === {button}")
    tab.press("Enter", 13, "\r")
    tab.run("document.querySelector('#others').click()")
    tab.until("document.querySelectorAll('#samples article').length > 5")
    models = tab.run("[...document.querySelectorAll('#samples h3 > bdi')].map((name) => name.textContent)")
    assert len(set(models)) == 4
    is_alone(tab)


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1600, "dark")])
def test_the_page_never_scrolls_sideways_and_colours_have_enough_contrast(tab, page, width, scheme):
    tab.visit(page, width, 700, prefers_color_scheme=scheme)
    assert tab.run(_CONTRAST) >= 4.5
    tab.run("document.querySelector('#browse').click()")
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('.body'))")
    is_alone(tab)

"""The page in a real browser; skipped where no Chromium is installed."""

from dataclasses import replace

import pytest
from support.browser import find_chromium, steered
from support.example_report import example_report, with_hostile_texts

from culture_tasks.report.html.page import write_html
from culture_tasks.report.model import Conclusion, Phrase

_CHROMIUM = find_chromium()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_CHROMIUM is None, reason="no chromium found: the page was not tried in a browser"),
]

HOSTILE = (
    "</script></style></title><script>window.canary=1</script><img src=x onerror='window.canary=1'>"
    '<svg onload=window.canary=1><a href="javascript:window.canary=1">x</a><iframe src=http://example.invalid/>'
    "<!-- ]]> \u2028\u2029\x00\ud800\x1d\u202e{{data}} '\"`&amp;&#60;"
)
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
      await pause(160);
    }
    form.reset();
    await pause();
  }
  return document.querySelectorAll("#samples article").length;
})()
"""
_LEFT_TO_RIGHT = """((last) => {
  const edge = (place) => { const range = document.createRange();
    range.setStart(last, place); range.setEnd(last, place + 1); return range.getBoundingClientRect().left; };
  return [last.data.slice(0, 2), edge(2) < edge(3), edge(3) < edge(last.data.length - 1)]; })"""
"""How a text node begins, and whether the numbers in it are in their order."""
_COUNTRIES = "document.querySelector('#table-by_country')"
_RESPONSE = "h4:nth-of-type(3) + p').textContent"


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with steered(_CHROMIUM, tmp_path_factory.mktemp("profile")) as steered_tab:
        yield steered_tab


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The overview, a wide table with a column that sums up and a missing number, and some samples."""
    report = example_report(per_group=4)
    summary, *others = report.tables
    first, *columns, last = summary.columns
    gap = replace(first, cells={**first.cells, "m0": replace(first.cells["m0"], value=None)})
    summary = replace(summary, columns=(gap, *columns, replace(last, sums_up=True)))
    report = replace(report, tables=(summary, *others), figures=())
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(report, path, samples_per_cell=5)
    return path


def is_alone(tab):
    """Makes sure that nothing failed, that no request left the machine, and that the page loaded no file."""
    assert tab.of("Runtime.exceptionThrown") == []
    entries = [entry["entry"] for entry in tab.of("Log.entryAdded")]
    assert [entry for entry in entries if entry["level"] in ("error", "warning")] == []
    requests = [event["request"]["url"] for event in tab.of("Network.requestWillBeSent")]
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
    assert len({url for url in requests if url.startswith("file:")}) == 1


def search(tab, **values):
    """Fills the form above the tables after a reset."""
    tab.run(
        f"""(() => {{ const form = document.querySelector("#tools"); form.reset();
        for (const [name, value] of Object.entries({values!r})) {{
          if (form.elements[name].type === "checkbox") form.elements[name].checked = Boolean(value);
          else form.elements[name].value = value; }}
        form.elements.rows.dispatchEvent(new Event("input", {{ bubbles: true }})); }})()"""
    )


def open_cell(tab, table, samples):
    """Opens the first number of a table, and waits for so many samples."""
    tab.run(f"document.querySelector('#table-{table} .scroll button[data-cell]').click()")
    tab.until(f"document.querySelectorAll('#samples article').length === {samples}")


def test_no_text_runs_and_no_request_leaves(tab, tmp_path):
    """Nor does a name turn the number beside it around."""
    path, report = tmp_path / "hostile.html", with_hostile_texts(example_report(("a", "b")), HOSTILE)
    finding = Conclusion("best", (Phrase(HOSTILE, is_name=True), Phrase(": 1234567")))
    report = replace(report, findings=(finding,))
    write_html(report, path)
    tab.visit(path)
    assert tab.run(f"{_LEFT_TO_RIGHT}(document.querySelector('.findings li').lastChild)") == [": ", True, True]
    tab.run("document.querySelector('button[data-cell]').click()")
    assert tab.run(f"{_LEFT_TO_RIGHT}(document.querySelector('#browser-title').lastChild)") == [": ", True, True]
    tab.run("document.querySelector('#browser').close()")
    assert tab.run(_USE_EVERYTHING) > 0
    tab.run("window.dispatchEvent(new Event('beforeprint'))")
    tab.until("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
    assert tab.run("typeof window.canary") == "undefined"
    assert tab.run("document.querySelectorAll('script, iframe, object, embed, main section a, main svg').length") == 2
    response = tab.run(f"document.querySelector('#samples article {_RESPONSE}")
    assert response == HOSTILE.replace("\u202e", "").replace("\x00", "\u2400").replace("\ud800", "\ufffd").replace(
        "\u2029", "\n"
    ).replace("\x1d", "\u241d")
    is_alone(tab)


def test_policy_stops_scripts_and_requests_that_get_in_all_the_same(tab, page):
    tab.visit(page)
    canary, blocked = tab.run(
        """(() => {
      const blocked = [];
      document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "window.canary = 1";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<img src='http://127.0.0.1:9/x.png' onerror='window.canary = 1'>");
      return new Promise((done) => setTimeout(() => done([typeof window.canary, blocked.sort()]), 500));
    })()"""
    )
    assert canary == "undefined"
    assert {"img-src", "script-src-elem"} <= set(blocked)


# Tables


def test_tables_are_sorted_with_the_keyboard_and_filtered(tab, page):
    visible = "[...document.querySelectorAll('#table-by_country .scroll {what}')].filter((one) => !one.hidden)"
    rows, headers = visible.format(what="tbody tr"), visible.format(what="thead tr:last-child th")
    values = f"[...{_COUNTRIES}.querySelectorAll('.scroll tbody tr')].map((row) => Number(row.cells[3].dataset.value))"
    header = f"{_COUNTRIES}.querySelector('.scroll thead tr:last-child').cells[3]"
    tab.visit(page)
    before = tab.run(values)
    tab.run("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    tab.run(f"{header}.querySelector('button').focus()")
    for (key, code, text), order in ((("Enter", 13, "\r"), "descending"), ((" ", 32, " "), "ascending")):
        tab.press(key, code, text)
        assert tab.run(f"{header}.getAttribute('aria-sort')") == order
        assert tab.run(values) == sorted(before, reverse=order == "descending")
    others = tab.run(f"[...{header}.parentElement.children].map((one) => one.getAttribute('aria-sort'))")
    assert sorted(others)[:2] == ["ascending", "none"]
    assert "ascending" in tab.run("document.querySelector('#said').textContent")
    search(tab, rows="QWEN3", columns="ira")
    tab.until("document.querySelector('#said').textContent.includes(' shown in ')")
    assert tab.run(f"{rows}.length") == 1
    assert tab.run(f"{headers}.map((one) => one.textContent)") == ["model", "iran"]
    assert tab.run("document.querySelector('#table-by_emotion').hidden")
    search(tab, published="")
    tab.until(f"{rows}.length === 4")
    assert tab.run(f"{headers}.length") == 12
    for _ in range(2):  # a missing number comes last in both directions
        tab.run("document.querySelectorAll('#table-summary button.sort')[2].click()")
        column = "[...document.querySelector('#table-summary tbody').rows].map((row) => row.cells[2].dataset.value)"
        assert tab.run(column)[-1] == ""
    is_alone(tab)


# Samples


def test_a_cell_opens_its_samples_and_those_of_other_models_and_escape_closes_them(tab, page):
    button = f"{_COUNTRIES}.querySelector('.scroll button[data-cell]')"
    tab.visit(page)
    tab.run(f"{_COUNTRIES}.open = true; {button}.focus()")
    tab.press("Enter", 13, "\r")
    assert tab.run("document.querySelector('#browser').open")
    assert "brazil" in tab.run("document.querySelector('#browser-title').textContent")
    assert "All 4 samples are here." in tab.run("document.querySelector('#browser-about').textContent")
    chips = tab.run("[...document.querySelectorAll('#samples .chips')].map((chips) => chips.textContent)")
    assert ["country: brazil" in one for one in chips] == [True] * 4
    for _ in range(30):
        tab.press("Tab", 9)
        inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        assert tab.run(inside)
    tab.press("Escape", 27)
    assert not tab.run("document.querySelector('#browser').open")
    assert tab.run(f"document.activeElement === {button}")
    open_cell(tab, "by_country", 4)
    tab.run("document.querySelector('#others').click()")
    tab.until("document.querySelectorAll('#samples article').length === 16")
    models = tab.run("[...document.querySelectorAll('#samples h3 > bdi')].map((name) => name.textContent)")
    assert (len(models), len(set(models[:4]))) == (16, 4)
    is_alone(tab)


# Looks


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1600, "dark")])
def test_the_page_never_scrolls_sideways_and_colours_have_enough_contrast(tab, page, width, scheme):
    tab.visit(page, width, 700, prefers_color_scheme=scheme)
    contrast = """(() => {
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
    })()"""
    assert tab.run(contrast) >= 4.5
    tab.run("document.querySelector('#browse').click()")
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('.body'))")
    is_alone(tab)

"""The page in a real browser; skipped where no Chromium is installed."""

import pytest
from support.browser import find_chromium, on_page
from support.toy_report import HOSTILE

from culture_tasks.report.html.page import write_html

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="no chromium found: the page was not tried in a browser"),
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
def page(toy, tmp_path_factory):
    [path] = write_html(toy, tmp_path_factory.mktemp("page"), samples_per_cell=5)
    return path


def test_no_text_runs_and_no_request_leaves(hostile, tmp_path):
    """Nor does a name turn the number beside it around."""

    async def steps(tab):
        await tab.run("document.querySelector('button[data-cell]').click()")
        assert await tab.run(f"{_LEFT_TO_RIGHT}(document.querySelector('#browser-title').lastChild)")
        await tab.run("document.querySelector('#browser').close()")
        assert await tab.run(_USE_EVERYTHING) > 0
        await tab.run("window.dispatchEvent(new Event('beforeprint'))")
        await tab.until("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
        kinds = "script, iframe, object, embed, main section a, main svg"
        assert await tab.run(f"document.querySelectorAll('{kinds}').length") == 2
        response = await tab.run("document.querySelector('#samples article h4:nth-of-type(3) + p').textContent")
        shown = HOSTILE[-1].replace("\x00", "\u2400").replace("\u2029", "\n").replace("\x1d", "\u241d")
        assert response == shown
        assert await tab.run("typeof window.canary") == "undefined"

    on_page(tmp_path, hostile / "report.html", steps)


def test_tables_are_sorted_with_the_keyboard_and_filtered(page, tmp_path):
    visible = f"[...{_TABLE}.querySelectorAll('.scroll {{what}}')].filter((one) => !one.hidden)"
    rows, headers = visible.format(what="tbody tr"), visible.format(what="thead tr:last-child th")
    values = f"[...{_TABLE}.querySelectorAll('.scroll tbody tr')].map((row) => row.cells[3].dataset.value)"
    header = f"{_TABLE}.querySelector('.scroll thead tr:last-child').cells[3]"

    async def steps(tab):
        before = [float(value) for value in await tab.run(values) if value]
        await tab.run("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        await tab.run(f"{header}.querySelector('button').focus()")
        for (key, code, text), order in ((("Enter", 13, "\r"), "descending"), ((" ", 32, " "), "ascending")):
            await tab.press(key, code, text)
            assert await tab.run(f"{header}.getAttribute('aria-sort')") == order
            found = await tab.run(values)  # a missing number comes last in both directions
            assert [float(value) for value in found[: len(before)]] == sorted(before, reverse=order == "descending")
            assert set(found[len(before) :]) <= {""}
        assert "ascending" in await tab.run("document.querySelector('#said').textContent")
        await tab.run(
            """(() => { const form = document.querySelector("#tools"); form.elements.rows.value = "QWEN3";
            form.elements.columns.value = "chin"; form.elements.published.checked = false;
            form.elements.rows.dispatchEvent(new Event("input", { bubbles: true })); })()"""
        )
        await tab.until("document.querySelector('#said').textContent.includes(' shown in ')")
        assert await tab.run(f"{rows}.length") == 1
        assert (await tab.run(f"{headers}.map((one) => one.textContent)"))[-1] == "China"
        assert await tab.run("document.querySelector('#table-runs').hidden")

    on_page(tmp_path, page, steps)


def test_a_cell_opens_its_samples_and_those_of_other_models_and_escape_closes_them(page, tmp_path):
    button = f"{_TABLE}.querySelector('.scroll button[data-cell]')"

    async def steps(tab):
        await tab.run(f"{_TABLE}.open = true; {button}.focus()")
        await tab.press("Enter", 13, "\r")
        assert "Brazil" in await tab.run("document.querySelector('#browser-title').textContent")
        about = await tab.run("document.querySelector('#browser-about').textContent")
        assert "5 of its 11 samples are in this page" in about
        chips = await tab.run("[...document.querySelectorAll('#samples .chips')].map((chips) => chips.textContent)")
        assert ["country: brazil" in one for one in chips] == [True] * 5
        for _ in range(30):
            await tab.press("Tab", 9)
            inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
            assert await tab.run(inside)
        await tab.press("Escape", 27)
        assert not await tab.run("document.querySelector('#browser').open")
        assert await tab.run(f"document.activeElement === {button}")
        await tab.press("Enter", 13, "\r")
        await tab.run("document.querySelector('#others').click()")
        await tab.until("document.querySelectorAll('#samples article').length > 5")
        models = await tab.run("[...document.querySelectorAll('#samples h3 > bdi')].map((name) => name.textContent)")
        assert len(set(models)) == 4

    on_page(tmp_path, page, steps)


def test_the_page_never_scrolls_sideways_and_colours_have_enough_contrast(page, tmp_path):
    async def steps(tab):
        for width, scheme in ((320, "light"), (1600, "dark")):
            await tab.resize(width, 700, prefers_color_scheme=scheme)
            assert await tab.run(_CONTRAST) >= 4.5
            await tab.run("document.querySelector('#browse').click()")
            assert await tab.run("document.documentElement.scrollWidth") <= width
            body = "document.querySelector('.body')"
            assert await tab.run(f"{body}.scrollWidth <= {body}.clientWidth")
            await tab.run("document.querySelector('#browser').close()")

    on_page(tmp_path, page, steps)

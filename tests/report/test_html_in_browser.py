"""The page in a real browser; skipped where no Chromium is installed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from support.browser import Tab, find_chromium, open_tab
from support.example_report import example_report, with_hostile_texts

from culture_tasks.report.html.page import write_html
from culture_tasks.report.model import Finding, Phrase

_CHROMIUM = find_chromium()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_CHROMIUM is None, reason="no chromium found: the page was not tried in a browser"),
]

HOSTILE = (
    "</script></style></title><script>window.canary=1</script><img src=x onerror='window.canary=1'>"
    '<svg onload=window.canary=1><a href="javascript:window.canary=1">x</a><iframe src=http://example.invalid/>'
    "<!-- ]]> \u2028\u2029\x00\ud800\u202e{{data}} '\"`&amp;&#60;"
)
# Every cell, every order and every filter is gone through, so that each text enters the page by each way.
_USE_EVERYTHING = """
(async () => {
  const pause = () => new Promise((done) => setTimeout(done));
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
      await new Promise((done) => setTimeout(done, 160));
    }
    form.reset();
    await pause();
  }
  return document.querySelectorAll("#samples article").length;
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(example_report(per_group=4), path, samples_per_cell=5, figures=False)
    return path


def _in_browser(path: Path, steps: Callable[[Tab], Awaitable[None]], profile: Path) -> Tab:
    async def use() -> Tab:
        async with open_tab(_CHROMIUM, profile) as tab:
            await tab.resize(1200, 900)
            await tab.open(path)
            await steps(tab)
            return tab

    return asyncio.run(use())


def _is_quiet(tab: Tab, files: int | None = 1) -> None:
    assert tab.of("Runtime.exceptionThrown") == []
    entries = [entry["entry"] for entry in tab.of("Log.entryAdded")]
    assert [entry for entry in entries if entry["level"] in ("error", "warning")] == []
    requests = [event["request"]["url"] for event in tab.of("Network.requestWillBeSent")]
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
    assert files in (None, len([url for url in requests if url.startswith("file:")]))


@pytest.mark.parametrize("per_cell", [10, None])
def test_no_text_runs_and_no_request_leaves(tmp_path, per_cell):
    report = with_hostile_texts(example_report(("a", "b")), HOSTILE)
    path = tmp_path / "hostile.html"
    write_html(report, path, samples_per_cell=per_cell)

    async def steps(tab: Tab) -> None:
        assert await tab.run(_USE_EVERYTHING) > 0
        await tab.run("window.dispatchEvent(new Event('beforeprint'))")
        await tab.until("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
        assert await tab.run("typeof window.canary") == "undefined"
        assert await tab.run("document.querySelectorAll('script, iframe, object, embed, main a, main svg').length") == 2
        response = await tab.run("document.querySelector('#samples article h4:nth-of-type(3) + p').textContent")
        assert response == HOSTILE.replace("\x00", "\u2400").replace("\ud800", "\ufffd")

    _is_quiet(_in_browser(path, steps, tmp_path / "profile"), files=1 if per_cell else None)


def test_policy_stops_scripts_and_requests_that_get_in_all_the_same(page, tmp_path):
    attack = """(() => {
      const script = document.createElement("script");
      script.textContent = "window.canary = 1";
      document.body.append(script);
      const image = document.createElement("img");
      image.src = "http://127.0.0.1:9/x.png";
      document.body.append(image);
      document.body.insertAdjacentHTML("beforeend", "<img src=y onerror='window.canary = 1'>");
      const blocked = [];
      document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
      return new Promise((done) => setTimeout(() => done([typeof window.canary, blocked.sort()]), 500));
    })()"""

    async def steps(tab: Tab) -> None:
        canary, blocked = await tab.run(attack)
        assert canary == "undefined"
        assert {"img-src", "script-src-elem"} <= set(blocked)

    _in_browser(page, steps, tmp_path / "profile")


def test_a_name_can_not_turn_the_number_beside_it_around(tmp_path):
    report = with_hostile_texts(example_report(("a",)), "x\u202e")
    path = tmp_path / "turned.html"
    write_html(report, path, figures=False)
    order = """(() => {
      document.querySelector('button[data-cell]').click();
      const title = document.querySelector('#browser-title');
      const last = title.lastChild;
      const edge = (place) => { const range = document.createRange();
        range.setStart(last, place); range.setEnd(last, place + 1); return range.getBoundingClientRect().left; };
      return [last.nodeType, last.data, edge(2) < edge(3), edge(3) < edge(last.data.length - 1)];
    })()"""

    async def steps(tab: Tab) -> None:
        kind, text, *left_to_right = await tab.run(order)
        assert (kind, text[:2], left_to_right) == (3, ": ", [True, True])

    _is_quiet(_in_browser(path, steps, tmp_path / "profile"))


_CHOOSE = """async (field, value) => {
  const chosen = document.querySelector("#filters form").elements[field];
  chosen.value = value;
  chosen.dispatchEvent(new Event("input", { bubbles: true }));
  await new Promise((done) => setTimeout(done, 400));
  return document.querySelector("#browser-count").textContent;
}"""
"""Sets a filter of the samples, and returns what the browser says then."""

_UNFOLD = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"


def test_folds_open_by_key_by_link_and_by_filter(page, tmp_path):
    fold = "document.querySelector('#table-culturalvqa_country')"

    async def steps(tab: Tab) -> None:
        assert not await tab.run(f"{fold}.open")
        await tab.run(f"{fold}.querySelector('summary').focus()")
        await tab.press("Enter", 13, "\r")
        assert await tab.run(f"{fold}.open")
        await tab.press(" ", 32, " ")
        assert not await tab.run(f"{fold}.open")
        await tab.run("location.hash = '#table-culturalvqa_country'")
        await tab.until(f"{fold}.open")
        assert not await tab.run("document.querySelector('#table-care').open")
        await tab.run(
            """(() => { const form = document.querySelector('#tools'); form.elements.columns.value = 'norms';
            form.elements.columns.dispatchEvent(new Event('input', { bubbles: true })); })()"""
        )
        await tab.until("document.querySelector('#table-care').open")
        assert await tab.run("document.querySelector('#table-culturalvqa_country').hidden")

    _is_quiet(_in_browser(page, steps, tmp_path / "profile"))


@pytest.mark.parametrize("width", [390, 1280])
def test_the_mean_of_a_wide_table_stays_in_sight(tmp_path, width):
    report = example_report()
    first, *others = report.tables
    columns = (*first.columns[:-1], replace(first.columns[-1], sums_up=True))
    path = tmp_path / "wide.html"
    write_html(replace(report, tables=(replace(first, columns=columns), *others)), path, figures=False)
    edges = """(() => {
      const scroll = document.querySelector("#table-summary .scroll");
      const cell = scroll.querySelector("tbody td.sum").getBoundingClientRect();
      const room = scroll.getBoundingClientRect();
      return [scroll.scrollWidth > scroll.clientWidth, cell.left > room.left, cell.right <= room.right + 1];
    })()"""

    async def steps(tab: Tab) -> None:
        await tab.resize(width, 800)
        assert await tab.run(edges) == [True, True, True]
        await tab.run("document.querySelector('#table-summary .scroll').scrollLeft = 200")
        assert await tab.run(edges) == [True, True, True]

    _is_quiet(_in_browser(path, steps, tmp_path / "profile"))


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_findings_and_the_picture_are_on_the_first_screen(tmp_path, width, height):
    finding = Finding("best", (Phrase("Qwen3-VL-8B", is_name=True), Phrase(" is best on CARE (7.10, 6.90 to 7.30).")))
    path = tmp_path / "report.html"
    write_html(replace(example_report(), findings=(finding,) * 3), path)

    async def steps(tab: Tab) -> None:
        await tab.resize(width, height)
        await tab.until("document.querySelector('#figure-overview img').complete")
        assert await tab.run("document.querySelector('.findings').getBoundingClientRect().bottom < innerHeight")
        assert await tab.run("document.querySelector('#figure-overview').getBoundingClientRect().top < innerHeight / 2")
        if width > 600:
            assert await tab.run("document.querySelector('#table-summary').getBoundingClientRect().top < innerHeight")

    _is_quiet(_in_browser(path, steps, tmp_path / "profile"))


def test_tables_are_sorted_with_the_keyboard_and_filtered(page, tmp_path):
    visible = "[...document.querySelectorAll('#table-culturalvqa_country .scroll {what}')].filter((one) => !one.hidden)"
    visible_rows, visible_headers = visible.format(what="tbody tr"), visible.format(what="thead tr:last-child th")
    values = """[...document.querySelectorAll('#table-culturalvqa_country .scroll tbody tr')]
        .map((row) => Number(row.cells[3].dataset.value))"""
    header = "document.querySelector('#table-culturalvqa_country .scroll thead tr:last-child').cells[3]"

    async def steps(tab: Tab) -> None:
        before = await tab.run(values)
        await tab.run(_UNFOLD)
        await tab.run(f"{header}.querySelector('button').focus()")
        await tab.press("Enter", 13, "\r")
        assert await tab.run(f"{header}.getAttribute('aria-sort')") == "descending"
        assert await tab.run(values) == sorted(before, reverse=True)
        await tab.press(" ", 32, " ")
        assert await tab.run(f"{header}.getAttribute('aria-sort')") == "ascending"
        assert await tab.run(values) == sorted(before)
        others = f"[...{header}.parentElement.children].map((one) => one.getAttribute('aria-sort'))"
        assert sorted(await tab.run(others))[:2] == ["ascending", "none"]
        assert "ascending" in await tab.run("document.querySelector('#said').textContent")
        await tab.run(
            """(() => { const form = document.querySelector('#tools');
            form.elements.rows.value = 'QWEN3'; form.elements.columns.value = 'ira';
            form.elements.rows.dispatchEvent(new Event('input', { bubbles: true })); })()"""
        )
        await tab.until("document.querySelector('#said').textContent.includes(' shown in ')")
        assert await tab.run(f"{visible_rows}.length") == 1
        assert await tab.run(f"{visible_headers}.map((one) => one.textContent)") == ["model", "iran"]
        assert await tab.run("document.querySelector('#table-care').hidden")
        await tab.run(
            """(() => { const form = document.querySelector('#tools');
            form.reset(); form.elements.published.checked = false;
            form.elements.rows.dispatchEvent(new Event('input', { bubbles: true })); })()"""
        )
        await tab.until(f"{visible_rows}.length === 4")
        assert await tab.run(f"{visible_headers}.length") == 12

    _is_quiet(_in_browser(page, steps, tmp_path / "profile"))


def test_numbers_that_are_missing_come_last_in_both_directions(tmp_path):
    report = example_report()
    [first, *others] = report.tables[0].rows
    gap = replace(first, cells=(replace(first.cells[0], value=None), *first.cells[1:]))
    report = replace(report, tables=(replace(report.tables[0], rows=(gap, *others)),))
    path = tmp_path / "gap.html"
    write_html(report, path, figures=False)
    values = "[...document.querySelector('tbody').rows].map((row) => row.cells[2].dataset.value ?? null)"

    async def steps(tab: Tab) -> None:
        for _ in range(2):
            await tab.run("document.querySelectorAll('button.sort')[2].click()")
            assert (await tab.run(values))[len(others)] == ""

    _in_browser(path, steps, tmp_path / "profile")


def test_a_cell_opens_its_samples_and_those_of_other_models_and_escape_closes_them(page, tmp_path):
    button = "document.querySelector('#table-culturalvqa_country .scroll button[data-cell]')"

    async def steps(tab: Tab) -> None:
        await tab.run(_UNFOLD)
        await tab.run(f"{button}.focus()")
        await tab.press("Enter", 13, "\r")
        assert await tab.run("document.querySelector('#browser').open")
        assert "brazil" in await tab.run("document.querySelector('#browser-title').textContent")
        about = await tab.run("document.querySelector('#browser-about').textContent")
        assert "All 4 samples are at hand." in about
        cards = "[...document.querySelectorAll('#samples .chips')].map((chips) => chips.textContent)"
        assert len(await tab.run(cards)) == 4
        assert all("country: brazil" in chips for chips in await tab.run(cards))
        for _ in range(30):
            await tab.press("Tab", 9)
            inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
            assert await tab.run(inside)
        await tab.press("Escape", 27)
        assert not await tab.run("document.querySelector('#browser').open")
        assert await tab.run(f"document.activeElement === {button}")
        await tab.run("document.querySelector('#table-culturalvqa_country .scroll button[data-cell]').click()")
        await tab.until("document.querySelectorAll('#samples article').length === 4")
        await tab.run("document.querySelector('#others').click()")
        await tab.until("document.querySelectorAll('#samples article').length === 16")
        models = await tab.run("[...document.querySelectorAll('#samples h3 > bdi')].map((name) => name.textContent)")
        assert len(models) == 16
        assert len(set(models[:4])) == 4

    _is_quiet(_in_browser(page, steps, tmp_path / "profile"))


def test_filters_of_samples_their_prompts_doubts_and_direction(page, tmp_path):
    count = "document.querySelector('#browser-count').textContent"
    shown = "document.querySelectorAll('#samples article').length"

    async def steps(tab: Tab) -> None:
        await tab.run("document.querySelector('#browse').click()")
        everything = int((await tab.run(count)).split(" ")[2])
        assert await tab.run(shown) == 20
        await tab.run("document.querySelector('#more').click()")
        assert await tab.run(shown) == 40
        await tab.run(f"({_CHOOSE})('model', 'Qwen3-VL-8B')")
        of_model = int((await tab.run(count)).split(" ")[2])
        assert 0 < of_model < everything
        await tab.run(f"({_CHOOSE})('group', JSON.stringify(['country', 'iran']))")
        assert await tab.run(count) == "4 of 4 samples shown"
        await tab.run(f"({_CHOOSE})('text', 'IRAN-2')")
        assert await tab.run(count) == "1 of 1 sample shown"
        await tab.run(f"({_CHOOSE})('text', 'nowhere')")
        assert await tab.run(count) == "0 of 0 samples shown"
        await tab.run("document.querySelector('#filters button[type=reset]').click()")
        await tab.until(f"{count} === '20 of {everything} samples shown'")
        await tab.run(f"({_CHOOSE})('outcome', 'refused')")
        assert 0 < int((await tab.run(count)).split(" ")[2]) < everything
        await tab.run(f"({_CHOOSE})('outcome', '')")
        await tab.run(f"({_CHOOSE})('language', 'hi')")
        assert 0 < int((await tab.run(count)).split(" ")[2]) < everything
        await tab.run("document.querySelector('#filters button[type=reset]').click()")
        await tab.until(f"{count} === '20 of {everything} samples shown'")
        direction = """(language) => {
          const texts = [...document.querySelectorAll(`#samples .text[lang=${language}]`)];
          return [...new Set(texts.map((text) => getComputedStyle(text).direction))]; }"""
        assert "rtl" in await tab.run(f"({direction})('ar')")
        assert await tab.run(f"({direction})('zh')") in ([], ["ltr"])
        await tab.run(f"({_CHOOSE})('doubt', 'yes')")
        doubts = (
            "[...document.querySelectorAll('#samples article')].map((one) => one.querySelector('.doubt')?.textContent)"
        )
        assert set(await tab.run(doubts)) == {"Judge in doubt: the judge was reminded of the format"}
        prompt = "document.querySelector('#samples details .text').textContent"
        assert (await tab.run(prompt)).startswith("Answer in one word.")

    _is_quiet(_in_browser(page, steps, tmp_path / "profile"))


_CARDS = """[...document.querySelectorAll("#samples article")].map((card) => [
  ...card.querySelectorAll("h3")].map((head) => [...head.children].map((part) => part.textContent)))"""
"""Model and badge of every answer that is shown, by card."""


def _cell_of(table: str) -> str:
    return f"document.querySelector('#table-{table} .scroll button[data-cell]').click()"


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A page whose samples all lie in files beside it, twelve of each country and model."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "images").mkdir()
    Image.new("RGB", (900, 600), "green").save(folder / "images" / "brazil_3.png")
    report = example_report(per_group=12)
    write_html(report, folder / "report.html", samples_per_cell=None, images=folder / "images", figures=False)
    return folder / "report.html"


def test_failures_come_first_and_a_fair_draw_is_told_apart(beside, tmp_path):
    async def steps(tab: Tab) -> None:
        await tab.run(_cell_of("summary"))
        await tab.until("document.querySelectorAll('#samples article').length === 20")
        badges = [card[0][1] for card in await tab.run(_CARDS)]
        assert badges[0].startswith("wrong")
        kinds = [badge.partition(",")[0] for badge in badges]
        assert kinds == sorted(kinds, key=("wrong", "not scored", "right").index)
        assert await tab.run(f"({_CHOOSE})('pick', 'fair')") == "20 of 50 samples shown"
        assert await tab.run(f"({_CHOOSE})('pick', '')") == "20 of 132 samples shown"
        failures = int((await tab.run(f"({_CHOOSE})('pick', 'failures')")).split(" ")[2])
        await tab.run(f"({_CHOOSE})('pick', '')")
        right = int((await tab.run(f"({_CHOOSE})('correctness', 'right')")).split(" ")[2])
        assert failures + right == 132

    tab = _in_browser(beside, steps, tmp_path / "profile")
    assert tab.of("Runtime.exceptionThrown") == []


def test_two_models_side_by_side(beside, tmp_path):
    async def steps(tab: Tab) -> None:
        await tab.run(_cell_of("culturalvqa_country"))
        await tab.until("document.querySelectorAll('#samples article').length === 12")
        assert await tab.run(f"({_CHOOSE})('beside', '中文模型 日本語モデル')") == "12 of 12 pairs shown"
        counts = {}
        for which in ("first", "second", "neither", "both"):
            counts[which] = int((await tab.run(f"({_CHOOSE})('pairs', '{which}')")).split(" ")[2])
            for first, second in await tab.run(_CARDS):
                assert (first[0], second[0]) == ("Qwen3-VL-8B", "中文模型 日本語モデル")
                right = [each[1].startswith("right") for each in (first, second)]
                assert right == {"first": [1, 0], "second": [0, 1], "neither": [0, 0], "both": [1, 1]}[which]
        assert sum(counts.values()) == 12
        assert min(counts["first"] + counts["second"], counts["neither"] + counts["both"]) > 0

    tab = _in_browser(beside, steps, tmp_path / "profile")
    assert tab.of("Runtime.exceptionThrown") == []


@pytest.mark.parametrize("where", ["page", "beside"])
def test_every_sample_has_a_link_that_opens_it(where, request, tmp_path):
    path = request.getfixturevalue(where)

    async def steps(tab: Tab) -> None:
        await tab.run(_cell_of("culturalvqa_country"))
        await tab.until("document.querySelectorAll('#samples article').length > 0")
        link, response = await tab.run(
            """[document.querySelector("#samples a.link").hash,
            document.querySelector("#samples h4:nth-of-type(3) + p").textContent]"""
        )
        await tab.call("Page.navigate", url="about:blank")
        await tab.call("Page.navigate", url=f"{path.as_uri()}{link}")
        await tab.until("document.querySelectorAll('#samples article').length === 4")
        assert await tab.run("document.querySelector('#samples .wanted h4:nth-of-type(3) + p').textContent") == response
        assert len({card[0][0] for card in await tab.run(_CARDS)}) == 4
        await tab.run("document.querySelector('#close').click()")
        await tab.until("location.hash === ''")
        await tab.run("location.hash = '#sample-nowhere-3'")
        await tab.until("document.querySelector('#browser-title').textContent === 'No such sample'")

    tab = _in_browser(path, steps, tmp_path / "profile")
    assert tab.of("Runtime.exceptionThrown") == []


def test_samples_beside_the_page_are_found_searched_and_missed(beside, tmp_path):
    async def steps(tab: Tab) -> None:
        await tab.run(_cell_of("summary"))
        await tab.until("document.querySelectorAll('#samples article').length === 20")
        assert await tab.run(f"({_CHOOSE})('text', 'BRAZIL-3')") == "1 of 1 sample shown"
        await tab.until("[...document.querySelectorAll('#samples img')].every((image) => image.naturalWidth === 280)")
        assert await tab.run("document.querySelectorAll('#samples img').length") == 1
        requests = [event["request"]["url"] for event in tab.of("Network.requestWillBeSent")]
        ours = [url.rpartition("/")[2] for url in requests if "/report_samples/" in url]
        assert {name.partition("-")[0] for name in ours} == {"rows", "texts", "images"}
        assert all(url.startswith(("file:", "data:")) for url in requests)

    tab = _in_browser(beside, steps, tmp_path / "profile")
    assert tab.of("Runtime.exceptionThrown") == []
    alone = tmp_path / "alone" / "report.html"
    alone.parent.mkdir()
    alone.write_bytes(beside.read_bytes())

    async def missed(tab: Tab) -> None:
        await tab.run(_cell_of("summary"))
        await tab.until("document.querySelector('#browser-count').textContent.includes('report_samples')")

    _in_browser(alone, missed, tmp_path / "other")


@pytest.mark.parametrize("width", [320, 1600])
def test_the_page_never_scrolls_sideways(page, tmp_path, width):
    wide = "[document.documentElement.scrollWidth, document.querySelector('#browser .body').scrollWidth]"
    room = "document.querySelector('#browser .body').clientWidth"

    async def steps(tab: Tab) -> None:
        await tab.resize(width, 700, prefers_color_scheme="dark")
        await tab.run("document.querySelector('#browse').click()")
        page_width, dialog_width = await tab.run(wide)
        assert page_width <= width
        assert dialog_width <= await tab.run(room)

    _is_quiet(_in_browser(page, steps, tmp_path / "profile"))


def test_dark_and_light_have_enough_contrast(page, tmp_path):
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

    async def steps(tab: Tab) -> None:
        for scheme in ("light", "dark"):
            await tab.resize(1200, 900, prefers_color_scheme=scheme)
            assert await tab.run(contrast) >= 4.5

    _in_browser(page, steps, tmp_path / "profile")

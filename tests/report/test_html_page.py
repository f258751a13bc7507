"""The page as a file: what is in it, what can't be, and that hostile text stays text."""

import base64
import hashlib
import html
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from lxml import html as parsed
from PIL import Image
from support.example_report import example_report, with_hostile_texts

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.data.images import image_key
from culture_tasks.pages.thumbnails import Thumbnails
from culture_tasks.report.html.page import environment, render, write_html
from culture_tasks.report.html.samples import choose_samples, correctness, safe_json
from culture_tasks.report.model import Conclusion, Phrase
from culture_tasks.results.file_samples import RunRows
from culture_tasks.text import inert

HOSTILE = (
    "</script></style></title></table><script>window.canary=1</script><img src=x onerror='window.canary=1'>"
    "<a href=\"javascript:alert(1)\" style='background:url(http://example.invalid/)'>x</a><!-- ]]> @import \u2028\u2029"
    "\x00\ud800\u202e{{data}}{{style}} $x$ '\"`&amp;&#60;"
)
CARRIED = (
    HOSTILE.replace("\x00", "\ufffd").replace("\ud800", "\ufffd").replace("\u2028\u2029", "\n\n").replace("\u202e", "")
)
"""What is left where HTML itself can't carry a character, or would let a name turn the text after it around."""


def _page(folder, report, *, figures=False, **options):
    """Writes a page and returns its text."""
    path = folder / "report.html"
    write_html(report if figures else replace(report, figures=()), path, **options)
    return path.read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A page with a finding, figures and a column that sums up."""
    report = example_report(per_group=4)
    first, *others = report.tables
    columns = (*(replace(column, sums_up=True) for column in first.columns[:2]), *first.columns[2:])
    finding = Conclusion("best", (Phrase("X", is_name=True), Phrase(" is best.")), command="run <b>")
    report = replace(report, findings=(finding,), tables=(replace(first, columns=columns), *others))
    return _page(tmp_path_factory.mktemp("page"), report, figures=True, samples_per_cell=3)


def _data(page):
    return json.loads(parsed.fromstring(page).get_element_by_id("data").text)


# What is in the page, and what can't be


def test_nothing_comes_from_elsewhere(written):
    own = re.sub(r'(<script type="application/json" id="data">).*?(</script>)', r"\1\2", written, flags=re.DOTALL)
    page = re.sub(r'src="data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+"', 'src=""', own)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|\bimport\b|fetch\(|XMLHttpRequest|WebSocket|eval\(", page)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", page)
    tree = parsed.fromstring(written)
    assert not [*tree.iter("iframe", "object", "embed", "base", "video", "audio", "source")]
    for element in tree.iter("*"):
        assert not [
            key for key in element.attrib if key.startswith("on") or key in ("style", "srcset", "action", "ping")
        ]
        assert element.get("src", "data:image/").startswith("data:image/")
        address = element.get("href", "#")
        assert address.startswith("#") or (element.tag, address) == ("link", "data:,")
    ids = tree.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in tree.xpath("//a/@href")} <= set(ids)
    assert set(tree.xpath("//@aria-labelledby")) <= set(ids)
    [policy] = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    texts = [tree.xpath(path)[0] for path in ("//style/text()", "//script[not(@type)]/text()")]
    style, script = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    assert dict(rule.split(" ", 1) for rule in policy.split("; ")) == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": f"'sha256-{style}'",
        "script-src": f"'sha256-{script}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_hostile_text_is_neither_parsed_nor_lost(tmp_path):
    page = _page(tmp_path, with_hostile_texts(example_report(("a", "b")), HOSTILE))
    tree, data = parsed.fromstring(page), _data(page)
    assert len(tree.xpath("//script")) == 2
    assert not tree.xpath("//img | //*[@onerror]")
    texts = [name.text_content() for name in tree.xpath("//main//bdi")]
    assert sum(CARRIED in text for text in texts) > 20
    assert not tree.xpath("//main/*[not(self::nav)]//a | //main//*[@style]")
    item, question, references, *_ = data["documents"][0]
    _, _, _, response, outcome, _, _, rationale, doubt, prompt = data["samples"][0]
    shared = [data["outcomes"][outcome], data["prompts"][prompt], data["runs"][0][1]]
    assert [item, question, *references, response, rationale, doubt, *shared] == [HOSTILE.replace("\u202e", "")] * 10
    assert [HOSTILE.replace("\u202e", "")] * 2 in data["groups"][0]


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
def test_any_text_survives_as_data_and_as_markup(text):
    safe = safe_json([text])
    assert not re.search("[<>&\u2028\u2029]", safe)
    safe.encode()
    assert json.loads(safe) == [text]
    element = environment().from_string('<td title="{{ text }}">{{ text }}</td>').render(text=text)
    assert "<" not in element.removeprefix("<td title=").removesuffix("</td>")
    shown = html.unescape(element.partition(">")[2].removesuffix("</td>"))
    assert shown == html.unescape(html.escape(inert(re.sub("[\x1c-\x1e\x85\u2028\u2029]", "\n", text))))
    with pytest.raises(UndefinedError, match="report"):  # a name that no template knows
        render("page.html")


# Tables and figures


def test_tables_have_headers_with_scopes_and_sort_buttons(written):
    tree = parsed.fromstring(written)
    for table in tree.xpath("//table"):
        last = table.xpath("./thead/tr[last()]/th")
        assert all(header.get("aria-sort") == "none" and header.xpath("./button[@type='button']") for header in last)
        assert all(header.get("scope") in ("col", "colgroup") for header in table.xpath("./thead//th"))
        assert all(row.xpath("./th[@scope='row']") for row in table.xpath("./tbody/tr"))
        assert {len(row) for row in table.xpath("./tbody/tr")} == {len(last)}
        spans = [int(cell.get("colspan", 1)) for cell in table.xpath("./thead/tr[last() > 1 and position() = 1]/*")]
        assert not spans or sum(spans) == len(last)
    assert "not comparable: low coverage" in tree.text_content()
    assert "too few of the responses were scored" in tree.text_content()
    [row] = tree.xpath("//*[@id='table-summary']//tr[@data-published]")
    assert not row.xpath(".//button")
    rows = tree.xpath("//*[@id='table-summary']//tr[td]")
    marked = [[at for at, cell in enumerate(row) if "sum" in (cell.get("class") or "").split()] for row in rows]
    assert marked == [[3] for _ in rows]  # the last of those that sum up
    assert len(tree.xpath("//td[contains(@class, 'sum')]")) == len(rows)
    scrolled = environment().get_template("parts.html").module.scrolled
    assert ['class="scroll long"' in scrolled("", "x", rows) for rows in (40, 41)] == [False, True]


def test_findings_a_picture_and_one_table_come_first_and_the_rest_is_folded_below_its_question(written):
    tree = parsed.fromstring(written)
    assert [each.text_content() for each in tree.xpath("//header/ul/li")] == ["X is best. run <b>"]
    assert tree.xpath("//main//section[contains(@class, 'part')]/@id") == ["figure-overview", "table-summary"]
    assert not tree.xpath("//main/section//details[@open]")
    titles = [each.text_content() for each in tree.xpath("//section[@class='question']/h2")]
    assert titles == ["For which cultures is it best and worst?", "About this report"]
    parts = tree.xpath("//div[@id='questions']//details[contains(@class, 'part')]")
    assert len(parts) == 3 + 5
    assert all(part.get("open") is None and part.xpath("./summary/h3") for part in parts)
    figures = tree.xpath("//figure")
    assert len(figures) == 6
    for figure in figures:
        [image] = figure.xpath(".//img")
        assert len(image.get("alt")) > 50
        assert int(image.get("width")) > 100
        assert base64.b64decode(image.get("src").partition(",")[2]).startswith(b"<?xml")


# Samples


def test_a_cell_leads_to_its_own_samples(written):
    tree, data = parsed.fromstring(written), _data(written)
    row = tree.xpath("//*[@id='table-by_country']//tbody/tr")[0]
    headers = tree.xpath("//*[@id='table-by_country']//thead/tr[last()]/th")
    for header, cell in zip(headers[1:], row[1:], strict=True):
        [index] = cell.xpath("./button/@data-cell")
        total, where, failures, fair = data["selections"][data["cells"][int(index)][0]]
        places = {*failures, *fair}
        assert (total, len(places) <= 3, len(fair) > 0) == (4, True, True)
        assert where == [["country", header.text_content()]]
        for run, _, document, *_ in (data["samples"][place] for place in places):
            assert data["runs"][run][1] == "CulturalVQA"
            assert where[0] in data["groups"][data["documents"][document][3]]
    models: dict[tuple[str, int], set[int]] = {}  # of what some model failed, other models are there too
    for run, _, document, *_ in data["samples"]:
        models.setdefault((data["runs"][run][1], document), set()).add(run)
    assert sum(len(runs) == 4 for (task, _), runs in models.items() if task == "CulturalVQA") > 10


def _rows(scores, first=0):
    scores = np.array(scores, dtype=np.float64)
    return RunRows(np.arange(10, 10 + scores.size), np.arange(first, first + scores.size, dtype=np.int32), scores)


def test_failures_come_first_the_worst_before_those_without_a_score_and_a_draw_has_the_same_items_in_every_run():
    rows = _rows([9.0, 2.0, math.nan, 1.0, 10.0, 3.0, 8.0, 7.0])
    rating, errors = Scale("rating", 1, 10), Scale("errors", 0, 10, better="lower")
    for scale, number, places in ((rating, 6, [13, 11, 15]), (rating, 8, [13, 11, 15, 12]), (errors, 3, [14, 10])):
        assert choose_samples(rows, scale, number).failures == places
    scale = Scale("share", 0.0, 1.0)
    few = choose_samples(_rows([0.0, 1.0, 0.0, 1.0]), scale, 4)
    assert {*few.failures, *few.fair} == {10, 11, 12, 13}  # one that failed and was drawn counts once
    assert choose_samples(_rows([0.0, 1.0]), scale, 0) == ([], [])
    rights, wrongs = (choose_samples(_rows([score] * 40), scale, 8) for score in (1.0, 0.0))
    assert (rights.failures, rights.fair[:4]) == ([], wrongs.fair[:4])
    assert (
        len({place for start in range(0, 400, 10) for place in choose_samples(_rows([1.0] * 10, start), scale, 1).fair})
        > 7
    )
    low, middle = Scale("share", 0, 1, better="lower"), Scale("x", 0, 2, better=None)
    cases = [(1.0, rating), (5.4, rating), (5.5, rating), (None, rating), (0.2, low), (2.0, Scale("ratio", 0, None))]
    assert [correctness(score, scale) for score, scale in (*cases, (1.0, middle))] == [
        *("wrong", "wrong", "right", "not scored", "right", "scored", "scored")  # right is the better half of a scale
    ]


@pytest.mark.parametrize(
    ("per_cell", "text"), [(0, "holds no samples."), (3, "at most 3 are here, failures first"), (1_000, "holds 1")]
)
def test_the_page_says_how_many_samples_it_holds_and_is_the_same_every_time(tmp_path, per_cell, text):
    page, again = (_page(tmp_path, example_report(("a",), per_group=4), samples_per_cell=per_cell) for _ in range(2))
    assert page == again
    assert text in page
    assert ("at most" in page) == (per_cell == 3)
    assert bool(_data(page)["samples"]) == (per_cell > 0)


def test_too_many_samples_for_a_page_are_fewer_of_each_cell(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("culture_tasks.report.html.page._MOST_BYTES", 40_000)
    data = _data(_page(tmp_path, example_report(per_group=8), samples_per_cell=8))
    assert max(len({*failures, *fair}) for *_, failures, fair in data["selections"]) < 8
    assert "too many for one page" in caplog.text


def test_images_of_the_folder_alone_are_found_by_id_or_content_and_are_small_and_upright(tmp_path, caplog):
    folder = tmp_path / "images"
    (folder / "deep").mkdir(parents=True)
    Image.new("RGB", (900, 600), "red").save(folder / "deep" / "brazil_0.png")
    Image.new("LA", (3, 3)).save(folder / "grey.png")
    (folder / "broken.png").write_bytes(b"not an image")
    (tmp_path / "secret.png").write_bytes((folder / "grey.png").read_bytes())
    (folder / "gone.png").touch()
    thumbnails = Thumbnails(folder)
    (folder / "gone.png").unlink()
    key = image_key((folder / "deep" / "brazil_0.png").read_bytes())
    for name in ("brazil_0", "brazil_0.png", "deep/brazil_0.png", "grey", key):
        assert thumbnails.address(name).startswith("data:image/jpeg;base64,")
    outside = (None, "", "nowhere", "../secret.png", "/etc/passwd", "..\\secret.png", "\x00", "0" * len(key))
    for name in (*outside, "broken", "broken.png"):
        assert thumbnails.address(name) is None
    assert [record.args[0].name for record in caplog.records] == ["broken.png"]
    [image] = _data(_page(tmp_path, example_report(), images=folder))["images"]
    assert len(image) < 10_000
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held upright
    Image.new("RGB", (4, 2), "blue").save(folder / "x.jpg", exif=turned)
    (folder / "x.jpg").rename(folder / "brazil_0.png")  # a path goes before a name
    address = Thumbnails(folder).address("brazil_0.png")
    with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as shown:
        red, _, blue = shown.getpixel((0, 0))
        assert (shown.size, blue > red) == ((2, 4), True)

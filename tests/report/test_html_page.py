"""The page as a file: what is in it, and what can't be."""

import base64
import hashlib
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from lxml import html as parsed
from PIL import Image

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.data.images import image_key
from culture_tasks.pages.thumbnails import Thumbnails
from culture_tasks.report.html.page import environment, write_html
from culture_tasks.report.html.samples import choose_samples, correctness
from culture_tasks.report.model import Conclusion, Phrase
from culture_tasks.results.file_samples import RunRows


def page_of(report, folder, **options):
    """Writes a page without figures and returns its text."""
    [path] = write_html(replace(report, figures=()), folder, **options)
    return path.read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def written(toy, tmp_path_factory):
    """A page with a finding, figures, and three samples a cell."""
    finding = Conclusion("best", (Phrase("X", is_name=True), Phrase(" is best.")), command="run <b>")
    [path] = write_html(replace(toy, findings=(finding,)), tmp_path_factory.mktemp("page"), samples_per_cell=3)
    return path.read_bytes().decode("utf-8")


def data_of(page):
    return json.loads(parsed.fromstring(page).get_element_by_id("data").text)


def test_nothing_comes_from_elsewhere(written):
    own = re.sub(r'(<script type="application/json" id="data">).*?(</script>)', r"\1\2", written, flags=re.DOTALL)
    page = re.sub(r'src="data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+"', 'src=""', own)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|\bimport\b|fetch\(|XMLHttpRequest|WebSocket|eval\(", page)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", page)
    tree = parsed.fromstring(written)
    assert not [*tree.iter("iframe", "object", "embed", "base", "video", "audio", "source")]
    for element in tree.iter("*"):
        assert not {*element.attrib} & {"style", "srcset", "action", "ping"}
        assert not [key for key in element.attrib if key.startswith("on")]
        assert element.get("src", "data:image/").startswith("data:image/")
    ids, links = tree.xpath("//@id"), set(tree.xpath("//a/@href | //link/@href")) - {"data:,"}
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in links} | set(tree.xpath("//@aria-labelledby")) <= set(ids)
    [policy] = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    texts = [tree.xpath(path)[0] for path in ("//style/text()", "//script[not(@type)]/text()")]
    style, script = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


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
    papers = tree.xpath("//tr[@data-published]")
    assert papers
    assert not any(row.xpath(".//button") for row in papers)
    rows = tree.xpath("//*[@id='table-summary']//tr[td]")
    marked = [[at for at, cell in enumerate(row) if "sum" in (cell.get("class") or "").split()] for row in rows]
    assert marked == [[len(rows[0]) - 1]] * 4
    scrolled = environment().get_template("parts.html").module.scrolled
    assert ['class="scroll long"' in scrolled("", "x", rows) for rows in (40, 41)] == [False, True]


def test_findings_a_picture_and_one_table_come_first_and_the_rest_is_folded_below_its_question(written):
    tree = parsed.fromstring(written)
    assert [each.text_content() for each in tree.xpath("//header/ul/li")] == ["X is best. run <b>"]
    first = ["figure-overview", "figure-countries", "table-summary"]
    assert tree.xpath("//main//section[contains(@class, 'part')]/@id") == first
    assert not tree.xpath("//main/section//details[@open]")
    titles = [each.text_content() for each in tree.xpath("//section[@class='question']/h2")]
    assert titles[:2] == ["Who is best?", "For which cultures is it best and worst?"]
    parts = tree.xpath("//div[@id='questions']//details[contains(@class, 'part')]")
    assert all(part.get("open") is None and part.xpath("./summary/h3") for part in parts)
    for image in tree.xpath("//figure//img"):
        assert len(image.get("alt")) > 50
        assert int(image.get("width")) > 100
        assert base64.b64decode(image.get("src").partition(",")[2]).startswith(b"<?xml")


# Samples


def test_a_cell_leads_to_its_own_samples(written):
    tree, data = parsed.fromstring(written), data_of(written)
    table = tree.get_element_by_id("table-culturalvqa_by_country")
    for header, cell in zip(table.xpath(".//thead/tr[last()]/th"), table.xpath(".//tbody/tr")[0], strict=True):
        if header.text_content().casefold() in ("brazil", "china", "india", "usa"):
            [index] = cell.xpath("./button/@data-cell")
            total, where, places = data["selections"][data["cells"][int(index)][0]]
            assert (total, len(places)) == (11, 3)
            assert where == [["country", header.text_content().casefold()]]
            for run, _, document, *_ in (data["samples"][place] for place in places):
                assert data["runs"][run][1] == "CulturalVQA"
                assert where[0] in data["groups"][data["documents"][document][3]]
    models: dict[tuple[str, int], set[int]] = {}  # of what some model failed, other models are there too
    for run, _, document, *_ in data["samples"]:
        models.setdefault((data["runs"][run][1], document), set()).add(run)
    assert sum(len(runs) == 4 for (task, _), runs in models.items() if task == "CulturalVQA") > 5


def rows_of(scores, first=0):
    scores = np.array(scores, dtype=np.float64)
    return RunRows(np.arange(10, 10 + scores.size), np.arange(first, first + scores.size, dtype=np.int32), scores)


def test_failures_come_first_the_worst_before_those_without_a_score_and_a_draw_has_the_same_items_in_every_run():
    rows = rows_of([9.0, 2.0, math.nan, 1.0, 10.0, 3.0, 8.0, 7.0])
    rating, errors = Scale("rating", 1, 10), Scale("errors", 0, 10, better="lower")
    for scale, number, places in ((rating, 6, [13, 11, 15]), (rating, 8, [13, 11, 15, 12]), (errors, 3, [14, 10])):
        assert choose_samples(rows, scale, number)[: len(places)] == places
    scale = Scale("share", 0.0, 1.0)
    assert sorted(choose_samples(rows_of([0.0, 1.0, 0.0, 1.0]), scale, 4)) == [10, 11, 12, 13]
    assert choose_samples(rows_of([0.0, 1.0]), scale, 0) == []
    assert choose_samples(rows_of([1.0] * 40), scale, 4) == choose_samples(rows_of([0.9] * 40), scale, 4)
    draws = (choose_samples(rows_of([1.0] * 10, start), scale, 1)[0] for start in range(0, 400, 10))
    assert len(set(draws)) > 7
    low, middle = Scale("share", 0, 1, better="lower"), Scale("x", 0, 2, better=None)
    cases = [(1.0, rating), (5.4, rating), (5.5, rating), (None, rating), (0.2, low), (2.0, Scale("ratio", 0, None))]
    assert [correctness(score, scale) for score, scale in (*cases, (1.0, middle))] == [
        *("wrong", "wrong", "right", "not scored", "right", "scored", "scored")  # right is the better half of a scale
    ]


@pytest.mark.parametrize(
    ("per_cell", "text"), [(0, "holds no samples."), (3, "at most 3 are here, failures first"), (1_000, "holds 216")]
)
def test_the_page_says_how_many_samples_it_holds_and_is_the_same_every_time(
    toy, tmp_path, per_cell, text, monkeypatch, caplog
):
    page, again = (page_of(toy, tmp_path, samples_per_cell=per_cell) for _ in range(2))
    assert page == again
    assert text in page
    assert ("at most" in page) == (per_cell == 3)
    assert bool(data_of(page)["samples"]) == (per_cell > 0)
    monkeypatch.setattr("culture_tasks.report.html.page._MOST_BYTES", 10_000)  # fewer where these are too many
    fewer = data_of(page_of(toy, tmp_path, samples_per_cell=per_cell))
    assert ("too many for one page" in caplog.text) == (per_cell > 0)
    assert len(json.dumps(fewer)) < 60_000


def test_images_of_the_folder_alone_are_found_by_id_or_content_and_are_small_and_upright(toy, tmp_path, caplog):
    folder = tmp_path / "images"
    (folder / "deep").mkdir(parents=True)
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held upright
    Image.new("RGB", (900, 600), "red").save(folder / "deep" / "image_0.jpg", exif=turned)
    Image.new("LA", (3, 3)).save(folder / "grey.png")
    (folder / "broken.png").write_bytes(b"not an image")
    (tmp_path / "secret.png").write_bytes((folder / "grey.png").read_bytes())
    (folder / "gone.png").touch()
    thumbnails = Thumbnails(folder)
    (folder / "gone.png").unlink()
    key = image_key((folder / "deep" / "image_0.jpg").read_bytes())
    for name in ("image_0", "image_0.jpg", "deep/image_0.jpg", "grey", key):
        assert thumbnails.address(name).startswith("data:image/jpeg;base64,")
    outside = (None, "", "nowhere", "../secret.png", "/etc/passwd", "..\\secret.png", "\x00", "0" * len(key))
    for name in (*outside, "broken", "broken.png"):
        assert thumbnails.address(name) is None
    assert [record.args[0].name for record in caplog.records] == ["broken.png"]
    [image] = data_of(page_of(toy, tmp_path, images=folder, samples_per_cell=100))["images"]
    assert len(image) < 10_000
    with Image.open(io.BytesIO(base64.b64decode(image.partition(",")[2]))) as shown:
        assert shown.size == (187, 280)

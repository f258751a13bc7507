"""Figures: drawn, in all formats, the same every time, and names of any script in them."""

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from lxml import etree
from matplotlib import font_manager
from matplotlib.text import Text
from PIL import Image
from support.example_report import MODELS, example_report, numbers_of
from support.reports import charts_of

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.pages import pictures
from culture_tasks.pages.pictures import cleaned, shown, styled
from culture_tasks.report.figures.charts import Chart, ChartPanel, Series, sorted_by_mean, split_panel
from culture_tasks.report.figures.drawing import draw, lowest_ratio, svg_images, write_figures
from culture_tasks.report.figures.selecting import charts
from culture_tasks.report.model import Number

FIGURES = {
    "overview",
    *("culturalvqa_country", "culturalvqa_facet", "care_category", "cedar_gepp", "cedar_lsepp", "cedar_grqb"),
    *("cedar_lsrqb", "cedar_matrix", "crosscult_reliability", "crosscult_diagnostic", "crosscult_retention"),
    *("care_languages", "crosscult_insertion"),
}
KINDS = {"dots": "culturalvqa_country", "heat": "cedar_matrix", "lines": "crosscult_retention"}
HOSTILE = "</text><script>x</script><!-- ]]> \x00\x01\ud800\ufffe\u202e $x^2$ \\alpha & \"'"
SVG = "{http://www.w3.org/2000/svg}"
PERCENT = Scale("percent", 0, 100)


def _texts(svg):
    return [element.text or "" for element in etree.fromstring(svg).iter(f"{SVG}text")]


def _chart(kind, *cells):
    series = Series("m", dict(zip("ab", cells, strict=False)))
    return Chart("k", "Title", "", kind, "group", "model", "score", (ChartPanel("panel", ("a", "b"), (series,)),))


# Files and names


@pytest.mark.slow
def test_every_figure_is_written_in_every_format_loads_nothing_and_has_names_of_every_script(tmp_path):
    drawn = charts_of(example_report(MODELS[:1]))
    assert drawn.keys() == FIGURES
    keys, endings = ("overview", *KINDS.values()), ("png", "svg", "pdf")
    paths = write_figures([drawn[key] for key in keys], tmp_path, endings)
    assert {path.name for path in paths} == {f"{key}.{ending}" for key in keys for ending in endings}
    assert sorted(paths) == sorted(tmp_path.iterdir())
    for path in paths:
        if path.suffix == ".pdf":
            assert path.read_bytes().startswith(b"%PDF-")
        elif path.suffix == ".png":
            with Image.open(path) as picture:
                pixels = np.asarray(picture.convert("L"))
            assert min(pixels.shape) > 300
            assert 0.005 < (pixels < 200).mean() < 0.8, path.name
        else:
            tree = etree.fromstring(path.read_bytes())
            assert not list(tree.iter(f"{SVG}script", f"{SVG}a", f"{SVG}foreignObject"))
            references = tree.xpath("//@*[local-name() = 'href']")
            assert all(reference.startswith(("#", "data:image/png")) for reference in references)
            families = re.findall(r"font-family: ([^;\"]+)|px ('DejaVu[^;\"]+)", path.read_text())
            assert families  # readers without our fonts get letters without serifs
            assert all("".join(found).endswith("sans-serif") for found in families)
    [svg] = svg_images([charts_of(example_report())["culturalvqa_country"]])
    assert all(model in "".join(_texts(svg)) for model in MODELS)


def test_names_are_cleaned():
    names = {
        "a\n\tb\x00\x07c": "a b\ufffd c",
        "\u202eevil\u202c\u2066x\u2069": "evilx",
        "نموذج": "\u2068نموذج\u2069",
        "\ufffe\uffff": "\ufffd\ufffd",
        "\ud800": "\ufffd",
    }
    assert {text: cleaned(text) for text in names} == names


def test_long_names_keep_both_ends_and_stay_isolated():
    assert shown("Qwen/Qwen3-VL-8B-Instruct-checkpoint-2000", 21) == "Qwen/Qwen3-V…int-2000"
    assert (shown("x" * 10, 10), shown("")) == ("x" * 10, "–")
    assert shown("a" * 6 + "e" + "\u0301" * 3 + "b", 8) == "aaaa…b"
    arabic = cleaned("نموذج" * 20)
    for text in (f"{arabic} · b", f"b · {arabic}", arabic):
        for longest in range(16, len(text) + 2):
            cut = shown(text, longest)
            assert cut.startswith("\u200e")
            assert cut.count("\u2068") == cut.count("\u2069") == 1
            assert cut.index("\u2068") < cut.index("\u2069")
            assert len(cut) <= longest + 3


# Fonts


def test_fonts_are_chosen_for_the_letters(monkeypatch):
    known = {"DejaVu Sans": "abc", "Noto Sans": "", "Noto Sans Devanagari": "ह", "Noto Sans CJK SC": "中ह"}
    monkeypatch.setattr(pictures, "_letters_of", lambda family: frozenset(known.get(family, "")))
    assert pictures.choose(["abc 中"]) == (("DejaVu Sans", "Noto Sans CJK SC"), "")
    assert pictures.choose(["abc 中 ह"]) == (("DejaVu Sans", "Noto Sans Devanagari", "Noto Sans CJK SC"), "")
    assert pictures.choose(["本"]) == (("DejaVu Sans",), "本")


def test_fonts_that_are_newer_than_matplotlibs_list_are_found(monkeypatch):
    manager = font_manager.fontManager
    gone = [entry.fname for entry in manager.ttflist if entry.name == "DejaVu Serif"]
    monkeypatch.setattr(manager, "ttflist", [entry for entry in manager.ttflist if entry.name != "DejaVu Serif"])
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [*gone, __file__])
    assert "DejaVu Serif" in pictures._installed_families.__wrapped__()


@pytest.mark.parametrize(
    ("families", "joins", "said"),
    [((), True, "CJK, DEVANAGARI"), (pictures._FAMILIES, False, "DEVANAGARI"), (pictures._FAMILIES, True, "")],
)
def test_letters_without_a_font_or_that_are_not_joined_are_warned_of_once(caplog, monkeypatch, families, joins, said):
    monkeypatch.setattr(pictures, "_FAMILIES", families)
    monkeypatch.setattr(pictures, "joins_letters", lambda: joins)
    monkeypatch.setattr(
        pictures, "_letters_of", lambda family: frozenset("中文模型हिन्दी" if "Noto" in family else "ab")
    )
    with styled(["中文模型", "हिन्दी"]):
        pass
    assert len([record for record in caplog.records if record.name.startswith("culture_tasks")]) == bool(said)
    assert said in caplog.text


# What is drawn


@pytest.mark.parametrize("kind", KINDS)
def test_extremes_can_be_drawn_each_time_the_same_and_names_can_not_inject(kind):
    equal, share, ratio = Scale("x"), Scale("x", 0.0, 1.0), Scale("x", neutral=1.0)
    extremes = (Number(0.0, share, 0.0, 0.0), Number(1.0, share, 1.0, 1.0))
    cases = ((Number(1.0, equal), Number(1.0, equal)), extremes, (Number(0.5, ratio, 0.4, 3.0),))
    drawn = [_chart(kind, *cells) for cells in cases]
    report = example_report((f"_$x^2$ {HOSTILE}", "b"))  # matplotlib hides names that begin with an underscore
    *simple, svg, again = svg_images([*drawn, *[charts_of(report)[KINDS[kind]]] * 2])
    assert all("Title" in _texts(one) for one in simple)
    assert svg == again
    assert not list(etree.fromstring(svg).iter(f"{SVG}script", f"{SVG}a"))
    text = "".join(_texts(svg))
    assert "_$x^2$ </text>" in text
    assert "\u202e" not in text


def _overlapping(chart, monkeypatch):
    """Pairs of texts of a figure that lie over each other."""
    drawn = []
    with styled(chart.texts):
        figure = draw(chart)
        figure.get_layout_engine().execute(figure)
        figure.set_layout_engine(None)
        with monkeypatch.context() as patch:
            patch.setattr(Text, "draw", lambda self, _: drawn.append(self))
            figure.canvas.draw()
        texts = [text for text in drawn if text.get_visible() and text.get_text().strip()]
        boxes = [(text.get_text(), text.get_rotation() % 90, text.get_window_extent().padded(-1)) for text in texts]
    pairs = [(one, two) for one, two in combinations(boxes, 2) if one[2].overlaps(two[2])]
    return [(one[0], two[0]) for one, two in pairs if not (one[1] and one[1] == two[1])]  # both turned alike


@pytest.mark.slow
@pytest.mark.parametrize("models", [1, 17])
def test_no_text_of_a_figure_lies_over_another(models, monkeypatch):
    drawn = charts_of(
        example_report([f"organisation/a-model-with-a-name-{at}" for at in range(models)], published=False)
    )
    for key in ("overview", *KINDS.values(), "care_category", "crosscult_diagnostic"):
        assert _overlapping(drawn[key], monkeypatch) == [], key


def test_many_panels_are_several_figures_of_which_each_can_be_read():
    report = example_report([f"model {number}" for number in range(17)], published=False)
    parts = [chart for chart in charts(report) if chart.key.startswith("cedar_lsepp")]
    assert [chart.key for chart in parts] == ["cedar_lsepp", *(f"cedar_lsepp_{page}" for page in range(2, 10))]
    assert [chart.title.rpartition(" (")[2] for chart in parts] == [f"{page} of 9)" for page in range(1, 10)]
    assert [len(chart.panels) for chart in parts] == [4] * 8 + [2]
    assert len({panel.title for chart in parts for panel in chart.panels}) == 34


def test_a_model_looks_the_same_in_every_figure():
    report = example_report(("a", "b", "c"), published=False)
    without_a = tuple(value for value in report.groups if (value.row, value.dimension) != ("m0", "facet"))
    drawn = charts_of(replace(report, numbers=numbers_of(report.units, without_a)))
    looks = {
        (label[0], chart.look_of(label))
        for chart in drawn.values()
        for label in (chart.labels if chart.series == "model" and chart.question != "changes" else ())
    }
    assert looks == {("a", 0), ("b", 1), ("c", 2)}
    assert {label[0] for label in drawn["culturalvqa_facet"].labels} == {"b", "c"}


def test_a_panel_shows_a_dozen_series_at_most():
    panel = ChartPanel("panel", ("a",), tuple(Series(f"m{at}", {"a": Number(float(at), PERCENT)}) for at in range(25)))
    parts = list(split_panel(panel))
    assert [(len(part.series), part.title) for part in parts] == [
        *((9, "panel (1 of 3)"), (9, "panel (2 of 3)"), (7, "panel (3 of 3)"))
    ]
    whole = replace(panel, series=panel.series[:12])
    assert list(split_panel(whole)) == [whole]


def test_cultures_stand_in_the_order_of_their_means():
    low = Series("m", {"a": Number(1.0, PERCENT), "b": Number(9.0, PERCENT), "c": Number(None, PERCENT)})
    high = Series("n", {"a": Number(3.0, PERCENT), "b": Number(2.0, PERCENT)})
    assert sorted_by_mean(ChartPanel("p", ("c", "a", "b"), (low, high))).groups == ("b", "a", "c")
    chart = charts_of(example_report(published=False))["culturalvqa_country"]
    [panel] = chart.panels
    assert (chart.kind, sorted_by_mean(panel)) == ("dots", panel)
    [svg] = svg_images([chart])
    assert [text for text in _texts(svg) if text in panel.groups] == list(panel.groups)


def test_ratios_stand_on_a_logarithmic_axis_with_0_at_its_edge():
    ratio, bias = Scale("ratio", 0.0, None, better=None, neutral=1.0), Scale("percent", -100.0, 100.0, None, 0.0)
    chart = _chart("dots", Number(0.0, ratio, 0.0, 0.2), Number(4.0, ratio, 2.0, 8.0))
    others = [charts_of(example_report(("m",)))["cedar_lsepp"], _chart("dots", Number(4.0, bias))]
    with styled(chart.texts):
        axes, *more = (draw(one).axes[0] for one in (chart, *others))
        assert [one.get_xscale() for one in (axes, *more)] == ["log", "log", "linear"]
        drawn = [tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]
        assert (lowest_ratio(chart), 4.0) in drawn


def test_a_pair_has_a_mark_for_each_side():
    chart = charts_of(example_report(("m",), published=False))["crosscult_insertion"]
    [panel] = chart.panels
    [svg] = svg_images([chart])
    texts = _texts(svg)
    assert [series.label for series in panel.series] == ["Base", "Edited"]
    assert panel.groups == ("Social", "Religious", "Ethical", "Chinese", "Arabic")
    assert texts.count("Base") == texts.count("Edited") == 1

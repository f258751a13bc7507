"""Figures: which numbers they show, drawn in all formats, the same every time, and names of any script in them."""

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pycountry
import pytest
from lxml import etree
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from PIL import Image
from support.toy_report import HOSTILE, MODELS

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.tables import Column, Figure, series_of
from culture_tasks.pages.pictures import cleaned, shown, styled
from culture_tasks.report.drawing import draw, svg_images, write_figures
from culture_tasks.report.figures import finished, groups_of
from culture_tasks.report.model import CountryScore, ModelRow, Number, Rank, Table

KINDS = ("dots", "heat", "lines")
SVG = "{http://www.w3.org/2000/svg}"
PERCENT = Scale("percent", 0, 100)
ONE = Number(1.0, PERCENT)


def texts_of(svg):
    return [element.text or "" for element in etree.fromstring(svg).iter(f"{SVG}text")]


def figure_of(kind, *cells):
    return Figure("k", "Title", {"panel": {"m": dict(zip("ab", cells, strict=False))}}, "score", kind=kind)


def drawn(names, *figures, columns=(), countries=(), beside=()):
    """Figures as the report of some models has them."""
    entrants = {f"m{number}": ModelRow(f"m{number}", name) for number, name in enumerate(names)}
    summary = Table("summary", "Scores", columns=tuple(columns), rows={key: (key,) for key in entrants})
    return {one.key: one for one in finished(figures, summary, entrants, countries, beside)}


def each_kind(names):
    """The overview, and a figure of each kind, of models on eleven groups."""
    panel = {
        f"m{model}": {f"group {at}": Number(20.0 + at + model, PERCENT, 15.0, 60.0) for at in range(11)}
        for model in range(len(names))
    }
    columns = [Column("a", "Score", PERCENT, {row: series["group 0"] for row, series in panel.items()})]
    own = (Figure(kind, kind, {"All": panel}, "score", kind=kind) for kind in KINDS)
    return [*drawn(names, *own, columns=columns).values()]


# Which numbers are shown, under which names


def test_a_figure_has_the_cells_of_columns_in_their_order_without_totals_and_missing_numbers():
    columns = [
        Column("a", "A", PERCENT, {"m0": ONE, "m1": ONE}),
        Column("b", "B", PERCENT, {"m1": ONE, "m0": Number(None, PERCENT)}),
        Column("c", "C", PERCENT, {"m0": ONE, "m1": replace(ONE, flags=("low_coverage",))}),
        Column("all", "All", PERCENT, {"m0": ONE}, sums_up=True),
    ]
    figure = drawn(("x", "y"), Figure("f", "F", {"P": series_of(columns), "empty": {}}, "v"))["f"]
    [(title, panel)] = figure.panels.items()
    assert title == "P"
    assert {name: list(series) for name, series in panel.items()} == {"x": ["A", "C"], "y †": ["A", "B", "C"]}
    assert groups_of(figure, panel) == ["A", "B", "C"]
    assert figure.notes == ("† in part not comparable: too few of the responses were scored",)
    assert figure.looks == {"x": 0, "y †": 1}


def test_many_groups_stand_in_the_order_of_their_means_and_rows_that_look_alike_are_told_apart():
    low = {name: Number(float(place), PERCENT) for place, name in enumerate("abcdefghi")}
    high = {"a": Number(20.0, PERCENT)}  # (0 + 20) / 2
    figure = drawn(("x", "x\u202e"), Figure("f", "F", {"P": {"m0": low, "m1": high}}, "v"))["f"]
    assert [*figure.panels["P"]] == ["x", "x (2)"]
    assert groups_of(figure, figure.panels["P"]) == ["a", *"ihgfedcb"]


def test_the_overview_has_a_panel_a_score_and_the_best_mean_first():
    def column(key, values, **more):
        ranked = {f"m{at}": Number(one, PERCENT, rank=Rank(1 if one > 40 else 3, 3)) for at, one in enumerate(values)}
        return Column(key, key.title(), PERCENT, ranked, **more)

    columns = [column("vqa", (40.0, 60.0, 50.0)), column("other", (1.0, 2.0, 3.0))]
    columns += [column("mean", (40.0, 60.0, 50.0), sums_up=True)]
    figure = drawn("abc", columns=columns, beside=("other",))["overview"]
    assert list(figure.panels) == ["Mean", "Other", "Vqa"]
    assert figure.bold == {"b, Mean", "c, Mean", "b, Vqa", "c, Vqa"}
    many = drawn([f"m{at}" for at in range(17)], columns=[column("vqa", range(17))])["overview"]
    assert (len(many.panels["Vqa"]), many.title) == (15, "15 of 17 models on all benchmarks")
    assert drawn("abc") == {}


def test_figures_of_many_models_show_what_fits_and_say_so():
    codes = [country.alpha_2 for country in pycountry.countries][:40]
    names = [f"model {number:02}" for number in range(20)]
    scores = [
        CountryScore(f"m{model}", code, replace(ONE, n=50 - at), 50.0, {}, ("u",), "above" if at == 1 else None)
        for model in range(20)
        for at, code in enumerate(codes)
    ]
    heat = drawn(names, countries=scores)["countries"]
    [panel] = heat.panels.values()
    assert (len(panel), len(groups_of(heat, panel))) == (15, 28)
    first, second = (pycountry.countries.get(alpha_2=code).name for code in codes[:2])
    assert first in groups_of(heat, panel)  # the one of most questions
    assert f"model 00, {second}" in heat.bold
    assert any("the table has all" in note for note in heat.notes)
    panels = {f"P{at}": {f"m{m}": {"a": ONE} for m in range(20)} for at in range(30)}
    figure = drawn(names, Figure("f", "F", panels, "v"))["f"]
    assert (len(figure.panels), {len(panel) for panel in figure.panels.values()}) == (24, {12})
    assert figure.notes[-1] == "The table has the others"
    marks = {f"P{at}": {"s": {str(g): ONE for g in range(600)}} for at in range(4)}
    assert len(drawn("a", Figure("f", "F", marks, "v", series="side"))["f"].panels) == 2


# Files and names


def test_every_kind_is_written_in_every_format_and_loads_nothing(tmp_path):
    keys, endings = ("overview", *KINDS), ("png", "svg", "pdf")
    paths = write_figures(each_kind(MODELS), tmp_path, endings)
    assert {path.name for path in paths} == {f"{key}.{ending}" for key in keys for ending in endings}
    for path in paths:
        if path.suffix == ".pdf":
            assert path.read_bytes().startswith(b"%PDF-")
        elif path.suffix == ".png":
            with Image.open(path) as picture:
                pixels = np.asarray(picture.convert("L"))
            assert min(pixels.shape) > 300
            assert 0.005 < (pixels < 200).mean() < 0.8, path.name
        else:
            references = etree.fromstring(path.read_bytes()).xpath("//@*[local-name() = 'href']")
            assert all(reference.startswith(("#", "data:image/png")) for reference in references)
            families = re.findall(r"font-family: ([^;\"]+)|px ('DejaVu[^;\"]+)", path.read_text())
            assert families  # readers without our fonts get letters without serifs
            assert all("".join(found).endswith("sans-serif") for found in families)
    assert all(model in "".join(texts_of((tmp_path / "dots.svg").read_bytes())) for model in MODELS)


def test_names_are_cleaned_and_long_ones_keep_both_ends_and_stay_isolated():
    names = {
        "a\n\tb\x00\x07c": "a b\ufffd c",
        "\u202eevil\u202c\u2066x\u2069": "evilx",
        "نموذج": "\u2068نموذج\u2069",
        "\ufffe\uffff\ud800": "\ufffd\ufffd\ufffd",
    }
    assert {text: cleaned(text) for text in names} == names
    assert shown("Qwen/Qwen3-VL-8B-Instruct-checkpoint-2000", 21) == "Qwen/Qwen3-V…int-2000"
    assert (shown("x" * 10, 10), shown("")) == ("x" * 10, "–")
    assert shown("a" * 6 + "e" + "\u0301" * 3 + "b", 8) == "aaaa…b"
    arabic = cleaned("نموذج" * 20)
    for text in (f"{arabic} · b", f"b · {arabic}", arabic):
        for longest in range(16, len(text) + 2):
            assert re.fullmatch(
                "\u200e[^\u2068\u2069]*\u2068[^\u2068\u2069]*\u2069[^\u2068\u2069]*", shown(text, longest)
            )
            assert len(shown(text, longest)) <= longest + 3


@pytest.mark.parametrize(("letters", "count"), [("é", 0), ("\U00012000\U00012001", 2)])
def test_letters_that_no_font_has_are_counted_in_one_warning(tmp_path, caplog, letters, count):
    figures = [figure_of("dots", ONE), Figure("k", letters, {"P": {letters: {"a": ONE}}}, "v")]
    write_figures(figures, tmp_path, ["png"])
    assert [record.args for record in caplog.records if "no installed font" in record.msg] == [(count,)] * bool(count)


# What is drawn


@pytest.mark.parametrize("kind", KINDS)
def test_extremes_can_be_drawn_each_time_the_same_and_names_can_not_inject(kind):
    share, ratio = Scale("x", 0.0, 1.0), Scale("x", neutral=1.0)
    extremes = (Number(0.0, share, 0.0, 0.0), Number(1.0, share, 1.0, 1.0))
    simple = [figure_of(kind, *cells) for cells in ((ONE, ONE), extremes, (Number(0.5, ratio, 0.4, 3.0),))]
    text = f"_$x^2$ \ufffe\x01 {''.join(HOSTILE)}"  # matplotlib hides names that begin with an underscore
    figure = drawn((text, "b"), Figure("f", "F", {text: {"m0": {"a": ONE}, "m1": {text: ONE}}}, "v", kind=kind))["f"]
    *others, svg, again = svg_images([*simple, figure, figure])
    assert all("Title" in texts_of(one) for one in others)
    assert svg == again
    assert not list(etree.fromstring(svg).iter(f"{SVG}script", f"{SVG}a", f"{SVG}foreignObject"))
    assert "_$x^2$" in "".join(texts_of(svg))
    assert "\u202e" not in svg.decode()


@pytest.mark.slow
@pytest.mark.parametrize("models", [1, 17])
def test_no_text_of_a_figure_lies_over_another(models, monkeypatch):
    for figure in each_kind([f"organisation/a-model-with-a-name-{at}" for at in range(models)]):
        texts = []
        with styled(), monkeypatch.context() as patch:
            picture = draw(figure)
            picture.get_layout_engine().execute(picture)
            picture.set_layout_engine(None)
            patch.setattr(Text, "draw", lambda self, _, texts=texts: texts.append(self))
            picture.canvas.draw()
        seen = [text for text in texts if text.get_visible() and text.get_text().strip()]
        boxes = [(text.get_text(), text.get_rotation() % 90, text.get_window_extent().padded(-1)) for text in seen]
        pairs = [(one, two) for one, two in combinations(boxes, 2) if one[2].overlaps(two[2])]
        # texts that are both turned alike have boxes that overlap although they don't
        assert [(one[0], two[0]) for one, two in pairs if not (one[1] and one[1] == two[1])] == [], figure.key


def test_ratios_stand_on_a_logarithmic_axis():
    ratio, bias = Scale("ratio", 0.0, None, better=None, neutral=1.0), Scale("percent", -100.0, 100.0, None, 0.0)
    figures = (figure_of("dots", Number(0.0, ratio), Number(4.0, ratio)), figure_of("dots", Number(4.0, bias)))
    assert [draw(figure).axes[0].get_xscale() for figure in figures] == ["symlog", "linear"]


def test_a_score_with_a_wider_interval_is_paler_in_the_heat_map_and_grey_has_no_answer():
    cells = {"a": Number(50.0, PERCENT, low=50.0, high=50.0), "b": Number(50.0, PERCENT, low=20.0, high=80.0)}
    cells |= {"c": Number(31.0, PERCENT), "d": Number(None, PERCENT)}
    [axes, _] = draw(replace(figure_of("heat"), panels={"": {"model": cells}})).axes
    certain, wide, unknown = (patch.get_facecolor()[:3] for patch in axes.patches)  # an empty cell has none
    assert certain == to_rgb("#fde725")  # the upper end of the colour map: the numbers' range goes from 30 to 50
    assert wide == pytest.approx([1 - (1 - part) * 0.2 for part in certain], abs=0.01)  # 60 of 75 points on to white
    assert unknown == (1.0, 1.0, 1.0)

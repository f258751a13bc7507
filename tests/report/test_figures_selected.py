"""Which numbers go into which figure, and under which names."""

from dataclasses import replace

from support.example_report import MODELS, PERCENT, RATIO, example_report, numbers_of
from support.reports import charts_of
from support.sample_files import cedar_sample, write_run

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.report.building import Options, build
from culture_tasks.report.figures.selecting import OVERVIEW, group_name, overview
from culture_tasks.report.model import ModelMeans, Number, Standing


def _only(*values):
    report = example_report(("m",), published=False)
    units = {key: unit for key, unit in report.units.items() if not key.endswith("_matrix")}
    alone = replace(report, numbers=numbers_of(units, values), contrasts=())
    return {key: chart for key, chart in charts_of(alone).items() if key != OVERVIEW}


def _value(unit, statistic, dimension, group, where, number=1.0, scale=PERCENT):
    address = tuple(dict.fromkeys((*where, (dimension, group))))
    return Number(number, scale, where=address, row="m0", unit=unit, statistic=statistic)


def test_rows_that_look_alike_are_told_apart():
    for third, labels in (("other", ["other", "same", "same (2)"]), ("same (2)", ["same", "same (2)", "same (2) (2)"])):
        chart = charts_of(example_report(("same", "same\u202e", third), published=False))["care_category"]
        assert sorted(line.label.replace(" †", "") for line in chart.panels[0].series) == labels


def test_rows_that_can_not_be_compared_are_marked_and_descriptions_say_what_is_seen_in_words():
    drawn = charts_of(example_report())
    for chart in drawn.values():
        names = [*(panel.title for panel in chart.panels), *(s.label for panel in chart.panels for s in panel.series)]
        marked = [name for name in names if "†" in name]
        assert bool(marked) == any("† in part not comparable: too few" in note for note in chart.notes), chart.key
        assert {chart.title in chart.description, chart.groups in chart.description} == {True}
        assert "_" not in f"{chart.value}{chart.groups}{chart.series}", chart.key
    country = drawn["culturalvqa_country"]
    assert f"Lowest {min(cell.value for cell in country.panels[0].cells):.1f}" in country.description
    assert all(model in "".join(country.texts) for model in MODELS[1:])


def test_numbers_stand_in_the_panels_and_the_order_of_the_papers():
    language, role, other = ("language", "ar"), ("role", "reliability"), ("role", "generality")
    category, topic = ("category", "norms"), ("topic", "social")
    found = _only(
        _value("care_ar", "score", "category", "norms", [category]),
        _value("care_ar", "score", "category", "norms", [language, category], 2.0),
        _value("care_ar", "score", "scope", "nationwide", [("scope", "nationwide")]),
        _value("crosscult_single", "score", "topic", "social", [role, topic]),
        _value("crosscult_single", "score", "topic", "social", [other, topic], 2.0),
        _value("crosscult_single", "score", "topic", "social", [topic], 3.0),
        _value("crosscult_single", "score", "partition", "zh", [role, topic, ("partition", "zh")], 4.0),
        _value("crosscult_single", "rouge_l", "topic", "social", [role, topic], 5.0),
        _value("cedar_text", "gepp", "emotion", "sympathy", (), scale=RATIO),
        _value("cedar_text", "gepp", "emotion", "anger", (), scale=RATIO),
        _value("cedar_multimodal", "gepp", "emotion", "fear", (), scale=RATIO),
        _value("cedar_text", "lsrqb", "quadrant", "II", [("language", "zh")]),
        _value("cedar_text", "lsrqb", "quadrant", "II", [language]),
    )
    keys = ("care_category", "crosscult_reliability", "cedar_gepp", "cedar_lsrqb")
    assert [(panel.title, panel.groups) for key in keys for panel in found[key].panels] == [
        ("CARE Arabic", ("Norms",)),
        ("CARE Arabic · Arabic", ("Norms",)),
        ("By topic", ("Social",)),
        ("Text-only", ("anger", "sympathy")),
        ("Multimodal", ("fear",)),
        ("Text-only · Q2", ("Arabic", "Chinese")),
    ]
    [panel] = found["crosscult_reliability"].panels  # that role alone
    assert [cell.value for cell in panel.cells] == [1.0]


def test_prompt_and_data_languages_come_from_their_pairs_and_retention_has_a_line_for_each_insertion():
    drawn = charts_of(example_report(("m",), published=False))
    heat, lines = drawn["cedar_matrix"], drawn["crosscult_retention"]
    assert (heat.kind, lines.kind) == ("heat", "lines")
    titles = [panel.title.replace(" †", "") for panel in (*heat.panels, *lines.panels)]
    assert titles == ["m · text-only", "m · multimodal", "m · English → Chinese → Arabic"]
    languages = ("Arabic", "English", "Spanish", "Hindi", "Japanese", "Swahili", "Chinese")
    assert tuple(line.label for line in heat.panels[0].series) == heat.panels[0].groups == languages
    assert [(line.label, list(line.cells)) for line in lines.panels[0].series] == [
        *(("English", ["1", "2", "3"]), ("Chinese", ["2", "3"]), ("Arabic", ["3"]))
    ]


def test_the_overview_has_a_panel_a_score_and_the_best_mean_first():
    report = example_report(("a", "b", "c"), published=False)
    cells = {
        key: replace(cell, value=value)
        for (key, cell), value in zip(report.units["culturalvqa"].cells.items(), (40.0, 60.0, 50.0), strict=True)
    }
    unit = replace(report.units["culturalvqa"], cells=cells, standing=Standing(("m1", "m2", "m0"), best=("m1", "m2")))
    mean = ModelMeans("mean", "Mean of 2", ("care_ar", "culturalvqa"), {}, cells, unit.standing, ())
    report = replace(report, numbers=numbers_of({**report.units, "culturalvqa": unit}, report.groups), means=(mean,))
    chart = overview(report)
    assert [panel.title for panel in chart.panels][:3] == ["Mean of 2", "CulturalVQA", "CARE Arabic"]
    assert chart.panels[0].groups == ("b", "c", "a")
    assert [chart.panels[0].best, chart.panels[1].best] == [frozenset(("b", "c"))] * 2
    assert [chart.look_of(label) for label in ("a", "b", "c")] == [0, 1, 2]
    assert chart.title == "All models on all benchmarks"
    assert len(chart.panels) == 1 + sum(unit.headline for unit in report.units.values())
    many = example_report([f"m{number}" for number in range(17)], published=False)
    part = overview(many)
    assert {len(panel.groups) for panel in part.panels} == {15}
    assert (part.title, part.notes[-1]) == ("15 of 17 models on all benchmarks", "The table has the others")
    more = {f"more_{at}": replace(many.units["arab_culture"], key=f"more_{at}", title=f"m{at}") for at in range(30)}
    part = overview(replace(many, numbers=numbers_of({**many.units, **more}, ())))
    assert (part.title, len(part.panels)) == ("15 of 17 models on 24 of 39 scores", 24)
    assert overview(replace(report, numbers=numbers_of({}, ()), means=())) is None


def test_a_number_without_a_value_is_not_drawn():
    assert _only(_value("culturalvqa", "score", "country", "iran", [("country", "iran")], None)) == {}


def test_group_names():
    names = {
        ("culturalvqa", "country", "usa"): "USA",
        ("culturalvqa", "country", "south_korea"): "South Korea",
        ("care", "category", "Social norms"): "Social norms",
        ("care", "language", "ar"): "Arabic",
        ("cedar", "prompt_language", "en"): "English",
        ("cedar", "quadrant", "III"): "Q3",
        ("cedar", "emotion", "awe"): "awe",
        ("culturalvqa", "country", "a\x00\u202eb"): "A\ufffdB",
    }
    assert {key: group_name(benchmarks()[key[0]].report(), *key[1:]) for key in names} == names


def test_emotions_that_only_a_model_names_are_said_below_the_figure(tmp_path):
    samples = [
        cedar_sample(item, language, "fear" if language == "ja" else "awe", label)
        for item, label in (("1", "awe"), ("2", "anger"), ("3", "fear"))
        for language in ("en", "ja")
    ]
    write_run(tmp_path, "m", {"cedar_text": samples})
    figures = charts_of(build([str(tmp_path)], Options()))
    note = "Without a mark where a model names them and no gold label does: anger"
    assert [panel.groups for panel in figures["cedar_gepp"].panels] == [("fear", "awe")]
    assert figures["cedar_gepp"].notes[-1] == note
    assert figures["cedar_lsepp"].notes[-1] == f"{note}, awe, fear"  # fear in English, awe in Japanese
    assert not any("Without a mark" in note for note in figures["cedar_grqb"].notes)

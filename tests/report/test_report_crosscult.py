"""CrossCult-KIBench's layouts beside those of its tables: retention, and what is known with nothing inserted."""

import itertools

import pytest
from support.sample_files import crosscult_sample, write_run

from culture_tasks.report.building import Options, build
from culture_tasks.report.figures.selecting import charts

ORDERS = (("en", "zh", "ar"), ("ar", "zh", "en"))
METHODS = ("base", "mcki")
SEVEN = ("base", "finetune", "ike", "mend", "serac", "mscke", "mcki")
NAMES = ("Base Model", "FineTune", "IKE", "MEND", "SERAC", "MSCKE", "MCKI")


def tables(report):
    return {table.key: table for table in report.tables}


def row(table, at=0):
    return dict(zip((column.key for column in table.columns), table.rows[at].cells, strict=True))


def chain(order, score):
    """Samples of every step of a chain: the score, less the number of insertions since, in both measures."""
    return {
        f"crosscult_retention_{'_'.join(order)}_{partition}_after_{after}": [
            crosscult_sample(number, score + number % 2 - lost, 10.0 * (score - lost), partition, after=after)
            for number in range(4)
        ]
        for after in (1, 2, 3)
        for place, partition in enumerate(order[:after], start=1)
        for lost in (after - place,)
    }


def insert(folder, model, samples, method):
    arguments = {"model": "knowledge_insertion", "model_args": f"pretrained={model},method={method}"}
    return write_run(folder / f"{model}-{method}", model, samples, config=arguments)


@pytest.fixture(scope="module")
def retention(tmp_path_factory):
    folder = tmp_path_factory.mktemp("retention")
    for method, order in itertools.product(METHODS, ORDERS):
        if (method, order) != ("base", ORDERS[1]):
            insert(folder / "_".join(order), "m", chain(order, 4.0 if method == "base" else 8.0), method)
    return build([str(folder)], Options())


def test_retention_has_a_column_for_each_order_step_and_partition_and_a_row_for_each_method(retention):
    table = tables(retention)["crosscult_retention"]
    labels = [f"{column.over} {column.label}" for column in table.columns]
    first, second = "EN, ZH, AR: step", "AR, ZH, EN: step"
    assert labels[:6] == [f"{first} {step}" for step in ("1 EN", "2 EN", "2 ZH", "3 EN", "3 ZH", "3 AR")]
    assert labels[6:9] == [f"{second} {step}" for step in ("1 AR", "2 AR", "2 ZH")]
    assert [line.labels for line in table.rows] == [("m", "Base Model", "judge-1"), ("m", "MCKI", "judge-1")]
    base, edited = row(table, 0), row(table, 1)
    assert base["ar_zh_en_ar_after_1"] is None
    # scores of 8, 9, 8, 9 less one for each later insertion: sd 0.577, se 0.289, t(3) 3.182
    cell = edited["en_zh_ar_en_after_3"]
    assert cell.value == 6.5
    assert (cell.low, cell.high) == pytest.approx((6.5 - 0.9186, 6.5 + 0.9186), abs=1e-3)
    assert edited["ar_zh_en_en_after_3"].value == 8.5
    assert base["en_zh_ar_en_after_3"].value < cell.value


def test_retention_in_rouge_l_has_its_own_table_and_figure(retention):
    edited = row(tables(retention)["crosscult_retention_rouge_l"], 1)
    assert edited["en_zh_ar_en_after_3"].value == 60.0
    assert edited["en_zh_ar_ar_after_3"].value == 80.0
    drawn = {chart.key: chart for chart in charts(retention)}
    for key, scale in (("crosscult_retention", "score"), ("crosscult_retention_rouge_l", "percent")):
        assert drawn[key].panels[0].scale.unit == scale
        assert [panel.title for panel in drawn[key].panels] == [
            "m + mcki · English → Chinese → Arabic",
            "m + mcki · Arabic → Chinese → English",
            "m + base · English → Chinese → Arabic",
        ]


def test_retention_of_which_nobody_ran_all_steps_is_shown(tmp_path):
    samples = {name: lines for name, lines in chain(ORDERS[0], 8.0).items() if name.endswith("en_after_3")}
    insert(tmp_path, "m", samples, "mcki")
    report = build([str(tmp_path)], Options())
    cells = row(tables(report)["crosscult_retention"])
    assert [name for name, cell in cells.items() if cell is not None] == ["en_zh_ar_en_after_3"]
    assert cells["en_zh_ar_en_after_3"].value == 6.5
    [cell] = report.units["crosscult_retention_en_zh_ar"].cells.values()
    assert cell.flags == ("incomplete",)
    assert not report.units["crosscult_retention_en_zh_ar"].headline
    assert {chart.key for chart in charts(report)} == {"crosscult_retention", "crosscult_retention_rouge_l"}


@pytest.fixture(scope="module")
def seven(tmp_path_factory):
    """The paper's seven rows of one backbone, in all settings."""
    folder = tmp_path_factory.mktemp("seven")
    single = ("reliability", "generality", "cross_language_locality", "cross_scenario_locality")
    for number, method in enumerate(SEVEN):
        samples = {
            f"crosscult_single_{role}": [
                crosscult_sample(each, float(number), 10.0 * number, ("zh", "ar")[each % 2], role) for each in range(4)
            ]
            for role in single
        }
        samples |= {
            f"crosscult_sequential_{role}_{partition}": [
                crosscult_sample(each, float(number), 10.0 * number, partition, role, 3) for each in range(4)
            ]
            for role in ("reliability", "generality", "locality")
            for partition in ORDERS[0]
        }
        for order in ORDERS:
            samples |= chain(order, 3.0 + number)
        insert(folder, "m", samples, method)
    return build([str(folder)], Options(published=True))


def test_tables_and_figures_have_all_methods_beside_the_papers(seven):
    for number in (2, 3):
        table = tables(seven)[f"crosscult_table_{number}"]
        own = [row for row in table.rows if not row.published]
        assert {row.labels[1] for row in own} == {row.labels[1] for row in table.rows if row.published} == set(NAMES)
        assert {row.labels[1]: row.cells[-1].value for row in own} == {name: float(n) for n, name in enumerate(NAMES)}
        assert len(table.rows) == 7 + 14
    drawn = {chart.key: chart for chart in charts(seven)}
    pages = (drawn["crosscult_retention"], drawn["crosscult_retention_2"])
    assert {panel.title for page in pages for panel in page.panels} == {
        f"m + {method} · {order}"
        for method in SEVEN
        for order in ("English → Chinese → Arabic", "Arabic → Chinese → English")
    }
    # with and without the insertion, for all that insert
    assert {panel.title for panel in drawn["crosscult_insertion"].panels} == {f"m + {method}" for method in SEVEN[1:]}


def test_diagnostic_has_languages_topics_and_all(tmp_path):
    samples = [
        crosscult_sample(number, score + number % 2, 10.0 * score, partition, "diagnostic", 0)
        for partition, score in (("en", 8.0), ("zh", 6.0), ("ar", 1.0))
        for number in range(6)
    ]
    write_run(tmp_path, "m", {"crosscult_diagnostic": samples})
    report = build([str(tmp_path)], Options())
    table = tables(report)["crosscult_diagnostic_by_language"]
    assert list(dict.fromkeys(column.over for column in table.columns)) == [
        *("English", "Chinese", "Arabic", "Social", "Religious", "Ethical", "All"),
    ]
    cells = row(table)
    assert [cells[f"{name}_judge_score"].value for name in ("en", "zh", "ar", "all")] == [8.5, 6.5, 1.5, 5.5]
    assert [cells[f"{name}_rouge_l"].value for name in ("en", "zh", "ar", "all")] == [80.0, 60.0, 10.0, 50.0]
    # numbers 0 and 3 of each partition are social: one even, one odd
    assert cells["social_judge_score"].value == 5.5
    assert cells["social_judge_score"].n == 6
    assert cells["en_judge_score"].low < 8.5 < cells["en_judge_score"].high
    assert "crosscult_diagnostic" in {chart.key for chart in charts(report)}

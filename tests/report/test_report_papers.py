"""The papers' numbers beside the user's by group: where they stand, and what they take no part in."""

import pytest
from support.reports import figures_of, report_of, rows_of, tables_of
from support.sample_files import care_sample, cedar_sample, rewrite, write_run

from culture_tasks.benchmarks.cedar.labels import EMOTIONS
from culture_tasks.report.latex import table_latex
from culture_tasks.report.wording import number

CATEGORIES = ("entities", "opinion", "norms", "commonsense", "literacy")


def care(language):
    return [care_sample(number, 5.0 + number % 3, language, CATEGORIES[number % 5]) for number in range(15)]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports without and with the papers' rows."""
    folder = tmp_path_factory.mktemp("runs")
    labels = [(emotion, language) for language in ("ar", "zh") for emotion in EMOTIONS]
    cedar = [cedar_sample(one, language, one, "anger", modality="multimodal") for one, language in labels]
    for model in ("GPT-4o", "b"):
        write_run(folder / model / "care", model, {"care_zh": care("zh"), "care_cot_zh": care("zh")})
        write_run(folder / model / "cedar", model, {"cedar_multimodal": cedar})
    return [report_of(folder, published=published) for published in (False, True)]


def test_the_papers_rows_take_no_part_in_anything_worked_out(reports):
    without, both = reports
    assert ([*both.numbers], both.entrants) == ([*without.numbers], without.entrants)
    assert (both.fairness, both.comparisons) == (without.fairness, without.comparisons)
    assert all(both.units[key].standing == unit.standing for key, unit in without.units.items())
    one, two = map(tables_of, reports)
    assert all(one[key] == two[key] for key in ("summary", "countries", "fairness"))
    assert both.models == without.models == {"GPT-4o", "b"}


def test_a_percent_among_ratings_says_so(reports):
    tables = tables_of(reports[1])
    texts = {
        " ".join(row.labels): [number(cell.value, cell.scale) for cell in row.cells if cell is not None]
        for row in rows_of(tables["care_zh_table_3"])
        if row.published
    }
    [percents] = [own for labels, own in texts.items() if "uman awareness" in labels]
    [ratings] = [own for labels, own in texts.items() if labels.startswith("GPT-4o")]
    assert ({text[-2:] for text in percents}, "%" in "".join(ratings)) == ({" %"}, False)
    assert r" \%$" in table_latex(tables["care_zh_table_3"])
    accuracies = [cell for row in rows_of(tables["cedar_table_1"]) for cell in row.cells if cell]
    assert "%" not in "".join(number(cell.value, cell.scale) for cell in accuracies)


def test_tables_show_the_papers_rows_below_the_papers_own_variant_alone(reports, tmp_path):
    tables = tables_of(reports[1])
    shown = {key for key, table in tables.items() if any(row.published for row in rows_of(table))}
    assert {"care_zh_table_3", "care_zh_table_13"} <= shown
    assert not {"care_cot_zh_table_3", "care_cot_zh_table_13"} & shown
    write_run(tmp_path, "b", {"care_cot_zh": care("zh")})
    alone = tables_of(report_of(tmp_path, published=True))
    assert not any(table.published for table in alone.values())


def test_own_data_are_marked(tmp_path):
    """Two models have Arabic questions of the release, and b's Chinese ones are the user's own."""
    own = {"metadata": {"version": 1.0, "own_data": {"Chinese-test.json": "60 rows, and the release has 150"}}}
    for model, changes in (("a", {}), ("b", own)):
        path = write_run(
            tmp_path / model, model, {f"care_{language}": care(language) for language in ("ar", "ja", "zh")}
        )
        rewrite(path, configs={"care_zh": changes})
    report = report_of(tmp_path, published=True)
    table = tables_of(report)["care_table_3"]
    [key] = [row.key for row in rows_of(table) if row.labels[0] == "b"]
    marked = {column.over for column in table.columns if "own_data" in column.cells[key].flags and not column.sums_up}
    assert marked == {"Chinese"}
    assert [note for note in report.notes if "CARE, Chinese culture (Chinese-test.json: 60 rows" in note]
    assert any("own data" in note for note in figures_of(report)["care_category"].notes)

"""Published numbers of benchmarks with options: below the tasks that measure the same thing, and below no others."""

import pytest
from support.reports import report_of, rows_of, tables_of
from support.sample_files import record, write_run

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.report.wording import number

GROUPS = {
    "worldcuisines": {"language": "en", "question": "dish"},
    "normad": {"label": "yes", "topic": "eating", "bin": "Confucian", "country": "japan"},
    "cvqa": {"pair": "Thai (Thailand)", "language": "Thai", "country": "Thailand", "category": "Food"},
    "culturalbench": {"country": "Japan"},
}
TYPES = ("dish", "dish_context", "dish_adversarial", "origin")


def samples(benchmark, task, metric="acc"):
    values = {one.name: 1.0 for one in task_named(task).metrics() if one.name != metric}
    groups = GROUPS[benchmark]
    if benchmark == "worldcuisines":
        groups = groups | {"question": next(kind for kind in TYPES if task.endswith(f"_{kind}"))}
    read = {"runs": [{"response": "1", "outcome": "scored"}], "outcomes": {"scored": 1}, "score": 1.0, "values": values}
    return [{metric: record(benchmark, task, metric, f"{n}", groups, **read)} for n in range(4)]


def tables(folder, benchmark, tasks, metric="acc"):
    write_run(folder, "mine", {task: samples(benchmark, task, metric) for task in tasks})
    return tables_of(report_of(folder, published=True))


def of_papers(table):
    """The published rows of a table, as texts by column key."""
    return {
        row.labels[0]: {
            column.key: number(cell.value, cell.scale)
            for column, cell in zip(table.columns, row.cells, strict=True)
            if cell is not None
        }
        for row in rows_of(table)
        if row.published
    }


def shown(tables):
    """The tables of the user's rows that have published ones below."""
    return {key for key, table in tables.items() if {row.published for row in rows_of(table)} == {True, False}}


@pytest.mark.parametrize(
    ("group", "metric", "table", "average"),
    [
        ("worldcuisines", "acc", "worldcuisines_acc_authors_by_question", "81.17"),
        ("worldcuisines_large", "acc", "worldcuisines_large_acc_authors_by_question", "82.21"),
        ("worldcuisines_open", "contains", "worldcuisines_open_score_by_question", "25.05"),
        ("worldcuisines_large_open", "contains", "worldcuisines_large_open_score_by_question", "27.83"),
    ],
)
def test_worldcuisines_stands_below_what_the_authors_score_by_set_and_form(tmp_path, group, metric, table, average):
    found = tables(tmp_path, "worldcuisines", [f"{group}_{kind}" for kind in TYPES], metric)
    assert shown(found) == {table}
    assert of_papers(found[table])["GPT-4o, published"]["average"] == average
    assert len(of_papers(found[table])) == (16 if metric == "contains" else 17)


def test_normad_stands_below_the_authors_reader_by_amount_of_context(tmp_path):
    found = tables(tmp_path, "normad", ["normad_none", "normad_country", "normad_country_value", "normad_rule"])
    assert shown(found) == {"normad_acc_authors"}
    assert of_papers(found["normad_acc_authors"])["Mistral-7B-Instruct, published"] == {
        "normad_country": "55.6779",
        "normad_rule": "81.8458",
    }


def test_culturalbench_stands_below_hard_alone(tmp_path):
    easy = tables(tmp_path / "easy", "culturalbench", ["culturalbench_easy"])
    assert not shown(easy)
    assert not [note for note in easy["culturalbench"].notes if "Published" in note]
    both = tables(tmp_path / "both", "culturalbench", ["culturalbench_easy", "culturalbench_hard"])
    assert shown(both) == {"culturalbench"}
    assert of_papers(both["culturalbench"]) == {
        "GPT-4o, published": {"culturalbench_hard_score": "61.5"},
        "Llama3-8b, published": {"culturalbench_hard_score": "21.4"},
    }


def test_cvqa_stands_below_the_means_over_pairs_of_pangea_s_prompt(tmp_path):
    found = tables(tmp_path, "cvqa", ["cvqa", "cvqa_en", "cvqa_vlmevalkit"])
    assert shown(found) == {"cvqa"}
    assert of_papers(found["cvqa"])["Pangea-7B, published"] == {"cvqa_acc_macro": "57.2", "cvqa_en_acc_macro": "64.4"}
    assert not shown(tables(tmp_path / "other", "cvqa", ["cvqa_vlmevalkit"]))

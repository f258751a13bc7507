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


def cuisines(kind):
    return " ".join(f"worldcuisines{kind}_{name}" for name in TYPES)


def samples(task, metric):
    benchmark = task.split("_")[0]
    values = {one.name: 1.0 for one in task_named(task).metrics() if one.name != metric}
    types = [name for name in TYPES if task.endswith(f"_{name}")]
    groups = GROUPS[benchmark] | ({"question": types[0]} if types else {})
    read = {"runs": [{"response": "1", "outcome": "scored"}], "outcomes": {"scored": 1}, "score": 1.0, "values": values}
    return [{metric: record(benchmark, task, metric, f"{n}", groups, **read)} for n in range(4)]


@pytest.mark.parametrize(
    ("tasks", "metric", "key", "row", "cells"),
    [
        (cuisines(""), "acc", "worldcuisines_acc_authors_by_question", "GPT-4o", {"average": "81.17"}),
        (cuisines("_large"), "acc", "worldcuisines_large_acc_authors_by_question", "GPT-4o", {"average": "82.21"}),
        (cuisines("_open"), "contains", "worldcuisines_open_score_by_question", "GPT-4o", {"average": "25.05"}),
        (
            cuisines("_large_open"),
            "contains",
            "worldcuisines_large_open_score_by_question",
            "GPT-4o",
            {"average": "27.83"},
        ),
        (
            *("normad_none normad_country normad_country_value normad_rule", "acc", "normad_acc_authors"),
            *("Mistral-7B-Instruct", {"normad_country": "55.6779", "normad_rule": "81.8458"}),
        ),
        ("culturalbench_easy", "acc", None, "", {}),
        (
            *("culturalbench_easy culturalbench_hard", "acc", "culturalbench", "Llama3-8b"),
            {"culturalbench_hard_score": "21.4"},
        ),
        (
            *("cvqa cvqa_en cvqa_vlmevalkit", "acc", "cvqa", "Pangea-7B"),
            {"cvqa_acc_macro": "57.2", "cvqa_en_acc_macro": "64.4"},
        ),
        ("cvqa_vlmevalkit", "acc", None, "", {}),
    ],
)
def test_published_rows_stand_below_what_measures_the_same(tmp_path, tasks, metric, key, row, cells):
    write_run(tmp_path, "mine", {task: samples(task, metric) for task in tasks.split()})
    tables = tables_of(report_of(tmp_path, published=True))
    assert [name for name, table in tables.items() if table.published] == ([key] if key else [])
    if key is not None:
        table = tables[key]
        [found] = [each for each in rows_of(table) if each.published and each.labels[0] == f"{row}, published"]
        numbers = zip(table.columns, found.cells, strict=True)
        texts = {column.key: number(cell.value, cell.scale) for column, cell in numbers if cell is not None}
        assert texts.items() >= cells.items()
        assert [note for note in table.notes if note.startswith("Published rows")]

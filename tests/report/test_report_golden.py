"""Golden files of the text formats, from real runs."""

import json
import math
from datetime import UTC, datetime

import pytest
from support.golden import golden
from support.reports import rows_of

from culture_tasks.report.building import Options, build
from culture_tasks.report.formats import write_report

MOST_LINES = 400

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def report(results):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(results.parent)
        return build(["results"], Options(), now=datetime(2026, 2, 1, tzinfo=UTC))


def test_texts_and_numbers_are_as_they_were(report, tmp_path):
    write_report(report, tmp_path, ("markdown", "csv", "json"))
    for name in ("report.md", "csv/summary.csv"):
        text = (tmp_path / name).read_text(encoding="utf-8-sig")
        golden(name, "".join(text.splitlines(keepends=True)[:MOST_LINES]))
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert len(found["numbers"]) > 500
    assert len(found["countries"]) > 20
    assert [table["key"] for table in found["tables"]][:3] == ["summary", "countries", "countries_by_benchmark"]
    [first, *_] = found["tables"][0]["columns"]
    assert first["cells"].keys() == found["entrants"].keys()


@pytest.fixture(scope="module")
def harness_values(report, results):
    """What each harness put into its result file: (entrant, task, metric): value."""
    found = {}
    for path in results.rglob("*results*.json"):
        values = json.loads(path.read_text(encoding="utf-8"))
        [entrant] = [key for key, each in report.entrants.items() if each.model == values["model_name"]]
        for task, own in values["results"].items():
            found |= {(entrant, task, key.removesuffix(",none")): value for key, value in own.items()}
    return found


def test_scores_and_averages_are_those_of_the_harnesses(report, harness_values):
    for (entrant, task, metric), value in harness_values.items():
        if (task, metric) in (("cedar_text", "acc"), ("cedar_multimodal", "acc"), ("culturalvqa", "lave")):
            times = 100 if metric == "acc" else 1
            assert report.units[task].cells[entrant].value == pytest.approx(times * value)
    [table] = [table for table in report.tables if table.key == "cedar_table_1"]
    columns = [column.key for column in table.columns]
    rows = {row.key: dict(zip(columns, row.cells, strict=True)) for row in rows_of(table)}
    averages = {"acc_avg": ("average", 100), "acc_var": ("variance", 100**2)}
    checked = [
        (rows[entrant][f"{task.removeprefix('cedar_')}_{averages[metric][0]}"].value, averages[metric][1] * value)
        for (entrant, task, metric), value in harness_values.items()
        if task in ("cedar_text", "cedar_multimodal") and metric in averages
    ]
    assert len(checked) == 6
    assert [ours for ours, _ in checked] == pytest.approx([theirs for _, theirs in checked])


def test_groups_are_those_of_the_harnesses(report, harness_values):
    """Every country, facet, language, emotion, quadrant and role. NaN there is None here, or low in coverage."""
    found = {}
    for each in report.groups:
        number = f"q{('I', 'II', 'III', 'IV').index(each.group) + 1}" if each.dimension == "quadrant" else each.group
        found[each.row, each.unit, each.statistic, number, each.where if each.samples is None else each.samples] = each
    checked = 0
    for (entrant, task, metric), value in harness_values.items():
        statistic, _, group = metric.partition("_")
        role = task.removeprefix("crosscult_single_")
        if role != task and metric in ("judge_score", "rouge_l"):
            name = "score" if metric == "judge_score" else metric
            places = [("crosscult_single", name, role, (("role", role),))]
        else:
            name = {"acc": "score", "lave": "score"}.get(statistic, statistic)
            wheres = ((), *(((field, group),) for field in ("language", "country", "facet")))
            places = [(task, name, group, where) for where in wheres]
        times = 100 if statistic in ("acc", "grqb", "lsrqb") else 1
        for ours in (found[entrant, *place] for place in places if (entrant, *place) in found):
            if isinstance(value, float):
                checked += 1
                is_missing = ours.value is None or "low_coverage" in ours.flags
                assert is_missing if math.isnan(value) else ours.value == pytest.approx(times * value), (task, metric)
    assert checked > 100


def test_samples_can_be_read_for_every_cell(report):
    for unit in report.units.values():
        for run in (run for cell in unit.cells.values() for run in cell.runs):
            samples = list(report.samples.read(run, report.samples.rows(run).places))
            assert len(samples) == report.runs[run].items
            assert all(sample.question and sample.run == run for sample in samples)
            assert all(sample.prompt and sample.prompt != sample.response for sample in samples)

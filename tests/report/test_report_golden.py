"""Golden files of the text formats, and the numbers of the harnesses, from real runs."""

import json
import math
from datetime import UTC, datetime

import pytest
from support.golden import golden
from support.reports import values_of

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
    assert found["tables"][0]["columns"][0]["cells"].keys() == found["entrants"].keys()


def places_of(task, metric):
    """Yields the places of the report where a number of a harness may stand: unit, statistic, group and samples."""
    statistic, _, group = metric.partition("_")
    role = task.removeprefix("crosscult_single_")
    if role != task and metric in ("judge_score", "rouge_l"):
        yield "crosscult_single", "score" if metric == "judge_score" else metric, role, (("role", role),)
    name = {"acc": "score", "lave": "score"}.get(statistic, statistic)
    yield from ((task, name, group, ((field, group),)) for field in ("language", "country", "facet"))
    yield task, name, group, ()


def test_numbers_are_those_of_the_harnesses(report, results):
    """Of whole tasks, every country, facet, language, emotion, quadrant and role. NaN is None, or low in coverage."""
    [table] = [table for table in report.tables if table.key == "cedar_table_1"]
    averages = {key: values_of(table, at) for at, key in enumerate(table.rows)}
    units = report.units.items()
    found = {(row, key, "score", "", ()): cell for key, unit in units for row, cell in unit.cells.items()}
    for each in report.groups:
        group = f"q{('I', 'II', 'III', 'IV').index(each.group) + 1}" if each.dimension == "quadrant" else each.group
        found[each.row, each.unit, each.statistic, group, each.where if each.samples is None else each.samples] = each
    checked = 0
    for path in results.rglob("*results*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        [row] = [key for key, each in report.entrants.items() if each.model == content["model_name"]]
        for task, values in content["results"].items():
            for metric, value in ((key.removesuffix(",none"), value) for key, value in values.items()):
                if task in ("cedar_text", "cedar_multimodal") and metric in ("acc_avg", "acc_var"):
                    name, times = {"acc_avg": ("average", 100), "acc_var": ("variance", 100**2)}[metric]
                    ours = averages[row][f"{task.removeprefix('cedar_')}_{name}"]
                    assert ours == pytest.approx(times * value)
                    checked += 100
                times = 100 if metric.partition("_")[0] in ("acc", "grqb", "lsrqb") else 1
                for ours in (found[row, *place] for place in places_of(task, metric) if (row, *place) in found):
                    if isinstance(value, float):
                        is_missing = ours.value is None or "low_coverage" in ours.flags
                        is_equal = is_missing if math.isnan(value) else ours.value == pytest.approx(times * value)
                        assert is_equal, (task, metric)
                        checked += 1
    assert checked > 700


def test_samples_can_be_read_for_every_cell(report):
    for unit in report.units.values():
        for run in (run for cell in unit.cells.values() for run in cell.runs):
            samples = list(report.samples.read(run, report.samples.rows(run).places))
            assert len(samples) == report.runs[run].items
            assert all(sample.question and sample.run == run for sample in samples)
            assert all(sample.prompt and sample.prompt != sample.response for sample in samples)

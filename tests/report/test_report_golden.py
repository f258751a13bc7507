"""Golden files of the text formats, from real runs."""

import json
import math
from datetime import UTC, datetime

import pytest
from support.golden import golden

from culture_tasks.report.building import Options, build
from culture_tasks.report.formats import write_report

TEXTS = ("report.md", "report.tex", "csv/summary.csv", "csv/care_table_3.csv", "csv/comparisons.csv", "csv/groups.csv")
MOST_LINES = 400

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def report(results):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(results.parent)
        return build(["results"], Options(), now=datetime(2026, 2, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_report(report, folder, ("markdown", "latex", "csv", "json"))
    return folder


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_as_they_were(written, name):
    text = (written / name).read_text(encoding="utf-8-sig")
    golden(name, "".join(text.splitlines(keepends=True)[:MOST_LINES]))


def test_json_is_as_it_was(written):
    found = json.loads((written / "report.json").read_text(encoding="utf-8"))
    assert len(found.pop("groups")) > 500
    assert [table["key"] for table in found.pop("tables")][:3] == ["summary", "cultures", "fairness"]
    for run in found["runs"].values():
        changed = dict.fromkeys(("data", "prompt", "asked"), "changes with the bundled data and prompts")
        run["settings"] |= changed
    golden("report.json", json.dumps(found, ensure_ascii=False, indent=1) + "\n")


def harness_values(report, results):
    """Yields each entrant with what its harness put into its result file."""
    for path in results.rglob("*results*.json"):
        values = json.loads(path.read_text(encoding="utf-8"))
        [entrant] = [key for key, each in report.entrants.items() if each.model == values["model_name"]]
        yield entrant, values["results"]


def test_scores_are_those_of_the_harnesses(report, results):
    checked = 0
    for entrant, values in harness_values(report, results):
        for task, metric in (("cedar_text", "acc"), ("cedar_multimodal", "acc"), ("culturalvqa", "lave")):
            if task in values:
                percent = 100 if metric == "acc" else 1
                assert report.units[task].cells[entrant].value == pytest.approx(
                    percent * values[task][f"{metric},none"]
                )
                checked += 1
    assert checked == 4


def test_groups_are_those_of_the_harnesses(report, results):
    """Every country, facet, language, emotion and quadrant. NaN there is None here, or marked for low coverage."""
    found = {}
    for each in report.groups:
        number = f"q{('I', 'II', 'III', 'IV').index(each.group) + 1}" if each.dimension == "quadrant" else each.group
        found[each.entrant, each.unit, each.statistic, number, each.cell.where] = each.cell
    checked = 0
    for entrant, values in harness_values(report, results):
        for task, own in values.items():
            for key, value in own.items():
                statistic, _, group = key.removesuffix(",none").partition("_")
                name = {"acc": "score", "lave": "score"}.get(statistic, statistic)
                for where in ((), (("language", group),), (("country", group),), (("facet", group),)):
                    ours = found.get((entrant, task, name, group, where))
                    if ours is not None and isinstance(value, float):
                        checked += 1
                        if math.isnan(value):
                            assert ours.value is None or "low_coverage" in ours.flags, (task, key)
                        else:
                            percent = 100 if statistic in ("acc", "grqb", "lsrqb") else 1
                            assert ours.value == pytest.approx(percent * value), (task, key)
    assert checked > 100


def test_averages_over_languages_are_those_of_the_harness(report, results):
    [table] = [table for table in report.tables if table.key == "cedar_table_1"]
    columns = [column.key for column in table.columns]
    rows = {row.entrant: dict(zip(columns, row.cells, strict=True)) for row in table.rows}
    for entrant, values in harness_values(report, results):
        for modality in ("text", "multimodal"):
            own = values.get(f"cedar_{modality}")
            if own:
                assert rows[entrant][f"{modality}_average"].value == pytest.approx(100 * own["acc_avg,none"])
                assert rows[entrant][f"{modality}_variance"].value == pytest.approx(100**2 * own["acc_var,none"])


def test_every_role_of_crosscult_is_that_of_the_harness(report, results):
    [path] = [path for path in results.rglob("*_results.json") if "toy__seeing" in str(path)]
    values = json.loads(path.read_text(encoding="utf-8"))["results"]
    for each in report.groups:
        if each.unit == "crosscult_single" and len(each.cell.where) == 1 and each.dimension == "role":
            found = values[f"crosscult_single_{each.group}"][
                "judge_score,none" if each.statistic == "score" else "rouge_l,none"
            ]
            assert each.cell.value == pytest.approx(found)


def test_samples_can_be_read_for_every_cell(report):
    for unit in report.units.values():
        for cell in unit.cells.values():
            for run in cell.runs:
                rows = report.samples.rows(run, cell.where)
                samples = list(report.samples.read(run, rows.places))
                assert len(samples) == len(rows.places) == report.runs[run].items
                assert all(sample.question and sample.run == run for sample in samples)
                assert all(sample.prompt and sample.prompt != sample.response for sample in samples)

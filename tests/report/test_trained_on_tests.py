"""Models that were trained on what they are tested on: found by manifests, marked in every format, and not ranked."""

import json
import re
from pathlib import Path

import pytest
from support.sample_files import care_sample, write_run

from culture_tasks.cli.main import main
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.report.building import Options, build
from culture_tasks.results.training_manifest import FILE_NAME, Manifest, RatedBy, Rule

MARK = "the model was trained on items of this test"


def write_manifest(folder, tested=None, **changes):
    """A manifest of data with three of CARE's Chinese questions among them, unless others are given."""
    tested = {"care_zh": ("zh-0", "zh-1", "zh-2", "zh-99")} if tested is None else tested
    manifest = Manifest(
        sources=(),
        rated_by=RatedBy(kind="people", name="people"),
        rule=Rule(test_questions=True),
        seed=1,
        counts={},
        items=("0" * 16,),
        tested_items=tested,
        **changes,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_text(manifest.as_json(), encoding="utf-8")
    return folder


def write_care(folder, model, scores, task="care_zh", arguments="", language="zh"):
    samples = {task: [care_sample(at, score, language) for at, score in enumerate(scores)]}
    return write_run(
        folder, str(model), samples, config={"model": "hf", "model_args": arguments or f"pretrained={model}"}
    )


@pytest.fixture
def results(tmp_path):
    """The result folder: a model that is trained on a test, and two that aren't."""
    weights = write_manifest(tmp_path / "preferences") / "models" / "dpo"
    weights.mkdir(parents=True)
    found = tmp_path / "results"
    write_care(found / "1", weights, [9.0, 10.0] * 6)
    write_care(found / "2", "org/base", [1.0, 2.0] * 6)
    write_care(found / "3", "org/good", [8.0, 9.0] * 6)
    return found


def cells_of(report, unit="care_zh"):
    return {report.entrants[key].label: cell for key, cell in report.units[unit].cells.items()}


def test_a_model_trained_on_the_test_is_marked_and_neither_ranked_nor_bold(results):
    report = build([str(results)], Options())
    cells = cells_of(report)
    assert cells["dpo"].value == 9.5
    assert {name: cell.flags for name, cell in cells.items()} == {
        "dpo": ("trained_on_test",),
        "org/base": (),
        "org/good": (),
    }
    assert {name: (str(cell.rank), cell.best) for name, cell in cells.items()} == {
        "dpo": ("None", False),
        "org/base": ("2", False),
        "org/good": ("1", True),
    }
    [left_out] = report.units["care_zh"].standing.left_out.values()
    assert left_out == MARK
    assert len(report.comparisons) == 1
    assert all("trained_on_test" in each.cell.flags for each in report.groups if each.cell.runs == ("r1",))
    assert any("dpo was trained on items of care_zh (3 of 12), as the manifest" in note for note in report.notes)


def test_it_has_no_part_in_a_mean(results):
    for number, model in enumerate((results.parent / "preferences/models/dpo", "org/base", "org/good")):
        write_care(results / f"ja{number}", model, [5.0, 6.0, 7.0], task="care_ja", language="ja")
    report = build([str(results)], Options())
    [mean] = report.means
    assert {report.entrants[key].label for key in mean.cells} == {"org/base", "org/good"}
    assert cells_of(report, "care_ja")["dpo"].flags == ()


def test_beside_its_base_it_has_no_gain_unless_the_user_insists(results):
    for anyway in (False, True):
        options = Options(trained=("dpo=org/base",), compare_anyway=anyway)
        [gain] = [gain for gain in build([str(results)], options).gains if gain.table == "before_after"]
        assert gain.difference.flags == ("trained_on_test",)
        assert (gain.difference.value, gain.percent.value is None) == (8.0 if anyway else None, not anyway)


def test_tasks_that_ask_the_same_items_are_marked_too(tmp_path):
    """A task of the user's own is known by its benchmark's items; Japanese questions were not among the data."""
    weights = write_manifest(tmp_path / "model")
    for task, language in (("care_zh", "zh"), ("my_care", "zh"), ("care_ja", "ja")):
        write_care(tmp_path / task, weights, [1.0] * 5, task=task, language=language)
    report = build([str(tmp_path)], Options())
    assert {unit: cells_of(report, unit)["model"].flags for unit in ("care_zh", "my_care", "care_ja")} == {
        "care_zh": ("trained_on_test",),
        "my_care": ("trained_on_test",),
        "care_ja": (),
    }


def test_without_samples_the_name_of_the_task_tells(tmp_path):
    weights = write_manifest(tmp_path / "model", {"mmlu": ("1", "2"), "care_zh": ("zh-1",)})
    tasks = {"mmlu": {"acc,none": 0.5}, "arc": {"acc,none": 0.5}, "care_zh": {"care_rating,none": 5.0}}
    write_run(tmp_path / "results", str(weights), {}, results=tasks)
    report = build([str(tmp_path)], Options())
    marked = {task: "trained_on_test" in report.units[task].cells["e1"].flags for task in tasks}
    assert marked == {"mmlu": True, "arc": False, "care_zh": True}


# Where the manifest is looked for


@pytest.mark.parametrize(
    ("levels", "is_found"), [("", True), ("a", True), ("models/dpo/checkpoint-100", True), ("a/b/c/d", False)]
)
def test_it_lies_in_the_models_folder_or_up_to_three_above(tmp_path, levels, is_found):
    weights = write_manifest(tmp_path / "data") / levels
    weights.mkdir(parents=True, exist_ok=True)
    write_care(tmp_path / "results", weights, [1.0] * 3)
    cells = build([str(tmp_path / "results")], Options()).units["care_zh"].cells
    assert ("trained_on_test" in cells["e1"].flags) == is_found


@pytest.mark.parametrize("arguments", ["pretrained=org/base,peft={}", "pretrained=org/base,lora_local_path={}"])
def test_adapters_and_what_they_were_put_on_are_looked_at(tmp_path, arguments):
    weights = write_manifest(tmp_path / "data") / "models" / "lora"
    weights.mkdir(parents=True)
    write_care(tmp_path / "1", "some name", [1.0] * 3, arguments=arguments.format(weights))
    write_care(tmp_path / "2", "another", [1.0] * 3, arguments=f"pretrained={weights},peft=org/adapter")
    for path in ("1", "2"):
        [cell] = build([str(tmp_path / path)], Options()).units["care_zh"].cells.values()
        assert cell.flags == ("trained_on_test",)


@pytest.mark.parametrize(
    "path", ["", "org/model", "/nowhere/at/all", "/dev/null", "x" * 5000, "a\0b", "//host/share", "~"]
)
def test_a_path_that_is_no_local_folder_is_no_error(tmp_path, path):
    write_care(tmp_path, path or "m", [1.0] * 3, arguments=f"pretrained=m,peft={path}")
    report = build([str(tmp_path)], Options())
    assert [cell.flags for cell in report.units["care_zh"].cells.values()] == [()]
    assert report.problems == ()


def test_a_file_that_is_no_manifest_is_named_and_the_search_goes_on_above(tmp_path):
    weights = write_manifest(tmp_path / "data") / "models"
    weights.mkdir()
    (weights / FILE_NAME).write_text('{"name": "an extension", "manifest_version": 3}', encoding="utf-8")
    for run in ("1", "2"):
        write_care(tmp_path / "results" / run, weights, [1.0] * 3, arguments=f"pretrained={weights},dtype={run}")
    report = build([str(tmp_path / "results")], Options())
    assert {cell.flags for cell in report.units["care_zh"].cells.values()} == {("trained_on_test",)}
    [problem] = report.problems
    assert (problem.path, problem.kind) == (str(weights / FILE_NAME), "foreign")
    assert "not a manifest of `culture-tasks preferences build`" in problem.detail


def test_the_user_names_the_data_of_models_by_a_pattern(tmp_path):
    data = write_manifest(tmp_path / "data")
    for model in ("org/dpo-1", "org/dpo-2", "org/base"):
        write_care(tmp_path / "results" / model, model, [1.0] * 3)
    report = build([str(tmp_path / "results")], Options(trained_on=(f"org/dpo-*={data}",)))
    assert {name: bool(cell.flags) for name, cell in cells_of(report).items()} == {
        "org/base": False,
        "org/dpo-1": True,
        "org/dpo-2": True,
    }


@pytest.mark.parametrize(
    ("option", "error", "said"),
    [
        ("dpo", SettingsError, "--trained-on 'dpo' isn't MODEL=DIR"),
        ("dpo={folder}/absent", DataError, "absent: can't be read (No such file or directory)"),
        ("dpo={folder}", DataError, "manifest.json: can't be read (No such file or directory)"),
        ("dop={data}", SettingsError, "dop fits no model. Did you mean 'dpo'? There are dpo, org/base, org/good."),
    ],
)
def test_an_option_that_can_not_be_used_is_an_error(results, option, error, said):
    folder, data = results.parent, results.parent / "preferences"
    with pytest.raises(error, match=re.escape(said)):
        build([str(results)], Options(trained_on=(option.format(folder=folder, data=data),)))


# Commands and formats


def test_every_table_with_its_scores_marks_them(tmp_path):
    """Two cultures in one group, so that there is a spread over cultures, too."""
    weights = write_manifest(tmp_path / "data", {"care_zh": ("zh-0",), "care_ja": ("ja-1",)}) / "models"
    weights.mkdir()
    for model in (weights, "org/base"):
        samples = {
            f"care_{language}": [care_sample(at, float(2 + at), language) for at in range(3)]
            for language in ("ja", "zh")
        }
        samples["care_ar"] = [care_sample(at, 3.0, "ar") for at in range(3)]
        write_run(tmp_path / "results" / Path(model).name, str(model), samples)
    report = build([str(tmp_path / "results")], Options(trained=("models=org/base",)))
    [key] = [key for key, each in report.entrants.items() if each.model == "models"]
    shown = {
        table.key: [cell for row in table.rows if row.entrant == key for cell in row.cells if cell and cell.value]
        for table in report.tables
        if table.key not in ("costs", "runs")
    }
    for table in ("summary", "fairness", "care_table_3", "before_after", "care_table_3_before_after"):
        assert shown[table]
    for cells in shown.values():
        assert all("trained_on_test" in cell.flags for cell in cells if cell.scale.unit != "count")


def test_compare_says_which_of_the_two_was_trained_on_the_test_and_lets_it_not_pass(results, capsys):
    command = ["compare", str(results / "2"), str(results / "1"), "--fail-on-regression"]
    assert main(command) == 3
    assert f"not compared: care_zh: {MARK}; trained on the test: B" in capsys.readouterr().out
    assert main([*command, "--compare-anyway"]) == 0
    data = results.parent / "preferences"
    assert main([*command[:2], str(results / "3"), "--trained-on", f"org/good={data}"]) == 0
    assert "trained on the test: B" in capsys.readouterr().out


@pytest.mark.parametrize("of_own_data", [False, True])
def test_items_of_own_data_are_not_those_of_the_test_that_have_their_names(tmp_path, of_own_data):
    weights = write_manifest(tmp_path / "preferences", own_data=of_own_data) / "models" / "dpo"
    weights.mkdir(parents=True)
    path = write_care(tmp_path / "results", weights, [9.0, 10.0] * 6)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["configs"]["care_zh"]["metadata"] = {"own_data": {"Chinese-test.json": "12 rows, and the release has 150"}}
    path.write_text(json.dumps(content), encoding="utf-8")
    [cell] = build([str(tmp_path / "results")], Options()).units["care_zh"].cells.values()
    assert ("trained_on_test" in cell.flags) == of_own_data

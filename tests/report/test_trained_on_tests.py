"""Models that were trained on what they are tested on: found by manifests, marked in every format, and not ranked."""

import json
import re

import pytest
from support.reports import cells_of, flags_of, report_of
from support.sample_files import care_sample, rewrite, write_run

from culture_tasks.cli.main import main
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.results.trained_on import FILE_NAME

MARK = "the model was trained on items of this test"
MARKED = ("trained_on_test",)


def write_manifest(folder, tested=None, weights="", **changes):
    """Writes a manifest of data with three of CARE's Chinese questions, unless others are given.

    Returns the folder, or a folder of weights below it.
    """
    tested = {"care_zh": ("zh-0", "zh-1", "zh-2", "zh-99")} if tested is None else tested
    (folder / weights).mkdir(parents=True, exist_ok=True)
    manifest = {"format": 1, "tested_items": tested, "own_data": False} | changes
    (folder / FILE_NAME).write_text(json.dumps(manifest), encoding="utf-8")
    return folder / weights


def write_care(folder, model, scores, task="care_zh", arguments="", language="zh"):
    samples = {task: [care_sample(at, score, language) for at, score in enumerate(scores)]}
    config = {"model": "hf", "model_args": arguments or f"pretrained={model}"}
    return write_run(folder, str(model), samples, config=config)


@pytest.fixture
def results(tmp_path):
    """The result folder: a model that is trained on a test, and two that aren't."""
    weights = write_manifest(tmp_path / "preferences", weights="models/dpo")
    found = tmp_path / "results"
    for number, (model, scores) in enumerate(
        ((weights, (9.0, 10.0)), ("org/base", (1.0, 2.0)), ("org/good", (8.0, 9.0)))
    ):
        write_care(found / f"{number + 1}", model, scores * 6)
    return found


def test_a_model_trained_on_the_test_is_marked_and_neither_ranked_nor_bold(results):
    report = report_of(results)
    cells = cells_of(report, "care_zh")
    assert cells["dpo"].value == 9.5
    assert {name: (cell.flags, str(cell.rank), cell.best) for name, cell in cells.items()} == {
        "dpo": (MARKED, "None", False),
        "org/base": ((), "2", False),
        "org/good": ((), "1", True),
    }
    assert list(report.units["care_zh"].standing.left_out.values()) == [MARK]
    assert len(report.comparisons) == 1
    assert all("trained_on_test" in each.flags for each in report.groups if each.runs == ("r1",))
    assert any(
        "dpo was trained on items of CARE, Chinese culture (3 of 12), as the manifest" in note for note in report.notes
    )


def test_beside_its_base_it_has_no_gain_unless_the_user_insists(results):
    for anyway in (False, True):
        report = report_of(results, trained=("dpo=org/base",), compare_anyway=anyway)
        [gain] = report.gains
        assert gain.difference.flags == MARKED
        assert (gain.difference.value, gain.percent.value is None) == (8.0 if anyway else None, not anyway)


def test_tasks_that_ask_the_same_items_are_marked_too(tmp_path):
    """A task of the user's own is known by its benchmark's items; Japanese questions were not among the data."""
    weights = write_manifest(tmp_path / "model")
    tasks = {"care_zh": ("zh", MARKED), "my_care": ("zh", MARKED), "care_ja": ("ja", ())}
    for task, (language, _) in tasks.items():
        write_care(tmp_path / task, weights, [1.0] * 5, task=task, language=language)
    for task, (_, flags) in tasks.items():
        assert flags_of(tmp_path, task) == {"model": flags}


def test_without_samples_the_name_of_the_task_tells(tmp_path):
    weights = write_manifest(tmp_path / "model", {"mmlu": ("1", "2"), "care_zh": ("zh-1",)})
    tasks = {"mmlu": {"acc,none": 0.5}, "arc": {"acc,none": 0.5}, "care_zh": {"care_rating,none": 5.0}}
    write_run(tmp_path / "results", str(weights), {}, results=tasks)
    units = report_of(tmp_path).units
    marked = {task: "trained_on_test" in units[task].cells["e1"].flags for task in tasks}
    assert marked == {"mmlu": True, "arc": False, "care_zh": True}


# Where the manifest is looked for


@pytest.mark.parametrize(
    ("weights", "arguments", "flags"),
    [
        ("", "pretrained={}", MARKED),
        ("a", "pretrained={}", MARKED),
        ("models/dpo/checkpoint-100", "pretrained={}", MARKED),
        ("a/b/c/d", "pretrained={}", ()),
        ("models/lora", "pretrained=org/base,lora_local_path={}", MARKED),
        ("models/lora", "pretrained={},peft=org/x", MARKED),
        *(
            ("data", f"pretrained=m,peft={path}", ())
            for path in ("", "org/model", "/nowhere/at/all", "x" * 5000, "a\0b")
        ),
    ],
)
def test_it_lies_in_the_folder_of_a_model_or_an_adapter_or_up_to_three_above(tmp_path, weights, arguments, flags):
    folder = write_manifest(tmp_path / "data", weights=weights)
    write_care(tmp_path / "results", "m", [1.0] * 3, arguments=arguments.format(folder))
    report = report_of(tmp_path / "results")
    assert [cell.flags for cell in cells_of(report, "care_zh").values()] == [flags]
    assert report.problems == ()


def test_a_file_that_is_no_manifest_is_named_and_the_search_goes_on_above(tmp_path):
    weights = write_manifest(tmp_path / "data", weights="models")
    (weights / FILE_NAME).write_text('{"name": "an extension", "manifest_version": 3}', encoding="utf-8")
    for run in ("1", "2"):
        write_care(tmp_path / "results" / run, weights, [1.0] * 3, arguments=f"pretrained={weights},dtype={run}")
    report = report_of(tmp_path / "results")
    assert {cell.flags for cell in report.units["care_zh"].cells.values()} == {MARKED}
    [problem] = report.problems
    assert (problem.path, problem.kind) == (str(weights / FILE_NAME), "foreign")
    assert "not a manifest, format, Field required" in problem.detail


def test_the_user_names_the_data_of_models_by_a_pattern(tmp_path):
    data = write_manifest(tmp_path / "data")
    for model in ("org/dpo-1", "org/dpo-2", "org/base"):
        write_care(tmp_path / "results" / model, model, [1.0] * 3)
    found = flags_of(tmp_path / "results", "care_zh", trained_on=(f"org/dpo-*={data}",))
    assert found == {"org/base": (), "org/dpo-1": MARKED, "org/dpo-2": MARKED}


@pytest.mark.parametrize(
    ("option", "error", "said"),
    [
        ("dpo", SettingsError, "--trained-on 'dpo': expected, say"),
        ("dpo={folder}/absent", DataError, "absent: can't be read (No such file or directory)"),
        ("dpo={folder}", DataError, "manifest.json: can't be read (No such file or directory)"),
        ("dop={data}", SettingsError, "dop fits no model. Did you mean 'dpo'? There are dpo, org/base, org/good."),
    ],
)
def test_an_option_that_can_not_be_used_is_an_error(results, option, error, said):
    folder, data = results.parent, results.parent / "preferences"
    with pytest.raises(error, match=re.escape(said)):
        report_of(results, trained_on=(option.format(folder=folder, data=data),))


# Commands and formats


def test_compare_says_which_of_the_two_was_trained_on_the_test_and_lets_it_not_pass(results, capsys):
    command = ["compare", str(results / "2"), str(results / "1"), "--fail-on-regression"]
    assert main(command) == 3
    assert f"not compared: CARE, Chinese culture: {MARK}; trained on the test: B" in capsys.readouterr().out
    assert main([*command, "--compare-anyway"]) == 0
    data = results.parent / "preferences"
    assert main([*command[:2], str(results / "3"), "--trained-on", f"org/good={data}"]) == 0
    assert "trained on the test: B" in capsys.readouterr().out


@pytest.mark.parametrize("of_own_data", [False, True])
def test_items_of_own_data_are_not_those_of_the_test_that_have_their_names(tmp_path, of_own_data):
    weights = write_manifest(tmp_path / "preferences", weights="models/dpo", own_data=of_own_data)
    own = {"own_data": {"Chinese-test.json": "12 rows, and the release has 150"}}
    rewrite(write_care(tmp_path / "results", weights, [9.0, 10.0] * 6), configs={"care_zh": {"metadata": own}})
    [flags] = flags_of(tmp_path / "results", "care_zh").values()
    assert ("trained_on_test" in flags) == of_own_data

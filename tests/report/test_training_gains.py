"""Trained models beside their bases: who is set beside whom, and what training changed, by hand-worked values."""

import re

import pytest
from support.reports import report_of, row_of, tables_of
from support.sample_files import JUDGE, care_samples, vqa_samples, write_run

from culture_tasks.errors import SettingsError

BASE = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
TRAINED = [4.0, 5.0, 5.0, 7.0, 8.0, 8.0]


def run(folder, model, scores, task="care_zh", arguments="", stamp="20260101_000000", **changes):
    """A run of CARE in a folder that the model's name and the stamp tell apart."""
    config = {"model": "hf", "model_args": f"pretrained={arguments or model}"}
    where = folder / f"{model.replace('/', '_')} {task} {stamp}"
    return write_run(where, model, {task: care_samples(scores, **changes)}, stamp, config=config)


def adapter(folder, model, scores, base="org/base", **changes):
    """A run of lm-eval's hf with an adapter: the harness names it by the adapter."""
    return run(folder, model, scores, arguments=f"{base},peft={model}", **changes)


def gains_of(folder, **options):
    """Gains with the scores before and after, by the labels of the trained row and its base, and the unit."""
    report = report_of(folder, **options)
    return {
        (report.entrants[gain.trained].label, report.entrants[gain.base].label, gain.unit): (
            gain,
            *(report.units[gain.unit].cells[row].value for row in (gain.base, gain.trained)),
        )
        for gain in report.gains
    }


def gain_of(folder, **options):
    """The only gain, with the scores before and after."""
    [gain] = gains_of(folder, **options).values()
    return gain


@pytest.fixture
def two(tmp_path):
    run(tmp_path, "org/base", BASE)
    adapter(tmp_path, "/models/dpo", TRAINED)
    return tmp_path


def models(folder, *tasks):
    """Writes a base and a model trained from it, given the samples of each by task."""
    for (model, arguments), samples in zip((("org/base", ""), ("/m/dpo", ",peft=/m/dpo")), tasks, strict=True):
        config = {"model": "hf", "model_args": f"pretrained=org/base{arguments}"}
        write_run(folder / model.replace("/", "_"), model, samples, config=config)
    return folder


# What is set beside what


@pytest.mark.parametrize(
    ("model", "arguments", "trained", "expected"),
    [
        ("/models/dpo", "org/base,peft=/models/dpo", (), {("dpo", "org/base")}),
        # vLLM's argument leaves the model's name what it was
        ("org/base", "org/base,enable_lora=True,lora_local_path=/models/dpo", (), {("org/base + dpo", "org/base")}),
        ("/m/kto", "/models/sft,peft=/m/kto", (), {("kto", "sft")}),
        ("/models/dpo", "org/elsewhere,peft=/models/dpo", (), set()),
        ("/models/merged", "", ("merged=org/base",), {("merged", "org/base")}),
        ("/models/dpo", "org/base,peft=/models/dpo", ("dpo=sft",) * 2, {("dpo", "sft")}),
    ],
    ids=["adapter", "vllm", "of a trained model", "no base", "named", "named and twice"],
)
def test_who_stands_beside_whom(tmp_path, model, arguments, trained, expected):
    run(tmp_path, "org/base", BASE)
    run(tmp_path, "/models/sft", BASE)
    run(tmp_path / "trained", model, TRAINED, arguments=arguments)
    assert [key[:2] for key in gains_of(tmp_path, trained=trained)] == list(expected)
    assert ("before_after" in tables_of(report_of(tmp_path, trained=trained))) == bool(expected)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("dpo", "--trained 'dpo': expected, say"),
        ("dop=org/base", "dop fits no model. Did you mean 'dpo'? There are dpo, org/base."),
        ("dpo=org/bsae", "org/bsae fits no model. Did you mean 'org/base'?"),
        ("dpo=d*", "d* fits no model but the trained ones. Name their base."),
    ],
)
def test_a_pair_that_fits_nothing_is_an_error(two, pair, said):
    with pytest.raises(SettingsError, match=re.escape(said)):
        report_of(two, trained=(pair,))


# What training changed


def test_gain_and_paired_difference_by_hand(two):
    gain, before, after = gain_of(two)
    assert (before, after) == (4.5, pytest.approx(37 / 6))
    # (37 / 6 - 4.5) / 4.5 = 1.6667 / 4.5
    assert gain.percent.value == pytest.approx(37.037, abs=1e-3)
    # differences 2, 2, 1, 2, 2, 1 of six items: signs can fall in 2 ** 6 ways, two of which are as far from 0
    assert gain.difference.value == pytest.approx(10 / 6)
    assert gain.test.p == pytest.approx(2 / 64)
    assert gain.difference.low > 0
    assert gain.difference.best
    assert (gain.test.verdict, gain.test.items_needed) == ("dpo is better", None)
    table = tables_of(report_of(two))["before_after"]
    assert [*table.rows.values()] == [
        ("org/base", "Base"),
        *(("dpo", text) for text in ("Trained", "Gain", "Difference")),
    ]
    assert row_of(table, ("dpo", "Difference"))["care_zh"].value == gain.difference.value


def test_other_tasks_stand_beside_ours_and_show_what_became_worse(two):
    for model, arguments, share in (("org/base", "", 0.75), ("/models/dpo", ",peft=/models/dpo", 0.25)):
        config = {"model": "hf", "model_args": f"pretrained=org/base{arguments}"}
        where, results = two / f"mmlu {len(arguments)}", {"mmlu": {"acc,none": share}}
        write_run(where, model, {}, "2026-01-01T00-00-00.5", results=results, config=config, date=1.0)
    report = report_of(two)
    columns = [(column.over, column.key) for column in tables_of(report)["before_after"].columns]
    assert columns == [("Benchmarks", "care_zh"), ("Other tasks", "mmlu")]
    mmlu, *_ = gains_of(two)["dpo", "org/base", "mmlu"]
    assert (mmlu.percent.value, mmlu.difference.value) == (pytest.approx(-200 / 3), -0.5)
    assert (mmlu.test, mmlu.difference.note) == (None, "there are no samples to test")


def test_a_base_of_zero_has_no_gain_in_percent(tmp_path):
    before, after = ({"culturalvqa": vqa_samples([first, 0.0, 0.0, 0.0])} for first in (0.0, 1.0))
    gain, *_ = gain_of(models(tmp_path, before, after))
    assert (gain.percent.value, gain.percent.note) == (None, "the base's number isn't above 0")
    assert gain.difference.value == 0.25


def test_each_way_of_running_stands_beside_its_like(two):
    other = JUDGE | {"model": "judge-2"}
    run(two / "again", "org/base", [1.0] * 6, judge=other, stamp="20260102_000000")
    adapter(two / "again", "/models/dpo", [3.0] * 6, judge=other, stamp="20260102_000000")
    run(two / "small", "org/base", [1.0] * 6, arguments="org/base,load_in_4bit=True", stamp="20250101_000000")
    assert {
        rows[:2]: (before, gain.difference.value, gain.difference.flags)
        for rows, (gain, before, _) in gains_of(two).items()
    } == {
        ("dpo", "org/base"): (1.0, 2.0, ()),
        ("dpo [judge: judge-1]", "org/base [judge: judge-1]"): (4.5, pytest.approx(10 / 6), ()),
    }

"""Trained models beside their bases: who is set beside whom, and what training changed, by hand-worked values."""

import csv
import math
import re
import statistics

import pytest
from support.golden import golden
from support.reports import report_of, tables_of
from support.sample_files import (
    JUDGE,
    care_sample,
    care_samples,
    vqa_samples,
    write_run,
)

from culture_tasks.cli.main import main
from culture_tasks.errors import SettingsError

BASE = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
TRAINED = [4.0, 5.0, 5.0, 7.0, 8.0, 8.0]
AGAIN = [6.0, 5.0, 5.0, 7.0, 8.0, 8.0]


def run(folder, model, scores, task="care_zh", arguments="", stamp="20260101_000000", **changes):
    """A run of CARE in a folder that the model's name and the stamp tell apart."""
    config = {"model": "hf", "model_args": f"pretrained={arguments or model}"}
    where = folder / f"{model.replace('/', '_')} {task} {stamp}"
    return write_run(where, model, {task: care_samples(scores, **changes)}, stamp, config=config)


def adapter(folder, model, scores, base="org/base", **changes):
    """A run of lm-eval's hf with an adapter: the harness names it by the adapter."""
    return run(folder, model, scores, arguments=f"{base},peft={model}", **changes)


def gains_of(folder, table="before_after", **options):
    """Gains by the trained model and its base, then by the unit and the last group where there are several."""
    return {
        (gain.trained.label, gain.base.label, gain.unit, gain.where[-1][1] if gain.where else ""): gain
        for gain in report_of(folder, **options).gains
        if gain.table == table
    }


def gain_of(folder, **options):
    """The only gain."""
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
        ("dpo", "--trained 'dpo' isn't TRAINED=BASE"),
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
    gain = gain_of(two)
    assert (gain.base.cell.value, gain.trained.cell.value) == (4.5, pytest.approx(37 / 6))
    # (37 / 6 - 4.5) / 4.5 = 1.6667 / 4.5
    assert gain.percent.value == pytest.approx(37.037, abs=1e-3)
    # differences 2, 2, 1, 2, 2, 1 of six items: signs can fall in 2 ** 6 ways, two of which are as far from 0
    assert gain.difference.value == pytest.approx(10 / 6)
    assert gain.test.p == pytest.approx(2 / 64)
    assert gain.difference.low > 0
    assert gain.difference.best
    assert (gain.test.verdict, gain.test.items_needed) == ("dpo is better", None)
    assert (gain.base.deviation, gain.trained.deviation) == (None, None)


def test_other_tasks_stand_beside_ours_and_show_what_became_worse(two):
    right, wrong = [1.0] * 30 + [0.0] * 10, [1.0] * 10 + [0.0] * 30
    for model, arguments, scores in (("org/base", "", right), ("/models/dpo", ",peft=/models/dpo", wrong)):
        lines = [
            {"doc_id": n, "target_hash": f"t{n}", "filter": "none", "acc": score} for n, score in enumerate(scores)
        ]
        write_run(
            two / f"mmlu {len(arguments)}",
            model,
            {"mmlu": lines},
            "2026-01-01T00-00-00.5",
            results={"mmlu": {"acc,none": sum(scores) / 40}},
            config={"model": "hf", "model_args": f"pretrained=org/base{arguments}"},
            date=1.0,
        )
    report = report_of(two)
    columns = [(column.over, column.key) for column in tables_of(report)["before_after"].columns]
    assert columns == [("Benchmarks", "care_zh"), ("Other tasks", "mmlu")]
    mmlu = gains_of(two)["dpo", "org/base", "mmlu", ""]
    assert (mmlu.percent.value, mmlu.difference.value) == (pytest.approx(-200 / 3), -0.5)
    assert (mmlu.test, mmlu.difference.note) == (None, "there are no samples to test")


def test_a_base_of_zero_has_no_gain_in_percent(tmp_path):
    before, after = ({"culturalvqa": vqa_samples([first, 0.0, 0.0, 0.0])} for first in (0.0, 1.0))
    report = report_of(models(tmp_path, before, after))
    [gain] = [gain for gain in report.gains if gain.table == "before_after"]
    assert (gain.percent.value, gain.percent.note) == (None, "the base's number isn't above 0")
    assert gain.difference.value == 0.25
    texts = [finding.text for finding in report.findings]
    assert "dpo, trained from org/base, is not significantly different from it on 1 benchmark." in texts


# What can't be compared


def test_only_items_that_both_answered_make_the_difference(tmp_path):
    after = care_samples(TRAINED)
    after[0]["record"] |= {"outcomes": {"unparsable": 1}}
    del after[0]["record"]["score"]
    gain = gain_of(models(tmp_path / "one", {"care_zh": care_samples(BASE)}, {"care_zh": after}), min_coverage=0.5)
    assert gain.trained.cell.value == pytest.approx(33 / 5)
    assert (gain.difference.n, gain.difference.value) == (5, pytest.approx(8 / 5))
    others = [care_sample(at + 100, 5.0, "zh", "norms") for at in range(6)]
    gain = gain_of(models(tmp_path / "none", {"care_zh": care_samples(BASE)}, {"care_zh": others}))
    assert (gain.difference.value, gain.difference.note) == (None, "no items in common")


def test_each_way_of_running_stands_beside_its_like(two):
    other = JUDGE | {"model": "judge-2"}
    run(two / "again", "org/base", [1.0] * 6, judge=other, stamp="20260102_000000")
    adapter(two / "again", "/models/dpo", [3.0] * 6, judge=other, stamp="20260102_000000")
    assert {
        (trained, base): (gain.base.cell.value, gain.difference.value, gain.difference.flags)
        for (trained, base, *_), gain in gains_of(two).items()
    } == {
        ("dpo", "org/base"): (1.0, 2.0, ()),
        ("dpo [judge: judge-1]", "org/base [judge: judge-1]"): (4.5, pytest.approx(10 / 6), ()),
    }


# Several runs


@pytest.mark.parametrize("sizes", [(6, 6), (6, 12), (12, 6)])
def test_runs_of_subsets_keep_the_weights_of_their_tasks(sizes, tmp_path):
    for model, size in zip(("base", "one", "two"), (12, *sizes), strict=True):
        samples = {
            "care_ar": [care_sample(number, 2.0, "ar") for number in range(5)],
            "care_ja": [care_sample(0, 2.0, "ja")],
            "care_zh": [care_sample(number, 8.0) for number in range(size)],
        }
        subset = {"documents": size, "of_documents": 12, "items": 12, "spread": 1 / size - 1 / 12, "seed": 0}
        metadata = {"metadata": {"subset": subset}} if size < 12 else {}
        counts = {task: {"original": len(lines), "effective": len(lines)} for task, lines in samples.items()}
        configs = {task: metadata if task == "care_zh" else {} for task in samples}
        write_run(tmp_path / model, model, samples, **{"configs": configs, "n-samples": counts})
    gain = gains_of(tmp_path, trained=("???=base",))["???", "base", "care", ""]
    # 6 documents at 2 and 12 at 8, of which some were drawn
    assert gain.trained.cell.value == pytest.approx((6 * 2 + 12 * 8) / 18)
    assert gain.difference.value == pytest.approx(0.0)


def test_several_runs_give_mean_and_deviation_and_count_each_item_once(tmp_path):
    run(tmp_path, "org/base", BASE)
    run(tmp_path, "dpo-1", TRAINED)
    run(tmp_path, "dpo-2", AGAIN)
    gain = gain_of(tmp_path, trained=("dpo-*=org/base",))
    assert gain.trained.label == "dpo-*"
    # 37 / 6 and 39 / 6: mean 38 / 6; deviations of 1 / 6 each, so the sample deviation is sqrt(2 / 36)
    assert gain.trained.cell.value == pytest.approx(38 / 6)
    assert gain.trained.deviation.value == pytest.approx(math.sqrt(2 / 36))
    assert gain.trained.deviation.n == 2
    assert (gain.difference.n, gain.difference.value) == (6, pytest.approx(38 / 6 - 4.5))
    # six differences: 3, 2, 1, 2, 2, 1
    assert gain.test.p == pytest.approx(2 / 64)
    found = tables_of(report_of(tmp_path, trained=("dpo-*=org/base",)))["before_after"]
    assert any("dpo-*: the mean of 2 runs (dpo-1, dpo-2), item by item" in note for note in found.notes)


def repeated(*items):
    """Samples of CARE that were asked several times: the scores of each repeat, None for one without."""
    samples = []
    for at, scores in enumerate(items):
        known = [score for score in scores if score is not None]
        outcomes = {"scored": len(known)} | ({"failed": len(scores) - len(known)} if len(known) < len(scores) else {})
        own = {"run_scores": list(scores), "outcomes": outcomes}
        samples.append(care_sample(at, sum(known) / len(known), "zh", "norms" if at < 2 else "literacy", **own))
    return samples


def test_repeats_of_one_run_give_a_deviation_as_in_the_papers_table_15(tmp_path):
    before = repeated((1, 2, 9), (3, 4, 5), (2, 2, 2))
    after = repeated((4, None, 4), (6, 6, 6), (8, 8, 8))
    models(tmp_path, {"care_zh": before}, {"care_zh": after})
    gain = gain_of(tmp_path, min_coverage=0.5)
    # means of the repeats: 6 / 3, 8 / 3, 16 / 3; their mean is 10 / 3, deviations -4/3, -2/3 and 2
    assert gain.base.deviation.value == pytest.approx(math.sqrt((16 / 9 + 4 / 9 + 4) / 2))
    assert (gain.base.cell.value, gain.base.deviation.n) == (pytest.approx(10 / 3), 3)
    # of the other model 18 / 3, 14 / 2 and 18 / 3
    assert gain.trained.deviation.value == pytest.approx(statistics.stdev([6.0, 7.0, 6.0]))


def test_other_arguments_of_a_model_are_no_further_runs_of_it(tmp_path):
    run(tmp_path, "org/base", BASE)
    run(tmp_path / "small", "org/base", [1.0] * 6, arguments="org/base,load_in_4bit=True")
    adapter(tmp_path, "/models/dpo", TRAINED)
    gain = gain_of(tmp_path, trained=("dpo=org/base",))
    assert (len(gain.base.entrants), gain.base.cell.value) == (1, 4.5)


# In every format

HOSTILE = "=x|y <b>*z*</b> {50%} \\input{/etc/passwd} [a](b) 模型"
"""No comma and no equals sign: arguments of a model have none in their values."""


def test_golden_tables_are_as_they_were_and_names_do_not_act(tmp_path, monkeypatch):
    """Base and two runs of a training, with names that would act in a format that let them."""
    for place, (name, scores) in enumerate({"=base": BASE, "one": TRAINED, "two": AGAIN}.items(), start=1):
        run(tmp_path / str(place), f"{name} {HOSTILE}", scores)
    monkeypatch.chdir(tmp_path)
    options = ["--published", "--trained", "???[ ]*==base *", "--formats", "markdown,latex,csv"]
    assert main(["report", "1", "2", "3", "-o", "out", *options]) == 0
    written = tmp_path / "out"
    for name in ("before_after",):
        text = (written / f"csv/{name}.csv").read_text(encoding="utf-8-sig")
        golden(f"training/csv/{name}.csv", text)
        cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
        assert any("=base =x|y" in cell for cell in cells)
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
    text = (written / "latex/before_after.tex").read_text(encoding="utf-8")
    assert "\\input" not in text
    text = (written / "report.md").read_text(encoding="utf-8")
    table = text[text.index("<details><summary>Before and after training</summary>") :]
    golden("training/before_after.md", table[: table.index("</details>")])
    assert "<b>" not in text
    assert not re.search(r"(?<!\\)\]\((?!figures/)", text)

"""The papers' tables: their shapes, their numbers against the papers' texts, and the averages that don't follow."""

from itertools import pairwise

import pytest
from pydantic import ValidationError
from support.papers import table_rows

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES
from culture_tasks.benchmarks.crosscult.vocabulary import SEQUENTIAL_ROLES, SINGLE_ROLES
from culture_tasks.errors import DataError
from culture_tasks.published import PublishedTable, all_tables, flags, load, names, number, recomputed

# rows, columns, cells without a number
SHAPES = {
    "care_table_3": (8, 18, 0),
    "care_table_4": (14, 12, 8),
    "care_table_5": (18, 6, 0),
    "care_table_6": (8, 18, 0),
    "care_table_13": (5, 12, 5),
    "care_table_14": (8, 12, 0),
    "care_table_15": (1, 6, 0),
    "care_table_16": (4, 8, 4),
    "care_table_17": (4, 9, 0),
    "cedar_table_1": (17, 18, 34),
    "cedar_table_5": (4, 7, 0),
    "cedar_table_7": (15, 14, 0),
    "cedar_table_8": (17, 14, 0),
    "crosscult_table_2": (14, 10, 0),
    "crosscult_table_3": (14, 8, 0),
    "crosscult_table_4": (12, 6, 8),
}

SPOTS = [
    ("care_table_3", "7.90", {"model": "Gemma2-9B", "method": "Aligned", "language": "zh", "category": "norms"}),
    ("care_table_3", "2.13", {"model": "Qwen2.5-7B", "method": "Vanilla", "language": "ja", "category": "entities"}),
    ("care_table_3", "2.38", {"model": "Mistral-7B", "method": "Aligned", "language": "ar", "category": "average"}),
    ("care_table_4", "4.946", {"method": "SimPO (w/ CARE)", "model": "Llama3.1-8B", "language": "zh"}),
    ("care_table_4", "4.073", {"prompting": "role play", "method": "Vanilla", "model": "Gemma2-9B", "language": "ar"}),
    ("care_table_4", None, {"method": "DPO (w/ UltraFeedback)", "model": "Mistral-7B", "language": "ja"}),
    ("care_table_5", "6.01", {"model": "Swallow-8B (Llama3.1-8B)", "method": "CARE Aligned", "category": "average"}),
    ("care_table_5", "4.33", {"model": "Swallow-8×7B (Mistral-8×7B)", "category": "entities"}),
    ("care_table_6", "96%", {"model": "Human awareness", "language": "zh", "category": "norms"}),
    ("care_table_6", "8.30", {"model": "GPT-4o", "language": "ja", "category": "literacy"}),
    ("care_table_6", "7.33", {"model": "Llama3.3-70B", "language": "zh", "category": "opinion"}),
    ("care_table_13", "8.58", {"model": "Qwen2.5-72B", "language": "ar", "scope": "worldwide"}),
    ("care_table_13", None, {"model": "GPT-4o", "language": "ja", "scope": "worldwide"}),
    ("care_table_14", "- 0.81", {"model": "Qwen2.5-7B", "method": "KTO", "language": "ar", "category": "entities"}),
    ("care_table_15", "6.043 ± 0.513", {"method": "Aligned", "language": "ar"}),
    ("care_table_16", "41.4", {"method": "DPO (w/ CARE)", "model": "Llama3.1-8B", "language": "zh"}),
    ("care_table_17", "40.8", {"benchmark": "TruthfulQA", "method": "DPO (w. CARE)", "language": "zh"}),
    ("cedar_table_1", "50.43", {"model": "GPT-4o", "modality": "text", "language": "sw"}),
    ("cedar_table_1", "165.4", {"model": "MiniCPM-V-4.5", "modality": "text", "language": "variance"}),
    ("cedar_table_1", None, {"model": "Kimi-K2-Instruct", "modality": "multimodal", "language": "average"}),
    ("cedar_table_5", "0.493", {"model": "Claude4.5-Sonnet", "language": "hi"}),
    ("cedar_table_7", "5.16", {"model": "Aya-Vision-8B", "emotion": "surprise"}),
    ("cedar_table_8", "6.21", {"model": "MiniCPM-V-4.5", "emotion": "amusement"}),
    (
        "crosscult_table_2",
        "89.66",
        {"model": "InternVL3.5-8B", "method": "MCKI", "role": "cross_scenario_locality", "score": "rouge_l"},
    ),
    (
        "crosscult_table_3",
        "7.07",
        {"model": "Qwen3.5-9B", "method": "MSCKE", "role": "overall", "score": "judge_score"},
    ),
    ("crosscult_table_4", "73.6", {"model": "InternVL3.5-8B", "method": "FineTune", "quantity": "eval_memory"}),
    ("crosscult_table_4", None, {"model": "Qwen3.5-9B", "method": "IKE", "quantity": "train_time"}),
]

# What the paper prints, and the mean of its cells
CARE_FLAGS = {
    "care_table_3": [
        ("Gemma2-9B", "Vanilla", "zh", "6.49", 6.458),
        ("Gemma2-9B", "Vanilla", "ar", "5.33", 5.300),
        ("Gemma2-9B", "Aligned", "zh", "6.89", 6.872),
        ("Llama3.1-8B", "Vanilla", "ar", "3.30", 3.142),
        ("Qwen2.5-7B", "Vanilla", "ar", "4.61", 4.730),
        ("Qwen2.5-7B", "Aligned", "ar", "5.06", 5.036),
    ],
    "care_table_6": [
        ("Human awareness", "ja", "63%", 61.4),
        ("Search Engine", "ar", "4.30", 4.288),
        ("Gemma2-27B", "zh", "6.97", 6.958),
        ("Gemma2-27B", "ar", "6.44", 6.358),
        ("Llama3.3-70B", "ar", "5.93", 5.914),
        ("Qwen2.5-72B", "ar", "7.04", 7.016),
        ("GPT-4o", "ar", "8.05", 8.034),
    ],
    "care_table_14": [
        ("Llama3.1-8B", "Vanilla", "ar", "3.30", 3.142),
        ("Llama3.1-8B", "DPO", "ar", "+ 0.56", 0.630),
        ("Llama3.1-8B", "KTO", "ar", "+ 0.61", 0.766),
        ("Llama3.1-8B", "SimPO", "zh", "+ 1.16", 1.172),
        ("Llama3.1-8B", "SimPO", "ar", "+ 0.61", 0.748),
        ("Qwen2.5-7B", "Vanilla", "ar", "4.61", 4.730),
        ("Qwen2.5-7B", "DPO", "ar", "+ 0.45", 0.306),
        ("Qwen2.5-7B", "KTO", "ar", "+ 0.21", 0.102),
        ("Qwen2.5-7B", "SimPO", "ar", "+ 0.16", 0.034),
    ],
}


# The 9 averages and 2 variances, of 32 each, that follow from their cells
CEDAR_FOLLOW = [
    ("MiniCPM-V-4.5", "text", "average", "27.76"),
    ("Aya-101", "text", "variance", "15.3"),
    ("Qwen2-VL-72B", "multimodal", "average", "36.10"),
    ("Qwen2-VL-72B", "text", "average", "42.59"),
    ("Qwen3-VL-235B", "multimodal", "average", "40.01"),
    ("Qwen3-VL-235B", "text", "average", "46.21"),
    ("Kimi-K2-Instruct", "text", "average", "45.49"),
    ("Kimi-K2-Instruct", "text", "variance", "36.9"),
    ("Claude4.5-Sonnet", "multimodal", "average", "39.66"),
    ("GPT-4o", "text", "average", "46.57"),
    ("Qwen3-Omni-Flash", "text", "average", "36.70"),
]


def tables():
    return pytest.mark.parametrize("name", SHAPES)


def test_every_table_is_there_in_order():
    assert names() == tuple(SHAPES)
    assert [table.name for table in all_tables()] == list(SHAPES)


@tables()
def test_shape(name):
    table = load(name)
    missing = sum(cell.printed is None for cell in table.cells())
    assert (len(table.rows), len(table.columns), missing) == SHAPES[name]
    assert (table.missing is not None) == (missing > 0)
    assert table.name == f"{name.partition('_')[0]}_table_{table.table}"


@pytest.mark.parametrize(("name", "printed", "keys"), SPOTS)
def test_spot(name, printed, keys):
    assert load(name).printed(**keys) == printed


def is_named(label, keys):
    """Whether a line of the paper is named as a row is; icons before names leave letters, as in ``LLM3.3-70B``."""
    names = [name.partition(" (")[0].casefold().removeprefix("llama") for name in keys.values()]
    return label == "Score" or any(name in label.casefold() for name in names)


@tables()
def test_rows_are_the_papers_in_the_same_order(name):
    table = load(name)
    mark, width = table.missing.mark if table.missing else None, len(table.columns)
    for row, printed in zip(table.rows, table_rows(name.partition("_")[0], table.table), strict=True):
        assert [mark if cell is None else cell for cell in row.cells] == printed[-width:]
        assert is_named(" ".join(printed[:-width]), row.keys), row.keys


def test_rows_below_a_model_belong_to_it():
    order = [(row.keys["model"], row.keys["method"]) for row in load("care_table_3").rows]
    models = ("Gemma2-9B", "Llama3.1-8B", "Qwen2.5-7B", "Mistral-7B")
    assert order == [(model, method) for model in models for method in ("Vanilla", "Aligned")]
    assert [row.keys["method"] for row in load("care_table_14").rows] == ["Vanilla", "DPO", "KTO", "SimPO"] * 2
    for name in ("crosscult_table_2", "crosscult_table_3"):
        backbones = [row.keys["model"] for row in load(name).rows]
        assert backbones == ["InternVL3.5-8B"] * 7 + ["Qwen3.5-9B"] * 7


def test_tables_agree_where_they_print_the_same():
    japanese = {"language": "ja"}
    for model in ("Gemma2-9B", "Llama3.1-8B", "Mistral-7B"):
        for ours, theirs in (("Vanilla", "Vanilla"), ("Aligned", "CARE Aligned")):
            for category in (*CATEGORIES, "average"):
                keys = {"model": model, "category": category} | japanese
                printed = load("care_table_3").printed(method=ours, **keys)
                assert printed == load("care_table_5").printed(method=theirs, **keys)
    for model in ("Gemma2-27B", "Llama3.3-70B"):
        keys = {"model": model, "category": "literacy"} | japanese
        assert load("care_table_6").printed(**keys) == load("care_table_5").printed(**keys)


def test_averages_of_table_3_are_those_of_table_4_with_a_digit_less():
    contradictions = []
    for row in load("care_table_3").rows:
        method = {"Vanilla": "Vanilla", "Aligned": "DPO (w/ CARE)"}[row.keys["method"]]
        for language in ("zh", "ar", "ja"):
            short = load("care_table_3").printed(**row.keys, language=language, category="average")
            long = load("care_table_4").printed(
                model=row.keys["model"], method=method, prompting="zero-shot", language=language
            )
            if abs(float(short) - float(long)) > 0.0091:
                contradictions.append((*row.keys.values(), language, short, long))
    assert contradictions == [("Qwen2.5-7B", "Aligned", "ja", "3.97", "3.980")]


def test_improvements_are_differences_of_tables():
    below = {(row.keys["model"], row.keys["method"]): row for row in load("care_table_14").rows}
    contradictions = []
    above = {(row.keys["model"], row.keys["method"]): row for row in load("care_table_3").rows}
    for model in ("Llama3.1-8B", "Qwen2.5-7B"):
        vanilla, aligned = above[model, "Vanilla"].cells, above[model, "Aligned"].cells
        assert below[model, "Vanilla"].cells == vanilla[:12]
        for place, improvement in enumerate(below[model, "DPO"].cells):
            if abs(number(improvement).value - float(aligned[place]) + float(vanilla[place])) > 0.0101:
                contradictions.append((model, place, improvement, vanilla[place], aligned[place]))
    # Arabic opinion: 4.43 - 3.62 = 0.81
    assert contradictions == [("Llama3.1-8B", 7, "+ 0.35", "3.62", "4.43")]


@tables()
def test_keys_are_the_projects_own_names(name):
    known = {
        "language": {*LANGUAGES, "average", "variance"},
        "category": {*CATEGORIES, "average"},
        "emotion": set(EMOTIONS),
        "role": {*SINGLE_ROLES, *SEQUENTIAL_ROLES, "overall"},
        "modality": {"text", "multimodal"},
        "setting": {"single", "sequential"},
        "score": {"rouge_l", "judge_score"},
    }
    for cell in load(name).cells():
        for dimension, allowed in known.items():
            assert cell.keys.get(dimension) in {*allowed, None}


@pytest.mark.parametrize("name", [name for name in SHAPES if name.startswith("care")])
def test_averages_of_care_that_do_not_follow(name):
    found = [
        (*(value for key, value in flag.keys.items() if key != "category"), flag.printed, flag.options[0].value)
        for flag in flags(load(name))
    ]
    expected = CARE_FLAGS.get(name, [])
    assert [flag[:-1] for flag in found] == [flag[:-1] for flag in expected]
    assert [flag[-1] for flag in found] == pytest.approx([flag[-1] for flag in expected])


def test_aggregates_of_cedar_that_follow():
    follow = [aggregate for aggregate in recomputed(load("cedar_table_1")) if aggregate.agrees]
    assert [(a.keys["model"], a.keys["modality"], a.keys["language"], a.printed) for a in follow] == CEDAR_FOLLOW
    assert len(recomputed(load("cedar_table_1"))) == 64


@pytest.mark.parametrize(("name", "aggregates"), [("crosscult_table_2", 28), ("crosscult_table_3", 28)])
def test_every_overall_of_crosscult_follows(name, aggregates):
    assert len(recomputed(load(name))) == aggregates
    assert not flags(load(name))


def test_a_flag_has_both_numbers_and_the_rounding():
    [flag] = [
        flag for flag in flags(load("care_table_6")) if flag.keys["model"] == "Gemma2-27B" and flag.printed == "6.97"
    ]
    # (5.64 + 8.33 + 8.13 + 6.96 + 5.73) / 5 = 34.79 / 5 = 6.958; each cell within 0.005, so is their mean
    assert flag.options[0] == pytest.approx(("mean", 6.958, 6.953, 6.963))
    assert flag.text == "Gemma2-27B, zh, average: printed 6.97, recomputed 6.958 (mean; 6.953 to 6.963)"


def test_variance_has_both_divisors_and_bounds_that_hold():
    [sample, population] = recomputed(load("cedar_table_1"))[1].options
    # Aya-Vision-8B: 31.20 42.37 30.70 33.57 30.29 29.03: squared distances from 32.86 add up to 119.6392
    assert (sample.value, population.value) == pytest.approx((119.6392 / 5, 119.6392 / 6))
    cells = [31.20, 42.37, 30.70, 33.57, 30.29, 29.03]
    for shift in ([0.005, -0.005] * 3, [-0.005, 0.005] * 3, [0.005] + [-0.005] * 5):
        moved = [cell + by for cell, by in zip(cells, shift, strict=True)]
        mean = sum(moved) / 6
        assert sample.low <= sum((cell - mean) ** 2 for cell in moved) / 5 <= sample.high


@pytest.mark.parametrize(
    ("printed", "read"),
    [
        ("4.89", (4.89, 2, None)),
        ("50%", (50.0, 0, None)),
        ("+ 0.72", (0.72, 2, None)),
        ("- 0.07", (-0.07, 2, None)),
        ("6.440 ± 0.430", (6.44, 3, 0.43)),
        ("13954.3", (13954.3, 1, None)),
    ],
)
def test_printed_numbers_are_read(printed, read):
    assert number(printed) == read
    assert number(printed).half_unit == pytest.approx(0.5 / 10 ** read[1])


@pytest.mark.parametrize("printed", ["", "-", "4,89", "4.89*", "1e3", "0.72 +", "nan"])
def test_other_texts_are_not_numbers(printed):
    with pytest.raises(ValueError, match="not a number"):
        number(printed)


def test_source_in_one_line():
    assert load("crosscult_table_2").source == "CrossCult-KIBench (2026), Table 2; judge gpt-5.4-mini; 2026-05-08"
    assert load("cedar_table_1").source == "Dai et al. (2026), Table 1; no judge; 2026"


def test_unknown_names_are_refused():
    with pytest.raises(DataError, match="Did you mean 'care_table_3'"):
        load("care_table3")
    with pytest.raises(KeyError, match="2 cells have"):
        load("care_table_15").printed(language="zh")


BROKEN = [
    ({"extra": 1}, "Extra inputs"),
    ({"missing": None}, "no number and no reason for that"),
    ({"measures": {}}, "unknown measures"),
    ({"paper": {"citation": "x", "title": "y", "date": "May 2026"}}, "pattern"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_broken_tables_are_refused(change, message):
    good = load("crosscult_table_4").model_dump()
    with pytest.raises(ValidationError, match=message):
        PublishedTable.model_validate(good | change)


def test_broken_rows_and_columns_are_refused():
    good = load("crosscult_table_4").model_dump()
    first, second = good["rows"][:2]
    columns = good["columns"]
    for change, message in (
        ({"rows": [first | {"cells": first["cells"][:5]}]}, "5 cells for 6"),
        ({"rows": [first, second | {"keys": first["keys"]}]}, "occurs twice"),
        ({"rows": [first | {"keys": {"model": "x", "quantity": "y"}}]}, "shares a dimension"),
        ({"rows": [first | {"cells": ["- 1.0", *first["cells"][1:]]}]}, "out of range"),
        ({"rows": [first | {"cells": ["fast", *first["cells"][1:]]}]}, "'fast' is not a number"),
        ({"rows": [first | {"keys": {"colour": "red"}}]}, "Input should be"),
        ({"columns": [columns[0] | {"aggregate": "mean"}, *columns[1:]]}, "go together"),
    ):
        with pytest.raises(ValidationError, match=message):
            PublishedTable.model_validate(good | change)


def test_tables_of_a_paper_have_one_paper_and_judge():
    for one, other in pairwise(all_tables()):
        if one.name.partition("_")[0] == other.name.partition("_")[0]:
            assert one.paper == other.paper
    assert {table.judge for table in all_tables()} == {"GPT-4o", "gpt-5.4-mini", None}

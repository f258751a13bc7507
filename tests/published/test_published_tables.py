"""The papers' tables: their shapes, their numbers against the papers' texts, and the averages that don't follow."""

import math

import pytest
from support.papers import table_rows

from culture_tasks.benchmarks.care.benchmark import CATEGORIES
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES
from culture_tasks.benchmarks.crosscult.vocabulary import SEQUENTIAL_ROLES, SINGLE_ROLES
from culture_tasks.benchmarks.normad.benchmark import CONDITIONS
from culture_tasks.benchmarks.worldcuisines.benchmark import SETS, TYPES
from culture_tasks.errors import DataError
from culture_tasks.published import load, names, number

KEYS = {
    "language": {*LANGUAGES, "average", "variance"},
    "category": {*CATEGORIES, "average"},
    "emotion": set(EMOTIONS),
    "role": {*SINGLE_ROLES, *SEQUENTIAL_ROLES, "overall"},
    "modality": {"text", "multimodal"},
    "setting": {"single", "sequential"},
    "score": {"rouge_l", "judge_score"},
    "condition": set(CONDITIONS),
    "question": {*(kind.name for kind in TYPES), "average"},
    "set": set(SETS),
}
WITHOUT_TEXT = ("culturalbench_abstract", "pangea_table_2")

AGGREGATES = {"cedar_table_1": 64, "crosscult_table_2": 28, "crosscult_table_3": 28, "worldcuisines_scores": 66}


@pytest.mark.parametrize("name", names())
def test_tables_are_sound_and_their_keys_are_the_projects_own_names(name):
    table = load(name)
    cells = [
        ({**row.keys, **column.keys}, printed)
        for row in table.rows
        for column, printed in zip(table.columns, row.cells, strict=True)
    ]
    assert (table.missing is not None) == any(printed is None for _, printed in cells)
    assert table.name == name
    assert isinstance(table.table, str) or name.endswith(f"_table_{table.table}")
    assert not any(row.keys.keys() & column.keys.keys() for row in table.rows for column in table.columns)
    assert len({frozenset(keys.items()) for keys, _ in cells}) == len(cells)
    for keys, printed in cells:
        assert printed is None or number(printed)
        assert all(keys.get(dimension) in {*allowed, None} for dimension, allowed in KEYS.items())


def is_named(label, keys):
    """Whether a line of the paper is named as a row is; icons before names leave letters, as in ``LLM3.3-70B``."""
    names = [name.partition(" (")[0].casefold().removeprefix("llama") for name in keys.values()]
    return label == "Score" or any(name in label.casefold() for name in names)


@pytest.mark.parametrize("name", [name for name in names() if name not in WITHOUT_TEXT])
def test_rows_are_the_papers_in_the_same_order(name):
    table = load(name)
    mark, width = table.missing.mark if table.missing else None, len(table.columns)
    for row, printed in zip(table.rows, table_rows(*name.split("_", 1)), strict=True):
        assert [mark if cell is None else cell for cell in row.cells] == printed[-width:]
        assert is_named(" ".join(printed[:-width]), row.keys), row.keys


def ways(column, parts):
    """Yields formula, value and bounds of an aggregate of printed numbers, each of which is rounded."""
    reach = max(0.5 * 10.0**-part.digits for part in parts)
    values = [part.value for part in parts]
    mean = sum(values) / len(values)
    if column.aggregate == "mean":
        yield "mean", mean, mean - reach, mean + reach
        return
    length, shift = math.hypot(*(value - mean for value in values)), reach * math.sqrt(len(values))
    for formula, divisor in (("sample variance", len(values) - 1), ("population variance", len(values))):
        yield formula, *(max(0.0, length + by) ** 2 / divisor for by in (0.0, -shift, shift))


def aggregates(table):
    """Yields each aggregate with its keys, and what its row's cells give."""
    for row in table.rows:
        for column, printed in zip(table.columns, row.cells, strict=True):
            alike = {name: key for name, key in column.keys.items() if name != column.over}
            parts = [
                number(cell)
                for other, cell in zip(table.columns, row.cells, strict=True)
                if cell
                and not other.aggregate
                and other.keys.items() - {(column.over, other.keys.get(column.over))} == alike.items()
            ]
            if column.aggregate and printed:
                yield {**row.keys, **column.keys}, printed, list(ways(column, parts))


@pytest.mark.parametrize("name", names())
def test_contradictions_are_the_aggregates_that_no_rounding_gives(name):
    found = []
    for keys, printed, options in aggregates(load(name)):
        half = 0.5 * 10.0 ** -number(printed).digits + 1e-9
        if not any(low - half <= number(printed).value <= high + half for _, _, low, high in options):
            digits = number(printed).digits + 1
            texts = [f"{v:.{digits}f} ({f}; {low:.{digits}f} to {high:.{digits}f})" for f, v, low, high in options]
            found.append(f"{', '.join(keys.values())}: printed {printed}, recomputed {' or '.join(texts)}")
    assert list(load(name).contradictions) == found
    if name in AGGREGATES:
        assert len(list(aggregates(load(name)))) == AGGREGATES[name]


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
    for other in ("", "4,89", f"{printed}*"):
        with pytest.raises(ValueError, match="not a number"):
            number(other)


def test_a_cell_has_the_number_of_its_keys_and_unknown_names_are_refused():
    assert len(names()) == 20
    assert names()[:3] == ("care_table_3", "care_table_4", "care_table_5")  # by number: care_table_13 comes later
    assert load("crosscult_table_2").source == "CrossCult-KIBench (2026), Table 2; judge gpt-5.4-mini; 2026-05-08"
    assert load("cedar_table_1").source == "Dai et al. (2026), Table 1; no judge; 2026"
    keys = {"model": "Gemma2-9B", "method": "Aligned", "language": "zh", "category": "norms"}
    assert load("care_table_3").printed(**keys) == "7.90"
    with pytest.raises(DataError, match="Did you mean 'care_table_3'"):
        load("care_table3")
    with pytest.raises(KeyError, match=r"expected one cell with .*, found 2"):
        load("care_table_15").printed(language="zh")

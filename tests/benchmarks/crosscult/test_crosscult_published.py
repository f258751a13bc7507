import pytest
from support.papers import table_rows

from culture_tasks.benchmarks.crosscult.published import overall, results


def test_overall_is_the_mean_of_the_roles():
    # MCKI on InternVL3.5-8B, Table 2: (79.83 + 22.20 + 100.00 + 89.66) / 4 = 291.69 / 4 = 72.9225
    assert overall({"a": 79.83, "b": 22.20, "c": 100.00, "d": 89.66}) == pytest.approx(72.9225)


@pytest.mark.parametrize("result", results(), ids=lambda row: f"{row.table}-{row.base_model}-{row.method}-{row.score}")
def test_every_overall_of_tables_2_and_3_follows_from_its_columns(result):
    assert result.agrees
    assert len(result.columns) == {2: 4, 3: 3}[result.table]


def test_all_rows_of_both_tables_are_there():
    assert len(results()) == 2 * 2 * 7 * 2


def test_a_printed_overall_beyond_rounding_would_be_flagged():
    result = results()[0]
    assert not result._replace(printed_overall=result.printed_overall + 0.02).agrees


def test_the_numbers_are_the_paper_s():
    printed = [(row, 2 * columns) for table, columns in ((2, 5), (3, 4)) for row in table_rows("crosscult", table)]
    ours = results()
    pairs = zip(ours[::2], ours[1::2], strict=True)
    for (cells, width), (overlap, judged) in zip(printed, pairs, strict=True):
        row = [float(cell) for cell in cells[-width:]]
        assert row[0::2] == [*overlap.columns.values(), overlap.printed_overall]
        assert row[1::2] == [*judged.columns.values(), judged.printed_overall]

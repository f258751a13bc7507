"""How numbers are written, the same in every format."""

import pytest

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.wording import ITEMS_NEEDED, amount, counted, number


@pytest.mark.parametrize(
    ("needed", "expected"),
    [(6, "6"), (99, "99"), (127, "130"), (429_200, "430,000"), (1_000_000, "1,000,000"), (1_000_001, "> 1,000,000")],
)
def test_items_needed_are_rounded_up_to_what_can_be_known(needed, expected):
    assert number(float(needed), ITEMS_NEEDED) == expected


def test_numbers_have_separators_and_no_minus_zero():
    count = Scale("count", 0.0, None, better=None, digits=0)
    assert (number(11290.0, count), number(-1234.5, Scale("x", digits=1))) == ("11,290", "-1,234.5")
    assert number(-0.001, Scale("x", digits=1)) == "0.0"
    assert number(-0.001, Scale("x", digits=1), signed=True) == "+0.0"


def test_a_number_of_things_has_its_plural():
    assert [counted(count, "model") for count in (0, 1, 2, 1234)] == ["0 models", "1 model", "2 models", "1,234 models"]


def test_percents_have_a_sign_and_their_differences_are_points():
    scales = {unit: Scale(unit, digits=1) for unit in ("percent", "points", "points of 100", "rating")}
    assert [amount(46.0, scale) for scale in scales.values()] == ["46.0 %", "46.0 points", "46.0 of 100", "46.0"]

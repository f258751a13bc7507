"""How numbers are written, the same in every format."""

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import Number
from culture_tasks.report.wording import ITEMS_NEEDED, P_VALUE, amount, counted, flag_words, interval, number, p_value


def test_items_needed_are_rounded_up_to_what_can_be_known():
    rounded = {6: "6", 99: "99", 127: "130", 429_200: "430,000", 1_000_000: "1,000,000", 1_000_001: "> 1,000,000"}
    assert {needed: number(float(needed), ITEMS_NEEDED) for needed in rounded} == rounded


def test_numbers_have_separators_and_no_minus_zero():
    count = Scale("count", 0.0, None, better=None, digits=0)
    assert (number(11290.0, count), number(-1234.5, Scale("x", digits=1))) == ("11,290", "-1,234.5")
    scale = Scale("x", digits=1)
    assert [number(value, scale) for value in (1.26, None, -0.01)] == ["1.3", "—", "0.0"]
    assert [number(value, scale, signed=True) for value in (1.26, -1.26, -0.01)] == ["+1.3", "-1.3", "+0.0"]
    assert (interval(Number(1.0, scale, 0.5, 1.5), " to "), interval(Number(1.0, scale))) == ("0.5 to 1.5", "")


def test_flags_counts_and_small_p_values_are_in_words():
    flags = ("limited", "other_judge", "low_coverage")
    assert flag_words(flags) == ["not comparable: other judge, low coverage", "limited"]
    assert [number(p, P_VALUE) for p in (0.0, 0.00009, 0.0001, 1.0)] == ["< 0.0001", "< 0.0001", "0.0001", "1.0000"]
    assert (p_value(0.0), p_value(0.04)) == ("p < 0.0001", "p = 0.0400")
    assert [counted(count, "model") for count in (0, 1, 2, 1234)] == ["0 models", "1 model", "2 models", "1,234 models"]


def test_percents_have_a_sign_and_their_differences_are_points():
    scales = {unit: Scale(unit, digits=1) for unit in ("percent", "points", "points of 100", "rating")}
    assert [amount(46.0, scale) for scale in scales.values()] == ["46.0 %", "46.0 points", "46.0 of 100", "46.0"]

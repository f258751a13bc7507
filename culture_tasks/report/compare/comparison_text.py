"""Two models in the terminal: the tests as tables, and what was corrected or couldn't be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from culture_tasks.benchmarks.registry import title_of
from culture_tasks.report.compare.two_models import B_IS_BETTER, B_IS_WORSE, ModelTest, TwoModels, remarks_of
from culture_tasks.report.model import PEOPLE, Number
from culture_tasks.report.numbers.comparisons import scale_of_differences
from culture_tasks.report.wording import ITEMS_NEEDED, P_VALUE, amount, interval, number
from culture_tasks.results.comparability import explain
from culture_tasks.text_tables import as_text, plain


def comparison_text(models: TwoModels) -> str:
    """Returns the comparison as the command prints it."""
    lines: list[str] = []
    for key, side in zip("AB", models.sides, strict=True):
        more = f" and {len(side.files) - 1} more" if len(side.files) > 1 else ""
        lines.append(f"{key}: {plain(side.model)} ({plain(side.files[-1])}{more})")
    different_cultures = [tested for tested in models.cultures if tested.test.verdict in (B_IS_BETTER, B_IS_WORSE)]
    for first, tests in (("benchmark", models.tests), ("culture", different_cultures)):
        if tests:
            lines += ["", _table(first, tests)]
    if models.cultures:
        lines += ["", f"{len(different_cultures)} of {len(models.cultures)} cultures differ"]
    return "\n".join([*lines, *map(plain, _notes(models))])


def _notes(models: TwoModels) -> Iterator[str]:
    all_tests = (*models.tests, *models.cultures)
    for tested in all_tests:
        test, points = tested.test, scale_of_differences(tested.scale)
        if test.correction is not None and test.contradicts_judge:
            grader = test.correction.by
            claim = "People's ratings contradict" if grader == PEOPLE else f"{grader} contradicts"
            own = "judge's" if grader == PEOPLE else "other judge's"
            ends = interval(Number(test.difference, points, test.low, test.high), " to ", signed=True)
            corrected, judge = (
                amount(value, points, signed=True) for value in (test.difference, test.correction.judge)
            )
            yield f"{claim} the {own} difference: on {tested.title} B - A is {corrected} ({ends}), and not {judge}."
    for tested in models.tests:
        if remarks := remarks_of(tested.cells):
            yield f"{tested.title}: {remarks}"
    for benchmark, reason, _ in models.not_compared:
        yield f"not compared: {title_of(benchmark)}: {reason}"
    for tested in all_tests:
        if tested.test.correction is not None and not tested.test.is_corrected:
            yield f"not corrected: {tested.title}: {tested.test.correction.missing}"
    if not models.tests:
        yield "nothing could be compared"


def _table(first: str, tests: Sequence[ModelTest]) -> str:
    """Returns a table of tests, without the columns that are empty in all of them."""
    rows = [{first: tested.title, **_row(tested)} for tested in tests]
    header = [name for name in rows[0] if any(row[name] for row in rows)]
    return as_text(header, [[row[name] for name in header] for row in rows])


def _row(tested: ModelTest) -> dict[str, str]:
    test, scale, correction = tested.test, tested.scale, tested.test.correction
    difference = number(test.difference, scale, signed=True)
    items_needed = f" ({number(test.items_needed, ITEMS_NEEDED)} items needed)" if test.items_needed else ""
    return {
        "A": number(tested.cells[0].value, scale),
        "B": number(tested.cells[1].value, scale),
        "B - A": "" if test.is_corrected else difference,
        "corrected B - A": difference if test.is_corrected else "",
        "interval": interval(Number(test.difference, scale, test.low, test.high), signed=True),
        "p (Holm)": "" if test.p_holm is None else number(test.p_holm, P_VALUE),
        "items": str(test.n),
        "rated": str(correction.rated) if correction else "",
        "judge's B - A": number(correction.judge, scale, signed=True) if correction and test.is_corrected else "",
        "verdict": f"{test.verdict}{items_needed}{f' [{explain(test.flags)}]' if test.flags else ''}",
    }

"""Whether a candidate may pass: the comparison of two models as a check, with its outcome as JSON.

A regression is a difference that is significant after the adjustment for all tests of its kind, and larger than the
margin. A benchmark or file that couldn't be compared never passes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from culture_tasks import __version__
from culture_tasks.benchmarks.registry import entries, title_of
from culture_tasks.errors import CultureTasksError, SettingsError, hint, nearest
from culture_tasks.report.compare.two_models import B_IS_WORSE, ComparedModel, ModelTest, TwoModels
from culture_tasks.report.model import PEOPLE, Comparison
from culture_tasks.report.numbers.comparisons import scale_of_differences
from culture_tasks.report.wording import amount, counted, p_value
from culture_tasks.results.finding import Kind
from culture_tasks.text import escaped

FORMAT = 1
"""Version of the layout of the JSON file."""

PASSED, REGRESSION, ERROR, NOT_COMPARED = range(4)
"""Exit statuses. A regression counts more than a benchmark that couldn't be compared."""

_VERDICTS = ("passed", "regression", "error", "not compared")
"""The exit statuses in words, for the JSON file."""

_UNUSABLE: frozenset[Kind] = frozenset(("empty", "damaged", "partial", "unknown_record", "unknown_layout"))
"""Kinds of files that a run may leave behind when it doesn't end well."""

_ROUNDING = 1e-9
"""By how much a drop may exceed a margin that it equals, in binary numbers."""

Outcome = Literal["passed", "regression", "not compared"]


class Margin(NamedTuple):
    """The largest drop that passes, on a benchmark's own scale, for benchmarks or cultures that fit a pattern."""

    pattern: str
    size: float

    def fits(self, name: str) -> bool:
        """Whether it is for a benchmark or culture of this name."""
        return fnmatchcase(name, self.pattern)


class Check(NamedTuple):
    """The outcome for a benchmark, a culture of a benchmark, or a file; in words, and with the test behind it."""

    name: str
    title: str
    outcome: Outcome
    message: str
    model_test: ModelTest | None = None
    margin: float = 0.0


class GateResult(NamedTuple):
    """All checks of A and B."""

    sides: tuple[ComparedModel, ComparedModel]
    checks: tuple[Check, ...]

    def having(self, outcome: Outcome) -> list[Check]:
        """Returns the checks with this outcome."""
        return [check for check in self.checks if check.outcome == outcome]

    @property
    def status(self) -> int:
        """The exit status."""
        return REGRESSION if self.having("regression") else NOT_COMPARED if self.having("not compared") else PASSED


def parse_margins(texts: Sequence[str]) -> list[Margin]:
    """Reads ``NAME=NUMBER`` pairs; one that has no finite number of at least 0 is a SettingsError."""
    margins = []
    for text in texts:
        pattern, _, number = text.rpartition("=")
        try:
            size = float(number)
        except ValueError:
            size = math.nan
        if not pattern.strip() or not 0.0 <= size < math.inf:
            raise SettingsError(
                f"compare: --margin {text!r} isn't NAME=NUMBER with a number of at least 0. Expected, say, "
                "--margin culturalvqa=0.01, on the scale of that benchmark."
            )
        margins.append(Margin(pattern.strip(), size))
    return margins


def gate(models: TwoModels, required: Sequence[str] = (), margins: Sequence[Margin] = ()) -> GateResult:
    """Decides whether B may pass.

    Required are names, or patterns of names, of benchmarks that must be compared; none means all that A has. Of several
    margins that fit, the first counts; one for a culture goes before one for its benchmark. A margin that fits nothing
    or is as wide as the scale, and a required name that is no benchmark's, are a SettingsError.
    """
    _refuse_unfitting(margins, models)
    checks = [_check_of(model_test, margins) for model_test in (*models.tests, *models.cultures)]
    checks += [
        Check(entry.benchmark, title_of(entry.benchmark), "not compared", entry.reason)
        for entry in models.not_compared
        if entry.is_loss or required
    ]
    absent = _absent(models, required)
    checks += [Check(name, title_of(name), "not compared", "neither A nor B ran it") for name in absent]
    for key, side in zip("AB", models.sides, strict=True):
        for file in side.problems:
            if file.kind in _UNUSABLE:
                reason = f"{key} has a file that can't be used: {file.kind}, {file.detail}"
                checks.append(Check(file.path, file.path, "not compared", reason))
    if not checks:
        checks = [Check("everything", "everything", "not compared", "A and B have no benchmark in common")]
    return GateResult(models.sides, tuple(checks))


def _check_of(model_test: ModelTest, margins: Sequence[Margin]) -> Check:
    test, scale, name, title = model_test.test, model_test.scale, model_test.name, model_test.title
    candidates = (margin.size for key in (name, model_test.benchmark) for margin in margins if margin.fits(key))
    margin = next(candidates, 0.0)
    drop = test.difference if scale.better == "lower" else -test.difference
    if not test.n or test.p_holm is None:
        return Check(name, title, "not compared", "too few items have a score of both", model_test, margin)
    outcome: Outcome = "passed"
    verdict = test.verdict
    if verdict == B_IS_WORSE and drop <= margin + _ROUNDING:
        verdict = f"within the margin of {margin:g}"
    elif verdict == B_IS_WORSE:
        outcome, verdict = "regression", f"{verdict}, more than the margin of {margin:g}" if margin else verdict
    difference = amount(test.difference, scale_of_differences(scale), signed=True)
    change = f"B - A is {difference} ({p_value(test.p_holm)} after adjustment, {counted(test.n, 'item')})"
    return Check(name, title, outcome, f"{verdict}: {change}{_about_correction(model_test)}", model_test, margin)


def _about_correction(model_test: ModelTest) -> str:
    test, correction = model_test.test, model_test.test.correction
    if correction is None:
        return ""
    if not test.is_corrected:
        return f", not corrected: {correction.missing}"
    judges_change = amount(correction.judge, scale_of_differences(model_test.scale), signed=True)
    is_people = correction.by == PEOPLE
    source = "ratings of" if is_people else f"the verdicts of {correction.by} on"
    judge = "judge" if is_people else "other judge"
    return f", corrected by {source} {counted(correction.rated, 'item')}; the {judge}'s is {judges_change}"


def _refuse_unfitting(margins: Sequence[Margin], models: TwoModels) -> None:
    tests, untested = (*models.tests, *models.cultures), [entry.benchmark for entry in models.not_compared]
    names = [*dict.fromkeys(model_test.name for model_test in tests), *untested]
    for margin in margins:
        option = f"compare: --margin {margin.pattern}={margin.size:g}"
        benchmark = margin.pattern.partition(":")[0]  # the cultures of one that wasn't compared aren't known
        if not any(map(margin.fits, names)) and not any(fnmatchcase(name, benchmark) for name in untested):
            raise SettingsError(f"{option} fits no benchmark here.{hint(margin.pattern, names)}")
        for model_test in tests:
            ends = model_test.scale.ends
            if margin.fits(model_test.name) and ends is not None and margin.size >= ends[1] - ends[0]:
                raise SettingsError(
                    f"{option} is as wide as the scale of {model_test.name}, {ends[0]:g} to {ends[1]:g}. "
                    "Give the margin on that scale."
                )


def _absent(models: TwoModels, required: Sequence[str]) -> Iterator[str]:
    names = [*(test.benchmark for test in models.tests), *(entry.benchmark for entry in models.not_compared)]
    for pattern in required:
        if not any(fnmatchcase(name, pattern) for name in names):
            if pattern not in entries():
                nearby = nearest(pattern, [*names, *entries()])
                raise SettingsError(f"compare: --require {pattern}: A and B have no benchmark of this name.{nearby}")
            yield pattern


# The outcome as a file


def as_json(result: GateResult | CultureTasksError) -> str:
    """Returns the outcome, or the error in its place, as JSON; a missing number is null."""
    data: dict[str, Any] = {"format": FORMAT, "version": __version__}
    if isinstance(result, CultureTasksError):
        data |= {"status": ERROR, "verdict": _VERDICTS[ERROR], "message": str(result), "checks": []}
    else:
        data |= {"status": result.status, "verdict": _VERDICTS[result.status]}
        for key, side in zip("ab", result.sides, strict=True):
            problems = [{"path": file.path, "kind": file.kind, "detail": file.detail} for file in side.problems]
            data[key] = {"model": side.model, "files": list(side.files), "problems": problems}
        data["checks"] = [_check_json(check) for check in result.checks]
    return escaped(json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)) + "\n"


def _check_json(check: Check) -> dict[str, Any]:
    data: dict[str, Any] = {name: getattr(check, name) for name in ("name", "title", "outcome", "message")}
    if check.model_test is None:
        return data
    model_test, test, scale = check.model_test, check.model_test.test, check.model_test.scale
    data |= {
        "benchmark": model_test.benchmark,
        "culture": model_test.culture or None,
        "margin": check.margin,
        "scale": {"unit": scale.unit, "low": scale.low, "high": scale.high},
        "better": scale.better,
    }
    for key, cell in zip("ab", model_test.cells, strict=True):
        data[key] = {"score": cell.value, "low": cell.low, "high": cell.high, "items": cell.n}
        data[key] |= {"coverage": cell.coverage, "remarks": list(cell.remarks)}
    data |= {name: getattr(test, name) for name in ("difference", "low", "high", "p", "p_holm", "test")}
    data |= {"common_items": test.n, "items_needed": test.items_needed, "verdict": test.verdict}
    data["flags"] = list(test.flags)
    return data | ({"correction": _correction_json(test)} if test.correction is not None else {})


def _correction_json(test: Comparison) -> dict[str, Any]:
    assert test.correction is not None
    return {
        "corrected": test.is_corrected,
        "reason": test.correction.missing or None,
        "by": test.correction.by,
        "rated": test.correction.rated,
        "judge_difference": test.correction.judge,
        "judge_low": test.correction.judge_low,
        "judge_high": test.correction.judge_high,
        "contradicts_judge": test.contradicts_judge,
    }

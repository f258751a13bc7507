"""The metrics that CEDAR's tasks report, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from culture_tasks.benchmarks.cedar import metrics
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, QUADRANT_NAMES

if TYPE_CHECKING:
    from culture_tasks.benchmarks.cedar.labels import Emotion, Language, Quadrant
    from culture_tasks.benchmarks.cedar.metrics import CountTable

TableMetric: TypeAlias = Callable[["CountTable"], float]


class Reported(NamedTuple):
    """One metric of a task's table of results.

    Attributes:
        name: Its name; the standard error is ``<name>_stderr``.
        value: Works it out from the table of counts.
        stderr: Works out the standard error, in the same unit; None where there is none.
        higher_is_better: None where a value in between is neutral.
    """

    name: str
    value: TableMetric
    stderr: TableMetric | None
    higher_is_better: bool | None


@cache
def pooled() -> tuple[Reported, ...]:
    """Returns the metrics of ``cedar_text`` and ``cedar_multimodal``: accuracies, GEPP and GRQB."""
    return (*_accuracies(), *(_accuracy_of(language) for language in LANGUAGES), *_averages(), *_biases("gepp", "grqb"))


@cache
def of_language() -> tuple[Reported, ...]:
    """Returns the metrics of the tasks of one language: accuracy, LSEPP and LSRQB.

    In a table of one language the local metrics are what the global ones are (equations 1 and 2).
    """
    return (*_accuracies(), *_biases("lsepp", "lsrqb"))


def _accuracies() -> Iterator[Reported]:
    yield Reported("acc", metrics.accuracy, metrics.accuracy_stderr, higher_is_better=True)
    yield Reported("unparsed", metrics.unparsed_share, metrics.unparsed_stderr, higher_is_better=False)


def _accuracy_of(language: Language) -> Reported:
    return Reported(
        f"acc_{language}",
        partial(_of, language, metrics.accuracy),
        partial(_of, language, metrics.accuracy_stderr),
        higher_is_better=True,
    )


def _of(language: Language, function: TableMetric, table: CountTable) -> float:
    return function(table.limited_to([language]))


def _averages() -> Iterator[Reported]:
    yield Reported("acc_avg", metrics.acc_avg, metrics.acc_avg_stderr, higher_is_better=True)
    yield Reported("acc_var", metrics.acc_var, None, higher_is_better=False)


def _biases(propensity: str, bias: str) -> Iterator[Reported]:
    for emotion in EMOTIONS:
        yield Reported(
            f"{propensity}_{emotion}",
            partial(_propensity, emotion),
            partial(_propensity_stderr, emotion),
            higher_is_better=None,
        )
    for number, quadrant in enumerate(QUADRANT_NAMES, start=1):
        yield Reported(
            f"{bias}_q{number}", partial(_bias, quadrant), partial(_bias_stderr, quadrant), higher_is_better=None
        )


def _propensity(emotion: Emotion, table: CountTable) -> float:
    return metrics.gepp(table)[emotion]


def _propensity_stderr(emotion: Emotion, table: CountTable) -> float:
    return metrics.bootstrapped(table).gepp[emotion]


def _bias(quadrant: Quadrant, table: CountTable) -> float:
    return metrics.grqb(table)[quadrant]


def _bias_stderr(quadrant: Quadrant, table: CountTable) -> float:
    return metrics.bootstrapped(table).grqb[quadrant]

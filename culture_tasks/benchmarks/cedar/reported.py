"""The metrics that CEDAR's tasks report, by name: what a harness shows, and what its logged samples give again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from culture_tasks.benchmarks.cedar import bootstrap, metrics
from culture_tasks.benchmarks.cedar.counts import CountTable, tabulate
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, QUADRANT_NAMES

if TYPE_CHECKING:
    from culture_tasks.benchmarks.cedar.labels import Emotion, Language, Quadrant

TableMetric: TypeAlias = Callable[[CountTable], float]
Triple: TypeAlias = "tuple[Language, Emotion, Emotion | None] | Sequence[str | None]"
"""Language, gold label and prediction of a document, all that its metrics need; the prediction is None where no label
could be read. From a file it comes as a list."""


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


def table_of(triples: Iterable[Triple | None]) -> CountTable:
    """Counts triples, equal ones together; None stands for a document that a metric leaves out."""
    counted = Counter(tuple(triple) for triple in triples if triple is not None)
    languages, golds, predictions = zip(*counted, strict=True) if counted else ((), (), ())
    return tabulate(predictions, golds, languages, times=list(counted.values()))


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


def values(reported: Iterable[Reported], table: CountTable) -> dict[str, float]:
    """Works out metrics and their standard errors from one table, under the names that the harnesses show."""
    found: dict[str, float] = {}
    for metric in reported:
        found[metric.name] = metric.value(table)
        if metric.stderr is not None:
            found[f"{metric.name}_stderr"] = metric.stderr(table)
    return found


def _accuracies() -> Iterator[Reported]:
    yield Reported("acc", metrics.accuracy, metrics.accuracy_stderr, higher_is_better=True)
    yield Reported("unparsed", metrics.unparsed_share, _unparsed_stderr, higher_is_better=False)


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
        functions = partial(_propensity, emotion), partial(_propensity_stderr, emotion)
        yield Reported(f"{propensity}_{emotion}", *functions, higher_is_better=None)
    for number, quadrant in enumerate(QUADRANT_NAMES, start=1):
        functions = partial(_bias, quadrant), partial(_bias_stderr, quadrant)
        yield Reported(f"{bias}_q{number}", *functions, higher_is_better=None)


def _propensity(emotion: Emotion, table: CountTable) -> float:
    return metrics.gepp(table)[emotion]


def _bias(quadrant: Quadrant, table: CountTable) -> float:
    return metrics.grqb(table)[quadrant]


def _propensity_stderr(emotion: Emotion, table: CountTable) -> float:
    return _errors(table).epp[emotion]


def _bias_stderr(quadrant: Quadrant, table: CountTable) -> float:
    return _errors(table).rqb[quadrant]


def _errors(table: CountTable) -> bootstrap.StandardErrors:
    """Bootstraps a table once for all its metrics."""
    counts = np.ascontiguousarray(table.counts, dtype=np.int64)
    return _bootstrapped(counts.tobytes(), counts.shape)


@lru_cache(maxsize=8)
def _bootstrapped(counts: bytes, shape: tuple[int, ...]) -> bootstrap.StandardErrors:
    return bootstrap.by_record(CountTable(np.frombuffer(counts, dtype=np.int64).reshape(shape)))


def _unparsed_stderr(table: CountTable) -> float:
    total = int(table.counts.sum())
    share = metrics.unparsed_share(table)
    return math.sqrt(share * (1 - share) / (total - 1)) if total > 1 else math.nan

"""How the replies to a question of CEDAR are scored, and what metrics are made of them.

The main metric ``acc`` is the mean of the documents' scores, each the share of a document's runs that are right. Every
other metric gets its labels, ``(language, gold, prediction)`` with one prediction per run, from which all of them can
be worked out: each is over the replies of all runs. The standard errors know that the replies to one document belong
together.

Where ``CULTURE_TASKS_LANGUAGES`` names the languages that the model officially supports, the pooled tasks leave the
documents of all others out of every metric, as the hyphens of Table 1 do: ``acc``, ``unparsed``, ``acc_avg``,
``acc_var``, GEPP and GRQB are those of the supported languages, and ``acc_<language>`` of another one is NaN. The
other documents are asked and logged all the same. The tasks of one language report it either way.

The harnesses' own columns see none of this. lmms-eval's ``acc_stderr_clt`` is taken over the records with a ``score``;
those that a task leaves out have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

from culture_tasks.benchmarks.cedar import metrics as measures
from culture_tasks.benchmarks.cedar.documents import NO_MINORITY, AddedCulture, CedarDoc, prompt_of
from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    LANGUAGE_NAMES,
    LANGUAGES,
    PREDICTION,
    QUADRANT_NAMES,
    Language,
)
from culture_tasks.benchmarks.cedar.metrics import CountTable, table_of, top2_macro_f1
from culture_tasks.benchmarks.interface import Answered, ComputedScore, MeanScore, Metric, Scale

ACC, TOP2, UNPARSED = "acc", "top2_macro_f1", "unparsed"

PERCENT = Scale("percent", 0.0, 100.0, times=100.0)
UNREAD = Scale("percent", 0.0, 100.0, better="lower", times=100.0)
RATIO = Scale("ratio", 0.0, None, better=None, neutral=1.0)
BIAS = Scale("percent", -100.0, 100.0, better=None, neutral=0.0, times=100.0)
VARIANCE = Scale("squared percent", 0.0, None, better="lower", digits=1, times=10_000.0)
"""The scales of the paper's tables. Harnesses have fractions, and the variance of fractions."""

_ONE_RUN = 3  # labels of a document with one run: language, gold label, prediction

_TableMetric: TypeAlias = Callable[[CountTable], float]


@cache
def metrics(*, is_pooled: bool) -> tuple[Metric, ...]:
    """Returns the metrics of the tasks of all languages together, or of those of one language.

    In a table of one language the global biases are the local ones, LSEPP and LSRQB (equations 1 and 2).
    """
    return tuple(_metrics(is_pooled=is_pooled))


def _metrics(*, is_pooled: bool) -> Iterator[Metric]:
    yield MeanScore(name=ACC, title="accuracy", scale=PERCENT)
    yield _metric(UNPARSED, "replies without an emotion", UNREAD, measures.unparsed_share, measures.unparsed_stderr)
    if is_pooled:
        for language in LANGUAGES:
            value, stderr = partial(_of, language, measures.accuracy), partial(_of, language, measures.accuracy_stderr)
            yield _metric(f"acc_{language}", f"accuracy, {LANGUAGE_NAMES[language]}", PERCENT, value, stderr)
        yield _metric("acc_avg", "accuracy, mean over languages", PERCENT, measures.acc_avg, measures.acc_avg_stderr)
        yield _metric("acc_var", "variance of accuracy over languages", VARIANCE, measures.acc_var)
    yield from _biases("gepp", "grqb") if is_pooled else _biases("lsepp", "lsrqb")
    scale = Scale("share", 0.0, 1.0, digits=3)
    yield ComputedScore(name=TOP2, title="macro F1, either of two labels", scale=scale, value=_top2)


def _biases(propensity: str, bias: str) -> Iterator[ComputedScore]:
    for emotion in EMOTIONS:
        yield _bias(f"{propensity}_{emotion}", f"{propensity.upper()} of {emotion}", RATIO, "gepp", emotion)
    for number, quadrant in enumerate(QUADRANT_NAMES, start=1):
        yield _bias(f"{bias}_q{number}", f"{bias.upper()} of quadrant {quadrant}", BIAS, "grqb", quadrant)


def _bias(name: str, title: str, scale: Scale, measure: str, part: str) -> ComputedScore:
    def value(table: CountTable) -> float:
        return float(getattr(measures, measure)(table)[part])

    def stderr(table: CountTable) -> float:
        return float(getattr(measures.bootstrapped(table), measure)[part])

    return _metric(name, title, scale, value, stderr)


def _metric(
    name: str, title: str, scale: Scale, value: _TableMetric, stderr: _TableMetric | None = None
) -> ComputedScore:
    def value_of(values: Sequence[Any]) -> float:
        return value(table_of(values))

    if stderr is None:
        return ComputedScore(name=name, title=title, scale=scale, value=value_of)

    def stderr_of(values: Sequence[Any]) -> float:
        if any(len(labels) > _ONE_RUN for labels in values):
            return measures.jackknife_stderr(value, values)
        return stderr(table_of(values))

    return ComputedScore(name=name, title=title, scale=scale, value=value_of, stderr=stderr_of)


def _of(language: Language, function: _TableMetric, table: CountTable) -> float:
    return function(table.limited_to([language]))


def _top2(values: Sequence[Sequence[Any]]) -> float:
    """Macro F1 against the two most frequent annotations (Appendix B), from gold label, minority and predictions."""
    replies = [(prediction, gold, minority) for gold, minority, *runs in values for prediction in runs]
    predictions, golds, minorities = zip(*replies, strict=True) if replies else ((), (), ())
    return top2_macro_f1(predictions, golds, minorities)


def score(doc: CedarDoc, responses: Sequence[str], *, is_pooled: bool, added: AddedCulture | None = None) -> Answered:
    """Reads the replies to a question, one per run; its score is the share of right ones.

    Every document has every metric, with None where it is left out: the harnesses expect lists of one length.
    """
    from culture_tasks.benchmarks.cedar.reading.choice import read_reply  # its word lists take a while to prepare

    predictions = [read_reply(response, added.words if added else None) for response in responses]
    counts = doc["supported"] or not is_pooled
    labels = (None if added else doc["language"], doc["gold"], *predictions) if counts else None
    names = [metric.name for metric in metrics(is_pooled=is_pooled) if metric.name not in (ACC, TOP2)]
    values: dict[str, Any] = dict.fromkeys(names, labels)
    if doc["minority"]:
        minority = None if doc["minority"] == NO_MINORITY else doc["minority"]
        values[TOP2] = (doc["gold"], minority, *predictions) if counts else None
    return Answered(
        item=f"{added.name if added else doc['language']} {doc['id']}",
        responses=responses,
        question="\n".join(part for part in (doc["narrative"], doc["question"]) if part),
        references=(doc["gold"],),
        groups={
            "language": doc["language"],
            "prompt_language": doc["prompt_language"],
            "gold": doc["gold"],
            **{PREDICTION if run == 1 else f"{PREDICTION}_{run}": label for run, label in enumerate(predictions, 1)},
            "supported": str(doc["supported"]),
            **({"minority": doc["minority"]} if doc["minority"] else {}),
            **({"culture": added.name} if added else {}),
        },
        cluster=f"{doc['modality']} {doc['id']}",
        image=doc["id"] if doc["modality"] == "multimodal" else "",
        data={"data": doc["data"]},
        prompt=prompt_of(doc, added),
        facts={"modality": doc["modality"]},
        labels=predictions,
        score=sum(label == doc["gold"] for label in predictions) / len(predictions) if counts else None,
        values=values,
    )

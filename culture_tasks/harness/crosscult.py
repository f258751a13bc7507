"""CrossCult-KIBench on a harness: how a task's responses become records.

In locality the reference is what the model says without any insertion. A model that inserts returns the list
``[answer, answer without insertions]`` for such a document. Any other model returns one text, which is both: nothing
was inserted, so nothing can have changed, and its ROUGE-L is 100.

Identical texts are judged like all others, and not taken for a 10: the paper's base model scores 9.99, 9.98 and 9.89 in
locality (Tables 2 and 3), so its judge was asked too. The judge asks an identical question once, and its cache keeps
the reply for later runs and other methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc
from culture_tasks.benchmarks.crosscult.rubrics import CROSSCULT
from culture_tasks.benchmarks.crosscult.vocabulary import (
    LANGUAGE_NAMES,
    LOCALITY_ROLES,
    PARTITIONS,
    TARGETS,
    TOPICS,
    Setting,
)
from culture_tasks.harness.filters import responses_of
from culture_tasks.harness.judged import JudgedDocument, Subject
from culture_tasks.harness.metric_lists import Metric, judged_metrics, judged_results
from culture_tasks.harness.plain_metrics import plain_metrics, plain_results
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem
from culture_tasks.metrics.rouge import rouge_l
from culture_tasks.text import answer_in, storable

OVERLAP = "rouge_l"
"""ROUGE-L F in percent: 0 to 100, higher is nearer."""

JUDGED = "judge_score"
"""Mean score of the judge of Figure 10: 0 (opposite or irrelevant) to 10 (the same meaning)."""

GROUPS: Mapping[Setting, tuple[str, ...]] = {
    "diagnostic": (*TOPICS, *PARTITIONS),
    "single": (*TOPICS, *TARGETS),
    "sequential": (),
    "retention": (),
}
"""Parts of the data with a mean of their own (Figures 1b and 5). The tasks of chains are about one partition each; what
else a table needs, such as scenarios, stands in the logged records."""

_ABOUT = (
    *("id", "case_id", "setting", "role", "scenario", "topic", "partition", "language", "order", "step"),
    *("image_id", "insertion_image_id", "request_scenario", "data", "draw"),
)


class Answer(NamedTuple):
    """One response.

    Attributes:
        text: What the model says after the insertions.
        base: What it says without them.
    """

    text: str
    base: str


class Pairs:
    """Response filter that makes every response a pair: answer, answer without insertions.

    A response that is one text is both. The pairs of all runs stand in one flat list of texts, since lmms-eval strips
    each element of it before ``process_results``.
    """

    def __init__(self, **_: object) -> None:
        """Takes no arguments; the harnesses pass none or a few of their own."""

    def apply(self, resps: Iterable[Sequence[Any]], docs: Any) -> list[list[str]]:  # noqa: ARG002
        """Returns the pairs of each document's runs.

        Raises:
            ValueError: If a response is a list of another length than two.
        """
        return [[text for run in runs for text in _answer(run)] for runs in resps]


def _answer(run: Any) -> Answer:
    if isinstance(run, (list, tuple)):
        if len(run) != 2:
            raise ValueError(f"crosscult: a response is a list of {len(run)}; needed is [answer, base answer]")
        return Answer(str(run[0]), str(run[1]))
    text = "" if run is None else str(run)
    return Answer(text, text)


def metrics(setting: Setting) -> list[Metric]:
    """Returns the metric list of a setting's tasks."""
    return [*plain_metrics(OVERLAP, GROUPS[setting]), *judged_metrics(JUDGED, GROUPS[setting])]


def results(doc: CrossCultDoc, responses: Sequence[Any]) -> dict[str, Any]:
    """Scores a document's responses, submits them to the judge, and returns the records."""
    answers = answers_of(responses)
    reference = _reference(doc, answers[0])
    overlaps = [rouge_l(_cleaned(answer.text), _cleaned(reference)) for answer in answers]
    overlap = sum(overlaps) / len(overlaps)
    document = JudgedDocument(_subject(doc, reference, overlap), [answer.text for answer in answers])
    groups, belongs = GROUPS[_setting(doc)], (doc["topic"], doc["partition"])
    plain = plain_results(OVERLAP, overlap, groups, belongs)
    return plain | judged_results(JUDGED, document, groups, belongs)


def answers_of(responses: Sequence[Any]) -> list[Answer]:
    """Returns the answers to one document, one a run.

    Args:
        responses: What :class:`Pairs` made of them, as the harness passes it on: with or without a list around it.
    """
    flat = responses_of(responses)
    return [Answer(text, base) for text, base in zip(flat[0::2], flat[1::2], strict=True)]


def _reference(doc: CrossCultDoc, answer: Answer) -> str:
    return answer.base if doc["role"] in LOCALITY_ROLES else doc["reference"]


def _cleaned(text: str) -> str:
    return answer_in(storable(text))


def _setting(doc: CrossCultDoc) -> Setting:
    return next(setting for setting in GROUPS if setting == doc["setting"])


def expected(docs: Iterable[CrossCultDoc]) -> Iterator[tuple[Rubric, JudgeItem]]:
    """Yields what will be graded, without responses; in locality the reference isn't known yet either."""
    for doc in docs:
        yield CROSSCULT, JudgeItem(doc["question"], (doc["reference"],), "", _language_name(doc))


def _language_name(doc: CrossCultDoc) -> str:
    return next(name for code, name in LANGUAGE_NAMES.items() if code == doc["language"])


def _subject(doc: CrossCultDoc, reference: str, overlap: float) -> Subject:
    about: dict[str, Any] = {name: doc[name] for name in _ABOUT}  # type: ignore[literal-required]
    return Subject(
        benchmark="crosscult",
        question=doc["question"],
        references=(_cleaned(reference),),
        rubric=CROSSCULT,
        score=float,
        about=about | {"after": len(doc["insertions"]), OVERLAP: overlap},
        judge_language=_language_name(doc),
    )

"""CulturalVQA on a harness: what a task asks, and how its responses become records."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from culture_tasks.benchmarks.culturalvqa.documents import CulturalVqaDoc
from culture_tasks.benchmarks.culturalvqa.exact_match import exact_match
from culture_tasks.benchmarks.culturalvqa.rubrics import RUBRICS
from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS
from culture_tasks.harness.aggregation import Aggregation, Run
from culture_tasks.harness.filters import responses_of
from culture_tasks.harness.judged import JudgedDocument, Subject
from culture_tasks.harness.metric_lists import Metric, judged_metrics, judged_results, metric
from culture_tasks.harness.plain_metrics import plain_metrics
from culture_tasks.harness.session import current_session
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem
from culture_tasks.text import answer_in, storable

VqaRubric = Literal["lave", "lave3"]
"""The rubric, and the name of its metric, from 0 to 1. ``lave`` (Appendix F): the share of answers that the judge calls
correct, accuracy in the paper's sense. ``lave3``: the scale of LAVE itself (Mañas et al., 2024), where an ambiguous or
incomplete answer counts one half."""

GROUPS = (*COUNTRIES, *FACETS)
SUBMISSION = "predictions_for_submission"

_log = logging.getLogger(__name__)


def metrics(rubric: VqaRubric = "lave") -> list[Metric]:
    """Returns the metric list of a CulturalVQA task."""
    return [
        *judged_metrics(rubric, GROUPS),
        *plain_metrics("exact_match", ()),
        metric(SUBMISSION, Submission(), higher_is_better=None),
    ]


def results(doc: CulturalVqaDoc, responses: Sequence[Any], rubric: VqaRubric = "lave") -> dict[str, Any]:
    """Returns a document's records; without reference answers, the prediction for a submission file and no score."""
    texts = responses_of(responses)
    if not doc["references"]:
        return {SUBMISSION: {"id": doc["id"], "pred": storable(answer_in(texts[0]))}}
    document = JudgedDocument(_subject(doc, rubric), texts)
    matches = [exact_match(answer_in(text), doc["references"]) for text in texts]
    judged = judged_results(rubric, document, GROUPS, (doc["country"], doc["facet"]))
    return judged | {"exact_match": sum(matches) / len(matches)}


def expected(docs: Sequence[CulturalVqaDoc], rubric: VqaRubric = "lave") -> Iterator[tuple[Rubric, JudgeItem]]:
    """Yields what will be graded, without responses."""
    for doc in docs:
        if doc["references"]:
            yield _rubric(rubric), JudgeItem(doc["question"], tuple(doc["references"]), "")


class Submission(Aggregation):
    """The predictions of a run whose answers are withheld: their number, which is no score, and a file of them."""

    def __init__(self) -> None:
        """Makes the aggregation; it has no settings."""
        super().__init__("number of predictions", len, is_score=False)

    def finish(self, records: Sequence[Mapping[str, str]], task: str, run: Run) -> None:
        """Writes the predictions into a file that is named after task, model and time, and says where.

        ``CULTURE_TASKS_SUBMISSIONS`` names the folder. Where it isn't set, that is ``submissions`` below the folder
        that the harness writes to, as far as the harness says, else below the current one.

        Args:
            records: Mappings with ``id`` and ``pred``.
            task: Name of the task.
            run: What the harness is running.
        """
        chosen = current_session().settings.submissions
        folder = (run.output or Path()) / "submissions" if chosen is None else chosen.expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        rows = [{"id": record["id"], "pred": record["pred"]} for record in records]
        model = re.sub(r"[^\w.-]+", "_", run.model).strip("._")[-100:]  # what every file system takes in a name
        path = folder / f"{task}_{model}_{datetime.now(UTC):%Y%m%dT%H%M%S%f}.json"
        path.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        _log.warning(
            "%s: the data have no answers, so there is no score. %d predictions for submission are in %s.",
            task,
            len(rows),
            path,
        )


def fraction_of(rubric: VqaRubric, rating: float) -> float:
    """Maps a rating to 0 (the lowest offered) to 1 (the highest)."""
    scale = _rubric(rubric)
    return (rating - scale.lowest) / (scale.highest - scale.lowest)


def _rubric(name: VqaRubric) -> Rubric:
    return next(rubric for rubric in RUBRICS if rubric.name == name)


def _subject(doc: CulturalVqaDoc, rubric: VqaRubric) -> Subject:
    return Subject(
        benchmark="culturalvqa",
        question=doc["question"],
        references=tuple(doc["references"]),
        rubric=_rubric(rubric),
        score=partial(fraction_of, rubric),
        about={name: doc[name] for name in ("id", "country", "facet", "image_id", "data")},
    )

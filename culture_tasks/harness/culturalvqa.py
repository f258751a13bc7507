"""CulturalVQA on a harness: what a task asks, and how its responses become records."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from culture_tasks.benchmarks.culturalvqa.documents import CulturalVqaDoc
from culture_tasks.benchmarks.culturalvqa.exact_match import exact_match
from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS
from culture_tasks.harness.filters import responses_of
from culture_tasks.harness.judged import JudgedDocument, Subject
from culture_tasks.harness.metric_lists import Metric, judged_metrics, judged_results
from culture_tasks.harness.plain_metrics import plain_metrics
from culture_tasks.harness.session import current_session
from culture_tasks.judges.rubrics import RUBRICS, Rubric
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
        {"metric": SUBMISSION, "aggregation": write_submission, "higher_is_better": True},
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
            yield RUBRICS[rubric], JudgeItem(doc["question"], tuple(doc["references"]), "")


def write_submission(records: Iterable[Mapping[str, str]], args: Any = None) -> int:
    """Writes the predictions of a run whose answers are withheld, and says where.

    Args:
        records: Mappings with ``id`` and ``pred``.
        args: lmms-eval's command line; its output folder goes before ``CULTURE_TASKS_SUBMISSIONS``.

    Returns:
        The number of predictions. It is no score.
    """
    output = getattr(args, "output_path", None)
    folder = Path(output) / "submissions" if output else current_session().settings.submissions.expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"id": record["id"], "pred": record["pred"]} for record in records]
    path = folder / f"culturalvqa_{datetime.now(UTC):%Y%m%dT%H%M%S%f}.json"
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    _log.warning(
        "culturalvqa: the data have no answers, so there is no score. %d predictions for submission are in %s.",
        len(rows),
        path,
    )
    return len(rows)


def fraction_of(rubric: VqaRubric, rating: float) -> float:
    """Maps a rating to 0 (the lowest offered) to 1 (the highest)."""
    scale = RUBRICS[rubric]
    return (rating - scale.lowest) / (scale.highest - scale.lowest)


def _subject(doc: CulturalVqaDoc, rubric: VqaRubric) -> Subject:
    return Subject(
        benchmark="culturalvqa",
        question=doc["question"],
        references=tuple(doc["references"]),
        rubric=RUBRICS[rubric],
        score=partial(fraction_of, rubric),
        about={name: doc[name] for name in ("id", "country", "facet", "image_id", "data")},
    )

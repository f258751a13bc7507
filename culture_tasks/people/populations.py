"""The responses of a run that people may rate: the texts that they are shown, and the judge's scores."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import NO_GROUP
from culture_tasks.errors import DataError
from culture_tasks.harness.scoring import item_of
from culture_tasks.judges.rubric.rubrics import shortened
from culture_tasks.results.logged_samples import JudgedSample, judged_samples

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.judges.rubric.rubrics import Rubric


@dataclass(frozen=True, slots=True)
class Response:
    """One response to one item.

    Attributes:
        item: The item.
        run: Which of several responses to it, from 0.
        culture: The culture that the item is of, by its benchmark's field of cultures.
        cluster: What the item shares with others.
        question: The question, as the judge is shown it.
        references: Answers that count as right, as the judge is shown them.
        text: The response, as the judge is shown it: without reasoning.
        image: Name of the item's image; empty without one.
        rubric: How it is rated.
        scale: The scale that ratings are mapped to.
        judged: The judge's score on that scale; NaN where it gave none.
    """

    item: str
    run: int
    culture: str
    cluster: str
    question: str
    references: tuple[str, ...]
    text: str
    image: str
    rubric: Rubric
    scale: Scale
    judged: float

    @property
    def mark(self) -> str:
        """Hash of its text: see :func:`mark_of`."""
        return mark_of(self.text)

    def on_scale(self, rating: float) -> float:
        """Returns a rating, such as a person's, on the scale of the scores: end to end, as a judge's is mapped."""
        return _on_scale(rating, self.rubric, self.scale)


@dataclass(frozen=True, slots=True)
class Population:
    """All responses of one task of one run.

    Attributes:
        responses: The responses, in the order of the file.
        fingerprint: Hash of the responses, whoever judged them.
    """

    responses: tuple[Response, ...]
    fingerprint: str


def mark_of(text: str) -> str:
    """Returns a hash of a text without its white space and apostrophes before it, which spreadsheets change."""
    return hashlib.sha256("".join(text.lstrip("'").split()).encode("utf-8", "replace")).hexdigest()


def read_population(samples_file: Path) -> Population:
    """Reads the responses of a task.

    Raises:
        DataError: If the file can't be read, or its samples have no record of a judge.
    """
    try:
        samples = judged_samples(samples_file)
    except OSError as error:
        raise DataError(f"{samples_file}: can't be read ({error.strerror}).") from None
    if not samples:
        raise DataError(f"{samples_file}: no sample that a judge grades. Expected samples of a judged task.")
    responses = tuple(response for sample in samples for response in _responses(sample))
    digest = hashlib.sha256()
    for line in sorted(f"{one.item}\n{one.run}\n{one.culture}\n{one.cluster}\n{one.mark}" for one in responses):
        digest.update(hashlib.sha256(line.encode("utf-8", "replace")).digest())
    return Population(responses, digest.hexdigest())


def _responses(sample: JudgedSample) -> Iterator[Response]:
    record = sample.record
    known = benchmarks().get(record.benchmark)
    culture = record.groups.get(known.report().culture) if known else None
    for number, run in enumerate(record.runs):
        item = item_of(sample.as_logged, run.response)
        rating = run.rating if number in sample.scored else None
        yield Response(
            item=record.item,
            run=number,
            culture=NO_GROUP if culture is None else culture,
            cluster=record.cluster,
            question=shortened(item.question),
            references=tuple(map(shortened, item.references)),
            text=shortened(item.response),
            image=record.image,
            rubric=sample.rubric,
            scale=record.scale,
            judged=math.nan if rating is None else _on_scale(rating, sample.rubric, record.scale),
        )


def _on_scale(rating: float, rubric: Rubric, scale: Scale) -> float:
    low, high = scale.low or 0.0, scale.high or 0.0
    return low + (rating - rubric.lowest) * (high - low) / (rubric.highest - rubric.lowest)

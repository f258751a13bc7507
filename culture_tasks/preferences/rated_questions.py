"""Questions with their rated responses, of which pairs are made, wherever the ratings come from.

All ratings of a build are one rater's, on one scale. The responses of a question were graded by one rubric.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from culture_tasks.benchmarks.human_ratings import CultureKind
from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataError
from culture_tasks.people.rated_responses import UNKNOWN, offered
from culture_tasks.results.training_manifest import RatingOrigin, TrainingSource

PEOPLE = "people"
"""Who wrote a response that is a reference, and who rates where no judge does."""

LEFT_OUT: Mapping[str, str] = {
    "blank_responses": "blank responses",
    "unrated_responses": "responses without a rating",
    "unscored_verdicts": "responses without a scored verdict",
    "repeated_texts": "responses with the same text as another one",
    "graded_by_another_rubric": "responses graded by another rubric",
}
"""Responses that are left out before pairs are made, in words, by the name of their count."""


class RatedAnswer(NamedTuple):
    """A rated response, and its writer: a model, ``people``, or the name in the data (may be empty)."""

    text: str
    rating: float
    writer: str


@dataclass(slots=True)
class RatedQuestion:
    """A question with its rated responses, no two with the same text.

    The language is a code or ``und``; references, category and culture may be missing. The fingerprint is the same
    however the question is written.
    """

    text: str
    fingerprint: str
    references: tuple[str, ...] = ()
    language: str = UNKNOWN
    category: str = ""
    culture: CultureKind | None = None
    answers: list[RatedAnswer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RatedQuestions:
    """The questions of all sources, in their order.

    ``left_out`` counts responses that were left out, by reason; ``test_items`` has tasks and items that a question is
    of, by its fingerprint, where the source is a test.
    """

    questions: Sequence[RatedQuestion]
    sources: Sequence[TrainingSource]
    rated_by: RatingOrigin
    left_out: Mapping[str, int]
    test_items: Mapping[str, frozenset[tuple[str, str]]]
    reading: DataReading = field(default_factory=DataReading)


class RatingScale(NamedTuple):
    """The lowest and the highest rating that are possible, and where ratings on this scale were met first."""

    lowest: float
    highest: float
    where: str

    def __str__(self) -> str:
        """Returns both ends."""
        return f"{self.lowest:g} to {self.highest:g}"


class RatingCollector:
    """Collects the rated responses of all sources.

    ``without_scale`` has ratings whose scale their source doesn't say, with their places: they must be possible on that
    of the others. The other attributes are those of :class:`RatedQuestions`.
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.sources: list[TrainingSource] = []
        self.reading = DataReading()
        self.test_items: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self.without_scale: list[tuple[float, str]] = []
        self._groups: dict[tuple[str, str], RatedQuestion] = {}
        self._rater: RatingOrigin | None = None
        self._rated_where = ""
        self._scale: RatingScale | None = None

    def add(self, question: RatedQuestion, rubric: str, answer: RatedAnswer) -> None:
        """Takes a response in, but for a blank one, which teaches nothing.

        A later row may add facts of the question that an earlier one lacks.
        """
        if not answer.text.strip():
            self.left_out["blank_responses"] += 1
            return
        group = self._groups.setdefault((question.fingerprint, rubric), question)
        group.references = group.references or question.references
        group.category = group.category or question.category
        group.culture = group.culture or question.culture
        if group.language == UNKNOWN:
            group.language = question.language
        group.answers.append(answer)

    def note_rater(self, rated_by: RatingOrigin, where: str) -> None:
        """Notes who rated some responses, and refuses a second rater, prompt or sampling."""
        if self._rater is None:
            self._rater, self._rated_where = rated_by, where
        first = self._rater
        if (first.kind, first.name) != (rated_by.kind, rated_by.name):
            raise DataError(
                f"preferences: {self._rated_where} was rated by {first.name}, {where} by {rated_by.name}. Ratings of "
                "two raters can't be compared inside a pair. Build a folder from each; of results that several judges "
                "graded, choose one with --judge."
            )
        judges = {judge["rubric"]: judge for judge in first.judges}
        for judge in rated_by.judges:
            same = judges.setdefault(judge["rubric"], judge)
            if different := [name for name in judge if judge[name] != same.get(name)]:
                raise DataError(
                    f"preferences: {where} was graded by {first.name} with another {different[0].replace('_', ' ')} "
                    f"than {self._rated_where}, for the rubric {judge['rubric']}. Such ratings can't be compared in a "
                    "pair. Grade both alike with `culture-tasks rejudge`, or build a folder from each."
                )
        self._rater = first.model_copy(update={"judges": tuple(judges[name] for name in sorted(judges))})

    def note_scale(self, scale: RatingScale) -> None:
        """Notes the scale of some ratings, and refuses a second one."""
        first = self._scale = self._scale or scale
        if first[:2] != scale[:2]:
            raise DataError(
                f"preferences: ratings on two scales: {first} ({first.where}) and {scale} ({scale.where}). A gap means "
                "something on one scale only. Build a folder from each (of result files, one task or group with "
                "--task)."
            )

    def questions(self) -> RatedQuestions:
        """Returns the questions, each with the responses that one rubric graded.

        Of a question that several rubrics graded, those of the rubric with most responses count, or of equal ones, the
        first by name. Equal texts count once, with the mean of their ratings.
        """
        if self._rater is None or not self._groups:
            raise DataError(
                "preferences: the sources hold no rated response. Expected rows with a rating (another column is "
                "named with --rating), or results that a judge has graded."
            )
        scale = self._scale
        for rating, where in self.without_scale if scale else ():
            if scale and not scale.lowest <= rating <= scale.highest:
                raise DataError(
                    f"preferences: {where} has the rating {rating:g}, while others are on a scale of {scale} "
                    f"({scale.where}). A gap means something on one scale only. Build a folder from each."
                )
        return RatedQuestions(
            questions=list(self._questions()),
            sources=tuple(self.sources),
            rated_by=self._rater.model_copy(update={"scale": scale and scale[:2]}),
            left_out=dict(self.left_out),
            test_items={question: frozenset(items) for question, items in self.test_items.items()},
            reading=self.reading,
        )

    def _questions(self) -> Iterator[RatedQuestion]:
        groups: dict[str, list[tuple[str, RatedQuestion]]] = {}
        for (fingerprint, rubric), group in self._groups.items():
            groups.setdefault(fingerprint, []).append((rubric, group))
        for rubrics in groups.values():
            _, question = min(rubrics, key=lambda group: (-len(group[1].answers), group[0]))
            surplus = sum(len(group.answers) for _, group in rubrics) - len(question.answers)
            self.left_out["graded_by_another_rubric"] += surplus
            repeats: dict[str, list[RatedAnswer]] = {}
            for answer in question.answers:
                repeats.setdefault(answer.text.strip(), []).append(answer)
            self.left_out["repeated_texts"] += len(question.answers) - len(repeats)
            # The exact mean, rounded once: a rounding error would make a pair of a tie, and depend on the order.
            question.answers = [
                answers[0]
                if len(answers) == 1
                else answers[0]._replace(rating=float(statistics.mean(Fraction(answer.rating) for answer in answers)))
                for answers in repeats.values()
            ]
            yield question


@lru_cache(maxsize=1_000)
def kind_of_culture(label: str | None) -> CultureKind | None:
    """Returns whose culture a label of the data means; None where it doesn't tell."""
    if label is None:
        return None
    return next(filter(None, (ratings.kind_of_culture(label) for ratings in offered().values())), None)

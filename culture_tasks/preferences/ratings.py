"""Questions with their rated responses, from tables of rows that people have rated.

All ratings of a build are on one scale. The responses of a question were graded by one rubric.
"""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.human_ratings import CultureKind
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.data.files import SUFFIXES
from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataError, nearest
from culture_tasks.people.rated_responses import (
    NO_CATEGORY,
    PEOPLE,
    UNKNOWN,
    RatedResponse,
    ResponseRow,
    offered,
    rated_responses,
    rating_column,
    table_of,
)
from culture_tasks.results.trained_on import question_fingerprint
from culture_tasks.settings import Settings
from culture_tasks.text import failure_in


class RatedAnswer(NamedTuple):
    """A rated response, and its writer: ``people``, or the name in the data (may be empty)."""

    text: str
    rating: float
    writer: str


@dataclass(slots=True)
class RatedQuestion:
    """A question with its rated responses, no two with the same text; facts but the language may be missing."""

    text: str
    fingerprint: str  # the same however the question is written
    references: tuple[str, ...] = ()
    language: str = UNKNOWN
    category: str = ""
    culture: CultureKind | None = None
    answers: list[RatedAnswer] = field(default_factory=list)


@dataclass
class Ratings:
    """The rated responses of all sources."""

    sources: list[dict[str, Any]] = field(default_factory=list)  # what was read, as the manifest says it
    left_out: Counter[str] = field(default_factory=Counter)  # numbers of responses, by reason
    reading: DataReading = field(default_factory=DataReading)
    scale: tuple[float, float] | None = None  # of all ratings, where it is known
    groups: dict[tuple[str, str], RatedQuestion] = field(default_factory=dict)  # responses by question and rubric

    @property
    def rated_by(self) -> dict[str, Any]:
        """Who rated, and on which scale, as the manifest says it."""
        return {"kind": "people", "name": PEOPLE, "judges": [], "scale": self.scale}

    def _check_scale(self, rubric: str, where: str) -> None:
        grader = rubric_named(rubric)
        scale = (float(grader.lowest), float(grader.highest))
        self.scale = self.scale or scale
        if self.scale != scale:
            raise DataError(
                f"preferences: {where} has the scale {scale}, and earlier rows have {self.scale}. Ratings that differ "
                "in it can't be compared in a pair. Build a folder from each."
            )

    def add(self, origin: str, name: str, responses: Iterable[RatedResponse | str]) -> int:
        """Takes the responses of a table in, but for unrated and blank ones, and returns how many are rated."""
        digest, rated = hashlib.sha256(), 0
        for response in responses:
            if isinstance(response, str):
                raise DataError(f"preferences: {response}")
            item, rating = response.item, response.human
            if rating is None or failure_in(item.response):
                self.left_out["unrated_responses"] += 1
                continue
            read = "\x1f".join((item.question, *item.references, item.response, f"{rating!r}\x1e"))
            digest.update(read.encode("utf-8", "replace"))
            rated += 1
            if response.rubric:
                self._check_scale(response.rubric, f"{origin}, row {response.row}")
            if not item.response.strip():
                self.left_out["blank_responses"] += 1
                continue
            mark = question_fingerprint(item.question)
            group = self.groups.setdefault((mark, response.rubric), RatedQuestion(item.question, mark))
            # A later row may add facts of the question that an earlier one lacks.
            group.references = group.references or item.references
            group.category = group.category or ("" if response.category == NO_CATEGORY else response.category)
            group.culture = group.culture or response.culture
            group.language = response.language if group.language == UNKNOWN else group.language
            group.answers.append(RatedAnswer(item.response, rating, response.writer))
        if rated:
            source = {"kind": "rows", "name": name, "model": "", "task": ""}
            self.sources.append({**source, "fingerprint": digest.hexdigest()[:16], "responses": rated})
        return rated

    @cached_property
    def questions(self) -> list[RatedQuestion]:
        """The questions, in the order of the sources, each with the responses that one rubric graded.

        Of a question that several rubrics graded, those of the rubric with most responses count, or of equal ones, the
        first by name. Equal texts count once, with the mean of their ratings.
        """
        by_question: dict[str, list[str]] = {}
        for name, rubric in self.groups:
            by_question.setdefault(name, []).append(rubric)
        questions = []
        for name, rubrics in by_question.items():
            numbers = {rubric: len(self.groups[name, rubric].answers) for rubric in sorted(rubrics)}
            question = self.groups[name, max(numbers, key=numbers.__getitem__)]
            repeats: dict[str, list[RatedAnswer]] = {}
            for answer in question.answers:
                repeats.setdefault(answer.text.strip(), []).append(answer)
            self.left_out["graded_by_another_rubric"] += sum(numbers.values()) - len(question.answers)
            self.left_out["repeated_texts"] += len(question.answers) - len(repeats)
            # The exact mean, rounded once: a rounding error would make a pair of a tie, and depend on the order.
            question.answers = [
                same[0]._replace(rating=float(statistics.mean(Fraction(answer.rating) for answer in same)))
                for same in repeats.values()
            ]
            questions.append(question)
        return questions


def read_ratings(sources: Sequence[str], settings: Settings) -> Ratings:
    """Reads tables of rows that people have rated."""
    ratings = Ratings()
    offers = [name for key, offer in offered().items() for name in (key, offer.source.hub) if name]
    for source in dict.fromkeys(sources):
        if source not in offers and not Path(source).expanduser().exists():
            raise DataError(
                f"preferences: {source}: no such file.{nearest(source, offers)} Expected a file of rated rows "
                f"({', '.join(SUFFIXES)}), or {' or '.join(offers)}."
            )
        table, _ = table_of(source, settings)
        ratings.reading |= table.reading
        name = Path(table.origin).name if table.local else table.origin
        if not ratings.add(table.origin, name, rated_responses(table, ResponseRow, settings)):
            columns = sorted({name for row in table.rows for name in row})
            raise DataError(
                f"preferences: {table.origin}: no row has a rating in the column {rating_column(table)!r}. Found the "
                f"columns {', '.join(columns)}."
            )
    return ratings

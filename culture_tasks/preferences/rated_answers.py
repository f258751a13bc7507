"""Questions with their rated responses, from tables of rated rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culture_tasks.agreement.rated_responses import ResponseRow, language_of, offered
from culture_tasks.data.sources import read_source
from culture_tasks.data.tables import Table, Text, fingerprint, read_file, validated
from culture_tasks.errors import DataError
from culture_tasks.preferences.manifest import RatedBy, TrainingSource, question_fingerprint

PEOPLE = "people"

_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A rated response.

    Attributes:
        text: The response.
        rating: Its rating.
        by: Who wrote it: a model, ``people``, or what the data say; empty where nothing is known.
    """

    text: str
    rating: float
    by: str


@dataclass(slots=True)
class Question:
    """A question with its rated responses.

    Attributes:
        text: The question as first met.
        fingerprint: What stands for it.
        references: Answers that count as right.
        language: Language code, or ``und``.
        category: Category, or an empty text.
        culture: What the data say of the culture that it is about.
        answers: Its rated responses.
    """

    text: str
    fingerprint: str
    references: tuple[str, ...]
    language: str
    category: str
    culture: str
    answers: list[Answer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rated:
    """All questions of a build, with who rated the responses."""

    questions: Sequence[Question]
    sources: Sequence[TrainingSource]
    rated_by: RatedBy


class _Row(ResponseRow):
    reference: Text | Annotated[list[Text], Field(min_length=1)] | None = None  # type: ignore[assignment]
    human_rating: float


def read_rated(sources: Iterable[str], data_folder: Path | None) -> Rated:
    """Reads rated responses.

    Args:
        sources: Tables of rated rows: a benchmark that offers some, its Hub data set, or a file.
        data_folder: The user's data folder.

    Raises:
        DataError: If a source can't be used.
    """
    questions: dict[str, Question] = {}
    read: list[TrainingSource] = []
    for source in sources:
        table = _table(source, data_folder)
        read.append(_take(table, questions))
    return Rated(tuple(questions.values()), tuple(read), RatedBy(kind="people", name=PEOPLE))


def _table(source: str, data_folder: Path | None) -> Table:
    for name, each in offered().items():
        if source in (name, each.source.hub):
            return read_source(each.source, data_folder)
    return read_file(Path(source).expanduser())


def _take(table: Table, questions: dict[str, Question]) -> TrainingSource:
    rows = list(_rows(table))
    for row in rows:
        key = question_fingerprint(row.question)
        if key not in questions:
            references = (row.reference,) if isinstance(row.reference, str) else tuple(row.reference or ())
            questions[key] = Question(
                text=row.question,
                fingerprint=key,
                references=references,
                language=language_of(row.question, language=row.language, culture=row.associated_culture),
                category=row.category or "",
                culture=row.associated_culture or "",
            )
        question = questions[key]
        by = PEOPLE if row.response.strip() in question.references else row.model or row.source or ""
        question.answers.append(Answer(row.response, row.human_rating, by))
    return TrainingSource(
        kind="rows",
        name=Path(table.origin).name if table.local else table.origin,
        fingerprint=fingerprint(row.model_dump() for row in rows),
        responses=len(rows),
    )


def _rows(table: Table) -> Iterator[_Row]:
    aliases = {"references": "reference"}
    for each in offered().values():
        aliases |= each.aliases
    for start in range(0, len(table.rows), _AT_ONCE):
        part = table.part(range(start, min(start + _AT_ONCE, len(table.rows))))
        try:
            yield from validated(part, _Row, aliases)
        except DataError as error:
            raise DataError(f"preferences: {error}") from None

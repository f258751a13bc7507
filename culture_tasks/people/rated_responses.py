"""Rated responses: the one reader of their rows, of a benchmark's or of a file of the user's."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from culture_tasks.benchmarks.human_ratings import CultureKind, HumanRatings, OffersHumanRatings
from culture_tasks.benchmarks.registry import benchmarks, rubric_named, rubrics
from culture_tasks.data.files import Rows, read_file
from culture_tasks.data.reading import fingerprint
from culture_tasks.data.rows import OptionalLabel, TableRow, Text, checked, none_if_blank, or_raise
from culture_tasks.errors import DataError, JudgeError
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.settings import Settings
from culture_tasks.text import failure_in

NO_CATEGORY = "none"

PEOPLE = "people"
"""Who wrote a response that is a reference, and who rates where no judge does."""

RATING_COLUMNS = ("human_rating", "rating")
"""Columns of people's ratings, as CARE's newer and older revisions call them; the first that is there counts."""


@cache
def offered() -> Mapping[str, HumanRatings]:
    """Returns the rated responses that benchmarks offer, by benchmark."""
    return {
        name: benchmark.human_ratings()
        for name, benchmark in benchmarks().items()
        if isinstance(benchmark, OffersHumanRatings)
    }


# Rows


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Expected a number")
    return re.sub(r"(?<=\d),(?=\d)", ".", value) if isinstance(value, str) else value  # as spreadsheets may write it


Rating = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_number)]
"""A rating: a finite number."""

OptionalRating = Annotated[Rating | None, BeforeValidator(none_if_blank)]
"""A rating, or None; an empty field of a CSV file counts as none."""


class ResponseRow(TableRow):
    """One row of a table of responses; benchmarks and papers have other names of its columns, too."""

    question: Text
    reference: Text | Annotated[list[Text], Field(min_length=1)] | None = None
    response: str
    human_rating: OptionalRating = None
    rubric: OptionalLabel = None
    category: OptionalLabel = None
    language: OptionalLabel = None
    associated_culture: OptionalLabel = None
    source: OptionalLabel = None
    model: OptionalLabel = None
    translated_question: Any = None
    id: Any = None


class RatedRow(ResponseRow):
    """One row that a judge can grade and a person has rated."""

    reference: Text | Annotated[list[Text], Field(min_length=1)]
    human_rating: Rating


@dataclass(frozen=True, slots=True)
class RatedResponse:
    """A response in a row of a table."""

    row: int
    item: JudgeItem
    human: float | None  # on the scale of the rubric, if that is known
    rubric: str  # may be empty
    category: str  # a benchmark's, another one of the data, or ``none``
    language: str  # of the question: a code, or ``und``
    culture: CultureKind | None
    writer: str  # ``people``, a name in the data, or empty


def rating_column(table: Rows[Any]) -> str:
    """Returns the column of people's ratings in a table, by the name of the newer layout where it has none."""
    columns = {name for row in table.rows for name in row}
    return next((name for name in RATING_COLUMNS if name in columns), RATING_COLUMNS[0])


def rated_responses(
    table: Rows[Any], model: type[ResponseRow], settings: Settings, *, rubric: str | None = None
) -> Generator[RatedResponse | str, None, None]:
    """Yields the response of each row with people's rating, or what is wrong with the row.

    The rubric is the one named, or else that of the row or of its category.
    """
    column = rating_column(table)
    aliases = {name: field for ratings in offered().values() for name, field in ratings.aliases.items()}
    aliases |= {"references": "reference", column: "human_rating"}
    others = frozenset(RATING_COLUMNS) - {column}
    if any(others & row.keys() for row in table.rows):
        rows = [{name: value for name, value in row.items() if name not in others} for row in table.rows]
        table = replace(table, rows=rows)
    for found in checked(table, model, aliases, settings):
        if isinstance(found, str):
            yield found.replace("field 'human_rating':", f"field {column!r}:", 1)  # as the user's file calls it
            continue
        index, row = found
        try:
            yield _response(row, index + table.first_row, column, rubric or row.rubric)
        except DataError as error:
            yield f"{table.where(index)}, {error}"


def _response(row: ResponseRow, number: int, column: str, rubric: str | None) -> RatedResponse:
    references = (row.reference,) if isinstance(row.reference, str) else tuple(row.reference or ())
    category, name, lowest, highest = _grading(row.category, rubric)
    if row.human_rating is not None and not lowest <= row.human_rating <= highest:
        raise DataError(
            f"field {column!r}: found {row.human_rating:g}. Expected a number from {lowest:g} to {highest:g}, the "
            f"scale of the rubric {name}. Correct it, or leave the row out."
        )
    return RatedResponse(
        row=number,
        item=JudgeItem(row.question, references, row.response),
        human=row.human_rating,
        rubric=name,
        category=category,
        language=language_of(row.question, language=row.language, culture=row.associated_culture),
        culture=kind_of_culture(row.associated_culture),
        writer=PEOPLE if row.response.strip() in references else row.model or row.source or "",
    )


@lru_cache(maxsize=1_000)
def _grading(category: str | None, rubric: str | None) -> tuple[str, str, float, float]:
    """Returns the category that a text names, and the rubric for it with its scale, if there is one."""
    try:
        name = NO_CATEGORY if category is None else category_named(category)
        if rubric is not None:
            grader = rubric_named(rubric)
        elif fitting := [ratings for ratings in offered().values() if name in ratings.categories]:
            grader = fitting[0].rubric_for(name)
        else:
            return name, "", -math.inf, math.inf
    except JudgeError as error:
        raise DataError(f"field 'rubric': {error}") from None
    except DataError as error:
        raise DataError(f"field 'category': {error}") from None
    return name, grader.name, grader.lowest, grader.highest


def category_named(text: str) -> str:
    """Returns the category, of a benchmark or of the data alone; refuses a likely misspelling of a benchmark's."""
    return next(filter(None, (ratings.category_named(text) for ratings in offered().values())), text)


def rated_categories() -> list[str]:
    """Returns the categories of the benchmarks' rated responses, in the order of their papers' tables."""
    return list(dict.fromkeys(category for ratings in offered().values() for category in ratings.categories))


@lru_cache(maxsize=1_000)
def kind_of_culture(label: str | None) -> CultureKind | None:
    """Returns whose culture a label of the data means; None where it doesn't tell."""
    kinds = (ratings.kind_of_culture(label) for ratings in offered().values() if label is not None)
    return next(filter(None, kinds), None)


def table_of(data: str, settings: Settings) -> tuple[Rows[Any], HumanRatings | None]:
    """Reads a table: a benchmark's by its name or that of its data set on the Hub, with what it offers, or a file's."""
    for name, ratings in offered().items():
        if data in (name, ratings.source.hub):
            return ratings.source.read(settings), ratings
    return read_file(Path(data).expanduser()), None


# Responses that a judge grades


@dataclass(frozen=True, slots=True)
class RatedResponses:
    """The responses that are to be graded, in the order of the source (a file or a data set), and a hash of them.

    ``like`` are the rated responses whose layout these have; their paper's figures may stand beside these.
    """

    origin: str
    fingerprint: str
    like: HumanRatings | None
    responses: tuple[RatedResponse, ...]

    @property
    def verbatim(self) -> int:
        """Number of responses identical to a reference, which any judge rates high."""
        return sum(response.item.response.strip() in response.item.references for response in self.responses)


def load(
    data: str, settings: Settings, *, sample: int | None = None, seed: int = 0, rubric: str | None = None
) -> RatedResponses:
    """Loads responses with their human ratings, of a benchmark by its name or of a file, in the order of the source.

    One rubric grades all rows where it is named, else that of each row or of its category.

    Raises:
        DataError: If the file, a row, or the choice of rubrics can't be used.
        DataUnavailableError: If a benchmark's are neither in the data folder nor available from the Hub.
    """
    table, like = table_of(data, settings)
    origin = table.origin if like is None else " at commit ".join([table.origin, *table.reading.commits.values()])
    if like is None:
        columns = {name for row in table.rows[:1] for name in row}
        like = next((ratings for ratings in offered().values() if ratings.known_by <= columns), None)
    responses = list(or_raise(rated_responses(table, RatedRow, settings, rubric=rubric)))
    for response in responses:
        _check_gradable(response, table.where(response.row - table.first_row))
    if sample is not None and sample < len(responses):
        import numpy as np

        indices = np.random.default_rng(seed).choice(len(responses), size=sample, replace=False)
        responses = [responses[index] for index in sorted(indices)]
    graders = [rubric_named(name) for name in sorted({response.rubric for response in responses})]
    if len({(grader.lowest, grader.highest) for grader in graders}) > 1:
        scales = ", ".join(f"{grader.name} ({grader.lowest} to {grader.highest})" for grader in graders)
        raise DataError(
            f"{table.origin}: rubrics with different scales: {scales}. Ratings compare on one scale only. Choose one "
            "rubric with --rubric, or split the file."
        )
    rows = ({"row": response.row, "item": asdict(response.item), "human": response.human} for response in responses)
    return RatedResponses(origin, fingerprint(rows), like, tuple(responses))


def _check_gradable(response: RatedResponse, where: str) -> None:
    if failure := failure_in(response.item.response):
        raise DataError(
            f"{where}, field 'response': found no response, but the error of a request ({failure[:80]}). Take the row "
            "out."
        )
    if not response.rubric:
        raise DataError(
            f"{where}: no rubric for the category {response.category!r}. Either choose one for all rows with --rubric, "
            f"or add a column 'rubric', or a 'category' with one of {', '.join(rated_categories())}. "
            f"Rubrics are {', '.join(rubrics())}."
        )


# Languages


UNKNOWN = "und"
"""ISO 639's code for an undetermined language."""

_CODES: Mapping[str, str] = {
    **dict.fromkeys(("chinese", "china", "mandarin"), "zh"),
    **dict.fromkeys(("arabic", "arab"), "ar"),
    **dict.fromkeys(("japanese", "japan"), "ja"),
    "english": "en",
    "hindi": "hi",
    "spanish": "es",
    "swahili": "sw",
}
# Letters of one script each, without its punctuation and digits.
_KANA = re.compile("[\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\uff66-\uff9d]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_ARABIC = re.compile("[\u0620-\u064a\u066e-\u06d3\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]")
_LEAST_KANA = 0.2


@lru_cache(maxsize=1_000)  # the rows of a question mostly follow each other
def language_of(question: str, *, language: str | None = None, culture: str | None = None) -> str:
    """Returns a question's language as a code such as ``zh``, or ``und``.

    The first of these that is there: the ``language`` column, a code or an English name; a native culture, such
    as ``Native (Chinese)``; the script of the question.
    """
    if language is not None:
        name = language.strip().casefold().replace("_", "-")
        return _CODES.get(name, name.split("-")[0])
    for ratings in offered().values():
        native = ratings.native_language(culture) if culture else None
        if native and native.casefold() in _CODES:
            return _CODES[native.casefold()]
    return language_of_script(question)


def language_of_script(text: str) -> str:
    """Guesses Arabic, Chinese or Japanese from the script that most letters are in.

    Han with at least a fifth of kana is Japanese, since a Chinese text may quote a Japanese word; Japanese without kana
    passes for Chinese. Persian and Urdu pass for Arabic. Anything else is ``und``.
    """
    kana, han, arabic = (len(script.findall(text)) for script in (_KANA, _HAN, _ARABIC))
    other_letters = sum(mark.isalpha() for mark in text) - kana - han - arabic
    east_asian = kana + han
    if max(arabic, east_asian) <= other_letters or arabic == east_asian:
        return UNKNOWN
    if arabic > east_asian:
        return "ar"
    return "ja" if kana >= _LEAST_KANA * east_asian else "zh"

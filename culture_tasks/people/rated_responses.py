"""Human-rated responses: a benchmark's, from the Hub, or a file of the user's."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from culture_tasks.benchmarks.human_ratings import HumanRatings, OffersHumanRatings
from culture_tasks.benchmarks.registry import benchmarks, rubric_named, rubrics
from culture_tasks.data.files import RowTable, read_file
from culture_tasks.data.rows import OptionalLabel, TableRow, Text, checked, fingerprint, none_if_blank, or_raise, split
from culture_tasks.errors import DataError, JudgeError
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.settings import Settings
from culture_tasks.text import failure_in

_log = logging.getLogger(__name__)

NO_CATEGORY = "none"


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
    """One row of a table of responses; :func:`aliases` has other names of its columns."""

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

    @property
    def references(self) -> tuple[str, ...]:
        """The answers that count as right."""
        return (self.reference,) if isinstance(self.reference, str) else tuple(self.reference or ())


class GradableRow(ResponseRow):
    """One row that a judge can grade."""

    reference: Text | Annotated[list[Text], Field(min_length=1)]


class RatedRow(GradableRow):
    """One row that a judge can grade and a person has rated."""

    human_rating: Rating


def aliases() -> dict[str, str]:
    """Returns other names of columns, each with the field that it means."""
    benchmark_aliases = {name: column for ratings in offered().values() for name, column in ratings.aliases.items()}
    return {"references": "reference", **benchmark_aliases}


def category_of(where: str, text: str | None) -> str:
    """Returns the category, of a benchmark or of the data alone; refuses a likely misspelling of a benchmark's."""
    if text is None:
        return NO_CATEGORY
    try:
        return next(filter(None, (ratings.category_named(text) for ratings in offered().values())), text)
    except DataError as error:
        raise DataError(f"{where}: {error} Correct it, or choose a less similar name.") from None


def rubric_of(where: str, name: str | None, category: str) -> Rubric | None:
    """Returns the rubric of that name, or without one that of a benchmark's category; None for another category."""
    if name is None:
        return next(
            (ratings.rubric_for(category) for ratings in offered().values() if category in ratings.categories), None
        )
    try:
        return rubric_named(name)
    except JudgeError as error:
        raise DataError(f"{where}, field 'rubric': {error}") from None


def check_rating(where: str, column: str, rating: float, rubric: Rubric, way_out: str) -> None:
    """Raises a DataError, which ends with a way out, where a rating isn't on the scale of its rubric."""
    if not rubric.lowest <= rating <= rubric.highest:
        raise DataError(
            f"{where}, field {column!r}: found {rating:g}. Expected a number from {rubric.lowest} to {rubric.highest}, "
            f"the scale of the rubric {rubric.name}. {way_out}"
        )


# Responses that a judge grades


@dataclass(frozen=True, slots=True)
class RatedResponse:
    """A response in a row of the source, with its human rating on the rubric's scale, None without one.

    The category is a benchmark's, another one of the data, or ``none``; the language is that of the question, as a code
    or ``und``.
    """

    row: int
    item: JudgeItem
    human: float | None
    rubric: str
    category: str
    language: str


@dataclass(frozen=True, slots=True)
class RatedResponses:
    """The responses that are to be graded, in the order of the source (a file or a data set), and a hash of them.

    ``like`` are the rated responses whose layout these have; their paper's figures may stand beside these.
    """

    origin: str
    fingerprint: str
    like: HumanRatings | None
    skipped: int
    responses: tuple[RatedResponse, ...]

    @property
    def verbatim(self) -> int:
        """Number of responses identical to a reference, which any judge rates high."""
        return sum(response.item.response.strip() in response.item.references for response in self.responses)


def load(
    data: str,
    settings: Settings,
    *,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    rubric: str | None = None,
    skip_invalid: bool = False,
    needs_human: bool = True,
) -> RatedResponses:
    """Loads responses with their human ratings, of a benchmark by its name or of a file, in the order of the source.

    Either the first rows are used, up to a limit, or a sample of all. One rubric grades all rows where it is named,
    else that of each row or of its category. ``needs_human`` requires a human rating in every row.

    Raises:
        DataError: If the file, a row, or the choice of rubrics can't be used.
        DataUnavailableError: If a benchmark's are neither in the data folder nor available from the Hub.
    """
    like = offered().get(data)
    origin = ""
    if like is not None:
        (table,) = like.source.read(settings)
        origin = " at commit ".join([table.origin, *table.reading.commits.values()])
    else:
        table = read_file(Path(data).expanduser())
        columns = {name for row in table.rows[:1] for name in row}
        like = next((ratings for ratings in offered().values() if ratings.known_by <= columns), None)
    model = RatedRow if needs_human else GradableRow
    usable = _usable(table, model, settings, rubric=rubric, skip_invalid=skip_invalid)
    responses = usable[:limit]
    if sample is not None and sample < len(usable):
        import numpy as np

        indices = np.random.default_rng(seed).choice(len(usable), size=sample, replace=False)
        responses = [usable[index] for index in sorted(indices)]
    graders = [rubric_named(name) for name in sorted({response.rubric for response in responses})]
    if len({(grader.lowest, grader.highest) for grader in graders}) > 1:
        scales = ", ".join(f"{grader.name} ({grader.lowest} to {grader.highest})" for grader in graders)
        raise DataError(
            f"{table.origin}: rubrics with different scales: {scales}. Ratings compare on one scale only. Choose one "
            "rubric with --rubric, or split the file."
        )
    rows = ({"row": response.row, "item": asdict(response.item), "human": response.human} for response in responses)
    return RatedResponses(
        origin=origin or table.origin,
        fingerprint=fingerprint(rows),
        like=like,
        skipped=len(table.rows) - len(usable),
        responses=tuple(responses),
    )


def _usable(
    table: RowTable, model: type[ResponseRow], settings: Settings, *, rubric: str | None, skip_invalid: bool
) -> list[RatedResponse]:
    found = checked(table, model, aliases(), settings)
    rows, problems = split(found) if skip_invalid else (list(or_raise(found)), [])
    usable: list[RatedResponse] = []
    for index, row in rows:
        try:
            usable.append(_response(table.where(index), index + table.first_row, row, rubric=rubric))
        except DataError as error:
            if not skip_invalid:
                raise
            problems.append(str(error))
    if not usable:
        raise DataError(f"agreement: none of the {len(table.rows)} rows can be used. The first: {problems[0]}")
    if problems:
        skipped = len(table.rows) - len(usable)
        _log.warning("agreement: %d of %d rows left out; the first: %s", skipped, len(table.rows), problems[0])
    return usable


def _response(where: str, number: int, row: ResponseRow, *, rubric: str | None) -> RatedResponse:
    if failure := failure_in(row.response):
        raise DataError(
            f"{where}, field 'response': found no response, but the error of a request ({failure[:80]}). Take the row "
            "out, or leave bad rows out with --skip-invalid."
        )
    category = category_of(f"{where}, field 'category'", row.category)
    graded_by = rubric_of(where, row.rubric if rubric is None else rubric, category)
    if graded_by is None:
        raise DataError(
            f"{where}: no rubric for the category {category!r}. Either choose one for all rows with --rubric, or "
            f"add a column 'rubric', or a 'category' with one of {', '.join(rated_categories())}. "
            f"Rubrics are {', '.join(rubrics())}."
        )
    if row.human_rating is not None:
        way_out = "Correct it, or leave bad rows out with --skip-invalid."
        check_rating(where, "human_rating", row.human_rating, graded_by, way_out)
    return RatedResponse(
        row=number,
        item=JudgeItem(row.question, row.references, row.response),
        human=row.human_rating,
        rubric=graded_by.name,
        category=category,
        language=language_of(row.question, language=row.language, culture=row.associated_culture),
    )


def rated_categories() -> list[str]:
    """Returns the categories of the benchmarks' rated responses, in the order of their papers' tables."""
    return list(dict.fromkeys(category for ratings in offered().values() for category in ratings.categories))


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

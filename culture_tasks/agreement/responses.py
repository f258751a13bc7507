"""Human-rated responses: CARE's from the Hub, or the user's own file."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.agreement.languages import language_of
from culture_tasks.agreement.rows import ALIASES, CARE_COLUMNS, RatedRow, ResponseRow
from culture_tasks.benchmarks.care.categories import CATEGORIES, RELEASED_NAMES, category_of, rubric_for
from culture_tasks.benchmarks.rubrics import RUBRICS, rubric_named
from culture_tasks.data.fingerprint import fingerprint
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import Table, read_file, validated
from culture_tasks.errors import DataError, JudgeError, nearest
from culture_tasks.judges.verdicts import JudgeItem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culture_tasks.judges.rubrics import Rubric

_log = logging.getLogger(__name__)

CARE = Source(
    folder="care_ratings",
    stems=("train", "data/train-00000-of-00001", "train-00000-of-00001"),
    hub="geyang627/CARE",
    split="train",
)
"""CARE's rated responses (Guo et al., 2025, section 3.2)."""

NO_CATEGORY = "none"


@dataclass(frozen=True, slots=True)
class RatedResponse:
    """A response with its human rating.

    Attributes:
        row: Row in the source, as messages count it.
        item: What a judge is asked to grade.
        human: The human rating on the rubric's scale; None where two judges are compared without people.
        rubric: Name of the rubric that grades it.
        category: CARE's category, the data's own word for it, or ``none``.
        language: Language code of the question, or ``und``.
    """

    row: int
    item: JudgeItem
    human: float | None
    rubric: str
    category: str
    language: str


@dataclass(frozen=True, slots=True)
class RatedResponses:
    """What is to be graded.

    Attributes:
        origin: File, or name of the Hub data set.
        fingerprint: Hash of the responses that were kept.
        is_care: Whether these are CARE's rated responses, which the paper's figures are about.
        skipped: Rows that were left out because they can't be used.
        responses: The responses, in the order of the source.
    """

    origin: str
    fingerprint: str
    is_care: bool
    skipped: int
    responses: tuple[RatedResponse, ...]

    @property
    def verbatim(self) -> int:
        """Number of responses that are a reference word for word, which any judge rates high."""
        return sum(response.item.response.strip() in response.item.references for response in self.responses)

    @property
    def scale(self) -> tuple[int, int]:
        """Lowest and highest rating."""
        rubric = rubric_named(self.responses[0].rubric)
        return rubric.lowest, rubric.highest


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows to use.

    Attributes:
        limit: The first so many; None means all.
        sample: So many drawn at random without replacement, in the order of the source; None means all.
        seed: Seed of the draw.
        rubric: Name of the rubric for all rows; None means the row's own, or that of its CARE category.
        skip_invalid: Leave out rows that can't be used, instead of refusing the file.
        needs_human: Whether every row needs a human rating.
    """

    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    rubric: str | None = None
    skip_invalid: bool = False
    needs_human: bool = True


def load(data: str, data_folder: Path | None, selection: Selection) -> RatedResponses:
    """Loads responses with their human ratings.

    Args:
        data: ``care`` for CARE's rated responses, or a JSON, JSONL, CSV or Parquet file.
        data_folder: The user's data folder, where CARE is looked for before the Hub.
        selection: Which rows to use.

    Raises:
        DataError: If the file, a row, or the choice of rubrics can't be used.
        DataUnavailableError: If CARE is neither in the data folder nor to be had from the Hub.
    """
    table = read_source(CARE, data_folder) if data == "care" else read_file(Path(data).expanduser())
    is_care = data == "care" or {name for row in table.rows[:1] for name in row} >= CARE_COLUMNS
    usable, skipped = _usable(table, selection) if selection.skip_invalid else (_all(table, selection), 0)
    responses = _picked(usable, selection)
    _check_scales(table, responses)
    rows = ({"row": response.row, "item": asdict(response.item), "human": response.human} for response in responses)
    return RatedResponses(table.origin, fingerprint(rows), is_care, skipped, responses)


def _all(table: Table, selection: Selection) -> list[RatedResponse]:
    rows = validated(table, _model(selection), ALIASES)
    return [_response(table, index, row, selection) for index, row in enumerate(rows)]


def _usable(table: Table, selection: Selection) -> tuple[list[RatedResponse], int]:
    usable: list[RatedResponse] = []
    problems: list[str] = []
    for index, content in enumerate(table.rows):
        part = replace(table, rows=[content], images=None, first_row=table.first_row + index)
        try:
            row = validated(part, _model(selection), ALIASES)[0]
            usable.append(_response(table, index, row, selection))
        except DataError as error:
            problems.append(str(error))
    if problems:
        _log.warning("agreement: %d of %d rows left out; the first: %s", len(problems), len(table.rows), problems[0])
    if not usable:
        raise DataError(f"agreement: none of the {len(table.rows)} rows can be used. The first: {problems[0]}")
    return usable, len(problems)


def _picked(responses: Sequence[RatedResponse], selection: Selection) -> tuple[RatedResponse, ...]:
    if selection.sample is not None and selection.sample < len(responses):
        rng = np.random.default_rng(selection.seed)
        chosen = rng.choice(len(responses), size=selection.sample, replace=False)
        return tuple(responses[index] for index in sorted(chosen))
    return tuple(responses[: selection.limit])


def _model(selection: Selection) -> type[ResponseRow]:
    return RatedRow if selection.needs_human else ResponseRow


def _response(table: Table, index: int, row: ResponseRow, selection: Selection) -> RatedResponse:
    where = table.where(index)
    category = _category(where, row.category)
    rubric = _rubric(where, row, category, selection.rubric)
    if row.human_rating is not None and not rubric.lowest <= row.human_rating <= rubric.highest:
        raise DataError(
            f"{where}, field 'human_rating': found {row.human_rating:g}. Needed is a number from {rubric.lowest} to "
            f"{rubric.highest}, the scale of the rubric {rubric.name}. "
            "Correct it, or leave such rows out with --skip-invalid."
        )
    references = (row.reference,) if isinstance(row.reference, str) else tuple(row.reference)
    return RatedResponse(
        row=index + table.first_row,
        item=JudgeItem(row.question, references, row.response),
        human=row.human_rating,
        rubric=rubric.name,
        category=category,
        language=language_of(row.question, language=row.language, culture=row.associated_culture),
    )


def _category(where: str, text: str | None) -> str:
    """Returns CARE's category, or the data's own word, unless that is one of CARE's misspelt."""
    if text is None:
        return NO_CATEGORY
    try:
        return category_of(text)
    except DataError as error:
        if nearest(text, (*RELEASED_NAMES.values(), *CATEGORIES)):
            raise DataError(
                f"{where}, field 'category': {error} Correct it, or choose a word that is less alike."
            ) from None
        return text


def _rubric(where: str, row: ResponseRow, category: str, chosen: str | None) -> Rubric:
    name = chosen or row.rubric
    if name is not None:
        try:
            return rubric_named(name)
        except JudgeError as error:
            raise DataError(f"{where}, field 'rubric': {error}") from None
    if category in CATEGORIES:
        return rubric_for(category_of(category))
    raise DataError(
        f"{where}: no rubric for the category {category!r}. Either choose one for all rows with --rubric, or "
        f"add a column 'rubric', or a 'category' with one of {', '.join(CATEGORIES)}. Rubrics are {', '.join(RUBRICS)}."
    )


def _check_scales(table: Table, responses: Sequence[RatedResponse]) -> None:
    rubrics = [rubric_named(name) for name in sorted({response.rubric for response in responses})]
    scales = {(rubric.lowest, rubric.highest) for rubric in rubrics}
    if len(scales) > 1:
        found = ", ".join(f"{rubric.name} ({rubric.lowest} to {rubric.highest})" for rubric in rubrics)
        raise DataError(
            f"{table.origin}: rubrics with different scales: {found}. Ratings compare on one scale only. Choose one "
            "rubric with --rubric, or split the file."
        )

"""CulturalBench's questions as documents of a harness: with four options (Easy), or one judgement an option (Hard)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator

from culture_tasks.benchmarks.choices import in_order
from culture_tasks.benchmarks.interface import Documents
from culture_tasks.data.releases import ReleaseFacts, check_release
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import (
    Identifier,
    Label,
    OptionalIdentifier,
    OptionalText,
    RowTable,
    TableRow,
    Text,
    fingerprint,
    unique,
    validated,
)
from culture_tasks.errors import DataError, nearest
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

QUESTIONS = 1_227
"""Questions of the released data; the paper's second version speaks of 1,696."""

OPTIONS = ("A", "B", "C", "D")

COUNTRIES = (
    *("Argentina", "Australia", "Bangladesh", "Brazil", "Canada", "Chile", "China", "Czech Republic", "Egypt"),
    *("France", "Germany", "Hong Kong", "India", "Indonesia", "Iran", "Israel", "Italy", "Japan", "Lebanon"),
    *("Malaysia", "Mexico", "Morocco", "Nepal", "Netherlands", "New Zealand", "Nigeria", "Pakistan", "Peru"),
    *("Philippines", "Poland", "Romania", "Russia", "Saudi Arabia", "Singapore", "South Africa", "South Korea"),
    *("Spain", "Taiwan", "Thailand", "Turkey", "Ukraine", "United Kingdom", "United States", "Vietnam", "Zimbabwe"),
)
"""The countries and regions of the data."""


def _source(config: str, rows: int) -> Source:
    return Source(
        folder="culturalbench",
        stems=(f"CulturalBench-{config}", config.lower()),
        hub="kellycyy/CulturalBench",
        config=f"CulturalBench-{config}",
        release=ReleaseFacts(
            rows=rows,
            culture="country",
            fits=lambda country: country in COUNTRIES,
            expected=f"one of {', '.join(COUNTRIES)}",
        ),
    )


EASY = _source("Easy", QUESTIONS)
HARD = _source("Hard", QUESTIONS * len(OPTIONS))


def _is_true(value: Any) -> Any:
    """Reads the truth values of CSV files."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def _an_option(letter: str) -> str:
    if letter not in OPTIONS:
        raise ValueError(f"{nearest(letter, OPTIONS)} Allowed are {', '.join(OPTIONS)}".strip())
    return letter


class EasyRow(TableRow):
    """A question with its options."""

    data_idx: OptionalIdentifier = None
    question_idx: Identifier
    prompt_question: Text
    prompt_option_a: Text
    prompt_option_b: Text
    prompt_option_c: Text
    prompt_option_d: Text
    answer: Annotated[Label, AfterValidator(_an_option)]
    country: Label


class HardRow(TableRow):
    """One option of a question, right or wrong. Some rows of the release have no option."""

    data_idx: OptionalIdentifier = None
    question_idx: Identifier
    prompt_question: Text
    prompt_option: OptionalText = None
    answer: Annotated[Literal[True, False], BeforeValidator(_is_true)]
    country: Label


def prompt_of(form: Literal["easy", "hard"]) -> PromptFile:
    """Returns the prompt of a form."""
    return prompt_file(__package__, f"{form}.v1")


def load_easy(settings: Settings) -> Documents:
    """Loads the questions with four options.

    Raises:
        DataError: If they can't be used.
    """
    table = read_source(EASY, settings.data_folder)
    rows = validated(table, EasyRow)
    ids = list(unique(table, (row.question_idx for row in rows), "question_idx"))
    _check_release(EASY, table, rows)
    data = fingerprint(row.model_dump() for row in rows)
    documents = []
    for question, row in zip(ids, rows, strict=True):
        texts = (row.prompt_option_a, row.prompt_option_b, row.prompt_option_c, row.prompt_option_d)
        options = dict(zip(OPTIONS, texts, strict=True))
        options, answer = in_order(options, row.answer, item=question, order=settings.option_order)
        documents.append(
            {
                "id": f"{question}",
                "question_id": question,
                "country": row.country,
                "question": row.prompt_question,
                "options": list(options.values()),
                "answer": answer,
                "data": data,
            }
        )
    return Documents(documents, has_options=True)


def load_hard(settings: Settings) -> Documents:
    """Loads the options of all questions that have four, each as a statement to judge.

    Raises:
        DataError: If they can't be used.
    """
    table = read_source(HARD, settings.data_folder)
    rows = validated(table, HardRow)
    for problem in contradictory(table, dict(enumerate(rows))):
        raise DataError(problem)
    _check_release(HARD, table, rows)
    data = fingerprint(row.model_dump() for row in rows)
    counts = Counter(row.question_idx for row in rows if row.prompt_option is not None)
    whole = [row for row in rows if counts[row.question_idx] == len(OPTIONS)]
    if left_out := len({row.question_idx for row in rows}) - len({row.question_idx for row in whole}):
        _log.warning(
            "%s: %d questions don't have four options and are left out: right judgements of fewer are easier.",
            table.origin,
            left_out,
        )
    if not whole:
        raise DataError(f"{table.origin}: found no question with four rows that have an option. Add the rows.")
    places: Counter[str] = Counter()
    documents = []
    for row in whole:
        places[row.question_idx] += 1
        documents.append(
            {
                "id": f"{row.question_idx}-{places[row.question_idx]}",
                "question_id": row.question_idx,
                "country": row.country,
                "question": row.prompt_question,
                "option": row.prompt_option,
                "answer": str(row.answer),
                "data": data,
            }
        )
    return Documents(documents)


def contradictory(table: RowTable, rows: Mapping[int, HardRow]) -> list[str]:
    """Returns what is wrong between the rows of a question: two wordings, too many options, or none that is right."""
    first: dict[str, int] = {}
    problems = []
    for index, row in rows.items():
        known = rows[first.setdefault(row.question_idx, index)]
        if (row.prompt_question, row.country) != (known.prompt_question, known.country):
            problems.append(
                f"{table.where(index)}, field 'question_idx': {row.question_idx!r} has another question or country in "
                f"{table.where(first[row.question_idx])}. Expected the same in all rows of a question."
            )
    counts = Counter(row.question_idx for row in rows.values())
    right = {row.question_idx for row in rows.values() if row.answer}
    for question, index in first.items():
        if counts[question] > len(OPTIONS) or question not in right:
            found = f"{counts[question]} rows" if question in right else "no row with the answer true"
            problems.append(
                f"{table.where(index)}, field 'question_idx': found {found} for {question!r}. Expected at most "
                f"{len(OPTIONS)}, one of them true. Correct the rows."
            )
    return problems


def _check_release(source: Source, table: RowTable, rows: Sequence[BaseModel]) -> None:
    check_release(source.release, table, [vars(row) for row in rows])

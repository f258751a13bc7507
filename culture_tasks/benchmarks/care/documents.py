"""CARE's test questions as documents of a harness, ``culture-tasks data check care``, and CARE's rated responses."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypedDict, get_args

from pydantic import AfterValidator

from culture_tasks.benchmarks.care.rubrics import RUBRIC_FOR
from culture_tasks.benchmarks.human_ratings import CultureKind, HumanRatings, PublishedAgreement
from culture_tasks.benchmarks.interface import Documents
from culture_tasks.data.checking import Count, count, tally
from culture_tasks.data.rows import (
    Label,
    OptionalIdentifier,
    OptionalLabel,
    OptionalText,
    TableRow,
    Text,
)
from culture_tasks.data.tables import Release, Rows, Table
from culture_tasks.errors import DataError, nearest
from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

Language = Literal["ar", "ja", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

PEOPLE: Mapping[str, str] = {"ar": "Arab", "ja": "Japanese", "zh": "Chinese"}
"""What the paper's role-play prompt (Figure 8) calls a native speaker."""

LANGUAGE_NAMES: Mapping[str, str] = {"zh": "Chinese", "ar": "Arabic", "ja": "Japanese"}
"""Names of the languages, in the order of the paper's tables."""

Category = Literal["entities", "opinion", "norms", "commonsense", "literacy"]  # as in the paper's tables
CATEGORIES: tuple[Category, ...] = get_args(Category)

RELEASED_NAMES: Mapping[str, str] = {
    "entities": "Cultural entities",
    "opinion": "Opinion",
    "norms": "Social norms",
    "commonsense": "Cultural commonsense",
    "literacy": "Literacy",
}
"""How the released data spell each category."""

_SPELLINGS: dict[str, Category] = {
    **{category: category for category in CATEGORIES},
    "entity": "entities",
    "opinions": "opinion",
    "norm": "norms",
    "csense": "commonsense",
}

Scope = Literal["sub_nationwide", "nationwide", "continent_wide", "worldwide"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
RELEASED_SCOPES: Mapping[str, str] = {scope: scope.replace("_", "-").capitalize() for scope in SCOPES}

QUESTIONS, QUESTIONS_PER_CATEGORY = 150, 30  # in the test of each culture (section 5)


class CareDoc(TypedDict):
    """One question; ``question`` and ``answer`` are in English in the cross-lingual variant (section 5.2)."""

    id: str
    language: str
    prompt_language: str
    question: str
    answer: str
    category: str
    culture: str
    scope: str
    data: str


def category_of(text: str) -> Category:
    """Returns the category that a text names; raises DataError if it names none of the five.

    Case, spaces and punctuation don't matter, nor does a leading ``cultural`` or ``social``: ``Cultural entities``,
    ``entities`` and ``CULTURAL_ENTITIES`` are one. The paper's ``C. sense`` is ``commonsense``.
    """
    letters = re.sub(r"[^a-z]", "", text.casefold())
    category = _SPELLINGS.get(re.sub(r"^(?:cultural|social)(?=.)", "", letters))
    if category is None:
        allowed = ", ".join(repr(name) for name in RELEASED_NAMES.values())
        hint = nearest(text, [*RELEASED_NAMES.values(), *CATEGORIES])
        raise DataError(
            f"care: unknown category {text!r}.{hint} Expected one of {allowed}, or {', '.join(CATEGORIES)}."
        )
    return category


def _a_category(text: str) -> Category:
    try:
        return category_of(text)
    except DataError as error:
        raise ValueError(str(error)) from None


def _a_scope(text: str) -> Scope:
    # Letters alone: the data have "Sub-nationwide" and "National-wide".
    letters = re.sub(r"[^a-z]", "", text.casefold()).replace("nationalwide", "nationwide")
    if scope := next((scope for scope in SCOPES if letters == scope.replace("_", "")), None):
        return scope
    raise ValueError(f"{nearest(text.casefold(), SCOPES)} Expected one of {', '.join(SCOPES)}".strip())


class CareRow(TableRow):
    """One row as released: Hub ``geyang627/CARE-eval`` or the JSON files of the authors' repository."""

    question: Text
    answer: Text
    culture_type: Annotated[str, AfterValidator(_a_category)]
    associated_culture: Label
    geographic_scope: Annotated[str, AfterValidator(_a_scope)]
    id: OptionalIdentifier = None
    source: OptionalLabel = None
    question_en: OptionalText = None
    answer_en: OptionalText = None


def _problems(found: Rows[CareRow]) -> Iterator[str]:
    return _repeats(found) if found.table.local else iter(())


def _repeats(found: Rows[CareRow]) -> Iterator[str]:
    """Yields a message for each row with the question and the answer of an earlier one, which would weigh twice."""
    first_rows: dict[tuple[str, str], int] = {}
    for index, row in enumerate(found.rows):
        first = first_rows.setdefault((row.question.strip(), row.answer.strip()), index)
        if first != index:
            yield (
                f"{found.where(index)}, field 'question': found {row.question!r:.80} with the answer of "
                f"{found.where(first)}. Expected a different question in each row. Remove one of them."
            )


def _counts(language: str, rows: Sequence[CareRow], *, is_release: bool) -> Iterator[Count]:
    categories = (row.culture_type for row in rows)
    yield count(f"{language}: questions", len(rows), QUESTIONS if is_release else None)
    yield from tally(f"{language}: {{}}", categories, CATEGORIES, QUESTIONS_PER_CATEGORY if is_release else None)
    yield from tally(f"{language}: {{}}", (row.geographic_scope for row in rows), SCOPES)
    translated = sum(row.question_en is not None and row.answer_en is not None for row in rows)
    yield count(f"{language}: with English translations, for care_en", translated)


def _table(language: Language) -> Table[CareRow]:
    name, people = LANGUAGE_NAMES[language], PEOPLE[language]
    return Table(
        model=CareRow,
        folder="care",
        stems=(f"{name}-test", f"{name}_test", name.lower()),
        hub="geyang627/CARE-eval",
        config=name.lower(),
        aliases={
            "cul_type": "culture_type",
            **dict.fromkeys(("english_question", "question_english"), "question_en"),
            **dict.fromkeys(("english_answer", "answer_english"), "answer_en"),
        },
        id="id",
        release=Release(
            rows=QUESTIONS,
            questions=20,  # 40 of each language are known
            culture="associated_culture",
            fits=lambda culture: people.casefold() in culture.casefold(),
            expected=f"a culture that is {people}, such as 'Native ({people})'",
        ),
        rules=_problems,
        counts=partial(_counts, language, is_release=True),
    )


TABLES: Mapping[Language, Table[CareRow]] = {language: _table(language) for language in LANGUAGES}


def culture_table(folder: Path, language: str) -> Table[CareRow]:
    """Returns the table of an own culture, which has no counts of the paper's."""
    return TABLES["zh"].of_culture(folder, counts=partial(_counts, language, is_release=False))


def load(table: Table[CareRow], language: str, settings: Settings, *, english: bool) -> Documents:
    """Loads the test questions of a table, which are in a language, or their English translations."""
    found = table.rows(settings)
    if not found.table.local and (repeats := list(_repeats(found))):
        _log.warning("%s (%d in all)", repeats[0], len(repeats))
    if english:
        found.require(
            "The care_en_… tasks need English translations in the columns question_en and answer_en. Add them, or run "
            "the tasks in the culture's own language.",
            question_en="question_en",
            answer_en="answer_en",
        )
    data = found.fingerprint()
    documents = [
        CareDoc(
            id=f"{language}-{identifier}",
            language=language,
            prompt_language="en" if english else language,
            question=row.question_en or "" if english else row.question,
            answer=row.answer_en or "" if english else row.answer,
            category=row.culture_type,
            culture=row.associated_culture,
            scope=row.geographic_scope,
            data=data,
        )
        for identifier, row in found
    ]
    return Documents(documents, reading=found.reading)


# Responses with native annotators' ratings, and the agreement that the paper reports


def _category(text: str) -> str | None:
    try:
        return category_of(text)
    except DataError:
        if nearest(text, (*RELEASED_NAMES.values(), *CATEGORIES)):
            raise
        return None


def _native_language(culture: str) -> str | None:
    """Says the language of a native culture; a foreign one is asked about in any of CARE's three languages."""
    native = re.match(r"\s*native\b[\s:(\[-]*([a-z]+)", culture, re.IGNORECASE)
    return native.group(1) if native else None


def _kind_of_culture(culture: str) -> CultureKind | None:
    """Says which of section 3.3's three labels a culture has: "Native (Chinese)", "foreign: US", "General"."""
    first = re.match(r"[a-z]*", culture.strip().casefold())
    return next((kind for kind in get_args(CultureKind) if first and kind == first.group()), None)


HUMAN_RATINGS = HumanRatings(
    about="CARE's 28,091 rated responses",
    source=Table(
        model=TableRow,  # people.rated_responses has the model of rated rows
        folder="care_ratings",
        stems=("train", "data/train-00000-of-00001", "train-00000-of-00001"),
        hub="geyang627/CARE",
        split="train",
    ),
    aliases={
        "answer": "reference",
        "cul_type": "category",
        "culture_type": "category",
        "translated_question (optional)": "translated_question",
    },
    known_by=frozenset({"answer", "human_rating", "cul_type", "associated_culture"}),
    categories=CATEGORIES,
    category_named=_category,
    rubric_for=lambda category: RUBRIC_FOR[category_of(category)],
    native_language=_native_language,
    kind_of_culture=_kind_of_culture,
    tests=("care",),
    published=(
        # Appendix C.2 names neither the rows nor the variant of tau.
        PublishedAgreement(
            name="gpt_4o",
            raters="paper: GPT-4o",
            dimension="overall",
            figures={"all": {"pearson": "0.933", "spearman": "0.901", "kendall_tau_b": "0.733"}},
        ),
        # Table 2 doesn't name alpha's level.
        PublishedAgreement(
            name="second_annotator",
            raters="paper: second annotator",
            dimension="language",
            figures={
                "ar": {"pearson": "0.90", "spearman": "0.88", "kendall_tau_b": "0.71", "krippendorff_alpha": "0.86"},
                "zh": {"pearson": "0.89", "spearman": "0.89", "kendall_tau_b": "0.75", "krippendorff_alpha": "0.84"},
                "ja": {"pearson": "0.93", "spearman": "0.92", "kendall_tau_b": "0.77", "krippendorff_alpha": "0.92"},
            },
        ),
    ),
    published_in="CARE (Guo et al., 2025), Appendix C.2 and Table 2: the paper's figures, not measured here",
)

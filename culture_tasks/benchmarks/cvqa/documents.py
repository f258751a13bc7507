"""CVQA's questions as documents of a harness, in the local language or in English."""

from __future__ import annotations

import ast
from typing import Annotated, Any

from annotated_types import Len
from pydantic import BeforeValidator, Field

from culture_tasks.benchmarks.choices import in_order
from culture_tasks.benchmarks.interface import Documents
from culture_tasks.data.images import image_column
from culture_tasks.data.releases import ReleaseFacts, check_release
from culture_tasks.data.sources import Source, folder_of, read_source
from culture_tasks.data.tables import Identifier, Label, OptionalLabel, TableRow, Text, fingerprint, unique, validated
from culture_tasks.settings import Settings

QUESTIONS = 10_374
PAIRS = 39

COUNTRIES = (
    *("Argentina", "Brazil", "Bulgaria", "Chile", "China", "Colombia", "Ecuador", "Egypt", "Ethiopia", "France"),
    *("India", "Indonesia", "Ireland", "Japan", "Kenya", "Malaysia", "Mexico", "Mongolia", "Nigeria", "Norway"),
    *("Pakistan", "Philippines", "Romania", "Russia", "Rwanda", "Singapore", "South Korea", "South_Korea", "Spain"),
    *("Sri Lanka", "Sri_Lanka", "Uruguay"),
)
"""Its 30 countries; those of two words are spelled in either way."""

LANGUAGES = (
    *("am", "ar", "bg", "bn", "br", "es", "fil", "ga", "hi", "id", "ig", "ja", "jv", "ko", "min", "mn", "mr", "ms"),
    *("no", "om", "pt", "ro", "ru", "rw", "si", "su", "sw", "ta", "te", "ur", "zh"),
)
"""ISO codes of its 31 languages. Arabic is Egypt's."""

OPTIONS = ("A", "B", "C", "D")

SOURCE = Source(
    folder="cvqa",
    stems=("test", "cvqa"),
    hub="afaji/cvqa",
    image_column="image",
    release=ReleaseFacts(rows=QUESTIONS),
)

ALIASES = {
    "ID": "id",
    "Subset": "subset",
    "Question": "question",
    "Translated Question": "question_en",
    "Options": "options",
    "Translated Options": "options_en",
    "Label": "label",
    "Category": "category",
    "Image Type": "image_type",
    "Image Source": "image_source",
    "License": "license",
}


def _literal(value: Any) -> Any:
    """Reads a list or pair that is printed as in Python, as the pairs are, and the options of an older revision."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("Expected texts in brackets, such as ('Tamil', 'India')") from None


Texts = Annotated[list[Text], BeforeValidator(_literal), Len(4, 4)]


class QuestionRow(TableRow):
    """A question in both languages."""

    id: Identifier
    subset: Annotated[tuple[Label, Label], BeforeValidator(_literal)]
    question: Text
    question_en: Text
    options: Texts
    options_en: Texts
    label: Annotated[int, Field(ge=0, le=3)]
    category: Label
    image: OptionalLabel = None
    image_type: OptionalLabel = None
    image_source: OptionalLabel = None
    license: OptionalLabel = None


def load(settings: Settings, *, english: bool) -> Documents:
    """Loads the questions in one of their two languages.

    Raises:
        DataError: If they can't be used.
    """
    table = read_source(SOURCE, settings.data_folder)
    rows = validated(table, QuestionRow, ALIASES)
    ids = unique(table, (row.id for row in rows), "ID")
    check_release(SOURCE.release, table, list(map(vars, rows)))
    data = fingerprint(row.model_dump(include={"id", "question", "question_en", "options", "label"}) for row in rows)
    documents = []
    for identifier, row in zip(ids, rows, strict=True):
        options = dict(zip(OPTIONS, row.options_en if english else row.options, strict=True))
        options, answer = in_order(options, OPTIONS[row.label], item=identifier, order=settings.option_order)
        documents.append(
            {
                "id": identifier,
                # Before the underscore stands the image.
                "image_id": identifier.rpartition("_")[0] or identifier,
                "language": row.subset[0],
                "country": row.subset[1],
                "category": row.category,
                "question": row.question_en if english else row.question,
                "options": list(options.values()),
                "answer": answer,
                "license": row.license or "",
                "data": data,
            }
        )
    folder = folder_of(SOURCE, settings.data_folder)
    return Documents(documents, image_column(table, [row.image for row in rows], folder), has_options=True)

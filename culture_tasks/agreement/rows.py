"""What a row of rated responses may hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from culture_tasks.data.tables import OptionalLabel, Text

ALIASES = {
    "answer": "reference",
    "references": "reference",
    "cul_type": "category",
    "culture_type": "category",
    "translated_question (optional)": "translated_question",
}
"""Other names of columns: the CARE releases', and plurals."""

CARE_COLUMNS = frozenset({"answer", "human_rating", "cul_type", "associated_culture"})
"""Columns by which CARE's own layout is known."""


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Needed is a number")
    return value


def _none_if_blank(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


_Rating = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_number)]


class ResponseRow(BaseModel):
    """One row; ``reference`` may be called ``references`` or ``answer``, ``category`` ``cul_type``."""

    model_config = ConfigDict(extra="forbid")

    question: Text
    reference: Text | Annotated[list[Text], Field(min_length=1)]
    response: str
    human_rating: Annotated[_Rating | None, BeforeValidator(_none_if_blank)] = None
    rubric: OptionalLabel = None
    category: OptionalLabel = None
    language: OptionalLabel = None
    associated_culture: OptionalLabel = None
    source: str | None = None
    translated_question: str | None = None
    id: str | int | None = None
    model: str | None = None


class RatedRow(ResponseRow):
    """One row that needs a human rating."""

    human_rating: _Rating

"""CARE: culture by category (Tables 3 and 6) and culture by geographic scope (Table 13)."""

from __future__ import annotations

from collections.abc import Iterator

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.benchmarks.care.documents import SCOPES
from culture_tasks.report.layouts.grid import SHORT, Context, Place, cell_in, grid, with_judge
from culture_tasks.report.model import Column, Table
from culture_tasks.report.papers import is_the_papers
from culture_tasks.report.units import Measured

_LANGUAGES = ("zh", "ar", "ja")
"""In the order of the paper's tables."""

_TABLES = ("care_table_3", "care_table_6")
"""Published tables in the layout of culture by category."""

_CATEGORY_LABELS = {"commonsense": "C. sense"}
_SCOPE_LABELS = {"sub_nationwide": "Sub-nationwide", "continent_wide": "Continent-wide"}
_PRINTED_SCOPES = {"sub_nationwide": "sub-nationalwide", "continent_wide": "continent-wide"}


def tables(context: Context, measured: Measured) -> Iterator[Table]:
    """Yields the tables of one variant, or of one task of it."""
    yield _by_category(context, measured)
    yield _by_scope(context, measured)


def _by_category(context: Context, measured: Measured) -> Table:
    places: list[Place] = []
    papers = _papers(measured, *_TABLES)
    for language in _present(measured):
        for category in CATEGORIES:
            label = _CATEGORY_LABELS.get(category, category.title())
            places.append(_place(measured, language, "category", category, label, papers, category))
        places.append(_average(measured, language, papers))
    key = measured.unit.key
    title = f"{key}: mean rating (1 poor, 10 excellent) by culture and category"
    note = "Average: the mean over all scored questions, not over the categories."
    table = Table(f"{key}_table_3", title, ("Model", "Judge"), (), (), "CARE, Tables 3 and 6", "care", (note,))
    return grid(context, table, places, measured.unit.cells, with_judge(context, measured))


def _present(measured: Measured) -> list[str]:
    """Returns the languages that the unit's tasks end in; all three for a task of the user's own."""
    found = [language for language in _LANGUAGES if any(task.endswith(f"_{language}") for task in measured.tasks)]
    return found or list(_LANGUAGES)


def _place(
    measured: Measured, language: str, field: str, group: str, label: str, papers: tuple[str, ...], printed: str
) -> Place:
    where = (("language", language), (field, group))
    column = Column(f"{language}_{group}", label, measured.unit.scale, SHORT[language])
    return Place(column, cell_in(measured, where), {"language": language, field: printed}, papers)


def _papers(measured: Measured, *names: str) -> tuple[str, ...]:
    """Returns the published tables whose rows may stand below a unit's: none where it asks in another way."""
    return names if is_the_papers(measured) else ()


def _average(measured: Measured, language: str, papers: tuple[str, ...]) -> Place:
    column = Column(f"{language}_average", "Average", measured.unit.scale, SHORT[language])
    printed = {"language": language, "category": "average"}
    return Place(column, cell_in(measured, (("language", language),)), printed, papers)


def _by_scope(context: Context, measured: Measured) -> Table:
    papers = _papers(measured, "care_table_13")
    places = [
        _place(
            measured,
            language,
            "scope",
            scope,
            _SCOPE_LABELS.get(scope, scope.title()),
            papers,
            _PRINTED_SCOPES.get(scope, scope),
        )
        for language in _present(measured)
        for scope in SCOPES
    ]
    key = measured.unit.key
    title = f"{key}: mean rating (1 poor, 10 excellent) by culture and geographic scope"
    table = Table(f"{key}_table_13", title, ("Model", "Judge"), (), (), "CARE, Table 13", "care")
    return grid(context, table, places, measured.unit.cells, with_judge(context, measured))

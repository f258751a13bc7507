"""The data that a benchmark's authors released, and how a user's own data are told from them.

No whole release is at hand, so its fingerprint isn't known. Facts of the papers and of excerpts of the releases decide:
the number of rows, some of the questions, and the culture, language or country that each row names. A benchmark's
source on the Hub is the release, whatever its revision.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from culture_tasks.data.files import RowTable
from culture_tasks.data.reading import current
from culture_tasks.errors import DataError

_SLACK = 0.01
"""Share of its rows by which a release may differ from its paper, as CulturalVQA's 2,378 do from the Hub's 2.37k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFacts:
    """Facts of a table as its authors released it.

    Attributes:
        rows: Number of its rows.
        grows: Whether a revision may have any number of further rows.
        questions: At least so many of its questions are among :func:`released_questions`.
        culture: The field that names the culture, language or country of a row; empty where none does.
        fits: Whether a row whose field has this value belongs to the task.
        expected: The values that belong to the task, in words.
    """

    rows: int
    grows: bool = False
    questions: int = 0
    culture: str = ""
    fits: Callable[[str], bool] = lambda _: True
    expected: str = ""


@cache
def released_questions() -> frozenset[str]:
    """Returns digests of questions that are known to be released: the first 16 digits of their SHA-256."""
    file = resources.files(__package__) / "released_questions.txt"
    return frozenset(file.read_text(encoding="utf-8").splitlines()[2:])


def check_release(release: ReleaseFacts | None, table: RowTable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Notes how a user's table differs from the release; ``rows`` are all that concern the task.

    Raises:
        DataError: For the first row of another culture, unless the user allows it.
    """
    check_cultures(release, table, rows)
    if release is None or not table.local:
        return
    if len(rows) < release.rows * (1 - _SLACK) or (len(rows) > release.rows * (1 + _SLACK) and not release.grows):
        more = " or more" if release.grows else ""
        _note(table, f"{len(rows):,} rows, and the release has {release.rows:,}{more}")
    elif release.questions:
        digests = (hashlib.sha256(str(row["question"]).encode()).hexdigest()[:16] for row in rows)
        if sum(digest in released_questions() for digest in digests) < release.questions:
            _note(table, "other questions than the release")


def check_cultures(release: ReleaseFacts | None, table: RowTable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuses a user's rows of another culture than their task's, or notes them where the user allows them.

    Raises:
        DataError: For the first of them, unless the user allows it.
    """
    places = dict(enumerate(rows))
    for problem in contradictions(release, table, places):
        raise DataError(problem)
    if count := len(_foreign_rows(release, table, places)):
        _note(table, f"{count:,} {'row' if count == 1 else 'rows'} of another culture")


def contradictions(
    release: ReleaseFacts | None, table: RowTable, rows: Mapping[int, Mapping[str, Any]]
) -> Iterator[str]:
    """Yields the problem of each row, by its place, of another culture than its task's, unless the user allows them."""
    if release is None or current().settings.other_cultures == "allow":
        return
    for index in _foreign_rows(release, table, rows):
        yield (
            f"{table.where(index)}, field {release.culture!r}: found {rows[index][release.culture]!r:.80}. Expected "
            f"{release.expected}. Remove the row, or set CULTURE_TASKS_OTHER_CULTURES=allow to run it, marked as own "
            "data."
        )


def _foreign_rows(release: ReleaseFacts | None, table: RowTable, rows: Mapping[int, Mapping[str, Any]]) -> list[int]:
    if release is None or not table.local:
        return []
    values = {index: row.get(release.culture) for index, row in rows.items()}
    return [index for index, value in values.items() if value is not None and not release.fits(str(value))]


def _note(table: RowTable, difference: str) -> None:
    differences, name = current().differences, Path(table.origin).name
    differences[name] = "; ".join(filter(None, (differences.get(name), difference)))

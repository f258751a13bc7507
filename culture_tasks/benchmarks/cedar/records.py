"""From logged samples back to columns and metrics, so that a report needs no rerun.

Both harnesses log the whole record of a document under ``acc``; nothing else of a sample is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from culture_tasks.benchmarks.cedar import reported
from culture_tasks.benchmarks.cedar.counts import CountTable, tabulate
from culture_tasks.benchmarks.cedar.documents import NO_MINORITY
from culture_tasks.benchmarks.cedar.labels import Emotion, Language
from culture_tasks.benchmarks.cedar.metrics import top2_macro_f1
from culture_tasks.errors import DataError


class _Logged(BaseModel):
    """What is read of a record, which has more."""

    benchmark: Literal["cedar"]
    language: Language
    gold: Emotion
    prediction: Emotion | None
    minority: Emotion | Literal["none", ""]
    supported: bool


_LOGGED = TypeAdapter(list[_Logged])


@dataclass(frozen=True, slots=True)
class Columns:
    """The records of one task's run.

    Attributes:
        predictions: Label read from each reply; None where none could be read.
        golds: English gold label of each document.
        languages: Language of each document's data.
        supported: Whether the run's ``CULTURE_TASKS_LANGUAGES`` names that language; all True where it was unset.
        minorities: Minority label of each document, or None where it has none; empty where the data have none at all.
    """

    predictions: tuple[Emotion | None, ...]
    golds: tuple[Emotion, ...]
    languages: tuple[Language, ...]
    supported: tuple[bool, ...]
    minorities: tuple[Emotion | None, ...] = ()

    def table(self) -> CountTable:
        """Counts the records."""
        return tabulate(self.predictions, self.golds, self.languages)

    def of_supported(self) -> Columns:
        """Returns the records of officially supported languages."""
        return Columns(
            tuple(compress(self.predictions, self.supported)),
            tuple(compress(self.golds, self.supported)),
            tuple(compress(self.languages, self.supported)),
            tuple(compress(self.supported, self.supported)),
            tuple(compress(self.minorities, self.supported)),
        )


def columns(records: Iterable[Mapping[str, Any]]) -> Columns:
    """Reads the columns out of logged records.

    Args:
        records: ``sample["acc"]`` of each line of a sample file of either harness, of one task.

    Raises:
        DataError: For the first record that isn't CEDAR's or holds a value that is not allowed.
    """
    logged = _validated(list(records))
    minorities = [record.minority for record in logged]
    return Columns(
        tuple(record.prediction for record in logged),
        tuple(record.gold for record in logged),
        tuple(record.language for record in logged),
        tuple(record.supported for record in logged),
        tuple(_label(minority) for minority in minorities) if any(minorities) else (),
    )


def _label(minority: Emotion | Literal["none", ""]) -> Emotion | None:
    return None if minority in (NO_MINORITY, "") else minority  # type: ignore[return-value]


def _validated(records: list[Mapping[str, Any]]) -> list[_Logged]:
    try:
        return _LOGGED.validate_python(records)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        number, field = (*problem["loc"], "acc")[:2]
        raise DataError(
            f"cedar: record {number}, field {field!r}: {problem['msg']}, found {problem['input']!r:.80}. "
            "Needed are the 'acc' records of CEDAR's logged samples."
        ) from None


def pooled_metrics(run: Columns) -> dict[str, float]:
    """Works out what ``cedar_text`` and ``cedar_multimodal`` report, over the officially supported languages."""
    return _metrics(reported.pooled(), run.of_supported())


def language_metrics(run: Columns) -> dict[str, float]:
    """Works out what the tasks of one language report, whether or not the language is officially supported."""
    return _metrics(reported.of_language(), run)


def _metrics(wanted: tuple[reported.Reported, ...], run: Columns) -> dict[str, float]:
    found = reported.values(wanted, run.table())
    if run.minorities:
        found["top2_macro_f1"] = top2_macro_f1(run.predictions, run.golds, run.minorities)
    return found

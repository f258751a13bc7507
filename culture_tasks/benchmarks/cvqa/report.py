"""How CVQA is reported: over questions, over pairs of language and country, and by each of its groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from culture_tasks.benchmarks.cvqa.benchmark import MACRO, PERCENT, UNPARSED, UNREAD
from culture_tasks.benchmarks.cvqa.documents import COUNTRIES
from culture_tasks.benchmarks.reporting import (
    MODEL,
    Answers,
    BenchmarkReport,
    Derived,
    Field,
    Floats,
    FurtherScore,
    TableOf,
    UnitOf,
    bars_by,
    columns_of,
)
from culture_tasks.vocabulary import places

_PAPER = "CVQA (Romero et al., 2024)"
_PRINTED = {f"cvqa_{MACRO}": {"prompt_language": "local"}, f"cvqa_en_{MACRO}": {"prompt_language": "english"}}
"""Columns of the tasks with Pangea's prompt, and what its paper prints for them."""


def _macro(answers: Answers) -> Mapping[str, Floats]:
    """Weights each answer so that all pairs weigh the same."""
    pairs = answers.of_field("pair").codes
    _, places, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    return {"": answers.scores * (pairs.size / counts.size / counts[places])}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    numbers = {"score": "Questions", MACRO: "Pairs", UNPARSED: "Unparsed"}
    columns = [
        replace(column, printed=_PRINTED.get(column.key, {}))
        for unit in units
        for column in columns_of(unit.key, numbers, over=unit.key, prefix=f"{unit.key}_")
    ]
    yield TableOf(
        key="cvqa",
        title="CVQA: accuracy in percent",
        source=_PAPER,
        columns=tuple(columns),
        headers=MODEL,
        notes=("Questions: the mean over all questions. Pairs: the mean over pairs of language and country.",),
        papers=("pangea_table_2",),
    )


REPORT = BenchmarkReport(
    fields=(Field("country", COUNTRIES, places=places(COUNTRIES)),),
    splits=(("pair",), ("language",), ("country",), ("category",)),
    culture="country",
    ability="perception",
    further=(FurtherScore(UNPARSED, UNREAD),),
    derived=(Derived(MACRO, PERCENT, _macro),),
    tables=_tables,
    figures=tuple(
        bars_by(
            field,
            key=f"cvqa_{plural}",
            title=f"CVQA by {field}",
            source=_PAPER,
            value="Accuracy (percent)",
            groups=words,
        )
        for field, plural, words in (("pair", "pairs", "language and country"), ("category", "categories", "category"))
    ),
)

"""How CVQA is reported: over questions, over pairs of language and country, and by each of its groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from culture_tasks.benchmarks.cvqa.benchmark import MACRO, PERCENT, UNPARSED, UNREAD
from culture_tasks.benchmarks.cvqa.documents import COUNTRIES
from culture_tasks.benchmarks.reporting import (
    MODEL,
    Answers,
    At,
    BenchmarkReport,
    ColumnOf,
    Derived,
    Field,
    FigureOf,
    Floats,
    FurtherScore,
    TableOf,
    UnitOf,
    scores_by,
)
from culture_tasks.vocabulary import places

_PAPER = "CVQA (Romero et al., 2024)"


def _macro(answers: Answers) -> Mapping[str, Floats]:
    """Weights each answer so that all pairs weigh the same."""
    pairs = answers.of_field("pair").codes
    _, places, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    return {"": answers.scores * (pairs.size / counts.size / counts[places])}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    columns = [
        ColumnOf(f"{unit.key}_{statistic}", label, At(unit.key, statistic), unit.key)
        for unit in units
        for statistic, label in (("score", "Questions"), (MACRO, "Pairs"), (UNPARSED, "Unparsed"))
    ]
    yield TableOf(
        key="cvqa",
        title="CVQA: accuracy in percent",
        source=_PAPER,
        columns=tuple(columns),
        headers=MODEL,
        notes=("Questions: the mean over all questions. Pairs: the mean over pairs of language and country.",),
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
        FigureOf(
            key=f"cvqa_{plural}",
            title=f"CVQA by {field}",
            source=_PAPER,
            kind="bars",
            groups=words,
            value="Accuracy (percent)",
            mark=scores_by(field),
        )
        for field, plural, words in (
            ("pair", "pairs", "language and country"),
            ("category", "categories", "category"),
        )
    ),
)

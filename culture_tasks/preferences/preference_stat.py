"""Statistics of rated responses before training: pairs, ties, gaps, lengths, writers.

Each table is a list of rows with the same columns. Lengths are medians in characters. ``chosen_longer`` is the share of
pairs, from 0 to 1, whose chosen response is the longer one, equal ones counting half: 0.5 means no bias; above it, a
model learns to write more. ``low`` and ``high`` are its 95 % interval.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.preferences.pairs import PreferencePair
from culture_tasks.preferences.ratings import RatedQuestion
from culture_tasks.text_tables import as_text

DIMENSIONS = ("overall", "language", "category", "culture")

Row = dict[str, Any]


def group_rows(questions: Sequence[RatedQuestion], pairs: Iterable[PreferencePair]) -> list[Row]:
    """Returns the questions and pairs of each group: all, and those of a language, a category and a culture."""
    pair_of = {pair.question.fingerprint: pair for pair in pairs}
    rows = []
    for dimension in DIMENSIONS:
        groups: dict[str, list[RatedQuestion]] = {}
        for question in questions:
            name = "all" if dimension == "overall" else getattr(question, dimension) or "not said"
            groups.setdefault(name, []).append(question)
        for name in sorted(groups):
            of_group = [pair_of[each.fingerprint] for each in groups[name] if each.fingerprint in pair_of]
            rows.append({"by": dimension, "group": name} | _numbers(groups[name], of_group))
    return rows


def _numbers(questions: Sequence[RatedQuestion], pairs: Sequence[PreferencePair]) -> Row:
    lengths = [(len(pair.chosen.text), len(pair.rejected.text)) for pair in pairs]
    longer = [0.5 * ((chosen > rejected) + (chosen >= rejected)) for chosen, rejected in lengths]
    share, low, high = (None if math.isnan(end) else min(max(end, 0.0), 1.0) for end in mean_interval(longer)[:3])
    ratings = [{answer.rating for answer in question.answers} for question in questions if len(question.answers) > 1]
    return {
        "questions": len(questions),
        "responses": sum(len(question.answers) for question in questions),
        "pairs": len(pairs),
        "ties": sum(len(values) == 1 for values in ratings),
        "one_response": len(questions) - len(ratings),
        "mean_gap": statistics.fmean(pair.chosen.rating - pair.rejected.rating for pair in pairs) if pairs else None,
        "chosen_length": statistics.median(chosen for chosen, _ in lengths) if pairs else None,
        "rejected_length": statistics.median(rejected for _, rejected in lengths) if pairs else None,
        "chosen_longer": share,
        "low": low,
        "high": high,
    }


def writer_rows(questions: Iterable[RatedQuestion], pairs: Iterable[PreferencePair]) -> list[Row]:
    """Returns the writers of the responses, most responses first, and how often one is better or worse in a pair."""
    ratings: dict[str, list[float]] = {}
    for question in questions:
        for answer in question.answers:
            ratings.setdefault(answer.writer, []).append(answer.rating)
    sides = [Counter(getattr(pair, side).writer for pair in pairs) for side in ("chosen", "rejected")]
    rows = [
        {"written_by": name or "not said", "responses": len(values), "mean_rating": statistics.fmean(values)}
        | {"chosen": sides[0][name], "rejected": sides[1][name]}
        for name, values in ratings.items()
    ]
    return sorted(rows, key=lambda row: (-row["responses"], row["written_by"]))


def as_table(rows: Sequence[Row]) -> str:
    """Returns rows as the command prints them."""

    def text(cell: object) -> str:
        if isinstance(cell, float):
            return f"{cell:,.0f}" if cell >= 100.0 else f"{cell:.3g}"
        return "–" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)

    return as_text([name.replace("_", " ") for name in rows[0]], [list(map(text, row.values())) for row in rows])

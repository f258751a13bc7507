"""Bootstrap standard errors of the propensities and quadrant biases.

Both are functions of two marginals, predictions and gold labels per emotion, so that a resample is a draw of
counts and never a draw of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.benchmarks.cedar.counts import Counts, CountTable, check_lengths, emotion_codes
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, QUADRANT_NAMES, Emotion, Quadrant
from culture_tasks.benchmarks.cedar.metrics import Floats, marginals, propensity, quadrant_bias
from culture_tasks.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

DRAWS = 1000
SEED = 1234


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Bootstrap standard errors of one set of records.

    Attributes:
        epp: Of each emotion's propensity (a ratio).
        rqb: Of each quadrant's bias (a fraction).
    """

    epp: dict[Emotion, float]
    rqb: dict[Quadrant, float]


def _deviation(values: Floats) -> list[float]:
    """Standard deviation over the draws; a draw in which the metric is undefined stays out, fewer than two give NaN."""
    known = ~np.isnan(values)
    number = known.sum(axis=0)
    filled = np.where(known, values, 0.0)
    mean = filled.sum(axis=0) / np.maximum(number, 1)
    squares = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0)
    return np.where(number > 1, np.sqrt(squares / np.maximum(number - 1, 1)), np.nan).tolist()  # type: ignore[no-any-return]


def _errors(predicted: Floats | Counts, gold: Floats | Counts) -> StandardErrors:
    return StandardErrors(
        epp=dict(zip(EMOTIONS, _deviation(propensity(predicted, gold)), strict=True)),
        rqb=dict(zip(QUADRANT_NAMES, _deviation(quadrant_bias(predicted, gold)), strict=True)),
    )


def _check(draws: int) -> None:
    if draws < 2:
        raise SettingsError(f"bootstrap: draws is {draws!r}. At least 2 are needed, {DRAWS} is the default.")


def by_record(table: CountTable, *, draws: int = DRAWS, seed: int = SEED) -> StandardErrors:
    """Resamples records: multinomial draws of the table's cells, so that the cost doesn't grow with the records.

    Limit a table to one language first for the errors of LSEPP and LSRQB.

    Args:
        table: The counts; empty ones give NaN throughout.
        draws: Number of resamples.
        seed: Seed of the generator: the same table and seed give the same numbers.

    Raises:
        SettingsError: If there are fewer than two draws.
    """
    _check(draws)
    cells = table.counts.sum(axis=0)
    total = int(cells.sum())
    if not total:
        nan = np.full((draws, len(EMOTIONS)), np.nan)
        return _errors(nan, np.zeros_like(nan))
    sample = np.random.default_rng(seed).multinomial(total, cells.ravel() / total, size=draws)
    return _errors(*marginals(sample.reshape(draws, *cells.shape)))


def by_item(
    predictions: Sequence[Emotion | None],
    golds: Sequence[Emotion],
    items: Sequence[object],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> StandardErrors:
    """Resamples items with all their records, since the seven languages of an item share its scene.

    Args:
        predictions: Label read from each reply, or None.
        golds: Gold label of each record.
        items: Item of each record, such as modality and id.
        draws: Number of resamples.
        seed: Seed of the generator.

    Raises:
        DataError: If the columns differ in length or hold a value that is not allowed.
        SettingsError: If there are fewer than two draws.
    """
    _check(draws)
    if not check_lengths("bootstrap", predictions=predictions, golds=golds, items=items):
        return by_record(CountTable(np.zeros((1, len(EMOTIONS), len(EMOTIONS) + 1), dtype=np.int64)), draws=draws)
    known: dict[object, int] = {}
    item = np.array([known.setdefault(value, len(known)) for value in items])
    width = len(EMOTIONS) + 1
    predicted = emotion_codes(predictions, "bootstrap", what="prediction", optional=True)
    gold = emotion_codes(golds, "bootstrap", what="gold label", optional=False)
    per_item = np.zeros((len(known), 2 * width))
    np.add.at(per_item, (item, predicted), 1)
    np.add.at(per_item, (item, width + gold), 1)
    weights = np.random.default_rng(seed).multinomial(len(known), np.full(len(known), 1 / len(known)), size=draws)
    drawn = weights.astype(np.float64) @ per_item
    return _errors(drawn[:, : width - 1], drawn[:, width : 2 * width - 1])

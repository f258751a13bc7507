"""The per-group table behind every CEDAR metric: language × gold × prediction."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, Emotion, Language
from culture_tasks.errors import DataError, nearest

Counts = NDArray[np.int64]
_UNPARSED = len(EMOTIONS)


@dataclass(frozen=True, slots=True)
class CountTable:
    """How often each prediction met each gold label, by language.

    Attributes:
        counts: Array of 7 languages × 14 gold labels × 15 predictions, in the order of ``LANGUAGES`` and
            ``EMOTIONS``; the last prediction is "unparsed".
    """

    counts: Counts

    @property
    def languages(self) -> tuple[Language, ...]:
        """The languages that have records, in the order of ``LANGUAGES``."""
        sizes = self.counts.sum(axis=(1, 2))
        return tuple(language for language, size in zip(LANGUAGES, sizes, strict=True) if size)

    def of(self, language: Language) -> Counts:
        """Returns the 14 × 15 table of one language, or raises DataError for a code that is none of the seven."""
        return cast("Counts", self.counts[language_codes([language], "cedar")[0]])

    def limited_to(self, languages: Collection[Language]) -> CountTable:
        """Returns a table without the records of other languages."""
        keep = np.zeros(len(LANGUAGES), dtype=np.int64)
        keep[language_codes(list(languages), "cedar")] = 1
        return CountTable(self.counts * keep[:, None, None])


def _codes(values: Sequence[Hashable], known: dict[Hashable, int], what: str, metric: str) -> NDArray[np.intp]:
    try:
        return np.fromiter((known[value] for value in values), dtype=np.intp, count=len(values))
    except (KeyError, TypeError):
        row, unknown = next((i, v) for i, v in enumerate(values) if not isinstance(v, Hashable) or v not in known)
        names = [str(name) for name in known if name is not None]
        raise DataError(
            f"{metric}: {what} {unknown!r} (record {row}) is not allowed.{nearest(str(unknown), names)} "
            f"Allowed are: {', '.join(names)}{' and None' if None in known else ''}."
        ) from None


def language_codes(languages: Sequence[str], metric: str) -> NDArray[np.intp]:
    """Returns the index of each language code in ``LANGUAGES``; the metric's name begins the error."""
    return _codes(languages, {code: i for i, code in enumerate(LANGUAGES)}, "language", metric)


def emotion_codes(labels: Sequence[str | None], metric: str, *, what: str, optional: bool) -> NDArray[np.intp]:
    """Returns the index of each label in ``EMOTIONS``; None, where it is allowed, gives 14."""
    known: dict[Hashable, int] = {emotion: i for i, emotion in enumerate(EMOTIONS)}
    return _codes(labels, known | {None: _UNPARSED} if optional else known, what, metric)


def check_lengths(metric: str, **columns: Sequence[object]) -> int:
    """Returns the common length of the columns.

    Raises:
        DataError: If they differ in length.
    """
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {size}" for name, size in lengths.items())
        raise DataError(f"{metric}: the columns differ in length: {sizes}. Give one value per record in each.")
    return next(iter(lengths.values()))


def tabulate(
    predictions: Sequence[Emotion | None],
    golds: Sequence[Emotion],
    languages: Sequence[Language],
    *,
    times: Sequence[int] | None = None,
    metric: str = "cedar",
) -> CountTable:
    """Counts the records of three columns.

    Args:
        predictions: Label read from each reply, or None where none could be read.
        golds: English gold label of each record.
        languages: Language of each record's data.
        times: How often each record occurs; None means once.
        metric: Name that begins an error message.

    Raises:
        DataError: If the columns differ in length or hold a value that is not allowed.
    """
    check_lengths(metric, predictions=predictions, golds=golds, languages=languages)
    shape = (len(LANGUAGES), len(EMOTIONS), len(EMOTIONS) + 1)
    cells = np.ravel_multi_index(
        (
            language_codes(languages, metric),
            emotion_codes(golds, metric, what="gold label", optional=False),
            emotion_codes(predictions, metric, what="prediction", optional=True),
        ),
        shape,
    )
    counts = np.bincount(cells, weights=times, minlength=int(np.prod(shape)))
    return CountTable(counts.reshape(shape).astype(np.int64))

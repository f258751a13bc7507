"""Texts that are much alike, by the words and pairs of neighbouring words that both have.

Two texts are near duplicates if at least 70 % of these parts, taken together, are in both (Jaccard's index). In scripts
without spaces a character is a word.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from culture_tasks.text import tokens

LEAST_SIMILARITY = 0.7

_AT_ONCE = 500
"""Texts that are compared with all others together: the product of matrices has a cell for each two."""


class Alike(NamedTuple):
    """Two texts, by their places, and their similarity from 0 to 1."""

    first: int
    second: int
    similarity: float


def near_duplicates(first: Sequence[str], second: Sequence[str]) -> Iterator[Alike]:
    """Yields each text of the first with each of the second that is much like it, the most alike before the others.

    Parts are counted by products of matrices with a row per text and a column per part.

    Examples:
        >>> [alike[:2] for alike in near_duplicates(["Who pays for tea?"], ["Who pours tea?", "who pays for the tea"])]
        []
        >>> list(near_duplicates(["Who pays for tea?"], ["who pays, for tea"]))
        [Alike(first=0, second=0, similarity=1.0)]
    """
    if not first or not second:
        return
    import numpy as np

    parts = [_parts(text) for text in second]
    columns = {part: column for column, part in enumerate(dict.fromkeys(itertools.chain(*parts)))}
    second_matrix = _matrix(parts, columns).T.tocsc()
    second_sizes = np.array([len(text_parts) for text_parts in parts])
    for start in range(0, len(first), _AT_ONCE):
        batch = [_parts(text) for text in first[start : start + _AT_ONCE]]
        shared = (_matrix(batch, columns) @ second_matrix).tocoo()
        sizes = np.array([len(text_parts) for text_parts in batch])
        similarity = shared.data / (sizes[shared.row] + second_sizes[shared.col] - shared.data)
        near = np.flatnonzero(similarity >= LEAST_SIMILARITY)
        for place in near[np.lexsort((shared.col[near], -similarity[near], shared.row[near]))]:
            yield Alike(start + int(shared.row[place]), int(shared.col[place]), float(similarity[place]))


def _parts(text: str) -> set[str]:
    words = tokens(text) or [unicodedata.normalize("NFKC", text).strip()]
    return {*words, *(f"{word} {following}" for word, following in itertools.pairwise(words))}


def _matrix(rows: Sequence[set[str]], columns: Mapping[str, int]) -> Any:
    from scipy.sparse import csr_matrix

    places = [[columns[part] for part in parts if part in columns] for parts in rows]
    indices = list(itertools.chain(*places))
    ends = [0, *itertools.accumulate(map(len, places))]
    return csr_matrix(([1] * len(indices), indices, ends), shape=(len(rows), len(columns)))

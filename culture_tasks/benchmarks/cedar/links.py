"""What the text between two mentions says of them: joined, contrasted, explained."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.context import any_of
from culture_tasks.benchmarks.cedar.labels import LANGUAGES
from culture_tasks.benchmarks.cedar.lexicon import SPACED, UNSPACED, WORD, phrases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culture_tasks.benchmarks.cedar.labels import Language

_LONGEST_GAP = 60


@dataclass(frozen=True, slots=True)
class Links:
    """Words that join, contrast or explain, of all languages together."""

    joiners: frozenset[str]
    alternatives: frozenset[str]
    because: re.Pattern[str]
    contrast: re.Pattern[str]


@cache
def links() -> Links:
    """Returns the linking words; those of Japanese and Chinese are read without word boundaries."""

    def union(key: str, languages: Iterable[Language] = LANGUAGES) -> list[str]:
        return [phrase for language in languages for phrase in phrases(language, key)]

    def pattern(phrases_of: Callable[[Iterable[Language]], list[str]]) -> re.Pattern[str]:
        spaced = any_of(phrases_of(SPACED), around="(?<= ){}(?= )").pattern
        return re.compile(f"{spaced}|{any_of(phrases_of(UNSPACED)).pattern}")

    def turns(languages: Iterable[Language]) -> list[str]:
        reasons = {phrase.split()[0] for phrase in union("because", languages)}
        return [phrase for phrase in union("contrast", languages) if phrase.split()[0] not in reasons]

    return Links(
        joiners=frozenset(union("joiners")),
        alternatives=frozenset(union("alternatives")),
        because=pattern(lambda languages: union("because", languages)),
        contrast=pattern(turns),
    )


def gap_words(gap: str) -> list[str]:
    """Returns the words of the text between two mentions; an unspaced run is one word."""
    return _GAP_WORD.findall(gap)


_GAP_WORD: Final = re.compile(rf"{WORD.pattern}|[ぁ-ヿ㐀-鿿]+")


def _spoken(gap: str) -> str:
    return _AS_WELL_AS.sub(" and ", f" {' '.join(gap_words(gap))} ")


_AS_WELL_AS: Final = re.compile(" (?:as well as|asi como) ")


def joins(gap: str) -> bool:
    """Whether nothing but punctuation, numbering and linking words stands between two mentions."""
    if len(gap) > _LONGEST_GAP or "{" in gap:
        return False
    known = links().joiners
    return all(word in known or len(word) == 1 or word.isdigit() for word in _spoken(gap).split())


def sets_aside(gap: str) -> bool:
    """Whether the second mention only stands beside the first one: "sadness (with some sympathy)"."""
    return "(" in gap and bool(gap_words(gap)) and not offers_alternative(gap)


def gives_reason(gap: str) -> bool:
    """Whether a word such as "because" stands in between."""
    return links().because.search(_spoken(gap)) is not None


def offers_alternative(gap: str) -> bool:
    """Whether the text between two mentions joins them by "or"."""
    return any(word in links().alternatives for word in gap_words(gap))


def explains(gap: str) -> bool:
    """Whether what follows is an explanation: a sentence ends, or a word such as "because" stands in between."""
    return bool(_SENTENCE_END.search(gap)) or gives_reason(gap)


def contrasts(gap: str) -> bool:
    """Whether a word such as "but" or "then" stands in between."""
    return links().contrast.search(_spoken(gap)) is not None


_SENTENCE_END: Final = re.compile(r"[.!?;\n(]|\s[-–—]\s|—|:")

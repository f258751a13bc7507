"""Which emotion words a text denies: "not sadness", "sadness doesn't fit", "悲しみではなく"."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.reading.mentions import RUN, SPACED, UNSPACED, WORD, alternation, pattern, phrases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culture_tasks.benchmarks.cedar.labels import Language
    from culture_tasks.benchmarks.cedar.reading.mentions import Mention

_BEFORE, _AFTER = 80, 60
# Where a clause ends.
_EDGE: Final = re.compile(r"[.,;:!?\n()\[\]{}|]|\s[-–—]\s|[–—]")
_MARKUP: Final = re.compile(r"[\"*_`\\]|(?<!\w)'|'(?!\w)")
_SPACE_OR_MARKUP: Final = re.compile(r"[\s\"'*_`]+")
# A denial that something is put in between: "not, in my view, anger"; the group is the denial.
_ASIDE: Final = re.compile(r"((?<!\S)(?:not|\w+n't|no es|no seria|ليس|ليست|si|sio|siyo)),[^.,;:!?\n]{1,30},(?=\s)")


def plainly(text: str) -> str:
    """Returns a text without markup, with single spaces."""
    return " ".join(_MARKUP.sub(" ", text).split())


def clause_around(text: str, mention: Mention) -> tuple[str, str]:
    """Returns what precedes and follows an emotion word in its clause, without markup."""
    before = _ASIDE.sub(r"\1", text[max(0, mention.start - _BEFORE) : mention.start])
    after = text[mention.end : mention.end + _AFTER]
    return plainly(_EDGE.split(before)[-1]), plainly(_EDGE.split(after, maxsplit=1)[0])


def joins(gap: str) -> bool:
    """Whether nothing but punctuation, numbering and linking words stands between two emotion words."""
    if len(gap) > _AFTER:
        return False
    rest = pattern("joiners").sub(" ", gap)
    return all(len(word) == 1 or word.isdigit() for word in [*WORD.findall(rest), *RUN.findall(rest)])


@cache
def _denials(languages: tuple[Language, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Matches what denies an emotion word: in its clause before it, and right after it."""
    after = [rf"\W*(?:\w+ )?{alternation(languages, 'denied_after')}"]
    if "hi" in languages:  # which denies after the word, anywhere in the clause
        after.append(f".*?{alternation(['hi'], 'denied_after')}")
    after.append(alternation(UNSPACED, "denied_after"))
    before = rf"{alternation((*languages, *UNSPACED), 'denied_before')}|\w+n't(?!\w)"
    return re.compile(before), re.compile("|".join(after))


@cache
def _vocabulary(language: Language) -> frozenset[str]:
    listed = phrases([language], "denied_before", "denied_after", "plain", "contrast", "because", "answer", "choose")
    return frozenset(word for phrase in listed for word in phrase.split())


def _languages(mention: Mention, clause: str) -> tuple[Language, ...]:
    """Returns the languages whose denials count: the word's and English, for an English word also the clause's."""
    if mention.language != "en":
        return (mention.language, "en") if mention.language in SPACED else ("en",)
    heard = set(WORD.findall(clause))
    counts = {language: len(heard & _vocabulary(language)) for language in SPACED}
    return ("en", *(language for language in SPACED if counts[language] > counts["en"]))


def _is_denied(text: str, mention: Mention) -> bool:
    before, after = clause_around(text, mention)
    before = pattern("no_denial").sub(" ", before)
    after = pattern("contrast").split(after, maxsplit=1)[0] if mention.language in SPACED else after
    denied_before, denied_after = _denials(_languages(mention, f"{before} {after}"))
    if mention.language in UNSPACED:
        before, after = _SPACE_OR_MARKUP.sub("", before), _SPACE_OR_MARKUP.sub("", after)
    # A word of contrast ends a denial, unless it is part of one: "not sadness but anger", "anything but anger".
    turns = [turn.start() for turn in pattern("contrast").finditer(before)]
    denied = any(not turns or turns[-1] < denial.end() for denial in denied_before.finditer(before))
    return denied or denied_after.match(after) is not None


def undenied(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """Leaves out denied emotion words. A denial reaches along "not anger, fear or disgust"."""
    denied = [_is_denied(text, mention) for mention in mentions]
    places = range(1, len(mentions))
    for place in [*places, *reversed(places)]:
        gap = text[mentions[place - 1].end : mentions[place].start]
        if denied[place] != denied[place - 1] and joins(gap) and pattern("alternatives").search(gap):
            denied[place] = denied[place - 1] = True
    return [mention for mention, is_out in zip(mentions, denied, strict=True) if not is_out]

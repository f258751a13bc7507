"""A folded reply with its emotion words: which are stated, which are denied, which only repeat the option list."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.context import is_denied
from culture_tasks.benchmarks.cedar.links import joins, offers_alternative
from culture_tasks.benchmarks.cedar.mentions import Mention, find_mentions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culture_tasks.benchmarks.cedar.labels import Emotion

_LIST_LENGTH = 5


@dataclass(frozen=True, slots=True)
class Page:
    """A folded reply and its emotion words.

    Attributes:
        text: The folded reply.
        kept: Words that are not denied, in order.
        stated: Those of them that are no part of a repeated option list.
    """

    text: str
    kept: tuple[Mention, ...]
    stated: tuple[Mention, ...]


class Unclear:
    """Verdict of a rule that found several labels where one would be a choice."""


UNCLEAR: Final = Unclear()


def _in_option_list(text: str, mentions: list[Mention]) -> set[int]:
    """Indices of mentions in runs of five or more different labels with nothing else between them."""
    listed: set[int] = set()
    run: list[int] = []
    seen: set[Emotion] = set()

    def close() -> None:
        if len(seen) >= _LIST_LENGTH:
            listed.update(run)
        run.clear()
        seen.clear()

    for place, mention in enumerate(mentions):
        gap = text[mentions[place - 1].end : mention.start] if place else ""
        gloss = bool(run) and mention.emotion == mentions[place - 1].emotion and bool(set(gap) & set("(/=:-"))
        if run and (not joins(gap) or (mention.emotion in seen and not gloss)):
            close()
        run.append(place)
        seen.add(mention.emotion)
    close()
    return listed


def _denied(text: str, mentions: list[Mention]) -> set[int]:
    """Indices of denied mentions; a denial reaches along "not anger, fear or disgust"."""
    denied = {place for place, mention in enumerate(mentions) if is_denied(text, mention)}
    reach: list[int] = []
    for place in range(1, len(mentions)):
        gap = text[mentions[place - 1].end : mentions[place].start]
        if place in denied or not (place - 1 in denied or reach) or not joins(gap):
            reach = []
            continue
        reach.append(place)
        if offers_alternative(gap):
            denied.update(reach)
            reach = []
    return denied


def read_page(text: str) -> Page:
    """Finds the emotion words of a folded reply and sets aside what it denies or only lists."""
    mentions = find_mentions(text)
    listed = _in_option_list(text, mentions)
    denied = _denied(text, mentions)
    aside = denied | listed
    kept = tuple(mention for place, mention in enumerate(mentions) if place not in denied)
    stated = tuple(mention for place, mention in enumerate(mentions) if place not in aside)
    return Page(text, kept, stated)


def one_of(emotions: Iterable[Emotion]) -> Emotion | Unclear | None:
    """Returns the label on which all agree, UNCLEAR if they don't, None if there is none."""
    different = set(emotions)
    if len(different) > 1:
        return UNCLEAR
    return different.pop() if different else None


def within(mentions: tuple[Mention, ...], start: int, end: int) -> list[Mention]:
    """Returns the mentions that lie between two places of the text."""
    first = bisect_left(mentions, start, key=lambda mention: mention.start)
    last = bisect_right(mentions, end, lo=first, key=lambda mention: mention.end)
    return list(mentions[first:last])

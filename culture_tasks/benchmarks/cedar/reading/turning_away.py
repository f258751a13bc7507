"""What a reply names only to turn away from it.

"She was afraid at first, but now she feels relieved" says what has passed, "it should be a happy day, yet she feels
sad" what one would expect, "the mother is sad, but the girl feels content" what somebody else feels, "some fear, but
mostly relief" what is less, "fear, or rather surprise" what is taken back, "between fear and relief, relief" what was
to choose from. In each of them the second feeling is meant. Neither is where the text says no more than "but", says
"also", or calls the second one possible.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.reading.lexicon import SPACED, UNSPACED
from culture_tasks.benchmarks.cedar.reading.surroundings import (
    any_of,
    explains,
    fits_best,
    gap_words,
    is_felt,
    joins,
    linking,
    links,
    phrases_of,
    spoken,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culture_tasks.benchmarks.cedar.reading.mentions import Mention

_REACH = 240
_CLAUSE_REACH = 80
_SHORT_LEAD, _SHORT_TRAIL = 5, 3
# Where a sentence ends; where a sentence or an explanation behind a dash or colon does; where a clause does.
_STOP: Final = re.compile(r"[.!?;\n]")
_BREAK: Final = re.compile(r"[.!?;:\n()]|\s[-–—]\s|[–—]")
_EDGE: Final = re.compile(r"[.,;:!?\n()]")
# A label that opens a line and that a stop or a comma follows: an answer, whatever comes after it.
_BARE_END: Final = re.compile(r"[\"'*_`)\]]*\s{0,2}(?:[.,;:!?\n(–—-]|\Z)")


@dataclass(frozen=True, slots=True)
class _Turn:
    """A label, the one that comes next, and the words around them.

    Attributes:
        one: The first label.
        other: The second label; None where the sentence ends without one.
        contrasted: Whether a word such as "but" stands behind the first label.
        before: What is said along with the first label, up to the word of contrast.
        lead: What leads to the second label, from the word of contrast on.
        trail: What follows the second label in its clause.
    """

    one: Mention
    other: Mention | None
    contrasted: bool
    before: str
    lead: str
    trail: str

    @property
    def after(self) -> str:
        """What is said along with the second label."""
        return self.lead + self.trail


def _turn(text: str, one: Mention, other: Mention | None) -> _Turn:
    gap = text[one.end : other.start] if other else _STOP.split(text[one.end : one.end + _REACH], maxsplit=1)[0]
    said = spoken(gap)
    but = links().contrast.search(said)
    start = _STOP.split(text[max(0, one.start - _CLAUSE_REACH) : one.start])[-1]
    end = spoken(_EDGE.split(text[other.end : other.end + _CLAUSE_REACH], maxsplit=1)[0]) if other else ""
    return _Turn(
        one=one,
        other=other,
        contrasted=but is not None,
        before=f"{spoken(start)}{said[: but.end()] if but else spoken(_BREAK.split(gap, maxsplit=1)[0])} ",
        lead=said[max(0, but.start() - 1) :] if but else said,
        trail=links().contrast.split(end, maxsplit=1)[0] + " ",
    )


def _persons(turn: _Turn) -> tuple[set[str], set[str]]:
    earlier, later = (set(linking("persons").findall(said)) for said in (turn.before, turn.lead))
    return earlier, later - earlier


def _another_person(turn: _Turn) -> bool:
    """Whether both clauses name their subjects, and not the same one: "the mother is sad, but the girl …"."""
    return all(_persons(turn))


def _someone_else(turn: _Turn, *, named: bool) -> bool:
    """Whether the second clause leaves the person who is meant: "she is sad, but her mother …", "…, but the man …".

    Args:
        turn: The two clauses.
        named: Whether the second clause may be the first to name that person: "there was fear, but now the girl …".
    """
    earlier, later = _persons(turn)
    return linking("relatives").search(turn.lead) is not None or bool(later and not earlier and not named)


def _prevails(text: str, turn: _Turn, other: Mention) -> bool:
    """Whether the second label is said to be the stronger one: "but mostly relief", "but relief prevails"."""
    around = [*turn.lead.split()[-_SHORT_LEAD:], "|", *turn.trail.split()[:_SHORT_TRAIL]]
    return linking("mainly").search(f" {' '.join(around)} ") is not None or fits_best(text, other)


def _opens_line(text: str, mention: Mention) -> bool:
    line = text[max(0, mention.start - _CLAUSE_REACH) : mention.start].rsplit("\n", 1)[-1]
    return not gap_words(line) and _BARE_END.match(text, mention.end) is not None


def _leaves_first(text: str, turn: _Turn) -> bool:
    """Whether the text turns from the first label to the second one, or to what no label names."""
    if _opens_line(text, turn.one):
        return False
    past = linking("first").search(turn.before) is not None
    expected = linking("expected").search(turn.before) is not None
    if turn.other is None:
        return turn.contrasted and (past or expected)
    if linking("besides", "possible").search(turn.after):
        return False
    if _someone_else(turn, named=past or expected) and not linking("self").search(turn.after):
        return False
    meant = linking("now", "really", "self").search(turn.after) is not None
    if meant and (past or expected):
        return True
    if not turn.contrasted:
        return False
    if meant or expected or _prevails(text, turn, turn.other):
        return True
    return is_felt(text, turn.other) and (past or (not is_felt(text, turn.one) and _another_person(turn)))


def _leaves_second(turn: _Turn) -> bool:
    """Whether only the second label is past or expected: "she feels relief now, but earlier she was frightened".

    "The most fitting emotion should be relief" expects nothing: it chooses.
    """
    contrasted = turn.contrasted or linking("now").search(turn.before)
    choice = linking("choice").search(turn.lead)
    expecting = turn.lead[: choice.start()] if choice else turn.after
    return bool(contrasted and (linking("expected").search(expecting) or linking("first").search(turn.after)))


def _takes_back(turn: _Turn) -> bool:
    """Whether the writer corrects the first label: "…, or rather sympathy"."""
    found = linking("corrections").search(turn.lead)
    return found is not None and len(turn.lead[found.end() :].split()) <= _SHORT_LEAD


def _chosen(text: str, mentions: tuple[Mention, ...]) -> Iterator[Mention]:
    """Yields two labels that were only offered, where one of them is named again: "between fear and awe, awe"."""
    for one, other, third in zip(mentions, mentions[1:], mentions[2:], strict=False):
        gap = text[other.end : third.start]
        if one.emotion == other.emotion or third.emotion not in {one.emotion, other.emotion} or len(gap) > _REACH:
            continue
        if _STOP.search(gap) or not joins(text[one.end : other.start]):
            continue
        lead = spoken(_STOP.split(text[max(0, one.start - _CLAUSE_REACH) : one.start])[-1])
        if linking("offers").search(f" {' '.join(lead.split()[-_SHORT_LEAD:])} {spoken(gap)}"):
            yield from (one, other)


def _clause(text: str, mention: Mention) -> tuple[str, str]:
    """Returns the words of a label's clause before it and after it."""
    before = _EDGE.split(text[max(0, mention.start - _CLAUSE_REACH) : mention.start])[-1]
    return spoken(before), spoken(_EDGE.split(text[mention.end : mention.end + _CLAUSE_REACH], maxsplit=1)[0])


def _conditional(text: str, mentions: tuple[Mention, ...]) -> Iterator[Mention]:
    """Yields labels of a condition: "if she were angry, …", "if you are happy with this, …"."""
    for mention in mentions:
        before, after = _clause(text, mention)
        edge = _EDGE.search(text, mention.end, mention.end + _CLAUSE_REACH)
        closes = (edge is not None and edge.group() == ",") or linking("then").search(after)
        if closes and linking("conditions").search(before):
            yield mention


@cache
def _before_others() -> re.Pattern[str]:
    """Matches a group of others that somebody else's feeling concerns: "in front of the crowd", "観客の前"."""
    spaced, others = any_of(phrases_of(SPACED, "facing")).pattern, any_of(phrases_of(SPACED, "others")).pattern
    after, groups = any_of(phrases_of(("hi", *UNSPACED), "facing")).pattern, linking("others").pattern
    return re.compile(rf"(?<= ){spaced} {others}(?= )|(?:{groups}) ?{after}")


def _of_others(text: str, mentions: tuple[Mention, ...]) -> set[Mention]:
    """Returns what "the others" or "the crowd" feel, where the text says of a feeling that is not theirs."""
    theirs = set()
    for mention in mentions:
        said = (_before_others().sub(" ", part) for part in _clause(text, mention))
        if any(linking("others").search(part) for part in said):
            theirs.add(mention)
    return theirs if len(theirs) < len(mentions) else set()


def left_behind(text: str, mentions: tuple[Mention, ...]) -> set[Mention]:
    """Returns the emotion words that a folded reply names only to turn away from them.

    Args:
        text: The folded reply.
        mentions: Its emotion words that nothing denies, in order.
    """
    behind = {*_chosen(text, mentions), *_conditional(text, mentions), *_of_others(text, mentions)}
    start = 0
    for place, (one, following) in enumerate(pairwise((*mentions, None))):
        if one is None:
            continue
        if place and explains(text[mentions[place - 1].end : one.start]):
            start = place
        other = following if following and following.start - one.end <= _REACH else None
        if other and one.emotion == other.emotion:
            continue
        turn = _turn(text, one, other)
        if other and _takes_back(turn):
            behind.add(one)
        elif _leaves_first(text, turn):
            # What the explanation of an answer turns away from leaves the answer alone.
            chain = mentions[start : place + 1]
            behind.update(chain[1:] if len(chain) > 1 and _opens_line(text, chain[0]) else chain)
            start = place + 1
        elif other and _leaves_second(turn):
            behind.add(other)
    return behind

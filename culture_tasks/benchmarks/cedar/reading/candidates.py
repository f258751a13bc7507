"""A folded reply, its sentences, and which of its emotion words count.

A word is set aside where the text denies it, weighs it against another and finds it lighter ("less fear than
surprise"), names it as one end of a change ("from fear to relief"), asks a question about it, declines to answer, or
repeats the option list.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from culture_tasks.benchmarks.cedar.labels import LANGUAGES, Language
from culture_tasks.benchmarks.cedar.reading.folding import fold
from culture_tasks.benchmarks.cedar.reading.lexicon import (
    HAN_OR_KANA,
    RUN,
    SPACED,
    UNSPACED,
    WORD,
    WORD_BEGINS,
    WORD_ENDS,
    language_file,
    phrases,
)
from culture_tasks.benchmarks.cedar.reading.mentions import Mention, find_mentions
from culture_tasks.benchmarks.cedar.reading.surroundings import (
    NOUN_ENDINGS,
    any_of,
    contrasts,
    gives_reason,
    grammar,
    is_denied,
    is_foreign,
    joins,
    links,
    offers_alternative,
    phrases_of,
)
from culture_tasks.benchmarks.cedar.reading.turning_away import left_behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from culture_tasks.benchmarks.cedar.labels import Emotion

_LIST_LENGTH = 5
_REACH = 240
# A sentence: text up to a stop with the quotation marks and brackets that close it, or up to a line break.
_SENTENCE: Final = re.compile(r"[^.!?;\n]*(?:[.!?;]+[\"'*_`)\]]*|\n|\Z)")
# In a skeleton, which is a sentence without its punctuation, a private-use character stands for an emotion word.
_SLOT: Final = "\ue000"
_SLOTS: Final = "+=-~%"
# What a skeleton is made of: words, commas, slots, and "|" where a dash, a colon or a bracket stood.
_SKELETON: Final = re.compile(rf"{WORD.pattern}|[,|{_SLOT}]")
_BREAK: Final = re.compile(r"[–—:()\[\]]|\s-{1,2}\s")
_WORDS: Final = re.compile(r"\w")
# What is left out of the skeleton of an unspaced sentence: white space and markup.
_NOT_COMPACT: Final = re.compile(r"[\s\"'*_`]+")


class Sentence(NamedTuple):
    """Where a sentence begins and ends."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A folded reply and its emotion words.

    Attributes:
        text: The folded reply.
        sentences: Its sentences, in order.
        kept: Words that are not set aside, in order; those of repeated option lists among them.
        stated: Those of them that are no part of a repeated option list.
        declines: Where the reply says that it can't or won't answer.
    """

    text: str
    sentences: tuple[Sentence, ...]
    kept: tuple[Mention, ...]
    stated: tuple[Mention, ...]
    declines: tuple[int, ...]


class Unclear:
    """Verdict of a rule that found several labels where one would be a choice."""


UNCLEAR: Final = Unclear()


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


def sentence_of(reply: Reply, place: int) -> Sentence:
    """Returns the sentence around a place of the text."""
    return reply.sentences[bisect_right(reply.sentences, place, key=lambda sentence: sentence.start) - 1]


@cache
def _plain_runs() -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(cast('str', language_file(language)['plain']) for language in UNSPACED)})+")


@cache
def _plain_words(keys: tuple[str, ...]) -> frozenset[str]:
    words = {word for phrase in phrases_of(SPACED, *keys) for word in phrase.split()}
    return frozenset(words - links().alternatives - set(phrases_of(SPACED, "contrast")))


LABEL: Final = ("joiners", "hedges", "copulas", "choice")
STATEMENT: Final = (*LABEL, "subjects", "feel", "felt", "best")


def is_plain(rest: str, keys: tuple[str, ...] = LABEL) -> bool:
    """Whether the text around a label adds nothing to it: numbering, "probably", "it is", "です".

    Args:
        rest: The text without the label.
        keys: Which lists of words add nothing. LABEL is what surrounds a label that stands alone, STATEMENT also what
            says that someone feels it.
    """
    if not _WORDS.search(rest):
        return True
    known = _plain_words(keys)
    if not all(word in known or len(word) == 1 or word.isdigit() for word in WORD.findall(rest)):
        return False
    return all(_plain_runs().fullmatch(run) for run in RUN.findall(rest))


@cache
def _after_a_noun() -> frozenset[str]:
    """Words that may follow a noun: the word before one of them is a noun itself, and not an adjective."""
    return _plain_words((*STATEMENT, "openers", "past_copulas")) | frozenset(phrases_of(SPACED, "function"))


# The rest of an adjective in front of a noun, and where that noun begins: "痛苦的等待", "悲しい別れ".
_OF_NOUN: Final = re.compile(rf"(?:的|な(?!ん)|い(?=[一-鿿]))(?=([{HAN_OR_KANA}]+))")
# The word behind an emotion word, and the one in front of it.
_NEXT_WORD: Final = re.compile(rf" ({WORD.pattern})")
_LAST_WORD: Final = re.compile(rf"({WORD.pattern}) \Z")


@cache
def _adjectives(language: Language) -> re.Pattern[str]:
    """Matches the end of an adjective, in the languages that put it in front of its noun."""
    endings = language_file(language).get("adjectives")
    return re.compile(rf"(?:{fold(cast('str', endings))})\Z" if endings else "(?!)")


def describes(text: str, mention: Mention) -> bool:
    """Whether an emotion word only describes a thing of the story: "the painful wait", "痛苦的等待"."""
    if mention.language in UNSPACED:
        noun = _OF_NOUN.match(text, mention.end, mention.end + 12)
        return noun is not None and not _plain_runs().match(noun.group(1))
    found = _LAST_WORD.search(text, max(0, mention.start - 24), mention.start)
    last = found.group(1) if found else ""
    following = _NEXT_WORD.match(text, mention.end, mention.end + 24)
    if mention.language == "ar":
        return last.startswith("ال") and text.startswith("ال", mention.start) and last not in _after_a_noun()
    if following is None or following.group(1) in _after_a_noun():
        return False
    adjective = _adjectives(mention.language).search(text, mention.start, mention.end) is not None
    return adjective and (mention.language == "hi" or last in phrases(mention.language, "determiners"))


def _sentences(text: str) -> tuple[Sentence, ...]:
    spans = (found.span() for found in _SENTENCE.finditer(text))
    return tuple(Sentence(*span) for span in spans if span[0] < span[1]) or (Sentence(0, len(text)),)


def rest_of(text: str, span: tuple[int, int], mentions: Iterable[Mention], mark: str = " ") -> str:
    """Returns part of a text with a mark in place of the emotion words in it."""
    parts, start = [], span[0]
    for mention in mentions:
        parts.append(text[start : mention.start].replace(_SLOT, " "))
        start = mention.end
    return mark.join([*parts, text[start : span[1]].replace(_SLOT, " ")])


# A sentence ends in a question mark, and what closes it.
_ASKS: Final = re.compile(r"\?[\s\"'*_`)\]]*\Z")


def _is_question(text: str, sentence: Sentence) -> bool:
    return _ASKS.search(text, max(sentence.start, sentence.end - 8), sentence.end) is not None


@cache
def _declining() -> re.Pattern[str]:
    """Matches what declines to answer ("I can't tell"), and, in its group, what only greets ("I hope this helps")."""
    spaced = any_of(phrases_of(SPACED, "unable"), around=f"{WORD_BEGINS}{{}}{WORD_ENDS}").pattern
    hedges = any_of(phrases_of(SPACED, "not_unable")).pattern
    unspaced = "|".join(cast("str", language_file(language)["refusal"]) for language in UNSPACED)
    exempt = "|".join(cast("str", language_file(language)["not_refusal"]) for language in UNSPACED)
    greets = any_of(phrases_of(SPACED, "talk"), around=f"{WORD_BEGINS}{{}}{WORD_ENDS}").pattern
    sorry = any_of(phrases_of(SPACED, "apologies"), around=rf"(?:\A|(?<=\n)|(?<=[.!?;] )){{}}{WORD_ENDS}").pattern
    return re.compile(f"(?!{hedges})(?!{exempt})(?:{spaced}|{unspaced}|{sorry}|(?P<greets>{greets}))")


def _declined(text: str, found: list[re.Match[str]], sentence: Sentence, mentions: list[Mention]) -> Iterator[Mention]:
    """Emotion words in what a sentence says about not answering, and not in what it answers all the same."""
    ends, starts = [match.end() for match in found], [match.start() for match in found]
    for mention in mentions:
        first = bisect_right(ends, mention.start)
        if first and not _goes_on(
            text[starts[first - 1] : mention.start][:_REACH], ends[first - 1] - starts[first - 1]
        ):
            yield mention
            continue
        place = bisect_left(starts, mention.end)
        if place == len(found) or found[place].group("greets") or starts[place] - mention.end > _REACH:
            continue
        gap = text[mention.end : starts[place]]
        lead = text[max(sentence.start, mention.start - _REACH) : mention.start]
        answered = contrasts(gap) and is_plain(lead)
        if not answered and not gives_reason(gap):
            yield mention


def _goes_on(gap: str, refusal: int) -> bool:
    """Whether an answer follows a refusal in the same sentence: "I can't see it, but …", "I can't tell, maybe …"."""
    rest = gap[refusal:].lstrip()
    return contrasts(gap) or (rest.startswith(",") and is_plain(rest))


@dataclass(frozen=True, slots=True)
class Construction:
    """A construction that weighs emotion words: its pattern over a skeleton, and what becomes of each of its slots.

    Slots are written ``+`` for the word that is meant, whatever stands around it, ``=`` for one of which the
    construction says nothing, ``-`` for one that is outweighed or over, ``~`` for the ends of a change, and ``%`` for
    part of a mixture, to which the words joined to it belong. ``_`` stands for up to two words of any kind. Its longest
    word is looked for first.
    """

    pattern: re.Pattern[str]
    slots: str
    word: str


def _spaced_construction(template: str) -> Construction:
    word = rf" [^\s,|{_SLOT}]+"
    pattern = ""
    for piece in template.split():
        if piece == "_":
            pattern += rf"(?:{word}){{0,2}}?"
            continue
        # A comma may stand before a word of the construction, and an article or an adjective before an emotion word.
        pattern += rf"(?:{word}){{0,3}} {_SLOT}" if piece in _SLOTS else rf"(?: ,)? {re.escape(piece)}"
    slots = "".join(filter(_SLOTS.__contains__, template))
    return Construction(re.compile(rf"{pattern}(?= )"), slots, max(template.split(), key=len))


def _unspaced_construction(template: str) -> Construction:
    pattern = ""
    for place, character in enumerate(template):
        slot = character in _SLOTS
        filler = f"[^{_SLOT}.!?]{{0,6}}?" if place else ""
        pattern += f"{filler}{_SLOT}{NOUN_ENDINGS}" if slot else character
    return Construction(re.compile(pattern), "".join(filter(_SLOTS.__contains__, template)), "")


@cache
def _constructions(language: Language) -> tuple[Construction, ...]:
    build = _spaced_construction if language in SPACED else _unspaced_construction
    templates = phrases(language, "constructions")
    return tuple(build(template) for template in sorted(templates, key=len, reverse=True))


def _weighed(text: str, sentence: Sentence, mentions: list[Mention]) -> Iterator[tuple[Mention, str]]:
    """Yields the emotion words of a sentence that stand in constructions, each with its slot."""
    rest = rest_of(text, sentence, mentions, mark=f" {_SLOT} ")
    spaced = f" {' '.join(_SKELETON.findall(_BREAK.sub(' | ', rest)))} "
    compact = _NOT_COMPACT.sub("", rest)
    if not _WORDS.search(spaced) and not RUN.search(compact):
        return
    present = {mention.language for mention in mentions} | {"en", *UNSPACED}
    if is_foreign(spaced[:_REACH]):
        present |= set(SPACED)
    for language in LANGUAGES:
        skeleton = spaced if language in SPACED else compact
        if language not in present or (language in UNSPACED and not RUN.search(compact)):
            continue
        places = [place for place, character in enumerate(skeleton) if character == _SLOT]
        for construction in _constructions(language):
            for match in construction.pattern.finditer(skeleton) if construction.word in skeleton else ():
                before = skeleton[max(0, match.start() - 16) : match.start()]
                if language in UNSPACED or not _ends_negated(before, language):
                    first = bisect_left(places, match.start())
                    yield from zip(mentions[first : first + len(construction.slots)], construction.slots, strict=True)


def _ends_negated(before: str, language: Language) -> bool:
    return grammar(language).negators.search(f" {' '.join(before.split()[-1:])} ") is not None


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


def _denied(text: str, mentions: list[Mention], slots: dict[Mention, str]) -> set[int]:
    """Indices of denied mentions; a denial reaches along "not anger, fear or disgust"."""
    denied = {
        place
        for place, mention in enumerate(mentions)
        if slots.get(mention) in {"-", "~"} or (slots.get(mention) != "+" and is_denied(text, mention))
    }
    mixed = {place for place, mention in enumerate(mentions) if slots.get(mention) == "%"}
    for place in [*range(1, len(mentions)), *range(len(mentions) - 1, 0, -1)] if mixed else ():
        if {place - 1, place} & mixed and joins(text[mentions[place - 1].end : mentions[place].start]):
            mixed |= {place - 1, place}
    denied |= mixed
    reach: list[int] = []
    for place in range(1, len(mentions)):
        gap = text[mentions[place - 1].end : mentions[place].start]
        if place in denied or not (place - 1 in denied or reach) or not joins(gap) or mentions[place] in slots:
            reach = []
            continue
        reach.append(place)
        if offers_alternative(gap):
            denied.update(reach)
            reach = []
    return denied


def find_candidates(text: str) -> Reply:
    """Finds the emotion words of a folded reply and sets aside what is no candidate for its answer."""
    mentions = find_mentions(text)
    sentences = _sentences(text)
    declining = list(_declining().finditer(text))
    starts = [match.start() for match in declining]
    slots: dict[Mention, str] = {}
    aside: set[Mention] = set()
    guesses: set[Mention] = set()
    ordered = tuple(mentions)
    for sentence in _with_mentions(sentences, ordered):
        own = within(ordered, *sentence)
        if _is_question(text, sentence):
            guess = is_plain(rest_of(text, sentence, own), ("joiners", "hedges"))
            (guesses if guess else aside).update(own)
            if not guess:
                continue
        found = declining[bisect_left(starts, sentence.start) : bisect_left(starts, sentence.end)]
        aside.update(_declined(text, found, sentence, own))
        for mention, slot in _weighed(text, sentence, own):
            slots.setdefault(mention, slot)
    listed = _in_option_list(text, mentions)
    if len({mention.emotion for place, mention in enumerate(mentions) if place not in listed}) > 1:
        aside |= guesses  # "Fear? Or is it relief?", and not "I can't see the image. Fear?"
    denied = _denied(text, mentions, slots)
    aside |= left_behind(text, tuple(m for place, m in enumerate(mentions) if place not in denied and m not in aside))
    kept = [place for place, mention in enumerate(mentions) if place not in denied and mention not in aside]
    told = {place for place in kept if describes(text, mentions[place])}
    if len(told) < len(kept):
        kept = [place for place in kept if place not in told]  # "the painful wait", where something else is felt
    return Reply(
        text=text,
        sentences=sentences,
        kept=tuple(mentions[place] for place in kept),
        stated=tuple(mentions[place] for place in kept if place not in listed),
        declines=tuple(match.start() for match in declining if not match.group("greets")),
    )


def _with_mentions(sentences: tuple[Sentence, ...], mentions: tuple[Mention, ...]) -> Iterator[Sentence]:
    for sentence in sentences:
        place = bisect_left(mentions, sentence.start, key=lambda mention: mention.start)
        if place < len(mentions) and mentions[place].start < sentence.end:
            yield sentence

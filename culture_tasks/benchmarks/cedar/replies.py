"""Reads which emotion a model's reply names: one pure function, no judge.

The reply is folded (``folding``), its emotion words are found in all seven languages (``mentions``), denied ones and
repeated option lists are set aside, and a ladder of rules looks for a clear choice. A reply that names several
emotions without one is unparsed.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.context import (
    any_of,
    contrasts,
    explains,
    gap_words,
    is_cued,
    is_denied,
    joins,
    offers_alternative,
)
from culture_tasks.benchmarks.cedar.folding import cut_reasoning, fold
from culture_tasks.benchmarks.cedar.labels import LANGUAGES
from culture_tasks.benchmarks.cedar.lexicon import SPACED, UNSPACED, phrases
from culture_tasks.benchmarks.cedar.mentions import Mention, find_mentions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culture_tasks.benchmarks.cedar.labels import Emotion, Language

_LIST_LENGTH = 5
_LEAD_WORDS = 6
_DIRECT_LEAD_WORDS = 2
_SEGMENT = 240
_CLOSERS: Final = r"[\s\"'*_`\])]{0,6}"
_NOT_IN_WORD: Final = r"(?<![^\W_])(?<![ऀ-ॣ])"
_WORD_ENDS: Final = r"(?![^\W_])(?![ऀ-ॣ])"


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


class _Unclear:
    """Verdict of a rule that found several labels where one would be a choice."""


_UNCLEAR: Final = _Unclear()


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


def _page(text: str) -> Page:
    mentions = find_mentions(text)
    listed = _in_option_list(text, mentions)
    denied = _denied(text, mentions)
    aside = denied | listed
    kept = tuple(mention for place, mention in enumerate(mentions) if place not in denied)
    stated = tuple(mention for place, mention in enumerate(mentions) if place not in aside)
    return Page(text, kept, stated)


def _one(emotions: Iterable[Emotion]) -> Emotion | _Unclear | None:
    different = set(emotions)
    if len(different) > 1:
        return _UNCLEAR
    return different.pop() if different else None


def _within(mentions: tuple[Mention, ...], start: int, end: int) -> list[Mention]:
    first = bisect_left(mentions, start, key=lambda mention: mention.start)
    last = bisect_right(mentions, end, lo=first, key=lambda mention: mention.end)
    return list(mentions[first:last])


_JSON: Final = re.compile(r'"([^"\n]{1,40})"\s{0,4}:\s{0,4}"([^"\n]{0,80})"')
_BOXED: Final = re.compile(r"\\?(?:boxed|fbox)\s{0,2}\{([^\n]{0,80})")
_TAGGED: Final = re.compile(r"<\s{0,2}(answer|final_answer|emotion|label|response)\s{0,2}>([^<]{0,120})<")
_KEYS: Final = frozenset({"selected_emotion", "final_answer", "your answer", "your_answer", "predicted_emotion"})


@cache
def _answer_keys() -> frozenset[str]:
    nouns = (
        phrase for language in LANGUAGES for key in ("answer", "final", "choice") for phrase in phrases(language, key)
    )
    return _KEYS | frozenset(nouns)


def _machine_form(page: Page) -> Emotion | _Unclear | None:
    r"""JSON with a telling key, ``\boxed{…}``, ``<answer>…</answer>``."""
    spans = [m.span(2) for m in _JSON.finditer(page.text) if m.group(1).strip() in _answer_keys()]
    spans += [m.span(2) for m in _TAGGED.finditer(page.text)]
    spans += [
        (m.start(1), m.start(1) + (m.group(1).find("}") if "}" in m.group(1) else len(m.group(1))))
        for m in _BOXED.finditer(page.text)
    ]
    return _one(mention.emotion for start, end in spans for mention in _within(page.stated, start, end))


def _bare_line(page: Page) -> Emotion | _Unclear | None:
    """Lines that hold a label and nothing else but numbering and punctuation."""
    bare: set[Emotion] = set()
    for mention in page.stated:
        start = page.text.rfind("\n", max(0, mention.start - 40), mention.start) + 1
        if start == 0 and mention.start > 40:
            continue
        stop = page.text.find("\n", mention.end, mention.end + 40)
        if stop < 0:
            if len(page.text) > mention.end + 40:
                continue
            stop = len(page.text)
        around = gap_words(page.text[start : mention.start] + " " + page.text[mention.end : stop])
        colon = page.text[mention.end : stop].rstrip(" *_").endswith(":")
        if not colon and all(len(word) == 1 or word.isdigit() for word in around):
            bare.add(mention.emotion)
    return _one(bare)


def _nouns(languages: Iterable[Language], key: str) -> str:
    return any_of(phrase for language in languages for phrase in phrases(language, key)).pattern


@cache
def _cue(key: str) -> re.Pattern[str]:
    """Matches a noun such as "answer" up to where its label is to begin.

    A colon, an arrow, a copula or a line break stands between them, and before a copula up to 80 characters of
    the same clause ("the emotion that best matches the situation is"). The Hindi copula comes after the label.
    """
    spaced = tuple(language for language in SPACED if language != "hi")
    copulas = f"{_NOT_IN_WORD}{_nouns(spaced, 'copulas')}{_WORD_ENDS}|{_nouns(UNSPACED, 'copulas')}"
    noun = f"(?:{_NOT_IN_WORD}{_nouns(SPACED, key)}{_WORD_ENDS}|{_nouns(UNSPACED, key)})"
    link = rf"{_CLOSERS}(?:[:=]|-{{1,2}}>|→|—|–|\s-\s|\n)|[^.\n:;?!{{}}]{{0,80}}?(?:{copulas}){_CLOSERS}:?"
    return re.compile(rf"{noun}(?:{link})")


@cache
def _direct_cue(key: str) -> re.Pattern[str]:
    """Matches what a label follows at once: "I would choose", "मेरा उत्तर"."""
    spaced = _nouns(SPACED if key == "choose" else ("hi",), key)
    unspaced = _nouns(UNSPACED, key) if key == "choose" else "(?!)"
    hindi_copula = rf"(?:{_nouns(('hi',), 'copulas')}{_WORD_ENDS})?"
    return re.compile(rf"(?:{_NOT_IN_WORD}{spaced}{_WORD_ENDS}|{unspaced}){_CLOSERS}{hindi_copula}{_CLOSERS}:?")


_OTHER_CUE: Final = re.compile(
    r"(?:second|secondary|secondly|other|another|alternative|possible|previous|first|wrong|incorrect|not the|"
    r"secundaria|otra|ثانويه|دوم|nyingine|अन्य|次の|其他)\W{0,4}\Z"
)
_STOP: Final = re.compile(r"[.;!?\n]")


def _label_after(page: Page, start: int, lead: int) -> Emotion | _Unclear | None:
    """The label that a cue leads to: the first one in its sentence, if no other is joined to it."""
    begin = start + len(page.text[start : start + _SEGMENT]) - len(page.text[start : start + _SEGMENT].lstrip())
    end = _STOP.search(page.text, begin + 1, begin + _SEGMENT)
    found = _within(page.kept, begin, end.start() if end else begin + _SEGMENT)
    if not found or len(gap_words(page.text[begin : found[0].start])) > lead:
        return None
    if not _within(page.stated, found[0].start, found[0].end):
        return None  # a repeated option list
    for last, following in itertools.pairwise(found):
        if following.emotion != found[0].emotion:
            joined = joins(page.text[last.end : following.start])
            return _UNCLEAR if joined or is_cued(page.text, following) else found[0].emotion
    return found[0].emotion


def _cued(page: Page, key: str) -> list[Emotion | _Unclear]:
    """What each cue of a kind leads to, in order."""
    cues = [(cue, _LEAD_WORDS) for cue in _cue(key).finditer(page.text)]
    cues += [(cue, _DIRECT_LEAD_WORDS) for cue in _direct_cue(key).finditer(page.text)]
    verdicts = []
    for cue, lead in sorted(cues, key=lambda pair: pair[0].end()):
        preceding = page.text[max(0, cue.start() - 24) : cue.start()]
        if _OTHER_CUE.search(preceding) or _within(page.kept, cue.start(), cue.end()):
            continue
        verdict = _label_after(page, cue.end(), lead)
        if verdict is not None:
            verdicts.append(verdict)
    return verdicts


def _final_answer(page: Page) -> Emotion | _Unclear | None:
    verdicts = _cued(page, "final")
    return verdicts[-1] if verdicts else None


def _answer(page: Page) -> Emotion | _Unclear | None:
    """The last "Answer: …", and a line with a label alone, which must not contradict it."""
    verdicts = _cued(page, "answer")
    bare = _bare_line(page)
    if not verdicts:
        return bare
    if isinstance(verdicts[-1], _Unclear) or bare is None:
        return verdicts[-1]
    return _one([verdicts[-1], bare]) if not isinstance(bare, _Unclear) else verdicts[-1]


def _choice(page: Page) -> Emotion | _Unclear | None:
    """The label on which "Emotion: …", "the emotion that fits best is …" and "I would choose …" agree."""
    verdicts = [*_cued(page, "choice"), *_cued(page, "choose")]
    if any(isinstance(verdict, _Unclear) for verdict in verdicts):
        return _UNCLEAR
    opening = page.stated[:1] if verdicts and _opens(page) else ()
    chosen = [verdict for verdict in verdicts if not isinstance(verdict, _Unclear)]
    return _one([*chosen, *(mention.emotion for mention in opening)])


def _opens(page: Page) -> bool:
    """Whether the reply begins with a label."""
    return bool(page.stated) and not gap_words(page.text[: page.stated[0].start][-80:])


_EMPHASIS: Final = re.compile(
    r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__|<(?:b|strong|em|i|u)>([^<\n]{1,80})<|(?<![\w*])\*([^*\s][^*\n]{0,40})\*(?!\*)"
)
_QUOTED: Final = re.compile(r"\"([^\"\n]{1,40})\"|(?<!\w)'([^'\n]{1,40})'(?!\w)|`([^`\n]{1,40})`")


def _marked(page: Page, pattern: re.Pattern[str], longest: int) -> Emotion | _Unclear | None:
    emotions: set[Emotion] = set()
    for span in pattern.finditer(page.text):
        start, end = span.span(span.lastindex or 0)
        if len(gap_words(page.text[start:end])) <= longest:
            emotions.update(mention.emotion for mention in _within(page.kept, start, end))
    return _one(emotions)


def _emphasised(page: Page) -> Emotion | _Unclear | None:
    return _marked(page, _EMPHASIS, 7)


def _quoted(page: Page) -> Emotion | _Unclear | None:
    verdict = _marked(page, _QUOTED, 3)
    return None if isinstance(verdict, _Unclear) else verdict


def _begins_line(page: Page, mention: Mention) -> bool:
    line = page.text[max(0, mention.start - 12) : mention.start].rsplit("\n", 1)
    return len(line) == 2 and not [word for word in gap_words(line[1]) if len(word) > 1]


def _leading(page: Page) -> Emotion | _Unclear | None:
    """A reply that opens with a label or says that it is felt, and names others only to explain."""
    first = page.stated[0] if page.stated else None
    if first is None:
        return None
    others = [mention for mention in page.stated if mention.emotion != first.emotion]
    if not others:
        return first.emotion
    if not _opens(page) and not is_cued(page.text, first):
        return _UNCLEAR
    before = [mention for mention in page.stated if mention.start < others[0].start][-1]
    if joins(page.text[before.end : others[0].start]):
        return _UNCLEAR
    gap = page.text[first.end : others[0].start]
    if not explains(gap) or contrasts(gap[:80]):
        return _UNCLEAR
    rival = any(is_cued(page.text, mention) or _begins_line(page, mention) for mention in others)
    return _UNCLEAR if rival else first.emotion


_LADDER: Final[tuple[Callable[[Page], Emotion | _Unclear | None], ...]] = (
    _machine_form,
    _final_answer,
    _answer,
    _choice,
    _emphasised,
    _quoted,
    _leading,
)
_NEW_PROMPT: Final = re.compile(
    r"\n\s{0,4}(?:\[[^\]\n]{2,20}\]\s?:|(?:question|narrative|q|user|human|pregunta|swali|السؤال|प्रश्न|质问|问题|質問)\s?:)"
)


def _before_next_prompt(text: str) -> Emotion | None:
    """A reply that answers and then goes on with a question of its own is read up to there."""
    following = _NEW_PROMPT.search(text)
    if following is None or following.start() > 400:
        return None
    verdict = _bare_line(_page(text[: following.start()]))
    return None if isinstance(verdict, _Unclear) else verdict


def read_reply(reply: str) -> Emotion | None:
    r"""Returns the emotion that a reply chooses, or None where it chooses none or more than one.

    Words of all seven languages count, in any inflection that belongs to one label alone. In order: JSON,
    ``\\boxed`` and answer tags; a final answer; "Answer: …" and a line with the label alone; "the emotion is …"; a
    single label in bold, then in quotes; the label that opens the reply or is said to be felt, where others only
    explain it; the only label there is. A denied label ("not sadness") never counts, nor does a repeated option list.
    Time is linear in the length of the reply.

    Args:
        reply: The model's text, reasoning included.
    """
    text = fold(cut_reasoning(reply)).strip()
    early = _before_next_prompt(text)
    if early is not None:
        return early
    page = _page(text)
    for rule in _LADDER:
        verdict = rule(page)
        if isinstance(verdict, _Unclear):
            return None
        if verdict is not None:
            return verdict
    return None

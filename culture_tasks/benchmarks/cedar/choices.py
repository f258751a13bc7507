"""The rules by which a reply chooses a label: each gives a label, UNCLEAR, or None where it has nothing to say."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.context import any_of, fits_best, is_felt
from culture_tasks.benchmarks.cedar.labels import LANGUAGES
from culture_tasks.benchmarks.cedar.lexicon import SPACED, UNSPACED, phrases
from culture_tasks.benchmarks.cedar.links import contrasts, explains, gap_words, gives_reason, joins, sets_aside
from culture_tasks.benchmarks.cedar.page import UNCLEAR, Page, Unclear, one_of, within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culture_tasks.benchmarks.cedar.labels import Emotion, Language
    from culture_tasks.benchmarks.cedar.mentions import Mention

_LEAD_WORDS = 6
_DIRECT_LEAD_WORDS = 2
_SEGMENT = 240
_CLOSERS: Final = r"[\s\"'*_`\])]{0,6}"
_NOT_IN_WORD: Final = r"(?<![^\W_])(?<![ऀ-ॣ])"
_WORD_ENDS: Final = r"(?![^\W_])(?![ऀ-ॣ])"

_JSON: Final = re.compile(r'"([^"\n]{1,40})"\s{0,4}:\s{0,4}"([^"\n]{0,80})"')
_BOXED: Final = re.compile(r"\\?(?:boxed|fbox)\s{0,2}\{([^}\n]{0,80})")
_TAGGED: Final = re.compile(r"<\s{0,2}(answer|final_answer|emotion|label|response)\s{0,2}>([^<]{0,120})<")
_KEYS: Final = frozenset({"selected_emotion", "final_answer", "your answer", "your_answer", "predicted_emotion"})


@cache
def _answer_keys() -> frozenset[str]:
    nouns = (
        phrase for language in LANGUAGES for key in ("answer", "final", "choice") for phrase in phrases(language, key)
    )
    return _KEYS | frozenset(nouns)


def machine_form(page: Page) -> Emotion | Unclear | None:
    r"""JSON with a telling key, ``\boxed{…}``, ``<answer>…</answer>``."""
    spans = [m.span(2) for m in _JSON.finditer(page.text) if m.group(1).strip() in _answer_keys()]
    spans += [m.span(2) for m in _TAGGED.finditer(page.text)]
    spans += [m.span(1) for m in _BOXED.finditer(page.text)]
    return one_of(mention.emotion for start, end in spans for mention in within(page.stated, start, end))


def bare_line(page: Page) -> Emotion | Unclear | None:
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
    return one_of(bare)


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


def _label_after(page: Page, start: int, lead: int) -> Emotion | Unclear | None:
    """The label that a cue leads to: the first one in its sentence, if no other is joined to it."""
    segment = page.text[start : start + _SEGMENT]
    begin = start + len(segment) - len(segment.lstrip())
    end = _STOP.search(page.text, begin + 1, begin + _SEGMENT)
    found = within(page.kept, begin, end.start() if end else begin + _SEGMENT)
    if not found or len(gap_words(page.text[begin : found[0].start])) > lead:
        return None
    if not within(page.stated, found[0].start, found[0].end):
        return None  # a repeated option list
    for last, following in pairwise(found):
        if following.emotion != found[0].emotion:
            gap = page.text[last.end : following.start]
            rival = joins(gap) or (is_felt(page.text, following) and not gives_reason(gap))
            return UNCLEAR if rival else found[0].emotion
    return found[0].emotion


def _cued(page: Page, key: str) -> list[Emotion | Unclear]:
    """What each cue of a kind leads to, in order."""
    cues = [(cue, _LEAD_WORDS) for cue in _cue(key).finditer(page.text)]
    cues += [(cue, _DIRECT_LEAD_WORDS) for cue in _direct_cue(key).finditer(page.text)]
    verdicts = []
    for cue, lead in sorted(cues, key=lambda pair: pair[0].end()):
        preceding = page.text[max(0, cue.start() - 24) : cue.start()]
        if _OTHER_CUE.search(preceding) or within(page.kept, cue.start(), cue.end()):
            continue
        verdict = _label_after(page, cue.end(), lead)
        if verdict is not None:
            verdicts.append(verdict)
    return verdicts


def final_answer(page: Page) -> Emotion | Unclear | None:
    """The last "Final answer: …"."""
    verdicts = _cued(page, "final")
    return verdicts[-1] if verdicts else None


def answer(page: Page) -> Emotion | Unclear | None:
    """The last "Answer: …", and a line with a label alone, which must not contradict it."""
    verdicts = _cued(page, "answer")
    bare = bare_line(page)
    if not verdicts:
        return bare
    if isinstance(verdicts[-1], Unclear) or bare is None:
        return verdicts[-1]
    return one_of([verdicts[-1], bare]) if not isinstance(bare, Unclear) else verdicts[-1]


def choice(page: Page) -> Emotion | Unclear | None:
    """The label on which "Emotion: …", "the emotion that fits best is …" and "I would choose …" agree."""
    verdicts = [*_cued(page, "choice"), *_cued(page, "choose")]
    if any(isinstance(verdict, Unclear) for verdict in verdicts):
        return UNCLEAR
    chosen = [verdict for verdict in verdicts if not isinstance(verdict, Unclear)]
    chosen += [mention.emotion for mention in page.stated if fits_best(page.text, mention)]
    if verdicts and _opens(page) and not _takes_back(page):
        chosen.append(page.stated[0].emotion)
    return one_of(chosen)


def _opens(page: Page) -> bool:
    """Whether the reply begins with a label."""
    return bool(page.stated) and not gap_words(page.text[: page.stated[0].start][-80:])


def _takes_back(page: Page) -> bool:
    """Whether a word such as "but" stands between the label that opens the reply and the last one."""
    first, last = page.stated[0], page.stated[-1]
    return contrasts(page.text[first.end : last.start])


_EMPHASIS: Final = re.compile(
    r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__|<(?:b|strong|em|i|u)>([^<\n]{1,80})<|(?<![\w*])\*([^*\s][^*\n]{0,40})\*(?!\*)"
)
_QUOTED: Final = re.compile(r"\"([^\"\n]{1,40})\"|(?<!\w)'([^'\n]{1,40})'(?!\w)|`([^`\n]{1,40})`")


def _marked(page: Page, pattern: re.Pattern[str], longest: int) -> Emotion | Unclear | None:
    emotions: set[Emotion] = set()
    for span in pattern.finditer(page.text):
        start, end = span.span(span.lastindex or 0)
        if len(gap_words(page.text[start:end])) <= longest:
            emotions.update(mention.emotion for mention in within(page.kept, start, end))
    return one_of(emotions)


def emphasised(page: Page) -> Emotion | Unclear | None:
    """The one label in bold or italics."""
    return _marked(page, _EMPHASIS, 7)


def quoted(page: Page) -> Emotion | Unclear | None:
    """The one label in quotation marks; several decide nothing, since an explanation quotes too."""
    verdict = _marked(page, _QUOTED, 3)
    return None if isinstance(verdict, Unclear) else verdict


def _begins_line(page: Page, mention: Mention) -> bool:
    line = page.text[max(0, mention.start - 12) : mention.start].rsplit("\n", 1)
    return len(line) == 2 and not [word for word in gap_words(line[1]) if len(word) > 1]


def leading(page: Page) -> Emotion | Unclear | None:
    """A reply that opens with a label or says that it is felt, and names others only to explain."""
    first = page.stated[0] if page.stated else None
    if first is None:
        return None
    others = [mention for mention in page.stated if mention.emotion != first.emotion]
    if not others:
        return first.emotion
    if not _opens(page) and not is_felt(page.text, first):
        return UNCLEAR
    before = [mention for mention in page.stated if mention.start < others[0].start][-1]
    between = page.text[before.end : others[0].start]
    if joins(between) and not sets_aside(between):
        return UNCLEAR
    gap = page.text[first.end : others[0].start]
    if not explains(gap) or contrasts(gap[:80]):
        return UNCLEAR
    felt = not _opens(page) and any(is_felt(page.text, mention) for mention in others)
    rival = felt or any(_begins_line(page, mention) for mention in others)
    return UNCLEAR if rival else first.emotion

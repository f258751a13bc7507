r"""Reads which emotion a model's reply names: one pure function, no judge.

The reply is folded (``folding``), its emotion words are found in all seven languages (``mentions``), and those that
are denied, outweighed, asked about or only listed are set aside (``page``, by what ``context`` says of them), and so is
what the reply turns away from (``turns``): a feeling that has passed, that one would expect, or that others have. Then
a ladder of rules looks for where the reply commits itself; each gives a label, UNCLEAR, or None where it has nothing to
say. What a reply says beside its answer is background. A reply that names several emotions without a choice is
unparsed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.context import (
    any_of,
    breaks,
    contrasts,
    explains,
    fits_best,
    gap_words,
    gives_reason,
    is_felt,
    joins,
    linking,
    links,
    offers_alternative,
    phrases_of,
    sets_aside,
    spoken,
)
from culture_tasks.benchmarks.cedar.folding import cut_reasoning, fold
from culture_tasks.benchmarks.cedar.labels import LANGUAGES
from culture_tasks.benchmarks.cedar.lexicon import SPACED, UNSPACED
from culture_tasks.benchmarks.cedar.page import (
    STATEMENT,
    UNCLEAR,
    Page,
    Unclear,
    describes,
    is_plain,
    one_of,
    read_page,
    rest_of,
    sentence_of,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culture_tasks.benchmarks.cedar.labels import Emotion, Language
    from culture_tasks.benchmarks.cedar.mentions import Mention

_LEAD_WORDS = 6
_DIRECT_LEAD_WORDS = 2
_SEGMENT = 240
_LONGEST_LABEL_SENTENCE = 120
_CLOSERS: Final = r"[\s\"'*_`\])]{0,6}"
_NOT_IN_WORD: Final = r"(?<![^\W_])(?<![ऀ-ॣ])"
_WORD_ENDS: Final = r"(?![^\W_])(?![ऀ-ॣ])"

_JSON: Final = re.compile(r'"([^"\n]{1,40})"\s{0,4}:\s{0,4}"([^"\n]{0,80})"')
_BOXED: Final = re.compile(r"\\?(?:boxed|fbox)\s{0,2}\{([^}\n]{0,80})")
_TAGGED: Final = re.compile(r"<\s{0,2}(answer|final_answer|emotion|label|response)\s{0,2}>([^<]{0,120})<")
_KEYS: Final = frozenset({"selected_emotion", "final_answer", "your answer", "your_answer", "predicted_emotion"})


@cache
def _answer_keys() -> frozenset[str]:
    return _KEYS | frozenset(phrases_of(LANGUAGES, "answer", "final", "choice"))


def _machine_form(page: Page) -> Emotion | Unclear | None:
    r"""JSON with a telling key, ``\boxed{…}``, ``<answer>…</answer>``."""
    spans = [m.span(2) for m in _JSON.finditer(page.text) if m.group(1).strip() in _answer_keys()]
    spans += [m.span(2) for m in _TAGGED.finditer(page.text)]
    spans += [m.span(1) for m in _BOXED.finditer(page.text)]
    return one_of(mention.emotion for start, end in spans for mention in within(page.stated, start, end))


def _standing_alone(page: Page) -> Emotion | Unclear | None:
    """Sentences and lines that hold a label and nothing else but numbering, "probably" or "it is".

    A sentence that adds another label by "or maybe" or "then" takes such an answer back; so does one that calls another
    label possible where the answer is no more than that.
    """
    alone: set[Emotion] = set()
    added: set[Emotion] = set()
    sure: set[Emotion] = set()
    possible: set[Emotion] = set()
    for sentence in dict.fromkeys(sentence_of(page, mention.start) for mention in page.stated):
        if sentence.end - sentence.start > _LONGEST_LABEL_SENTENCE:
            continue
        here = within(page.kept, *sentence)
        rest = rest_of(page.text, sentence, here)
        heading = page.text[here[-1].end : sentence.end + 1].rstrip(" *_").endswith((":", ":\n"))
        emotions = {mention.emotion for mention in here}
        turns = _turns(rest)
        guess = linking("possible").search(spoken(rest)) is not None
        possible |= emotions if guess else set()
        if heading or not is_plain(_without_turns(rest) if turns else rest):
            continue
        if turns or len(emotions) > 1:
            added |= emotions
        else:
            alone |= emotions
            sure |= set() if guess else emotions
    return one_of(alone | added | (set() if sure else possible)) if alone else None


def _turns(rest: str) -> bool:
    return contrasts(rest) or offers_alternative(rest) or _unspaced_or().search(rest) is not None


def _without_turns(rest: str) -> str:
    words = (word for word in gap_words(rest) if word not in links().alternatives)
    return _unspaced_or().sub(" ", links().contrast.sub(" ", f" {' '.join(words)} "))


@cache
def _unspaced_or() -> re.Pattern[str]:
    """Matches a Japanese or Chinese "or" where a run begins; "かもしれない" is no か."""
    return re.compile(rf"(?<![^\s,])(?!かもしれ){_nouns(UNSPACED, 'alternatives')}")


def _nouns(languages: Iterable[Language], *keys: str) -> str:
    return any_of(phrases_of(languages, *keys)).pattern


@cache
def _cue(key: str) -> re.Pattern[str]:
    """Matches a noun such as "answer" up to where its label is to begin.

    A colon, an arrow, a copula or a line break stands between them, and before a copula up to 80 characters of
    the same clause ("the emotion that best matches the situation is"). The Hindi copula comes after the label. An
    answer may be told in the past; an emotion that was felt is part of the story.
    """
    spaced = tuple(language for language in SPACED if language != "hi")
    tenses = ("copulas",) if key == "choice" else ("copulas", "past_copulas")
    copulas = f"{_NOT_IN_WORD}{_nouns(spaced, *tenses)}{_WORD_ENDS}|{_nouns(UNSPACED, *tenses)}"
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


@cache
def _conclusion() -> re.Pattern[str]:
    """Matches "therefore" and its like where a clause begins."""
    spaced = _nouns(SPACED, "conclusions")
    return re.compile(
        rf"(?:\A|(?<=[.,;:!?\n] )|(?<=[.,;:!?\n]))(?:{spaced}{_WORD_ENDS}|{_nouns(UNSPACED, 'conclusions')})"
    )


_OTHER_CUE: Final = re.compile(
    r"(?:second|secondary|secondly|other|another|alternative|possible|previous|first|wrong|incorrect|not the|"
    r"secundaria|otra|ثانويه|دوم|nyingine|अन्य|次の|其他)\W{0,4}\Z"
)
# White space, and the number of an option: "Answer: 3. relief".
_NUMBERING: Final = re.compile(r"\s{0,9}[\"'*_`(]{0,4}(?:\d{1,2}[.)]\s{0,3})?")
_STOP: Final = re.compile(r"[.;!?\n]")


def _label_after(page: Page, start: int, lead: int) -> Emotion | Unclear | None:
    """The label that a cue leads to: the first one in its sentence, if no other is joined to it."""
    numbering = _NUMBERING.match(page.text, start)
    begin = numbering.end() if numbering else start
    end = _STOP.search(page.text, begin + 1, begin + _SEGMENT)
    found = within(page.kept, begin, end.start() if end else begin + _SEGMENT)
    if not found or len(gap_words(page.text[begin : found[0].start])) > lead:
        return None
    if not within(page.stated, found[0].start, found[0].end):
        return None  # a repeated option list
    for last, following in pairwise(found):
        if following.emotion != found[0].emotion:
            gap = page.text[last.end : following.start]
            rival = _rivals(page, last, following) or (is_felt(page.text, following) and not gives_reason(gap))
            return UNCLEAR if rival else found[0].emotion
    return found[0].emotion


def _cued(page: Page, cues: Iterable[tuple[re.Match[str], int]]) -> list[Emotion | Unclear]:
    """What each cue leads to within its number of words, in order."""
    verdicts = []
    for cue, lead in sorted(cues, key=lambda pair: pair[0].end()):
        preceding = page.text[max(0, cue.start() - 24) : cue.start()]
        if _OTHER_CUE.search(preceding) or within(page.kept, cue.start(), cue.end()):
            continue
        verdict = _label_after(page, cue.end(), lead)
        if verdict is not None:
            verdicts.append(verdict)
    return verdicts


def _noun_cues(page: Page, key: str) -> list[tuple[re.Match[str], int]]:
    cues = [(cue, _LEAD_WORDS) for cue in _cue(key).finditer(page.text)]
    return cues + [(cue, _DIRECT_LEAD_WORDS) for cue in _direct_cue(key).finditer(page.text)]


def _final_answer(page: Page) -> Emotion | Unclear | None:
    """The last "Final answer: …"."""
    verdicts = _cued(page, _noun_cues(page, "final"))
    return verdicts[-1] if verdicts else None


def _answer(page: Page) -> Emotion | Unclear | None:
    """The last "Answer: …", a label that stands alone, and what is chosen; none may contradict another."""
    answers = _cued(page, _noun_cues(page, "answer"))
    alone = _standing_alone(page)
    if not answers:
        chosen = None if alone is None else _choice(page)
        if alone is None or chosen is None or isinstance(chosen, Unclear):
            return chosen or alone
        return chosen if isinstance(alone, Unclear) else one_of([alone, chosen])
    if isinstance(answers[-1], Unclear) or alone is None or isinstance(alone, Unclear):
        return answers[-1]
    return one_of([answers[-1], alone])


def _choice(page: Page) -> Emotion | Unclear | None:
    """The label on which "Emotion: …", "the emotion that fits best is …" and "I would choose …" agree."""
    direct = [(cue, _DIRECT_LEAD_WORDS) for cue in _direct_cue("choose").finditer(page.text)]
    verdicts = _cued(page, [*_noun_cues(page, "choice"), *direct])
    if any(isinstance(verdict, Unclear) for verdict in verdicts):
        return UNCLEAR
    chosen = [verdict for verdict in verdicts if not isinstance(verdict, Unclear)]
    chosen += [mention.emotion for mention in page.stated if fits_best(page.text, mention)]
    if verdicts and _opens(page) and not _takes_back(page):
        chosen.append(page.stated[0].emotion)
    return one_of(chosen)


def _opens(page: Page) -> bool:
    """Whether the reply begins with a label, and says no more of it in its clause than that it is felt or fits."""
    if not page.stated or gap_words(page.text[: page.stated[0].start][-80:]):
        return False
    return _clause_ends(page, page.stated[0])


def _states(page: Page, mention: Mention) -> bool:
    """Whether the clause around a label says no more than that someone feels it: "She is relieved, …"."""
    before = page.text[sentence_of(page, mention.start).start : mention.start]
    return len(before) <= _LONGEST_LABEL_SENTENCE and is_plain(before, STATEMENT) and _clause_ends(page, mention)


def _clause_ends(page: Page, mention: Mention) -> bool:
    following = page.text[mention.end : mention.end + 80]
    clause = _CLAUSE.split(following, maxsplit=1)[0]
    reason = links().because.search(f" {clause} ")
    if reason:
        clause = f" {clause} "[: reason.start()]
    return is_plain(clause, STATEMENT)


_CLAUSE: Final = re.compile(r"[.,;:!?\n()\[\]]|\s[-–—]\s|[–—]")


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


def _emphasised(page: Page) -> Emotion | Unclear | None:
    """The one label in bold or italics."""
    return _marked(page, _EMPHASIS, 7)


def _quoted(page: Page) -> Emotion | Unclear | None:
    """The one label in quotation marks; several decide nothing, since an explanation quotes too."""
    verdict = _marked(page, _QUOTED, 3)
    return None if isinstance(verdict, Unclear) else verdict


def _rivals(page: Page, one: Mention, other: Mention) -> bool:
    """Whether two neighbouring labels are named side by side.

    Behind a stop, a dash or a colon the second one is a rival only if it stands there alone: the explanation in
    "Relief – the pain is over" names none.
    """
    gap = page.text[one.end : other.start]
    if not joins(gap):
        return False
    return breaks(gap) is None or _clause_ends(page, other)


def _begins_line(page: Page, mention: Mention) -> bool:
    line = page.text[max(0, mention.start - 12) : mention.start].rsplit("\n", 1)
    return len(line) == 2 and not [word for word in gap_words(line[1]) if len(word) > 1] and _clause_ends(page, mention)


def _concluding(page: Page) -> Emotion | Unclear | None:
    """What a reply that doesn't open with a label concludes: "therefore …", "since the pain is over, she feels …"."""
    if _opens(page):
        return None
    verdicts = _cued(page, [(cue, _LEAD_WORDS) for cue in _conclusion().finditer(page.text)])
    if verdicts:
        return verdicts[-1]
    felt = {mention.emotion for mention in page.stated if is_felt(page.text, mention)}
    if len(felt) != 1:
        return None
    for place, mention in enumerate(page.stated):
        if mention.emotion in felt and place and _follows_reason(page, mention):
            others = [other for other in page.stated[place + 1 :] if other.emotion != mention.emotion]
            return None if others else mention.emotion
    return None


@cache
def _openers() -> re.Pattern[str]:
    """Matches a clause of reason or concession: Japanese and Chinese, and Hindi, may say so at its end."""
    postponed = any_of([*phrases_of(UNSPACED, "openers"), *phrases_of(("hi",), "openers")]).pattern
    spaced = any_of(phrases_of(SPACED, "openers")).pattern
    return re.compile(rf"[\s\"'*_]{{0,4}}{_NOT_IN_WORD}{spaced}{_WORD_ENDS}|.*?{postponed}", re.DOTALL)


def _follows_reason(page: Page, mention: Mention) -> bool:
    """Whether all that comes before the label in its reply is one clause of reason or concession."""
    sentence = sentence_of(page, mention.start)
    if page.stated[0].start < sentence.start or mention.start - sentence.start > 2 * _SEGMENT:
        return False
    before = page.text[max(sentence.start, mention.start - _SEGMENT) : mention.start]
    if mention.language in {"hi", *UNSPACED}:
        return _openers().match(before) is not None
    begin = page.text.rfind(",", sentence.start, page.stated[0].start) + 1 or sentence.start
    ends = page.text.find(",", page.stated[0].end, mention.start) >= 0
    return ends and _openers().match(page.text, begin, mention.start) is not None


def _after_all(page: Page, mention: Mention) -> bool:
    """Whether the label stands in a sentence that declines to answer first: "I can't see the image, but …"."""
    sentence = sentence_of(page, mention.start)
    place = bisect_left(page.declines, sentence.start)
    return place < len(page.declines) and page.declines[place] < mention.start


def _leading(page: Page) -> Emotion | Unclear | None:
    """A reply that opens with a label or says that it is felt, and names others only to explain."""
    first = page.stated[0] if page.stated else None
    if first is None:
        return None
    committed = _opens(page) or _states(page, first) or is_felt(page.text, first)
    story = describes(page.text, first) or (page.declines and not _after_all(page, first))
    others = [mention for mention in page.stated if mention.emotion != first.emotion]
    if not others:
        return first.emotion if committed or not story else UNCLEAR
    if not committed:
        return UNCLEAR
    before = [mention for mention in page.stated if mention.start < others[0].start][-1]
    between = page.text[before.end : others[0].start]
    if _rivals(page, before, others[0]) and not sets_aside(between):
        return UNCLEAR
    gap = page.text[first.end : others[0].start]
    if not explains(gap) or contrasts(gap[:80]):
        return UNCLEAR
    felt = not _opens(page) and any(is_felt(page.text, mention) for mention in others)
    rival = felt or any(_begins_line(page, mention) for mention in others)
    return UNCLEAR if rival else first.emotion


_LADDER: Final[tuple[Callable[[Page], Emotion | Unclear | None], ...]] = (
    _machine_form,
    _final_answer,
    _answer,
    _choice,
    _emphasised,
    _quoted,
    _concluding,
    _leading,
)
# Where a reply goes on with a prompt of its own: "[narrative]:", "Question:".
_NEW_PROMPT: Final = re.compile(
    r"\n\s{0,4}(?:\[[^\]\n]{2,20}\]\s?:|(?:question|narrative|q|user|human|pregunta|swali|السؤال|प्रश्न|质问|问题|質問)\s?:)"
)


def _before_next_prompt(text: str) -> Emotion | None:
    """A reply that answers and then goes on with a question of its own is read up to there."""
    following = _NEW_PROMPT.search(text)
    if following is None or following.start() > 400:
        return None
    verdict = _standing_alone(read_page(text[: following.start()]))
    return None if isinstance(verdict, Unclear) else verdict


def read_reply(reply: str) -> Emotion | None:
    r"""Returns the emotion that a reply chooses, or None where it chooses none or more than one.

    Words of all seven languages count, in any inflection that belongs to one label alone. In order: JSON,
    ``\\boxed`` and answer tags; a final answer; "Answer: …" and a sentence or line with the label alone; "the emotion
    is …"; a single label in bold, then in quotes; what is concluded; the label that opens the reply or is said to be
    felt, where others only explain it; the only label there is. A denied label ("not sadness") never counts, nor does
    one that is outweighed ("less fear than"), asked about, part of a refusal, or in a repeated option list.
    Time is linear in the length of the reply.

    Args:
        reply: The model's text, reasoning included.
    """
    text = fold(cut_reasoning(reply)).strip()
    early = _before_next_prompt(text)
    if early is not None:
        return early
    page = read_page(text)
    for rule in _LADDER:
        verdict = rule(page)
        if isinstance(verdict, Unclear):
            return None
        if verdict is not None:
            return verdict
    return None

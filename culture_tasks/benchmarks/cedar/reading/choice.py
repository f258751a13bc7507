r"""Reads which emotion a model's reply names: one pure function, no judge.

The reply is folded (``folding``) and its emotion words are found in all seven languages (``mentions``). Those that are
denied, outweighed, asked about or only listed are set aside (``candidates``, by what ``surroundings`` says of them),
and so is what the reply turns away from (``turning_away``): a feeling that has passed, that one would expect, or that
others have. Then a ladder of rules looks for where the reply commits itself; each gives a label, UNCLEAR, or None where
it has nothing to say. What a reply says beside its answer is background. A reply that names several emotions without a
choice is unparsed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.labels import LANGUAGES
from culture_tasks.benchmarks.cedar.reading.candidates import (
    STATEMENT,
    UNCLEAR,
    Reply,
    Unclear,
    describes,
    find_candidates,
    is_plain,
    one_of,
    rest_of,
    sentence_of,
    within,
)
from culture_tasks.benchmarks.cedar.reading.folding import cut_reasoning, fold
from culture_tasks.benchmarks.cedar.reading.lexicon import SPACED, UNSPACED, WORD_BEGINS, WORD_ENDS
from culture_tasks.benchmarks.cedar.reading.surroundings import (
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culture_tasks.benchmarks.cedar.labels import Emotion, Language
    from culture_tasks.benchmarks.cedar.reading.mentions import Mention

_LEAD_WORDS = 6
_DIRECT_LEAD_WORDS = 2
_SEGMENT = 240
_LONGEST_LABEL_SENTENCE = 120
# What may close a word that is marked up or quoted: "**Answer**:".
_CLOSERS: Final = r"[\s\"'*_`\])]{0,6}"

# A key and its text in JSON, \boxed{…} of LaTeX, and an answer tag.
_JSON: Final = re.compile(r'"([^"\n]{1,40})"\s{0,4}:\s{0,4}"([^"\n]{0,80})"')
_BOXED: Final = re.compile(r"\\?(?:boxed|fbox)\s{0,2}\{([^}\n]{0,80})")
_TAGGED: Final = re.compile(r"<\s{0,2}(answer|final_answer|emotion|label|response)\s{0,2}>([^<]{0,120})<")
_KEYS: Final = frozenset({"selected_emotion", "final_answer", "your answer", "your_answer", "predicted_emotion"})


@cache
def _answer_keys() -> frozenset[str]:
    return _KEYS | frozenset(phrases_of(LANGUAGES, "answer", "final", "choice"))


def _machine_form(reply: Reply) -> Emotion | Unclear | None:
    r"""JSON with a telling key, ``\boxed{…}``, ``<answer>…</answer>``."""
    spans = [m.span(2) for m in _JSON.finditer(reply.text) if m.group(1).strip() in _answer_keys()]
    spans += [m.span(2) for m in _TAGGED.finditer(reply.text)]
    spans += [m.span(1) for m in _BOXED.finditer(reply.text)]
    return one_of(mention.emotion for start, end in spans for mention in within(reply.stated, start, end))


def _standing_alone(reply: Reply) -> Emotion | Unclear | None:
    """Sentences and lines that hold a label and nothing else but numbering, "probably" or "it is".

    A sentence that adds another label by "or maybe" or "then" takes such an answer back; so does one that calls another
    label possible where the answer is no more than that.
    """
    alone: set[Emotion] = set()
    added: set[Emotion] = set()
    sure: set[Emotion] = set()
    possible: set[Emotion] = set()
    for sentence in dict.fromkeys(sentence_of(reply, mention.start) for mention in reply.stated):
        if sentence.end - sentence.start > _LONGEST_LABEL_SENTENCE:
            continue
        here = within(reply.kept, *sentence)
        rest = rest_of(reply.text, sentence, here)
        heading = reply.text[here[-1].end : sentence.end + 1].rstrip(" *_").endswith((":", ":\n"))
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
    copulas = f"{WORD_BEGINS}{_nouns(spaced, *tenses)}{WORD_ENDS}|{_nouns(UNSPACED, *tenses)}"
    noun = f"(?:{WORD_BEGINS}{_nouns(SPACED, key)}{WORD_ENDS}|{_nouns(UNSPACED, key)})"
    link = rf"{_CLOSERS}(?:[:=]|-{{1,2}}>|→|—|–|\s-\s|\n)|[^.\n:;?!{{}}]{{0,80}}?(?:{copulas}){_CLOSERS}:?"
    return re.compile(rf"{noun}(?:{link})")


@cache
def _direct_cue(key: str) -> re.Pattern[str]:
    """Matches what a label follows at once: "I would choose", "मेरा उत्तर"."""
    spaced = _nouns(SPACED if key == "choose" else ("hi",), key)
    unspaced = _nouns(UNSPACED, key) if key == "choose" else "(?!)"
    hindi_copula = rf"(?:{_nouns(('hi',), 'copulas')}{WORD_ENDS})?"
    return re.compile(rf"(?:{WORD_BEGINS}{spaced}{WORD_ENDS}|{unspaced}){_CLOSERS}{hindi_copula}{_CLOSERS}:?")


@cache
def _conclusion() -> re.Pattern[str]:
    """Matches "therefore" and its like where a clause begins."""
    spaced = _nouns(SPACED, "conclusions")
    return re.compile(
        rf"(?:\A|(?<=[.,;:!?\n] )|(?<=[.,;:!?\n]))(?:{spaced}{WORD_ENDS}|{_nouns(UNSPACED, 'conclusions')})"
    )


# Before a cue, what makes it the cue of another answer than the final one: "second answer:", "other emotion:".
_OTHER_CUE: Final = re.compile(
    r"(?:second|secondary|secondly|other|another|alternative|possible|previous|first|wrong|incorrect|not the|"
    r"secundaria|otra|ثانويه|دوم|nyingine|अन्य|次の|其他)\W{0,4}\Z"
)
# White space, and the number of an option: "Answer: 3. relief".
_NUMBERING: Final = re.compile(r"\s{0,9}[\"'*_`(]{0,4}(?:\d{1,2}[.)]\s{0,3})?")
# Where the part of a reply ends that a cue may lead to.
_STOP: Final = re.compile(r"[.;!?\n]")


def _label_after(reply: Reply, start: int, lead: int) -> Emotion | Unclear | None:
    """The label that a cue leads to: the first one in its sentence, if no other is joined to it."""
    numbering = _NUMBERING.match(reply.text, start)
    begin = numbering.end() if numbering else start
    end = _STOP.search(reply.text, begin + 1, begin + _SEGMENT)
    found = within(reply.kept, begin, end.start() if end else begin + _SEGMENT)
    if not found or len(gap_words(reply.text[begin : found[0].start])) > lead:
        return None
    if not within(reply.stated, found[0].start, found[0].end):
        return None  # a repeated option list
    for last, following in pairwise(found):
        if following.emotion != found[0].emotion:
            gap = reply.text[last.end : following.start]
            rival = _rivals(reply, last, following) or (is_felt(reply.text, following) and not gives_reason(gap))
            return UNCLEAR if rival else found[0].emotion
    return found[0].emotion


def _cued(reply: Reply, cues: Iterable[tuple[re.Match[str], int]]) -> list[Emotion | Unclear]:
    """What each cue leads to within its number of words, in order."""
    verdicts = []
    for cue, lead in sorted(cues, key=lambda pair: pair[0].end()):
        preceding = reply.text[max(0, cue.start() - 24) : cue.start()]
        if _OTHER_CUE.search(preceding) or within(reply.kept, cue.start(), cue.end()):
            continue
        verdict = _label_after(reply, cue.end(), lead)
        if verdict is not None:
            verdicts.append(verdict)
    return verdicts


def _noun_cues(reply: Reply, key: str) -> list[tuple[re.Match[str], int]]:
    cues = [(cue, _LEAD_WORDS) for cue in _cue(key).finditer(reply.text)]
    return cues + [(cue, _DIRECT_LEAD_WORDS) for cue in _direct_cue(key).finditer(reply.text)]


def _final_answer(reply: Reply) -> Emotion | Unclear | None:
    """The last "Final answer: …"."""
    verdicts = _cued(reply, _noun_cues(reply, "final"))
    return verdicts[-1] if verdicts else None


def _answer(reply: Reply) -> Emotion | Unclear | None:
    """The last "Answer: …", a label that stands alone, and what is chosen; none may contradict another."""
    answers = _cued(reply, _noun_cues(reply, "answer"))
    alone = _standing_alone(reply)
    if not answers:
        chosen = None if alone is None else _choice(reply)
        if alone is None or chosen is None or isinstance(chosen, Unclear):
            return chosen or alone
        return chosen if isinstance(alone, Unclear) else one_of([alone, chosen])
    if isinstance(answers[-1], Unclear) or alone is None or isinstance(alone, Unclear):
        return answers[-1]
    return one_of([answers[-1], alone])


def _choice(reply: Reply) -> Emotion | Unclear | None:
    """The label on which "Emotion: …", "the emotion that fits best is …" and "I would choose …" agree."""
    direct = [(cue, _DIRECT_LEAD_WORDS) for cue in _direct_cue("choose").finditer(reply.text)]
    verdicts = _cued(reply, [*_noun_cues(reply, "choice"), *direct])
    if any(isinstance(verdict, Unclear) for verdict in verdicts):
        return UNCLEAR
    chosen = [verdict for verdict in verdicts if not isinstance(verdict, Unclear)]
    chosen += [mention.emotion for mention in reply.stated if fits_best(reply.text, mention)]
    if verdicts and _opens(reply) and not _takes_back(reply):
        chosen.append(reply.stated[0].emotion)
    return one_of(chosen)


def _opens(reply: Reply) -> bool:
    """Whether the reply begins with a label, and says no more of it in its clause than that it is felt or fits."""
    if not reply.stated or gap_words(reply.text[: reply.stated[0].start][-80:]):
        return False
    return _clause_ends(reply, reply.stated[0])


def _states(reply: Reply, mention: Mention) -> bool:
    """Whether the clause around a label says no more than that someone feels it: "She is relieved, …"."""
    before = reply.text[sentence_of(reply, mention.start).start : mention.start]
    return len(before) <= _LONGEST_LABEL_SENTENCE and is_plain(before, STATEMENT) and _clause_ends(reply, mention)


def _clause_ends(reply: Reply, mention: Mention) -> bool:
    following = reply.text[mention.end : mention.end + 80]
    clause = _CLAUSE.split(following, maxsplit=1)[0]
    reason = links().because.search(f" {clause} ")
    if reason:
        clause = f" {clause} "[: reason.start()]
    return is_plain(clause, STATEMENT)


# Where a clause ends: a stop, a comma, a bracket or a dash between words.
_CLAUSE: Final = re.compile(r"[.,;:!?\n()\[\]]|\s[-–—]\s|[–—]")


def _takes_back(reply: Reply) -> bool:
    """Whether a word such as "but" stands between the label that opens the reply and the last one."""
    first, last = reply.stated[0], reply.stated[-1]
    return contrasts(reply.text[first.end : last.start])


# Bold and italics, in Markdown and HTML; a single asterisk only around a short text, since it may begin a list.
_EMPHASIS: Final = re.compile(
    r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__|<(?:b|strong|em|i|u)>([^<\n]{1,80})<|(?<![\w*])\*([^*\s][^*\n]{0,40})\*(?!\*)"
)
# What stands in quotation marks or backticks; an apostrophe inside a word opens and closes nothing.
_QUOTED: Final = re.compile(r"\"([^\"\n]{1,40})\"|(?<!\w)'([^'\n]{1,40})'(?!\w)|`([^`\n]{1,40})`")


def _marked(reply: Reply, pattern: re.Pattern[str], longest: int) -> Emotion | Unclear | None:
    emotions: set[Emotion] = set()
    for span in pattern.finditer(reply.text):
        start, end = span.span(span.lastindex or 0)
        if len(gap_words(reply.text[start:end])) <= longest:
            emotions.update(mention.emotion for mention in within(reply.kept, start, end))
    return one_of(emotions)


def _emphasised(reply: Reply) -> Emotion | Unclear | None:
    """The one label in bold or italics."""
    return _marked(reply, _EMPHASIS, 7)


def _quoted(reply: Reply) -> Emotion | Unclear | None:
    """The one label in quotation marks; several decide nothing, since an explanation quotes too."""
    verdict = _marked(reply, _QUOTED, 3)
    return None if isinstance(verdict, Unclear) else verdict


def _rivals(reply: Reply, one: Mention, other: Mention) -> bool:
    """Whether two neighbouring labels are named side by side.

    Behind a stop, a dash or a colon the second one is a rival only if it stands there alone: the explanation in
    "Relief – the pain is over" names none.
    """
    gap = reply.text[one.end : other.start]
    if not joins(gap):
        return False
    return breaks(gap) is None or _clause_ends(reply, other)


def _begins_line(reply: Reply, mention: Mention) -> bool:
    line = reply.text[max(0, mention.start - 12) : mention.start].rsplit("\n", 1)
    return (
        len(line) == 2 and not [word for word in gap_words(line[1]) if len(word) > 1] and _clause_ends(reply, mention)
    )


def _concluding(reply: Reply) -> Emotion | Unclear | None:
    """What a reply that doesn't open with a label concludes: "therefore …", "since the pain is over, she feels …"."""
    if _opens(reply):
        return None
    verdicts = _cued(reply, [(cue, _LEAD_WORDS) for cue in _conclusion().finditer(reply.text)])
    if verdicts:
        return verdicts[-1]
    felt = {mention.emotion for mention in reply.stated if is_felt(reply.text, mention)}
    if len(felt) != 1:
        return None
    for place, mention in enumerate(reply.stated):
        if mention.emotion in felt and place and _follows_reason(reply, mention):
            others = [other for other in reply.stated[place + 1 :] if other.emotion != mention.emotion]
            return None if others else mention.emotion
    return None


@cache
def _openers() -> re.Pattern[str]:
    """Matches a clause of reason or concession: Japanese and Chinese, and Hindi, may say so at its end."""
    postponed = any_of([*phrases_of(UNSPACED, "openers"), *phrases_of(("hi",), "openers")]).pattern
    spaced = any_of(phrases_of(SPACED, "openers")).pattern
    return re.compile(rf"[\s\"'*_]{{0,4}}{WORD_BEGINS}{spaced}{WORD_ENDS}|.*?{postponed}", re.DOTALL)


def _follows_reason(reply: Reply, mention: Mention) -> bool:
    """Whether all that comes before the label in its reply is one clause of reason or concession."""
    sentence = sentence_of(reply, mention.start)
    if reply.stated[0].start < sentence.start or mention.start - sentence.start > 2 * _SEGMENT:
        return False
    before = reply.text[max(sentence.start, mention.start - _SEGMENT) : mention.start]
    if mention.language in {"hi", *UNSPACED}:
        return _openers().match(before) is not None
    begin = reply.text.rfind(",", sentence.start, reply.stated[0].start) + 1 or sentence.start
    ends = reply.text.find(",", reply.stated[0].end, mention.start) >= 0
    return ends and _openers().match(reply.text, begin, mention.start) is not None


def _after_all(reply: Reply, mention: Mention) -> bool:
    """Whether the label stands in a sentence that declines to answer first: "I can't see the image, but …"."""
    sentence = sentence_of(reply, mention.start)
    place = bisect_left(reply.declines, sentence.start)
    return place < len(reply.declines) and reply.declines[place] < mention.start


def _leading(reply: Reply) -> Emotion | Unclear | None:
    """A reply that opens with a label or says that it is felt, and names others only to explain."""
    first = reply.stated[0] if reply.stated else None
    if first is None:
        return None
    committed = _opens(reply) or _states(reply, first) or is_felt(reply.text, first)
    story = describes(reply.text, first) or (reply.declines and not _after_all(reply, first))
    others = [mention for mention in reply.stated if mention.emotion != first.emotion]
    if not others:
        return first.emotion if committed or not story else UNCLEAR
    if not committed:
        return UNCLEAR
    before = [mention for mention in reply.stated if mention.start < others[0].start][-1]
    between = reply.text[before.end : others[0].start]
    if _rivals(reply, before, others[0]) and not sets_aside(between):
        return UNCLEAR
    gap = reply.text[first.end : others[0].start]
    if not explains(gap) or contrasts(gap[:80]):
        return UNCLEAR
    felt = not _opens(reply) and any(is_felt(reply.text, mention) for mention in others)
    rival = felt or any(_begins_line(reply, mention) for mention in others)
    return UNCLEAR if rival else first.emotion


_LADDER: Final[tuple[Callable[[Reply], Emotion | Unclear | None], ...]] = (
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
    verdict = _standing_alone(find_candidates(text[: following.start()]))
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
    folded = find_candidates(text)
    for rule in _LADDER:
        verdict = rule(folded)
        if isinstance(verdict, Unclear):
            return None
        if verdict is not None:
            return verdict
    return None

"""Decides which emotion a model's reply chooses.

Four rules look for where the reply commits itself, from the clearest form to the least clear one. The first that finds
a label decides, and its labels must agree: a reply that names several emotions without a choice is unparsed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from culture_tasks.benchmarks.cedar.labels import LANGUAGES, Emotion
from culture_tasks.benchmarks.cedar.reading.folding import cut_reasoning, fold
from culture_tasks.benchmarks.cedar.reading.mentions import (
    RUN,
    SPACED,
    UNSPACED,
    WORD,
    AddedWords,
    Mention,
    alternation,
    clause_around,
    find_mentions,
    joins,
    language_file,
    pattern,
    phrases,
    plainly,
    undenied,
)

Labels: TypeAlias = list[Emotion | None]
"""The labels that a rule finds; None is a place that names several emotions where one would be a choice."""

_OPTIONS = 5
_LONGEST_STATEMENT = 120
_LEAD_WORDS = 6
_REACH = 240
# A sentence: text up to a stop with the quotation marks and brackets that close it, or up to a line break.
_SENTENCE: Final = re.compile(r"[^.!?;\n]*(?:[.!?;]+[\"'*_`)\]]*|\n|\Z)")
# The end of a question.
_ASKS: Final = re.compile(r"\?[\s\"'*_`)\]]*\Z")
# Where a sentence ends, or a parenthesis or an explanation after a dash or colon begins.
_BREAK: Final = re.compile(r"[.!?;\n(]|\s[-–—]\s|[–—:]")


class Sentence(NamedTuple):
    """Where a sentence begins and ends, and the emotion words in it."""

    start: int
    end: int
    mentions: Sequence[Mention]


class FoldedReply(NamedTuple):
    """A folded reply, its emotion words, and the sentences that have one."""

    text: str
    mentions: Sequence[Mention]
    sentences: Sequence[Sentence]


def _within(mentions: Sequence[Mention], start: int, end: int) -> Sequence[Mention]:
    first, last = (bisect_left(mentions, place, key=itemgetter(0)) for place in (start, end))
    return mentions[first:last]


def _without_lists(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """Leaves out repeated option lists: five or more different labels with nothing else between them."""
    runs: list[list[Mention]] = [[]]
    for mention in mentions:
        run = runs[-1]
        emotions = {member.emotion for member in run[:-1]}
        if run and (mention.emotion in emotions or not joins(text[run[-1].end : mention.start])):
            runs.append(run := [])
        run.append(mention)
    return [mention for run in runs if len({member.emotion for member in run}) < _OPTIONS for mention in run]


def _parsed(text: str, added: AddedWords | None) -> FoldedReply:
    mentions = _without_lists(text, find_mentions(text, added))
    spans = [match.span() for match in _SENTENCE.finditer(text)]
    sentences = [Sentence(*span, inside) for span in spans if (inside := _within(mentions, *span))]
    stated = [
        mention
        for sentence in sentences
        if not _ASKS.search(text, sentence.start, sentence.end)
        and not pattern("weighs").search(plainly(text[sentence.start : sentence.end]))
        for mention in sentence.mentions
    ]
    mentions = undenied(text, stated)
    sentences = [sentence._replace(mentions=_within(mentions, *sentence[:2])) for sentence in sentences]
    return FoldedReply(text, mentions, [sentence for sentence in sentences if sentence.mentions])


@cache
def _plain() -> tuple[frozenset[str], re.Pattern[str]]:
    """Returns the spaced words that add nothing to a label, and the pattern of runs of the others."""
    words = frozenset(word for phrase in phrases(SPACED, "plain") for word in phrase.split())
    return words, re.compile(f"{alternation(UNSPACED, 'plain')}+")


def _is_plain(text: str) -> bool:
    """Whether the text around a label adds nothing to it: numbering, "probably", "she feels", "です"."""
    plain_words, runs = _plain()
    words = all(len(word) == 1 or word.isdigit() or word in plain_words for word in WORD.findall(text))
    return words and all(map(runs.fullmatch, RUN.findall(text)))


# JSON with a telling key, \boxed{…} of LaTeX, and an answer tag.
_JSON: Final = re.compile(r'"([^"\n]{1,40})"\s{0,4}:\s{0,4}"([^"\n]{0,80})"')
_BOXED: Final = re.compile(r"\\?(?:boxed|fbox)\s{0,2}\{([^}\n]{0,80})")
_TAGGED: Final = re.compile(r"<\s{0,2}(?:answer|final_answer|emotion|label|response)\s{0,2}>([^<]{0,120})<")
_KEYS: Final = ("selected_emotion", "final_answer", "your answer", "your_answer", "predicted_emotion")


def _machine_form(reply: FoldedReply) -> Labels:
    keys = pattern("answer", "choice")
    spans = [entry.span(2) for entry in _JSON.finditer(reply.text) if entry[1] in _KEYS or keys.fullmatch(entry[1])]
    spans += [match.span(1) for form in (_TAGGED, _BOXED) for match in form.finditer(reply.text)]
    return [mention.emotion for span in spans for mention in _within(reply.mentions, *span)]


# What may close a word that is marked up or quoted: "**Answer**:".
_CLOSERS: Final = r"[\s\"'*_`\])]{0,6}"
# Words before a cue that make it the cue of an answer other than the final one.
_OTHER_CUE: Final = re.compile(
    r"(?:second|secondary|secondly|other|another|alternative|possible|previous|first|wrong|expected|incorrect|not the|"
    r"secundaria|otra|ثانويه|دوم|nyingine|अन्य|次の|其他)\W{0,4}\Z"
)


@cache
def _cue(key: str) -> re.Pattern[str]:
    """Matches a noun such as "answer" up to where its label begins.

    A colon, an arrow or a copula is between them, and before a copula up to 80 characters of the same clause ("the
    emotion that best matches the situation is"). The Hindi copula comes after the label, and a phrase such as "I would
    choose" needs none.
    """
    copulas = alternation([language for language in LANGUAGES if language != "hi"], "copulas")
    link = rf"{_CLOSERS}(?:[:=]|-{{1,2}}>|→|—|–|\s-\s|\n)|[^.\n:;?!{{}}]{{0,80}}?{copulas}{_CLOSERS}:?"
    direct = alternation(LANGUAGES, "choose") if key == "choice" else "(?!)"
    return re.compile(rf"{alternation(LANGUAGES, key)}(?:{link})|(?:{alternation(['hi'], key)}|{direct}){_CLOSERS}:?")


def _cued(reply: FoldedReply, key: str) -> Labels:
    """The label to which each cue leads; None where another one is joined to it."""
    labels: Labels = []
    for sentence in reply.sentences:
        for cue in _cue(key).finditer(reply.text, sentence.start, sentence.end):
            following = [mention for mention in sentence.mentions if mention.start >= cue.end()]
            if not following or _within(sentence.mentions, *cue.span()):
                continue
            lead = reply.text[cue.end() : following[0].start]
            is_other = _OTHER_CUE.search(reply.text, max(0, cue.start() - 24), cue.start())
            if is_other or len(WORD.findall(lead)) + len(RUN.findall(lead)) > _LEAD_WORDS:
                continue
            rivals = any(_are_rivals(reply.text, *neighbours) for neighbours in pairwise(following))
            labels.append(None if rivals else following[0].emotion)
    return labels


def _are_rivals(text: str, first: Mention, second: Mention) -> bool:
    """Whether two neighbouring labels are named side by side."""
    gap = text[first.end : second.start]
    return first.emotion != second.emotion and joins(gap) and _BREAK.search(gap) is None


@cache
def _turn() -> re.Pattern[str]:
    """Matches a word such as "but", and "or" where a sentence begins; "かもしれない" is no か."""
    return re.compile(rf"{pattern('contrast').pattern}|\A\W*(?!かもしれ){pattern('alternatives').pattern}")


def _alone(reply: FoldedReply) -> Labels:
    """Labels of sentences and lines that hold nothing else but numbering, "probably" or "it is"."""
    labels: Labels = []
    several = len({mention.emotion for mention in reply.mentions}) > 1
    for sentence in reply.sentences:
        last = sentence.mentions[-1].end
        is_heading = reply.text[last : sentence.end].strip(" *_\n") == ":"
        if is_heading or sentence.end - sentence.start > _LONGEST_STATEMENT:
            continue
        if len({mention.emotion for mention in sentence.mentions}) > 1 and any(
            _cue(key).search(reply.text, sentence.start, last) for key in ("answer", "choice")
        ):
            continue
        inner = [edge for mention in sentence.mentions for edge in (mention.start, mention.end)]
        edges = [sentence.start, *inner, sentence.end]
        context = " ".join(reply.text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
        if _is_plain(_turn().sub(" ", context)):
            labels += [mention.emotion for mention in sentence.mentions]
            if several and pattern("possible", "doubt").search(context):
                labels.append(None)
    return labels


def _answer(reply: FoldedReply) -> Labels:
    """The last "Answer: …" and labels that stand alone; without the former also labels that are chosen or fit best."""
    answers = _cued(reply, "answer")[-1:]
    if answers:
        return [*answers, *_alone(reply)]
    best = pattern("best")
    clauses = [(label.emotion, clause_around(reply.text, label)[1]) for label in reply.mentions]
    fitting = [emotion for emotion, after in clauses if best.match(after.lstrip("感さ"))]  # "悲しさが最も近い"
    return [*_alone(reply), *_cued(reply, "choice"), *fitting]


# Bold and italics, in Markdown and HTML; a single asterisk only around a short text, since it may begin a list.
_EMPHASIS: Final = re.compile(
    r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__|<(?:b|strong|em|i|u)>([^<\n]{1,80})<|(?<![\w*])\*([^*\s][^*\n]{0,40})\*(?!\*)"
)
# A text in quotation marks or backticks; an apostrophe inside a word opens and closes nothing.
_QUOTED: Final = re.compile(r"\"([^\"\n]{1,40})\"|(?<!\w)'([^'\n]{1,40})'(?!\w)|`([^`\n]{1,40})`")


def _markup(reply: FoldedReply) -> Labels:
    """The labels in bold or italics; without any the one in quotation marks, since an explanation quotes too."""
    for form, longest in ((_EMPHASIS, 7), (_QUOTED, 3)):
        spans = [match.span(match.lastindex or 0) for match in form.finditer(reply.text)]
        short = [span for span in spans if len(WORD.findall(reply.text, *span)) <= longest]
        labels: Labels = [mention.emotion for span in short for mention in _within(reply.mentions, *span)]
        if labels and (form is _EMPHASIS or len(set(labels)) == 1):
            return labels
    return []


def _opens(text: str, mention: Mention, start: int) -> bool:
    """Whether only plain words are between a place and a label, and behind it in its clause."""
    after = clause_around(text, mention)[1]
    reason = pattern("because").search(after)
    return _is_plain(text[max(start, mention.start - _REACH) : mention.start]) and _is_plain(
        after[: reason.start()] if reason else after
    )


# The rest of an adjective in front of a noun: "痛苦的等待", "悲しい別れ".
_OF_NOUN: Final = re.compile(r"(?:的|な(?!ん)|い(?=[一-鿿]))(?=[々〆〇ぁ-ゖァ-ヺー一-鿿])")


def _describes(text: str, mention: Mention) -> bool:
    """Whether an emotion word only describes a thing of the story: "the painful wait", "痛苦的等待"."""
    if mention.language in UNSPACED:
        noun = _OF_NOUN.match(text, mention.end)
        return noun is not None and not _plain()[1].match(text, noun.end())
    if mention.language is None:
        return False
    before, after = clause_around(text, mention)
    following = WORD.match(after)
    adjectives = language_file(mention.language).get("adjectives", "(?!)")
    is_adjective = re.search(rf"(?:{fold(adjectives)})\Z", text[mention.start : mention.end])
    if not is_adjective or following is None or _is_plain(following.group()):
        return False
    determiners = phrases([mention.language], "determiners")
    return not determiners or before.rpartition(" ")[2] in determiners


def _contrasts(gap: str) -> bool:
    """Whether a text has a word such as "but"; "because" ends a denial too, and contrasts nothing."""
    return any(not pattern("because").match(gap, turn.start()) for turn in pattern("contrast").finditer(gap))


def _leading(reply: FoldedReply) -> Labels:
    """The label that opens the reply, where others only explain it, or the only one there is."""
    if not reply.mentions:
        return []
    text, first, sentence = reply.text, reply.mentions[0], reply.sentences[0]
    rivals = [mention for mention in reply.mentions if mention.emotion != first.emotion]
    opens = _opens(text, first, 0)
    if not opens:
        statement = text[sentence.start : sentence.end]
        turns = rivals or _contrasts(statement)
        if pattern("doubt").search(statement) or (turns and pattern("expected").search(statement)):
            return []
    if not rivals:
        return [] if _describes(text, first) and not opens else [first.emotion]
    gap = text[first.end : rivals[0].start]
    explained = _BREAK.search(gap) or pattern("because").search(gap)
    if not opens or not explained or _contrasts(gap[:80]) or _are_rivals(text, first, rivals[0]):
        return []
    lines = [text.rfind("\n", 0, mention.start) + 1 for mention in rivals]
    lists = any(start and _opens(text, mention, start) for start, mention in zip(lines, rivals, strict=True))
    return [] if lists else [first.emotion]


RULES: Final[tuple[Callable[[FoldedReply], Labels], ...]] = (_machine_form, _answer, _markup, _leading)
_COMMITTED: Final = RULES[:2]
# Where a reply goes on with a new prompt: "[narrative]:", "Question:".
_NEW_PROMPT: Final = re.compile(
    r"\n\s{0,4}(?:\[[^\]\n]{2,20}\]\s?:|(?:question|narrative|q|user|human|pregunta|swali|السؤال|प्रश्न|质问|问题|質問)\s?:)"
)


@cache
def _declining() -> re.Pattern[str]:
    """Matches words that decline to answer: "I can't tell"."""
    return re.compile(f"(?!{alternation(LANGUAGES, 'not_declining')}){alternation(LANGUAGES, 'declines')}")


def read_reply(reply: str, added: AddedWords | None = None) -> Emotion | None:
    r"""Returns the emotion that a reply chooses, or None where it chooses none or more than one.

    Words of all seven languages count, in any inflection that belongs to one label alone. In order: JSON, ``\\boxed``
    and answer tags; "Answer: …", a sentence or line with the label alone, "the emotion is …"; a single label in bold or
    in quotes; the label that opens the reply where others only explain it; the only label there is. A denied label
    ("not sadness") never counts, nor does one that is asked about or part of a repeated option list. A reply that
    declines to answer is read in the first two forms only. Time is linear in the reply's length.

    Of an own culture, its words and the English ones count (:class:`AddedWords`). What tells an answer, a
    denial or a doubt is that of the seven languages.
    """
    text = fold(cut_reasoning(reply)).strip()
    following = _NEW_PROMPT.search(text)
    if following and find_mentions(text[: following.start()], added):
        text = text[: following.start()]
    parsed = _parsed(text, added)
    pairs = [(first, second) for first, second in pairwise(parsed.mentions) if first.emotion != second.emotion]
    gaps = [plainly(text[first.end : second.start].replace(",", " ")) for first, second in pairs]
    if any(map(pattern("corrections").search, gaps)):  # "fear, or rather surprise"
        return None
    for rule in _COMMITTED if _declining().search(text) else RULES:
        labels = set(rule(parsed))
        if labels:
            return labels.pop() if len(labels) == 1 else None
    return None

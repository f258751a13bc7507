"""Reads which emotion a model's reply chooses, by the words in ``lexicon/<language>.json``.

Each file has a language's words for each label, by concepts that are the same in all languages. What fits two labels is
left out, such as shock and ``contento`` (es). Its other entries are phrases for the rules, or regular expressions:
``not_in`` has those in which a word names no emotion ("pain relief").

Each emotion word that a reply names and doesn't deny is replaced by a mark, one character per label, so that rules are
patterns of marks and words. The first rule that finds a label decides, and its labels must agree: a reply that names
several emotions without a choice is unparsed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias, cast

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, Emotion, Language
from culture_tasks.benchmarks.cedar.reading.spelling import fold
from culture_tasks.text import REASONING_BEGINS, without_reasoning

_SPACED: tuple[Language, ...] = ("en", "es", "sw", "ar", "hi")
_UNSPACED: tuple[Language, ...] = ("ja", "zh")
_HAN_OR_KANA = "々〆〇ぁ-ゖゝ-ゟァ-ヺー-ヿ㐀-䶿一-鿿\uf900-\ufaff"
_LETTERS = rf"(?:[^\W_ऀ-ॿ{_HAN_OR_KANA}]|[ऀ-ॣ०-९ॱ-ॿ])+"  # Devanagari's vowel signs are no letters to "\w"
_WORD = re.compile(rf"{_LETTERS}(?:['-]{_LETTERS})*")
_RUN = re.compile(f"[{_HAN_OR_KANA}]+")  # which has no spaces between its words
_BEGINS, _ENDS = r"(?<![^\W_])(?<![ऀ-ॣ])", r"(?![^\W_])(?![ऀ-ॣ])"  # of a spaced word
_UNSPACED_SCRIPT = re.compile(f"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{_HAN_OR_KANA}]")  # from Thai to Khmer
_LONGEST_WORD, _SHORTEST_STEM = 40, 3
_KANA = re.compile("[ぁ-ゖァ-ヺー]+")
_PARTICLES = ("です", "でし", *"だをがのとでなにはもよね")


class Mention(NamedTuple):
    """An emotion word in a folded text, and the language whose word it is; None for one of an own culture."""

    start: int
    end: int
    emotion: Emotion
    language: Language | None


class OwnWords(NamedTuple):
    """The language of an own culture, and its folded emotion words with their labels."""

    language: str
    labels: Mapping[str, Emotion]


@cache
def language_file(language: Language) -> Mapping[str, Any]:
    """Returns the content of one language's file."""
    file = resources.files(__package__) / "lexicon" / f"{language}.json"
    return cast("Mapping[str, Any]", json.loads(file.read_text(encoding="utf-8")))


@cache
def _phrases(language: Language, key: str) -> frozenset[str]:
    return frozenset(map(fold, language_file(language).get(key, ())))


def _alternation(languages: Iterable[Language], *keys: str) -> str:
    """Returns a regular expression for phrases, longest first, spaced ones as whole words, and for expressions."""
    parts = []
    for script, begins, ends in ((_SPACED, _BEGINS, _ENDS), (_UNSPACED, "", "")):
        listed = [(language, key) for language in languages if language in script for key in keys]
        phrases = sorted(set().union(*(_phrases(*each) for each in listed)), key=lambda phrase: (-len(phrase), phrase))
        parts += [f"{begins}(?:{'|'.join(map(re.escape, phrases))}){ends}"] if phrases else []
        parts += [regex for language, key in listed if (regex := language_file(language).get(f"{key}_pattern"))]
    return f"(?:{'|'.join(parts)})" if parts else "(?!)"


@cache
def _pattern(*keys: str) -> re.Pattern[str]:
    """Matches the phrases that any language lists under one of the keys."""
    return re.compile(_alternation(LANGUAGES, *keys))


@cache
def _known_words(keys: Sequence[str]) -> tuple[frozenset[str], re.Pattern[str]]:
    phrases = (phrase for language in _SPACED for key in keys for phrase in _phrases(language, key))
    words = frozenset(word for phrase in phrases for word in phrase.split())
    return words, re.compile(f"(?:{_alternation(_UNSPACED, *keys)})+")


def _consists_of(text: str, *keys: str) -> bool:
    """Whether a text has no other words than those of phrases under some keys, numbers and single letters."""
    words, runs = _known_words(keys)
    is_known = all(len(word) == 1 or word.isdigit() or word in words for word in _WORD.findall(text))
    return is_known and all(len(run) == 1 or runs.fullmatch(run) for run in _RUN.findall(text))


def entries(language: Language) -> Iterator[tuple[str, Emotion]]:
    """Yields every folded word of a language with its label, Swahili stems aside."""
    for emotion, concepts in language_file(language)["words"].items():
        for form in " ".join(concepts.values()).split():
            yield fold(form), emotion


@cache
def _words(languages: Sequence[Language]) -> Mapping[str, tuple[Emotion, Language]]:
    return {form: (emotion, language) for language in reversed(languages) for form, emotion in entries(language)}


@lru_cache(maxsize=4096)
def _look_up(word: str) -> tuple[Emotion, Language] | None:
    """Looks a spaced word up: as it is, behind the letter of an option ("b-anger"), and in Arabic and Swahili forms."""
    lexicon = _words(_SPACED)
    if word in lexicon or len(word) > _LONGEST_WORD:
        return lexicon.get(word)
    if word[1:2] == "-":
        return _look_up(word[2:])
    if not word.isascii():  # without article, conjunction or preposition, and without a pronoun
        arabic = language_file("ar")
        for prefix in filter(word.startswith, arabic["prefixes"]):
            for suffix in filter(word.endswith, arabic["suffixes"]):
                stem = word[len(prefix) : len(word) - len(suffix)]
                if len(stem) >= _SHORTEST_STEM and stem in lexicon:
                    return lexicon[stem]
        return None
    swahili = language_file("sw")  # a verb behind its prefixes; a negative one has others
    for emotion, stems in swahili["verbs"].items():
        for stem in filter(word.endswith, stems.split()):
            if word != stem and re.fullmatch(swahili["verb_prefix"], word.removesuffix(stem)):
                return emotion, "sw"
    return None


@cache
def _unspaced_words() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(_words(_UNSPACED), key=len, reverse=True))))


def _is_a_word(match: re.Match[str]) -> bool:
    """Whether an unspaced word in kana or of one character has particles around it, and is no part of another."""
    text, (start, end) = match.string, match.span()
    before, after = text[max(0, start - 1) : start], text[end : end + 2]
    is_kana = _KANA.fullmatch(match.group()) is not None
    if len(match.group()) > 1 and not is_kana:
        return True
    begins = before in _PARTICLES or not (_KANA if is_kana else _RUN).match(before)
    return begins and (after.startswith(_PARTICLES) or not _RUN.match(after))


def _own_mentions(text: str, own: OwnWords) -> Iterator[Mention]:
    """Yields an own culture's words, whole words alone in scripts that write spaces between them."""
    for match in re.finditer("|".join(map(re.escape, sorted(own.labels, key=len, reverse=True))), text):
        edges = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
        if _UNSPACED_SCRIPT.match(match.group()) or all(unicodedata.category(edge)[0] not in "LMN" for edge in edges):
            yield Mention(*match.span(), own.labels[match.group()], None)


def find_mentions(text: str, own: OwnWords | None = None) -> list[Mention]:
    """Returns a folded text's emotion words, in order; for an own culture its own, English and its language's ones."""
    found = [Mention(*word.span(), *entry) for word in _WORD.finditer(text) if (entry := _look_up(word.group()))]
    unspaced = filter(_is_a_word, _unspaced_words().finditer(text))
    found += [Mention(*word.span(), *_words(_UNSPACED)[word.group()]) for word in unspaced]
    kept = [mention for mention in found if own is None or mention.language in ("en", own.language)]
    of_own = list(_own_mentions(text, own)) if own else []
    spans = [match.span() for match in _pattern("not_in").finditer(text)] if found else []
    taken = {place for span in (*spans, *(mention[:2] for mention in of_own)) for place in range(*span)}
    return sorted([*of_own, *(mention for mention in kept if taken.isdisjoint(range(*mention[:2])))])


# Denials: "not sadness", "sadness doesn't fit", "悲しみではなく"

_BEFORE, _AFTER = 80, 60
_EDGE = re.compile(r"[.,;:!?\n()\[\]{}|]|\s[-–—]\s|[–—]")  # where a clause ends
_MARKUP = re.compile(r"[\"*_`\\]|(?<!\w)'|'(?!\w)")
# "not, in my view, anger"
_ASIDE = re.compile(r"((?<!\S)(?:not|\w+n't|no es|no seria|ليس|ليست|si|sio|siyo)),[^.,;:!?\n]{1,30},(?=\s)")


def _plainly(text: str) -> str:
    """Returns a text without markup, with single spaces."""
    return " ".join(_MARKUP.sub(" ", text).split())


def _clause_after(text: str) -> str:
    """Returns the first clause of a text, without markup."""
    return _plainly(_EDGE.split(text[:_AFTER], maxsplit=1)[0])


def _joins(gap: str) -> bool:
    """Whether only punctuation, numbering and linking words are between two emotion words."""
    return len(gap) <= _AFTER and _consists_of(_pattern("joiners").sub(" ", gap))


@cache
def _denials(languages: Sequence[Language]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Matches denials of an emotion word: in its clause before it, and right after it; in Hindi anywhere after it."""
    before = rf"{_alternation((*languages, *_UNSPACED), 'denied_before')}|\w+n't(?!\w)"
    further = rf"\W*(?:{_alternation(languages, 'alternatives')} )?(?:\w+ )?"  # "anger or fear doesn't fit"
    after = rf"{further}{_alternation(languages, 'denied_after')}|{_alternation(_UNSPACED, 'denied_after')}"
    anywhere = rf"|.*?{_alternation(['hi'], 'denied_after')}" if "hi" in languages else ""
    return re.compile(before), re.compile(after + anywhere)


def _is_denied(text: str, mention: Mention) -> bool:
    before = _ASIDE.sub(r"\1", text[max(0, mention.start - _BEFORE) : mention.start])
    before = _pattern("no_denial").sub(" ", _plainly(_EDGE.split(before)[-1]))
    after = _clause_after(text[mention.end : mention.end + _AFTER])
    languages: Sequence[Language] = [mention.language, "en"] if mention.language in _SPACED else ["en"]
    if mention.language == "en" and _phrases("en", "plain").isdisjoint(f"{before} {after}".split()):
        languages = _SPACED  # "no es anger"
    if mention.language in _SPACED:
        after = _pattern("contrast").split(after, maxsplit=1)[0]
    denied_before, denied_after = _denials(tuple(languages))
    # A word of contrast ends a denial, unless it is part of one: "not sadness but anger", "anything but anger".
    turn = max((turn.start() for turn in _pattern("contrast").finditer(before)), default=-1)
    return any(turn < denial.end() for denial in denied_before.finditer(before)) or bool(denied_after.match(after))


# The answer, by patterns of marks and words

Labels: TypeAlias = list[Emotion | None]
"""The labels that a rule finds; None is a place that names several emotions where one would be a choice."""

_MARKS = {emotion: chr(0xE000 + place) for place, emotion in enumerate(EMOTIONS)}
_EMOTIONS = {mark: emotion for emotion, mark in _MARKS.items()}
_MARK = re.compile(f"([{''.join(_EMOTIONS)}])")
_OF_NOUN, _OPTIONS, _LONGEST_LEAD = "\ue0ff", 5, 40  # the first is behind the mark in "the painful wait"
# A sentence: text up to a stop with the quotation marks and brackets that close it, or up to a line break.
_SENTENCE = re.compile(r"[^.!?;\n]*(?:[.!?;]+[\"'*_`)\]]*|\n|\Z)")
_ASKS = re.compile(r"\?[\s\"'*_`)\]]*\Z")  # the end of a question
# Where a sentence ends, or a parenthesis or an explanation after a dash or colon begins.
_BREAK = re.compile(r"[.!?;\n(]|\s[-–—]\s|[–—:]")
# \boxed{…} of LaTeX, and an answer tag.
_MACHINE_FORM = re.compile(
    r"(?:<\s{0,2}(?:answer|final_answer|emotion|label|response)\s{0,2}>|\\?(?:boxed|fbox)\s{0,2}\{)([^<}\n]{0,120})"
)
# Bold and italics, in Markdown and HTML; an asterisk and a space begin a list.
_EMPHASIS = re.compile(r"(?:\*\*|__|<(?:b|strong|em|i|u)>|(?<![\w*])\*(?=[^*\s]))([^*_<\n]{1,80})[*_<]")
# A text in quotation marks or backticks; an apostrophe inside a word opens and closes nothing.
_QUOTED = re.compile(r"(?:[\"`]|(?<!\w)')([^\"'`\n]{1,40})(?:[\"`]|'(?!\w))")
_CLOSERS = r"[\s\"'*_`\])]{0,6}"  # what may close a word that is marked up or quoted: "**Answer**:"


def _labels(text: str) -> Labels:
    """Returns the labels of the marks in a text."""
    return [_EMOTIONS[mark] for mark in _MARK.findall(text)]


def _sentences(reply: str) -> list[str]:
    """Returns the sentences with a mark."""
    return list(filter(_MARK.search, _SENTENCE.findall(reply)))


def _marked(sentence: str, own: OwnWords | None) -> str:
    """Marks the emotion words of a sentence that neither asks nor weighs, but for denied ones."""
    mentions = find_mentions(sentence, own)
    if not mentions or _ASKS.search(sentence) or _pattern("weighs").search(_plainly(sentence)):
        return sentence
    adjectives = {place for match in _pattern("adjective").finditer(sentence) for place in range(*match.span())}
    parts, end = [], 0
    for mention in mentions:
        if not _is_denied(sentence, mention):
            parts += [sentence[end : mention.start], _MARKS[mention.emotion], _OF_NOUN * (mention.start in adjectives)]
            end = mention.end
    return "".join((*parts, sentence[end:]))


def _without_lists(text: str) -> str:
    """Takes the marks out of repeated option lists: five or more different labels with nothing else between them."""
    pieces, begin = _MARK.split(text), 1  # every other piece is a mark
    for place in range(3, len(pieces) + 2, 2):
        run = pieces[begin:place:2]
        if place < len(pieces) and pieces[place] not in run[:-1] and _joins(pieces[place - 1]):
            continue
        if len(set(run)) >= _OPTIONS:
            pieces[begin:place:2] = ["listed"] * len(run)
        begin = place
    return "".join(pieces)


def _is_plain(text: str, *further: str) -> bool:
    """Whether the text around a label adds nothing to it: numbering, "probably", "she feels", "です"."""
    return not _MARK.search(text) and _consists_of(text, "plain", *further)


@cache
def _cue(key: str) -> re.Pattern[str]:
    """Matches what leads to a label: "answer:", "the emotion that fits best is", "I choose"; ``other``: "second …"."""
    # the Hindi copula comes after the label
    copulas = _alternation([language for language in LANGUAGES if language != "hi"], "copulas")
    link = rf"{_CLOSERS}(?:[:=]|-{{1,2}}>|→|—|–|\s-\s|\n)|[^.\n:;?!{{}}]{{0,80}}?{copulas}{_CLOSERS}:?"
    direct = _alternation(LANGUAGES, "choose") if key == "choice" else "(?!)"
    cue = rf"{_alternation(LANGUAGES, key)}(?:{link})|(?:{_alternation(['hi'], key)}|{direct}){_CLOSERS}:?"
    return re.compile(rf"(?P<other>{_alternation(LANGUAGES, 'other_answer')}\W{{0,4}})?(?:{cue})")


def _cued(reply: str, key: str) -> Labels:
    """The label to which each cue leads; None where another one is joined to it."""
    labels: Labels = []
    for sentence in _sentences(reply):
        for cue in _cue(key).finditer(sentence):
            lead, *named = _MARK.split(sentence[cue.end() :])
            is_other = cue["other"] or _MARK.search(cue.group())
            if named and not is_other and len(lead) <= _LONGEST_LEAD:
                rivals = any(map(_are_rivals, named[::2], named[1::2], named[2::2]))
                labels.append(None if rivals else _EMOTIONS[named[0]])
    return labels


def _are_rivals(first: str, gap: str, second: str) -> bool:
    """Whether two neighbouring labels are named side by side."""
    return first != second and _joins(gap) and _BREAK.search(gap) is None


def _alone(reply: str) -> Labels:
    """Labels of sentences and lines that hold nothing else but numbering, "probably" or "it is"."""
    labels: Labels = []
    several = len(set(_labels(reply))) > 1
    for sentence in _sentences(reply):
        *start, rest = _MARK.split(sentence)
        context, named = _MARK.sub(" ", sentence), _labels(sentence)
        is_cue = len(set(named)) > 1 and any(_cue(key).search("".join(start)) for key in ("answer", "choice"))
        if (
            rest.strip(" *_\n") != ":"
            and not is_cue
            and _is_plain(_pattern("contrast").sub(" ", context), "alternatives")
        ):
            labels += named
            labels += [None] if several and _pattern("possible", "doubt").search(context) else []
    return labels


def _answer(reply: str) -> Labels:
    """The last "Answer: …" and labels that stand alone; without the former also labels that are chosen or fit best."""
    if answers := _cued(reply, "answer")[-1:]:
        return [*answers, *_alone(reply)]
    pieces = _MARK.split(reply)[1:]
    clauses = zip(pieces[::2], map(_clause_after, pieces[1::2]), strict=True)
    fitting = [_EMOTIONS[mark] for mark, after in clauses if _pattern("best").match(after.lstrip("感さ"))]
    return [*_alone(reply), *_cued(reply, "choice"), *fitting]


def _markup(reply: str) -> Labels:
    """The labels in bold or italics; without any the one in quotation marks, since an explanation quotes too."""
    emphasised, quoted = (_labels("".join(form.findall(reply))) for form in (_EMPHASIS, _QUOTED))
    return emphasised or (quoted if len(set(quoted)) == 1 else [])


def _opens(before: str, after: str) -> bool:
    """Whether only plain words are before a label, and behind it in its clause."""
    return _is_plain(before) and _is_plain(_pattern("because").split(_clause_after(after), maxsplit=1)[0])


def _contrasts(gap: str) -> bool:
    """Whether a text has a word such as "but"; "because" ends a denial too, and contrasts nothing."""
    return any(not _pattern("because").match(gap, turn.start()) for turn in _pattern("contrast").finditer(gap))


def _leading(reply: str) -> Labels:
    """The label that opens the reply, where others only explain it, or the only one there is."""
    if not (sentences := _sentences(reply)):
        return []
    before, first, *others = _MARK.split(reply)
    rival = next((place for place in range(1, len(others), 2) if others[place] != first), 0)
    opens, statement = _opens(before, "".join(others)), sentences[0]
    turns = rival or _contrasts(statement)
    if not opens and (_pattern("doubt").search(statement) or (turns and _pattern("expected").search(statement))):
        return []
    if not rival:
        return [] if others[0].startswith(_OF_NOUN) and not opens else [_EMOTIONS[first]]
    gap = "".join(others[:rival])
    explained = _BREAK.search(gap) or _pattern("because").search(gap)
    if not opens or not explained or _contrasts(gap[:80]) or _are_rivals(first, gap, others[rival]):
        return []
    lines = (_MARK.split(line, maxsplit=1) for line in reply.split("\n")[1:])
    lists = any(named and named[0] != first and _opens(start, named[1]) for start, *named in lines)
    return [] if lists else [_EMOTIONS[first]]


def read_reply(reply: str, own: OwnWords | None = None) -> Emotion | None:
    r"""Returns the emotion that a reply chooses, or None where it chooses none or more than one, in linear time.

    In order: ``\\boxed`` and answer tags; "Answer: …", a sentence or line with the label alone, "the emotion is …";
    labels in bold, or a single one in quotes; the label that opens the reply where others only explain it; the only
    label there is. A reply that declines to answer is read in the first two forms only. Words of all seven languages
    count; with those of an own culture, these and English ones.
    """
    text = _MARK.sub("", fold(REASONING_BEGINS.split(without_reasoning(reply), maxsplit=1)[0])).strip()
    following = _pattern("next_prompt").search(text)  # such as "Question:", of a model that goes on
    if following and find_mentions(text[: following.start()], own):
        text = text[: following.start()]
    marked = _without_lists("".join(_marked(sentence, own) for sentence in _SENTENCE.findall(text)))
    gaps = [_plainly(gap.replace(",", " ")) for gap in _MARK.split(marked)[2:-1:2]]
    if len(set(_labels(marked))) > 1 and any(map(_pattern("corrections").search, gaps)):
        return None  # "fear, or rather surprise"
    labels = _labels("".join(_MACHINE_FORM.findall(marked))) or _answer(marked)
    if not labels and not _pattern("declines").search(text):
        labels = _markup(marked) or _leading(marked)
    return labels[0] if len(set(labels)) == 1 else None

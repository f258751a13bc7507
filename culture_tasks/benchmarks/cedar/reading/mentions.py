"""Where a folded text names an emotion that it doesn't deny, by the words in ``lexicon/<language>.json``.

Each file holds, for each label, the concepts that count as it, with a language's words for each concept: inflections,
spellings, dictionary equivalents. The concepts are the same in all languages, so that a label is as easy to name in one
as in another. ``not_in``, ``not_before`` and ``not_after`` keep a word from being an emotion word (a set phrase, a
longer compound). The other lists are the phrases that the rules of ``choice`` look for; Japanese and Chinese have
regular expressions for some of them.

A word that could be an inflection of two labels is left out: ``contento``, ``pena`` and ``disgusto`` (es), ``आनंद``
(hi), ``راحة`` (ar), ``raha`` and ``uchungu`` (sw), ``惊喜`` and ``欣慰`` (zh), ``畏怖`` (ja), ``amazement`` (en); and
so is a concept that could be two labels: shock, enjoyment, mirth, awkwardness.

An own culture brings the words of its language (:class:`AddedWords`), without lists for the rules.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias

from culture_tasks.benchmarks.cedar.labels import LANGUAGES, Emotion, Language
from culture_tasks.benchmarks.cedar.reading.folding import fold

Entry: TypeAlias = tuple[Emotion, Language]  # of an emotion word

SPACED: Final[tuple[Language, ...]] = ("en", "es", "sw", "ar", "hi")
UNSPACED: Final[tuple[Language, ...]] = ("ja", "zh")
HAN_OR_KANA: Final = "々〆〇ぁ-ゖゝ-ゟァ-ヺー-ヿ㐀-䶿一-鿿\uf900-\ufaff"
# Letters and digits of any script but Han and kana; Devanagari by range, as its vowel signs are no letters to "\w".
# A hyphen or an apostrophe may join two of them: "didn't", "pain-free".
WORD: Final = re.compile(rf"(?:[^\W_ऀ-ॿ{HAN_OR_KANA}]|[ऀ-ॣ०-९ॱ-ॿ])+(?:['-](?:[^\W_ऀ-ॿ{HAN_OR_KANA}]|[ऀ-ॣ०-९ॱ-ॿ])+)*")
# A run of Han characters and kana, which have no spaces between their words.
RUN: Final = re.compile(f"[{HAN_OR_KANA}]+")
# Where a spaced word begins and ends.
_BEGINS: Final = r"(?<![^\W_])(?<![ऀ-ॣ])"
_ENDS: Final = r"(?![^\W_])(?![ऀ-ॣ])"

# A letter of a script without spaces between words: Thai, Lao, Burmese, Khmer, Han, kana.
_UNSPACED_SCRIPT: Final = re.compile(f"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{HAN_OR_KANA}]")

_LONGEST_WORD = 40
# A word in Arabic letters, diacritics aside.
_ARABIC: Final = re.compile("[ء-ي]+")
_ARABIC_PREFIXES: Final = (
    *("", "وبال", "فبال", "وكال", "ولل", "وال", "فال", "بال", "كال", "لل", "ال"),
    *("وب", "ول", "فب", "و", "ف", "ب", "ك", "ل"),
)
_ARABIC_SUFFIXES: Final = ("", "ا", "ه", "ها", "هم", "ي", "نا", "ك", "كم", "هما")
_SHORTEST_STEM = 3
# The prefixes of a Swahili verb: subject, tense and relative prefix, or a prefix of the infinitive,
# the habitual or the present without tense, and then that of the object.
_SWAHILI_PREFIX: Final = re.compile(
    r"(?:(?:ni|n|u|a|tu|m|wa|i|ya|li|ki|vi|zi)?(?:na|me|li|ta|ki|nge|ngali|mesha|ka)(?:ye|o|cho|yo|vyo|lo)?"
    r"|ku|hu|ni|u|a|tu|m|wa)?(?:m|mw|ku|wa|ni|tu|ji|ki|i)?"
)
_KANA: Final = re.compile("[ぁ-ゖァ-ヺー]+")
_LONG_KANA: Final = 4
_PARTICLES: Final = ("です", "でし", "だ", "を", "が", "の", "と", "で", "な", "に", "は", "も", "よ", "ね")


class Mention(NamedTuple):
    """An emotion word in a folded text: where it begins and ends, its label, and the language whose word it is.

    The language is None for a word of an own culture.
    """

    start: int
    end: int
    emotion: Emotion
    language: Language | None


@dataclass(frozen=True)
class AddedWords:
    """The emotion words of an own culture, in each form that replies may have."""

    language: str
    forms: Mapping[str, Emotion]

    @cached_property
    def labels(self) -> Mapping[str, Emotion]:
        """The label of each folded word."""
        return {fold(form).strip(): emotion for form, emotion in self.forms.items()}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = sorted(self.labels, key=lambda word: (-len(word), word))
        return re.compile("|".join(map(re.escape, words)))

    def mentions(self, text: str) -> Iterator[Mention]:
        """Yields the words in a folded text, whole words alone in scripts that write spaces between them."""
        for match in self._pattern.finditer(text):
            edges = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
            is_part = any(unicodedata.category(edge)[0] in "LMN" for edge in edges)
            if _UNSPACED_SCRIPT.match(match.group()) or not is_part:
                yield Mention(*match.span(), self.labels[match.group()], None)


@cache
def language_file(language: Language) -> Mapping[str, Any]:
    """Returns the content of one language's file."""
    file = resources.files(__package__) / "lexicon" / f"{language}.json"
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def phrases(languages: Iterable[Language], *keys: str) -> list[str]:
    """Returns the folded phrases that the languages' files list under the keys; regular expressions aside."""
    lists = (language_file(language).get(key, ()) for language in languages for key in keys)
    return [fold(phrase) for listed in lists if not isinstance(listed, str) for phrase in listed]


def alternation(languages: Iterable[Language], *keys: str) -> str:
    """Returns a regular expression for the languages' phrases, longest first, spaced ones as whole words."""
    parts = []
    for script, begins, ends in ((SPACED, _BEGINS, _ENDS), (UNSPACED, "", "")):
        members = [language for language in languages if language in script]
        if listed := sorted(set(phrases(members, *keys)), key=lambda phrase: (-len(phrase), phrase)):
            parts.append(f"{begins}(?:{'|'.join(map(re.escape, listed))}){ends}")
        values = (language_file(language).get(key) for language in members for key in keys)
        parts += [value for value in values if isinstance(value, str)]
    return f"(?:{'|'.join(parts)})" if parts else "(?!)"


@cache
def pattern(*keys: str) -> re.Pattern[str]:
    """Matches the phrases that any language lists under one of the keys."""
    return re.compile(alternation(LANGUAGES, *keys))


def entries(language: Language) -> Iterator[tuple[str, Emotion]]:
    """Yields every folded word of a language with its label, Swahili stems aside."""
    for emotion, words in language_file(language)["words"].items():
        for forms in words.values():
            for form in forms.split():
                yield fold(form), emotion


@cache
def _words(languages: tuple[Language, ...]) -> Mapping[str, Entry]:
    """Returns the emotion words of the languages; of two languages with the same word the first has it."""
    return {form: (emotion, language) for language in reversed(languages) for form, emotion in entries(language)}


@cache
def _swahili_verbs() -> Mapping[str, Emotion]:
    return {fold(stem): emotion for emotion, stems in language_file("sw")["verbs"].items() for stem in stems.split()}


@cache
def _other_words(key: str) -> Mapping[str, tuple[str, ...]]:
    """Returns, for an unspaced word, the texts behind it (``not_before``) or before it that make another word of it."""
    tables = [language_file(language).get(key, {}) for language in UNSPACED]
    return {fold(word): tuple(map(fold, neighbours)) for table in tables for word, neighbours in table.items()}


def _arabic(word: str) -> Entry | None:
    """Looks a word up without its article, conjunction or preposition and without a pronoun or accusative ending."""
    lexicon = _words(SPACED)
    for prefix in filter(word.startswith, _ARABIC_PREFIXES):
        for suffix in filter(word.endswith, _ARABIC_SUFFIXES):
            stem = word[len(prefix) : len(word) - len(suffix)]
            if len(stem) < _SHORTEST_STEM:
                continue
            feminine = f"{stem[:-1]}ه" if suffix and stem.endswith("ت") else ""
            if entry := lexicon.get(stem) or lexicon.get(feminine):
                return entry
    return None


def _swahili(word: str) -> Entry | None:
    """Looks a verb up behind its subject, tense, relative and object prefixes; negative verbs have none of these."""
    for place in range(1, len(word) - 2):
        if emotion := _swahili_verbs().get(word[place:]):
            return (emotion, "sw") if _SWAHILI_PREFIX.fullmatch(word[:place]) else None
    return None


@lru_cache(maxsize=4096)
def _look_up(word: str) -> Entry | None:
    if len(word) > _LONGEST_WORD:
        return None
    if entry := _words(SPACED).get(word):
        return entry
    first, hyphen, second = word.partition("-")
    if hyphen:
        # A compound such as "pain-free" is another word; "b-anger" is an enumerated option.
        return _look_up(second) if len(first) == 1 or first.isdigit() else None
    if _ARABIC.fullmatch(word):
        return _arabic(word)
    return _swahili(word) if word.isascii() else None


@cache
def _set_phrases() -> Mapping[str, list[tuple[int, list[str]]]]:
    """For a word, the phrases in which it names no emotion: the word's place in it, and its words."""
    table: dict[str, list[tuple[int, list[str]]]] = {}
    for phrase in phrases(SPACED, "not_in"):
        for place, word in enumerate(phrase.split()):
            table.setdefault(word, []).append((place, phrase.split()))
    return table


def _names_emotion(text: str, words: list[re.Match[str]], place: int) -> bool:
    """Whether an emotion word is no part of a set phrase, and one that is often none ("content") follows "feels"."""
    word = words[place].group()
    for offset, phrase in _set_phrases().get(word, ()):
        first, last = place - offset, place - offset + len(phrase)
        if first >= 0 and text[words[first].start() : words[min(last, len(words)) - 1].end()].split() == phrase:
            return False
    predecessors = language_file("en")["only_after"].get(word)
    alone = text[text.rfind("\n", 0, words[place].start()) + 1 :].partition("\n")[0].strip(" \"'*_`.!:") == word
    return predecessors is None or alone or (place > 0 and words[place - 1].group() in predecessors)


def _spaced(text: str) -> Iterator[Mention]:
    words = list(WORD.finditer(text))
    for place, match in enumerate(words):
        if (entry := _look_up(match.group())) and _names_emotion(text, words, place):
            yield Mention(*match.span(), *entry)


def _stands_by_itself(text: str, start: int, end: int) -> bool:
    """Whether an unspaced word is no part of a known other word.

    Of words in kana, or of one character, particles alone may follow, and precede a long one.
    """
    word, after = text[start:end], text[end : end + 2]
    if text.startswith(_other_words("not_before").get(word, ()), end):
        return False
    if text[max(0, start - 4) : start].endswith(_other_words("not_after").get(word, ())):
        return False
    kana = _KANA.fullmatch(word) is not None
    if len(word) > 1 and not kana:
        return True
    before = text[max(0, start - 1) : start]
    follows_particle = len(word) >= _LONG_KANA and before in _PARTICLES
    if (_KANA if kana else RUN).match(before) and not follows_particle:
        return False
    return not RUN.match(after) or after.startswith(_PARTICLES)


def _unspaced(text: str) -> Iterator[Mention]:
    lexicon = _words(UNSPACED)
    longest = max(map(len, lexicon))
    for run in RUN.finditer(text):
        place = run.start()
        while place < run.end():
            sizes = range(min(longest, run.end() - place), 0, -1)
            size = next((size for size in sizes if text[place : place + size] in lexicon), 0)
            if size and _stands_by_itself(text, place, place + size):
                yield Mention(place, place + size, *lexicon[text[place : place + size]])
            place += size or 1


def find_mentions(text: str, added: AddedWords | None = None) -> list[Mention]:
    """Returns the emotion words of a folded text, in order: whole words; in Japanese and Chinese the longest.

    With words of an own culture, these, and the lexicon's words of English and of the culture's language.
    """
    mentions = [*_spaced(text), *_unspaced(text)]
    if added is None:
        return sorted(mentions)
    added_mentions = list(added.mentions(text))
    labels = {place: mention.emotion for mention in added_mentions for place in range(mention.start, mention.end)}
    mentions = [
        mention
        for mention in mentions
        if mention.language in ("en", added.language)
        and all(labels.get(place, mention.emotion) == mention.emotion for place in range(mention.start, mention.end))
    ]
    places = {place for mention in mentions for place in range(mention.start, mention.end)}
    mentions += [mention for mention in added_mentions if places.isdisjoint(range(mention.start, mention.end))]
    return sorted(mentions)


# Denials: "not sadness", "sadness doesn't fit", "悲しみではなく"

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
    """Returns the text before and after an emotion word in its clause, without markup."""
    before = _ASIDE.sub(r"\1", text[max(0, mention.start - _BEFORE) : mention.start])
    after = text[mention.end : mention.end + _AFTER]
    return plainly(_EDGE.split(before)[-1]), plainly(_EDGE.split(after, maxsplit=1)[0])


def joins(gap: str) -> bool:
    """Whether only punctuation, numbering and linking words are between two emotion words."""
    if len(gap) > _AFTER:
        return False
    remainder = pattern("joiners").sub(" ", gap)
    return all(len(word) == 1 or word.isdigit() for word in [*WORD.findall(remainder), *RUN.findall(remainder)])


@cache
def _denials(languages: tuple[Language, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Matches denials of an emotion word: in its clause before it, and right after it."""
    after = [rf"\W*(?:\w+ )?{alternation(languages, 'denied_after')}"]
    if "hi" in languages:  # which denies after the word, anywhere in the clause
        after.append(f".*?{alternation(['hi'], 'denied_after')}")
    after.append(alternation(UNSPACED, "denied_after"))
    before = rf"{alternation((*languages, *UNSPACED), 'denied_before')}|\w+n't(?!\w)"
    return re.compile(before), re.compile("|".join(after))


@cache
def _vocabulary(language: Language) -> frozenset[str]:
    markers = phrases([language], "denied_before", "denied_after", "plain", "contrast", "because", "answer", "choose")
    return frozenset(word for phrase in markers for word in phrase.split())


def _languages(mention: Mention, clause: str) -> tuple[Language, ...]:
    """Returns the languages whose denials count: the word's and English, for an English word also the clause's."""
    if mention.language != "en":
        return (mention.language, "en") if mention.language in SPACED else ("en",)
    clause_words = set(WORD.findall(clause))
    counts = {language: len(clause_words & _vocabulary(language)) for language in SPACED}
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
